"""Downloads of a person's data: a fixture of their site, and the requests."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any
from urllib.parse import urlsplit

import pytest

from handlers.core.site import Site
from tests.conftest import OpenStore
from tests.support.http.driver import Browser, Service


@pytest.fixture
def site(request: pytest.FixtureRequest, open_store: OpenStore, base_url: str) -> Site:
    """On fakeredis; with the parameter "valkey" on Valkey."""
    if getattr(request, "param", "") != "valkey":
        return Site(open_store("memory"), base_url)
    engine = request.getfixturevalue("valkey_engine")
    with engine.client() as client:
        client.flushall()
    return Site(open_store(engine.url), base_url)


async def begin_download(service: Service, browser: Browser, path: str) -> tuple[Any, Any]:
    """Sends the request over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(service.base_url).port, limit=2**16)
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nCookie: {cookies}\r\n\r\n".encode())
    assert b" 200 " in await reader.readline()
    return reader, writer


async def measured_download(service: Service, browser: Browser, path: str) -> tuple[int, int]:
    """The bytes of a whole download, and the most bytes of Python's memory that it took."""
    tracemalloc.start()
    reader, writer = await begin_download(service, browser, path)
    received, tail = 0, b""
    while piece := await reader.read(2**16):
        received, tail = received + len(piece), (tail + piece)[-5:]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    writer.close()
    assert tail == b"0\r\n\r\n", "the end of a chunked body"
    return received, peak
