"""Has a password been in a breach? A look-up by k-anonymity: the first five hex digits of its SHA-1, and no more.

The answer is what the range endpoint of Have I Been Pwned sends: lines of `SUFFIX:COUNT`, a suffix of 35 hex digits.
Any server of that form will do. One that is away, slow, or sends something else lets the password pass, with a line in
the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from urllib.parse import urlsplit

import aiohttp

SECONDS = 2.0
AT_ONCE = 8
MOST_BYTES = 2**18
"""Of an answer: one with padding has some 40 KB."""
BREACHED = "That password has been in a data breach, so others have it. Choose another."

log = logging.getLogger("latchkey.passwords")


class Breaches:
    """Look-ups at an operator's URL, which five hex digits complete. The operator chose its host: it may be private."""

    def __init__(self, url: str, seconds: float = SECONDS) -> None:
        self.url = url
        self._seconds = seconds
        self._busy = 0

    async def check(self, password: str) -> None:
        """Raises ValueError, with a reason for people, for a password that was in a breach."""
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
                found = await self._range(digest[:5])
        except (aiohttp.ClientError, OSError, ValueError) as error:  # of these a time-out is one
            # The URL may hold a secret, and the message of an error the URL.
            log.warning("a password was not looked up at %s: %s", urlsplit(self.url).hostname, type(error).__name__)
            return False
        finally:
            self._busy -= 1
        # A line of padding has the count 0.
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
