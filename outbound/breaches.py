"""Checks whether a password was in a breach. The look-up is k-anonymous: it sends only the first five hex digits of the
SHA-1.

The server answers like the range endpoint of Have I Been Pwned, in lines of `SUFFIX:COUNT` with a suffix of 35 hex
digits. If the server is away, slow, or sends anything else, the password passes and the log gets a line.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from urllib.parse import urlsplit

import aiohttp

from observability.spans import outgoing
from store.phrases import Phrase

SECONDS = 2.0
AT_ONCE = 8
MOST_BYTES = 2**18
"""The longest answer. With padding, answers have some 40 KB."""
BREACHED = Phrase("That password appeared in a data breach. Choose a different one.")

log = logging.getLogger("latchkey.passwords")


class Breaches:
    """Look-ups at the operator's URL, plus five hex digits. The operator chose the host, so it may be private."""

    def __init__(self, url: str, seconds: float = SECONDS) -> None:
        self.url = url
        self._seconds = seconds
        self._busy = 0

    async def check(self, password: str) -> None:
        """Raises ValueError, with a reason for people, if the password was in a breach."""
        if self.url and await self._has(password):
            raise ValueError(BREACHED)

    async def _has(self, password: str) -> bool:
        digest = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper()
        if self._busy >= AT_ONCE:
            log.warning("a password was not looked up: %d look-ups are under way", self._busy)
            return False
        self._busy += 1
        try:
            async with asyncio.timeout(self._seconds):
                with outgoing(self.url):
                    found = await self._range(digest[:5])
        except (aiohttp.ClientError, OSError, ValueError) as error:  # includes time-outs
            # The URL may contain a secret, and error messages may contain the URL.
            log.warning("a password was not looked up at %s: %s", urlsplit(self.url).hostname, type(error).__name__)
            return False
        finally:
            self._busy -= 1
        # Lines of padding have the count 0.
        return any(line.partition(":")[2].strip() != "0" for line in found.split() if line.startswith(digest[5:] + ":"))

    async def _range(self, prefix: str) -> str:
        async with (
            aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"user-agent": "Latchkey", "add-padding": "true", "accept-encoding": "identity"},
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
            ) as session,
            session.get(self.url + prefix, allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise ValueError("the status is not 200")
            content = bytearray()
            async for piece in response.content.iter_chunked(2**14):
                content += piece
                if len(content) > MOST_BYTES:
                    raise ValueError("the answer is too large")
            return content.decode("ascii").upper()
