"""The k-anonymity lookup of a new password: what is sent, what is refused, and that it fails open."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from handlers.core.site import Site
from outbound.breaches import AT_ONCE, MOST_BYTES, Breaches
from runtime.arguments import load
from settings.types import SettingsError
from store.wiring import Store
from tests.support.browser.signup import sign_up
from tests.support.http.driver import PASSWORD, Service, fields_of

pytestmark = pytest.mark.gen_test(timeout=20)

BAD = "a breached long password"
DIGEST = hashlib.sha1(BAD.encode(), usedforsecurity=False).hexdigest().upper()
SUFFIX = DIGEST[5:]
OTHER = "0" * 35


class Ranges:
    """A range server that records its requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.answer = f"{OTHER}:7\r\n{SUFFIX}:3\r\n".encode()
        self.status = "200 OK"
        self.silent = False
        self.serving: set[asyncio.Task[None]] = set()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if self.silent:
            await reader.read()
        writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: {len(self.answer)}\r\n\r\n".encode() + self.answer)
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def ranges() -> AsyncIterator[Ranges]:
    made = Ranges()
    async with await asyncio.start_server(made.serve, "127.0.0.1", 0) as server:
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/range/"
        yield made
        await asyncio.gather(*made.serving, return_exceptions=True)


async def test_five_hex_digits_are_sent_and_nothing_else_of_the_password() -> None:
    async with ranges() as there:
        with pytest.raises(ValueError, match="data breach"):
            await Breaches(there.url).check(BAD)
        (request,) = there.requests
    assert request.startswith(f"GET /range/{DIGEST[:5]} HTTP/1.1\r\n")
    assert "add-padding: true" in request.lower()
    assert DIGEST[5:10] not in request.upper()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda there: setattr(there, "answer", f"{OTHER}:7\r\n".encode()), id="another password"),
        pytest.param(lambda there: setattr(there, "answer", f"{SUFFIX}:0\r\n".encode()), id="a line of padding"),
    ],
)
async def test_an_unlisted_password_is_accepted_without_a_log_line(
    change: Callable[[Ranges], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with ranges() as there:
        change(there)
        await Breaches(there.url).check(BAD)
        assert there.requests
    assert not caplog.records


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda there: setattr(there, "status", "503 Busy"), id="the server is busy"),
        pytest.param(lambda there: setattr(there, "status", "302 Found\r\nLocation: /x"), id="a redirect"),
        pytest.param(lambda there: setattr(there, "answer", b"\xff" * 40), id="no text"),
        pytest.param(lambda there: setattr(there, "answer", b"0" * (MOST_BYTES + 1)), id="more than an answer has"),
        pytest.param(lambda there: setattr(there, "silent", True), id="no answer in time"),
        pytest.param(lambda there: setattr(there, "url", "http://127.0.0.1:1/?key=hidden/"), id="nobody listens"),
    ],
)
async def test_a_failed_lookup_accepts_the_password_and_is_logged(
    change: Callable[[Ranges], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with ranges() as there:
        change(there)
        await Breaches(there.url, 0.3).check(BAD)
    (line,) = caplog.messages
    assert line.startswith("a password was not looked up at 127.0.0.1: ")
    assert "hidden" not in line


async def test_hanging_lookups_delay_no_others(caplog: pytest.LogCaptureFixture) -> None:
    async with ranges() as there:
        there.silent = True
        breaches = Breaches(there.url, 0.3)
        await asyncio.gather(*(breaches.check(BAD) for _ in range(AT_ONCE + 3)))
        assert len(there.requests) == AT_ONCE
    assert sum("under way" in line for line in caplog.messages) == 3


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return Site(memory_store, base_url)


async def test_a_breached_password_is_refused_wherever_one_is_set(service: Service, site: Site) -> None:
    async with ranges() as there:
        site.breaches.url = there.url
        assert b"data breach" in (await sign_up(service.browser(), "new@example.com", BAD)).body
        ada = await service.signed_in()
        page = await ada.get("/account/security")
        form = {**fields_of(page, "/account/security"), "current_password": PASSWORD, "new_password": BAD}
        assert b"data breach" in (await ada.send("/account/security", "POST", form=form)).body
        link = await service.store.links.to_reset(service.ada, "ada@example.com")
        assert link is not None
        browser = service.browser()
        page = await browser.get(f"/reset?link={link.text}")
        assert b"data breach" in (await browser.submit(page, "/reset", new_password=BAD)).body
        assert len(there.requests) == 3


@pytest.mark.parametrize("url", ["ftp://x/", "https://", "https://x/y", "https://x/#/", "https://x /", "range/"])
async def test_an_invalid_range_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load([], {"LATCHKEY_PASSWORD_RANGES": url})
    assert f"not '{url}" not in str(refused.value)
    assert load([], {"LATCHKEY_PASSWORD_RANGES": "http://10.0.0.1:8080/range/"}).password_ranges
