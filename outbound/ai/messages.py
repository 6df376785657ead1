"""A server that speaks the Anthropic Messages API, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any

import aiohttp

from observability.spans import outgoing
from observability.tracing import passed_on
from outbound.ai.dialects.messages_same import COUNTED, TYPED_TOOL_TOKENS, is_measured, typed_tools
from outbound.ai.events import BrokenStream, StreamEvent, having, read_json, together
from outbound.ai.failure import Code, Elsewhere, Passing, UpstreamFailed
from outbound.ai.health import Ejection, Health
from outbound.ai.idle_timeout import IdleTimeout
from outbound.ai.long_request import LONG, Posted, posted
from outbound.ai.models import NOBODY, Asker, Model, Timeouts
from outbound.ai.protocols import PROTOCOLS, THE_REQUEST, Dialect, overloaded
from outbound.ai.quick_post import QuickPosts, QuickResponse
from outbound.ai.retry_after import retry_after
from outbound.ai.server_keys import FixedKey, KeyUnreadable, ServerKey
from outbound.ai.tokens import equal_texts

log = logging.getLogger("latchkey.upstream")

Response = aiohttp.ClientResponse | QuickResponse
API_VERSION = "2023-06-01"
MAX_REPLY_BYTES = 32 * 2**20
READ_BYTES = 2**16
END = 5.0
"""Seconds that the body of a stream may take to end after its last event."""
# Upper bounds in tokens: for an image, and for what the server adds to a request (such as a prompt for tools).
IMAGE_TOKENS = 5_000
OVERHEAD_TOKENS = 1_024
_OVERLOADED = (429, 529)
_AGAIN = (429, 500, 502, 503, 529)
_THE_ACCOUNT = (401, 402, 403)
_ANSWERS = {"content", "choices", "output"}
_HEADERS = {"accept-encoding": "identity", "user-agent": "Latchkey"}
_JSON = {"content-type": "application/json"}


class MessagesUpstream:
    """One server. `url` is the part before `/v1/messages`; `key` is sent as `X-Api-Key`; at most `connections` requests
    run at once, others wait; `traced`: calls carry the trace of the app's request;
    `refuses_unknown`: fields that nobody knows here are refused; `retry_timeouts`: if it is silent, another server is
    asked."""

    dialect = "anthropic"

    def __init__(
        self,
        name: str,
        url: str,
        key: str | ServerKey,
        limits: Timeouts,
        connections: int,
        *,
        traced: bool = False,
        refuses_unknown: bool = False,
        retry_timeouts: bool = False,
        ejection: Ejection | None = None,
    ) -> None:
        self.name = name
        self.health = Health(ejection)
        self.refuses_unknown = refuses_unknown
        self._traced = traced
        self._retry_timeouts = retry_timeouts
        self.limits = limits
        self.url = self.address(url.rstrip("/"))
        self._key = FixedKey(key) if isinstance(key, str) else key
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._ending: set[asyncio.Future[None]] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in a helper process only judges requests: it has neither the key nor the address."""
        return _judge, (type(self), self.name, self.limits, self.refuses_unknown)

    @staticmethod
    def address(url: str) -> str:
        """The part of a URL before a protocol's path. `url` is the configured one, without a slash at its end."""
        return url

    @staticmethod
    def headers_with(key: str) -> dict[str, str]:
        """The headers of each request, with the key unless it is empty."""
        return {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}

    async def complete(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> dict[str, Any]:
        """The whole reply to a request. Raises UpstreamFailed."""
        body = having(request, {"model": model.upstream_id, "stream": False})
        reply = await self._json(PROTOCOLS[asker.dialect].path, body, asker)
        if _is_error(reply):
            asker.refuse()
            reported = _reported(self.name, "reply", reply)
            raise UpstreamFailed(reported.code, reported.detail)  # the answer has begun, so nobody else is asked
        return reply

    async def count_tokens(self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY) -> int:
        """The number of tokens by the server's count. Raises UpstreamFailed."""
        body = {**{name: request[name] for name in (*COUNTED, LONG) if name in request}, "model": model.upstream_id}
        found = await self._json("/v1/messages/count_tokens", body, asker)
        number = found.get("input_tokens")
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UpstreamFailed("upstream_error", f"{self.name}: the count is no number")
        return number

    def most_input(self, model: Model, request: Mapping[str, Any], size: int) -> int:
        """A token has at least one byte. Images count separately, and the model never reads more than its window. What
        lies at an address, a PDF and an unknown block may fill all of it."""
        if not is_measured(request):
            return model.max_input
        images = equal_texts(request["messages"], "image")
        added = OVERHEAD_TOKENS + images * IMAGE_TOKENS + typed_tools(request) * TYPED_TOOL_TOKENS
        return min(model.max_input, size + added)

    async def stream(
        self, model: Model, request: Mapping[str, Any], asker: Asker = NOBODY
    ) -> AsyncGenerator[StreamEvent]:
        """The reply in events, as they arrive. Raises UpstreamFailed."""
        body = having(request, {"model": model.upstream_id, "stream": True})
        async with contextlib.AsyncExitStack() as stack:
            response, events, first = await self._begin(body, stack, asker)
            del body, request  # the stream may wait for minutes
            event: StreamEvent | None = first
            seconds = self.limits.between_events
            silent = UpstreamFailed("upstream_timeout", self._silence(seconds, "between two events"))
            with IdleTimeout(response.content, seconds, silent) as idle_timeout:
                last = PROTOCOLS[asker.dialect].last
                while event is not None and event.name not in last:
                    yield event
                    event = await (anext(events, None) if event.more else idle_timeout.next(events))
            if event is not None:
                stack.pop_all()
                self._finish(response)
                yield event

    async def _begin(
        self, body: Mapping[str, Any], stack: contextlib.AsyncExitStack, asker: Asker
    ) -> tuple[Response, AsyncIterator[StreamEvent], StreamEvent]:
        """The stream with its first event."""
        try:
            async with self._first_byte(asker):
                response = await self._post(PROTOCOLS[asker.dialect].path, body, asker)
                stack.callback(response.close)
                asker.accept()
                events = _events(self.name, response, asker)
                first = await anext(events, None)
        except TimeoutError:
            raise self._mute() from None
        if first is None:
            raise Passing("upstream_error", f"{self.name}: the stream was empty")
        return response, events, first

    def _finish(self, response: Response) -> None:
        """Reads the end of the body in the background. Many servers send it separately after the last event, and the
        connection can't be reused without it."""
        if response.closed:
            return

        def ended(task: asyncio.Future[None]) -> None:
            self._ending.discard(task)
            response.close()

        ending = asyncio.ensure_future(_read_end(response))
        self._ending.add(ending)
        ending.add_done_callback(ended)

    async def _json(self, path: str, body: Mapping[str, Any], asker: Asker) -> dict[str, Any]:
        try:
            async with self._first_byte(asker):
                response = await self._post(path, body, asker)
        except TimeoutError:
            raise self._mute() from None
        async with response:
            asker.accept()
            return await self._object(response, asker)

    async def _object(self, response: Response, asker: Asker) -> dict[str, Any]:
        body = bytearray()
        asker.receive(body)
        try:
            raw = await _read(response, body)
        except aiohttp.ClientError as error:
            raise UpstreamFailed("upstream_error", f"{self.name}: cut off: {type(error).__name__}") from None
        try:
            value = read_json(raw)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise UpstreamFailed("upstream_error", f"{self.name}: the reply is no JSON object")
        return value

    async def _post(self, path: str, body: Mapping[str, Any], asker: Asker) -> Response:
        """The response, once its head has arrived. Raises UpstreamFailed; Elsewhere if another attempt may help."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=_HEADERS,
                skip_auto_headers=("user-agent",),
            )
            assert self._session.connector is not None
            self._posts = QuickPosts(self._session.connector, _HEADERS)
        content = posted(body)
        headers = {**asker.headers, **passed_on(traced=self._traced)}
        try:
            key = await self._key.get()
            response = await self._send(path, content, headers, key)
            if response.status == HTTPStatus.UNAUTHORIZED and (newer := await self._key.renew(key)):
                response.close()
                response = await self._send(path, content, headers, newer)
        except KeyUnreadable as error:
            raise Elsewhere("upstream_error", f"{self.name}: no key: {error}") from None
        except aiohttp.ConnectionTimeoutError:
            raise Passing("overloaded", f"{self.name}: no connection in {self.limits.connect:g} s") from None
        except aiohttp.ClientError as error:
            raise Passing("upstream_error", f"{self.name}: {type(error).__name__}") from None
        if response.status == 200:
            return response
        async with response:
            raise await self._failure(response, asker.dialect)

    async def _send(self, path: str, content: Posted, headers: Mapping[str, str], key: str) -> Response:
        assert self._session is not None
        url, given = self.url + path, {**_JSON, **content.headers, **self.headers_with(key), **headers}
        with outgoing(url):
            if content.short is not None:
                return await self._posts.post(url, content.short, given, self.limits.connect, READ_BYTES)
            return await self._session.post(
                url,
                data=content.data(),
                headers=given,
                timeout=aiohttp.ClientTimeout(total=None, connect=self.limits.connect),
                allow_redirects=False,
                read_bufsize=READ_BYTES,
            )

    async def _failure(self, response: Response, dialect: Dialect) -> UpstreamFailed:
        detail = f"{self.name}: status {response.status}"
        if response.status in _AGAIN:
            code: Code = "overloaded" if response.status in _OVERLOADED else "upstream_error"
            return Passing(code, detail, retry_after=retry_after(response.headers.get("Retry-After")))
        if response.status == HTTPStatus.GATEWAY_TIMEOUT:
            return self._unanswered(detail)
        if response.status in _THE_ACCOUNT:
            return Elsewhere("upstream_error", detail)
        body: object = None
        if response.status in THE_REQUEST:
            with contextlib.suppress(aiohttp.ClientError, ValueError, UpstreamFailed):
                body = read_json(await _read(response, bytearray()))
        found, description, param = PROTOCOLS[dialect].refused(response.status, body)
        return UpstreamFailed(found, detail, description, param=param)

    def _first_byte(self, asker: Asker) -> asyncio.Timeout:
        until = asyncio.get_running_loop().time() + self.limits.first_byte
        return asyncio.timeout_at(until if asker.begins_by is None else min(until, asker.begins_by))

    def _mute(self) -> UpstreamFailed:
        return self._unanswered(self._silence(self.limits.first_byte, "before the answer began"))

    def _unanswered(self, detail: str) -> UpstreamFailed:
        # The server may still work on the call, and bill it.
        return (Elsewhere if self._retry_timeouts else UpstreamFailed)("upstream_timeout", detail)

    def _silence(self, seconds: float, where: str) -> str:
        return f"{self.name}: silent for {seconds:g} s {where}"

    async def close(self) -> None:
        """Closes its connections."""
        for ending in self._ending:
            ending.cancel()
        await self._key.close()
        if self._session is not None:
            await self._session.close()
            self._session = None


def _judge(kind: type[MessagesUpstream], name: str, limits: Timeouts, refuses_unknown: bool) -> MessagesUpstream:
    return kind(name, "", "", limits, 1, refuses_unknown=refuses_unknown)


async def _read(response: Response, body: bytearray) -> bytes:
    """Reads the body into `body`. Raises UpstreamFailed if it is too large, aiohttp.ClientError if it is cut off."""
    content = response.content
    while not content.at_eof():
        body += await content.readany()
        if len(body) > MAX_REPLY_BYTES:
            raise UpstreamFailed("upstream_error", "the reply is too large")
    return bytes(body)


async def _read_end(response: Response) -> None:
    # aiohttp raises RuntimeError for a connection that was closed before the read.
    with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
        async with asyncio.timeout(END):
            while not response.content.at_eof():
                await response.content.readany()


async def _events(name: str, response: Response, asker: Asker) -> AsyncIterator[StreamEvent]:
    reader, begun = PROTOCOLS[asker.dialect].reader(), False
    try:
        async for piece in response.content.iter_any():
            arrived = together(reader.feed(piece))
            del piece  # the next one may be minutes away
            for event in arrived:
                if event.name == "error":
                    if not begun:
                        asker.refuse()
                    raise _reported(name, "stream", event.data)
                begun = begun or event.name != "ping"
                yield event
    except (aiohttp.ClientError, BrokenStream) as error:
        if begun and isinstance(error, BrokenStream):  # otherwise there is no reply
            asker.receive(bytearray(error.rest))
        raise Passing("upstream_error", f"{name}: the stream broke: {type(error).__name__}") from None


def _is_error(reply: Mapping[str, Any]) -> bool:
    """Whether a reply with the status 200 is an error all the same."""
    return reply.get("type") == "error" or (bool(reply.get("error")) and not _ANSWERS & reply.keys())


def _reported(name: str, where: str, data: Mapping[str, Any]) -> UpstreamFailed:
    busy, kind = overloaded(data)
    return Passing("overloaded" if busy else "upstream_error", f"{name}: the {where} is {kind!a}")
