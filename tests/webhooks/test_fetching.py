"""One fetch of a domain proof file, from a hostile server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from outbound.address_policy import AddressPolicy
from outbound.guarded_http import NO_ADDRESS
from tests.support.http.receiver import Reply, answering
from tests.support.lists.offenders import each
from tests.support.processes.proven_domain import DOMAIN, TEXT, Domain

pytestmark = pytest.mark.gen_test(timeout=30)

URL = f"https://{DOMAIN}/file"


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\n{TEXT}\r\n\r\n".encode())
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def slow(writer: asyncio.StreamWriter) -> None:
    writer.write(f"HTTP/1.1 200 OK\r\n{TEXT}\r\nContent-Length: 100\r\n\r\nx".encode())
    await writer.drain()
    await asyncio.get_running_loop().create_future()


@each(
    ("reply", "error"),
    [
        pytest.param(answering(404), "The answer was 404.", id="no file"),
        pytest.param(answering(302, f"Location: {URL}", TEXT), "redirects are not followed", id="a redirect"),
        pytest.param(answering(200, "Content-Type: text/html", body=b"x"), "not plain text", id="a page"),
        pytest.param(answering(200, body=b"x"), "not plain text", id="of no type"),
        pytest.param(answering(200, TEXT, "Content-Encoding: gzip", body=b"x"), "not plain text", id="packed"),
        pytest.param(answering(200, TEXT, body=b"x" * 101), "more than 100 bytes", id="one byte too many"),
        pytest.param(endless, "more than 100 bytes", id="without end"),
        pytest.param(slow, "no complete answer within 0.3 seconds", id="by the byte"),
    ],
)
async def test_only_a_small_plain_text_file_is_a_proof(tmp_path: Path, reply: Reply, error: str) -> None:
    domain = await Domain.make(tmp_path, whole=0.3 if reply is slow else 5.0)
    domain.answers(reply)
    found = await domain.fetcher.fetch(URL, 100)
    assert (found.text, error in found.error) == (b"", True), found.error
    assert len(domain.receiver.posted) == 1
    await domain.receiver.close()


async def test_the_file_is_fetched_with_a_minimal_request(tmp_path: Path) -> None:
    domain = await Domain.make(tmp_path)
    domain.says("x" * 100)
    assert (await domain.fetcher.fetch(URL, 100)).text == b"x" * 100
    [request] = domain.receiver.posted
    assert request.line == "GET /file HTTP/1.1"
    assert set(request.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    await domain.receiver.close()


@pytest.mark.fapi("5.2.1-5 certificates")
async def test_private_addresses_and_wrong_certificates_are_refused(tmp_path: Path) -> None:
    domain = await Domain.make(tmp_path, AddressPolicy())
    assert (await domain.fetcher.fetch(URL, 100)).error == NO_ADDRESS
    await domain.receiver.close()
    domain = await Domain.make(tmp_path)
    assert "certificate is not valid" in (await domain.fetcher.fetch("https://other.example/file", 100)).error
    assert domain.receiver.posted == []
    await domain.receiver.close()


async def test_one_persons_fetches_leave_places_for_others(tmp_path: Path) -> None:
    domain = await Domain.make(tmp_path)
    domain.answers(slow)
    greedy = [asyncio.ensure_future(domain.fetcher.fetch(URL, 100, "greedy")) for _ in range(8)]
    await domain.receiver.count(2)
    await asyncio.sleep(0.1)
    assert len(domain.receiver.posted) == 2
    domain.says("ours")
    async with asyncio.timeout(2):
        assert (await domain.fetcher.fetch(URL, 100, "ada")).text.strip() == b"ours"
        # Nobody's fetches, such as those of the sweep, are each their own.
        found = await asyncio.gather(*(domain.fetcher.fetch(f"{URL}?{number}", 100) for number in range(4)))
    assert all(one.text for one in found)
    for task in greedy:
        task.cancel()
    await asyncio.gather(*greedy, return_exceptions=True)
    await domain.receiver.close()
