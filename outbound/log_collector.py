"""Sends logs to an OpenTelemetry collector: OTLP over HTTP, in JSON.

The operator has named the collector, and still it is no friend: an answer is bounded in bytes and time, redirects are
not followed, and our log has only the status of an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import aiohttp

from outbound.address_policy import AddressPolicy
from outbound.ai.retry_after import retry_after
from outbound.guarded_http import guarded_session, in_words
from store.json_text import NotJSON, decode_strictly

CONNECT_SECONDS, WHOLE_SECONDS = 5.0, 10.0
"""The whole is shorter than a turn (`store/accounts/audit/export_turn.py`), which so never ends during a request."""
LONGEST_ANSWER: Final = 16 * 2**10
DEEPEST: Final = 8
ABOUT_THE_LOGS: Final = (400, 413, 422)
"""Answers that mean these logs, and not the way to the collector or its trouble."""
_ANYWHERE: Final = AddressPolicy((ip_network("0.0.0.0/0"), ip_network("::/0")))

Fate = Literal["sent", "refused", "later"]


@dataclass(frozen=True, slots=True)
class CollectorAnswer:
    """The outcome of a request: the logs are `sent`, `refused` for good, or to be sent again `later`. `rejected`: how
    many of the sent ones the collector did not keep. `why` is in words of ours, `pause` the seconds that the collector
    asked for."""

    outcome: Fate
    rejected: int = 0
    why: str = ""
    pause: float = 0.0


class LogCollector:
    """One collector. `header` gives the name and the value of a header, or nothing; it is asked at each request."""

    def __init__(
        self, url: str, header: Callable[[], tuple[str, str] | None] = lambda: None, *, whole: float = WHOLE_SECONDS
    ) -> None:
        self._url, self._header = url, header
        self._whole = whole

    @property
    def host(self) -> str:
        """The name of the collector's host, for the log."""
        return urlsplit(self._url).hostname or ""

    async def send(self, body: bytes, count: int) -> CollectorAnswer:
        """Sends an ExportLogsServiceRequest with `count` records. Raises nothing except cancellation."""
        try:
            async with asyncio.timeout(self._whole):
                return await self._send(body, count)
        except TimeoutError:  # of the connection too
            return CollectorAnswer("later", why=f"no whole answer within {self._whole:g} seconds")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return CollectorAnswer("later", why=str(in_words(error)))

    async def _send(self, body: bytes, count: int) -> CollectorAnswer:
        header = self._header()
        headers = {
            **{"user-agent": "Latchkey", "content-type": "application/json", "accept": "application/json"},
            **{"accept-encoding": "identity", **dict([header] if header else [])},
        }
        async with (
            guarded_session(_ANYWHERE, 1, CONNECT_SECONDS, None, headers) as session,
            session.post(self._url, data=body, allow_redirects=False) as response,
        ):
            status, why = response.status, f"the answer was {response.status}"
            text = bytearray()
            if 200 <= status < 300:
                while len(text) <= LONGEST_ANSWER and (piece := await response.content.read(LONGEST_ANSWER + 1)):
                    text += piece
            # The rest of the answer is not waited for.
            response.close()
            if status in ABOUT_THE_LOGS:
                return CollectorAnswer("refused", why=why)
            if not 200 <= status < 300:
                return CollectorAnswer("later", why=why, pause=retry_after(response.headers.get("Retry-After")) or 0.0)
            return _accepted(bytes(text), count)


def _accepted(text: bytes, count: int) -> CollectorAnswer:
    """What a 2xx means. Without the answer of a collector it was somebody else's, such as a page of a proxy: to take
    it for success would lose events."""
    if len(text) > LONGEST_ANSWER:
        return CollectorAnswer("later", why="the answer is too long for a collector's")
    if not text.strip():
        return CollectorAnswer("sent")
    try:
        answer = decode_strictly(text, DEEPEST)
    except NotJSON:
        answer = None
    if not isinstance(answer, dict):
        return CollectorAnswer("later", why="the answer is not a collector's")
    return CollectorAnswer("sent", rejected=min(count, _rejected(answer)))


def _rejected(answer: Mapping[str, Any]) -> int:
    """The records that the collector did not keep. 64-bit numbers are texts in JSON, or numbers."""
    partial = answer.get("partialSuccess")
    found = partial.get("rejectedLogRecords", 0) if isinstance(partial, dict) else 0
    text = str(found) if isinstance(found, (str, int)) else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
