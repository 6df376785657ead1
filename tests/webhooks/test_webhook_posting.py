"""One post to a hostile receiver."""

from __future__ import annotations

import asyncio
import ssl
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from outbound.address_policy import AddressPolicy
from outbound.webhooks.posting import Poster, PostResult
from outbound.webhooks.retries import ATTEMPTS, LONGEST_RETRY_AFTER, PAUSES, pause_after
from store.clock import wall
from tests.support.http.receiver import Receiver, answering
from tests.support.lists.offenders import each

# What `email.utils` gives up on with another error than the one it documents.
NO_DATES = ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2027 00:00:00 +99999999999999")


async def posted(receiver: Receiver, **limits: float) -> PostResult:
    await receiver.start()
    seconds: dict[str, Any] = {"connect": 2, "whole": 2, **limits}
    poster = Poster(AddressPolicy(loopback=True), 4, **seconds)
    try:
        return await poster.post(receiver.url, {"webhook-id": "an-id"}, b'{"a":1}')
    finally:
        await poster.close()
        await receiver.close()


@pytest.mark.gen_test
async def test_a_post_arrives_unchanged() -> None:
    receiver = Receiver()
    assert await posted(receiver) == PostResult(204)
    [one] = receiver.posted
    assert one.line == "POST /hook HTTP/1.1"
    assert one.body == b'{"a":1}'
    assert one.headers["content-type"] == "application/json"
    assert one.headers["webhook-id"] == "an-id"
    assert "cookie" not in one.headers


@pytest.mark.gen_test
@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_counts_as_delivered(status: int) -> None:
    answer = await posted(Receiver(answering(status)))
    assert answer.delivered
    assert answer.error == ""


@pytest.mark.gen_test
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    elsewhere = Receiver()
    await elsewhere.start()
    receiver = Receiver(answering(status, f"Location: {elsewhere.url}"))
    answer = await posted(receiver)
    assert not answer.delivered
    assert "redirect" in answer.error
    assert len(receiver.posted) == 1
    assert elsewhere.posted == []
    await elsewhere.close()


@pytest.mark.gen_test
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
async def test_any_other_status_is_a_failure(status: int) -> None:
    answer = await posted(Receiver(answering(status, "Retry-After: 120")))
    assert (answer.delivered, answer.gone, answer.status, answer.retry_after) == (False, False, status, 120)
    assert str(status) in answer.error


@pytest.mark.gen_test
async def test_410_means_gone() -> None:
    answer = await posted(Receiver(answering(410)))
    assert answer.gone
    assert not answer.delivered


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("ahead", "least", "most"),
    [
        pytest.param(timedelta(hours=1), 3500, 3601, id="a date"),
        pytest.param(timedelta(days=-2000), 0, 0, id="a date that is past"),
    ],
)
async def test_retry_after_may_be_a_date(ahead: timedelta, least: float, most: float) -> None:
    field = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
    answer = await posted(Receiver(answering(503, f"Retry-After: {field}")))
    assert answer.retry_after is not None
    assert least <= answer.retry_after <= most


@pytest.mark.gen_test
async def test_the_date_of_a_receiver_that_did_not_travel_is_on_the_hosts_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wall, "ahead", 40 * 86_400.0)
    field = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    answer = await posted(Receiver(answering(503, f"Retry-After: {field}")))
    assert answer.retry_after is not None
    assert 3500 <= answer.retry_after <= 3601


@pytest.mark.gen_test
@each("field", ["soon", "-5", "1e9", "٣", "", "9" * 40, *NO_DATES])
async def test_an_invalid_retry_after_is_ignored(field: str) -> None:
    assert (await posted(Receiver(answering(503, f"Retry-After: {field}")))).retry_after is None


@pytest.mark.gen_test
async def test_a_silent_receiver_times_out() -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(30)

    began = time.monotonic()
    answer = await posted(Receiver(silent), whole=0.5)
    assert answer == PostResult(None, "No answer within 0.5 seconds.")
    assert time.monotonic() - began < 15


