"""What this program knows of the inside of aiohttp. tests/webhooks/test_aiohttp_private.py checks it."""

from __future__ import annotations

from typing import Any

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import HttpProcessingError

INTERIM = 8
"""Interim answers (1xx) before the one that counts. A receiver that sends them without end would have this server read
them, some thousands in one piece, for as long as a post may take."""


class BoundedResponse(aiohttp.ClientResponse):
    """One that gives up on a receiver of too many interim answers."""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """As in aiohttp, which has no bound of its own. Relies on: `start` calls `read` of the connection's protocol
        once for each answer, interim ones included, and raises ClientResponseError for this exception."""
        protocol = connection.protocol
        assert protocol is not None
        read, left = protocol.read, INTERIM

        async def counted() -> Any:
            nonlocal left
            if left < 0:
                raise HttpProcessingError(code=502, message="interim answers without end")
            left -= 1
            return await read()

        protocol.read = counted  # type: ignore[method-assign]
        return await super().start(connection)
