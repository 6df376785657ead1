"""What `outbound/aiohttp_private.py` relies on, tested against the installed aiohttp."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from outbound.aiohttp_private import INTERIM, BoundedResponse
from tests.support.http.receiver import Receiver, answering

pytestmark = pytest.mark.gen_test


async def status_behind(interim: int, response_class: type[aiohttp.ClientResponse]) -> int:
    """The status of an answer after this many interim ones."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * interim)
        await answering(200)(writer)

    receiver = Receiver(reply)
    await receiver.start()
    session = aiohttp.ClientSession(response_class=response_class)
    try:
        async with session.post(receiver.url, data=b"{}") as response:
            return response.status
    finally:
        await session.close()
        await receiver.close()


async def test_interim_answers_are_counted_one_by_one() -> None:
    assert await status_behind(0, BoundedResponse) == 200
    assert await status_behind(INTERIM, BoundedResponse) == 200
    with pytest.raises(aiohttp.ClientResponseError, match="interim answers without end"):
        await status_behind(INTERIM + 1, BoundedResponse)


async def test_aiohttp_alone_accepts_any_number_of_interim_answers() -> None:
    assert await status_behind(10 * INTERIM, aiohttp.ClientResponse) == 200