@pytest.mark.gen_test
async def test_a_trickling_receiver_times_out() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 200 Fine\r\n" + b"X: y\r\n" * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    began = time.monotonic()
    assert (await posted(Receiver(slow), whole=0.5)).status is None
    assert time.monotonic() - began < 15


@pytest.mark.gen_test
async def test_an_endless_body_is_not_read() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
            await writer.drain()
            sent += 0x10000

    assert (await posted(Receiver(endless))).delivered
    assert sent < 2**23  # what the machine's own buffers take


@pytest.mark.gen_test
async def test_a_missing_body_does_not_change_the_outcome() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 Fine\r\nContent-Length: 10\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(30)

    assert (await posted(Receiver(half), whole=5)).delivered


@pytest.mark.gen_test
async def test_a_status_in_time_counts_even_if_the_body_is_late() -> None:
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(b"HTTP/1.1 200 Fine\r\nContent-Length: 10\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(30)

    assert await posted(Receiver(late), whole=0.8) == PostResult(200)


@pytest.mark.gen_test
async def test_interim_answers_are_read_up_to_a_limit() -> None:
    sent = 0

    async def wakeup(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3)
        await answering(200)(writer)

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
            await writer.drain()
            sent += 100

    assert await posted(Receiver(wakeup)) == PostResult(200)
    assert await posted(Receiver(endless), whole=10) == PostResult(None, "The answer was not HTTP.")
    assert sent > 0


@pytest.mark.gen_test
async def test_an_endless_head_is_a_failure() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 Fine\r\n")
        while True:
            writer.write(b"X-Long: " + b"y" * 60_000 + b"\r\n")
            await writer.drain()

    answer = await posted(Receiver(endless))
    assert answer.status is None
    assert answer.error == "The answer was not HTTP."


@pytest.mark.gen_test
@pytest.mark.parametrize("raw", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 two hundred\r\n\r\n"])
async def test_an_answer_that_is_no_http_is_a_failure(raw: bytes) -> None:
    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    answer = await posted(Receiver(reply))
    assert answer.status is None
    assert answer.error in ("The connection was closed without an answer.", "The answer was not HTTP.")


@pytest.mark.gen_test
async def test_an_unreachable_receiver_is_reported_without_the_url() -> None:
    receiver = Receiver()
    await receiver.start()
    await receiver.close()
    poster = Poster(AddressPolicy(loopback=True), 4, connect=2, whole=2)
    assert (await poster.post(receiver.url + "?token=secret", {}, b"")).error == "No connection could be made."
    await poster.close()


@pytest.mark.gen_test
async def test_posting_needs_tls_with_a_valid_certificate(tmp_path: Path) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 no TLS here\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    poster = Poster(AddressPolicy(loopback=True), 4, connect=5, whole=5)
    port = server.sockets[0].getsockname()[1]
    assert (await poster.post(f"https://127.0.0.1:{port}/", {}, b"")).error == "No TLS connection could be made."
    server.close()
    receiver = Receiver()
    await receiver.start(ssl=self_signed(tmp_path))
    url = receiver.url.replace("http:", "https:")
    assert (await poster.post(url, {}, b"")).error == "The receiver's certificate is not valid for this host."
    assert receiver.posted == []
    await receiver.close()
    await poster.close()


def self_signed(folder: Path) -> ssl.SSLContext:
    """What a server presents that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    certificate = made.sign(key, hashes.SHA256())
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, *form) + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_the_back_off_grows_for_three_days() -> None:
    assert 2.5 * 86_400 < sum(PAUSES) < 3.2 * 86_400
    for attempt, pause in enumerate(PAUSES, 1):
        drawn = [pause_after(attempt, None) or 0 for _ in range(50)]
        assert all(0.8 * pause <= one <= 1.2 * pause for one in drawn)
        assert len(set(drawn)) > 1
    assert pause_after(ATTEMPTS, None) is None
    assert pause_after(ATTEMPTS, 5.0) is None


def test_retry_after_can_only_lengthen_the_wait() -> None:
    assert pause_after(1, 120.0) == 120.0
    assert pause_after(1, 1e9) == LONGEST_RETRY_AFTER
    assert (pause_after(6, 0.0) or 0) >= 0.8 * PAUSES[5]
