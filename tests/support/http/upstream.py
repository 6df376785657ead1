"""A scripted server that speaks the Anthropic Messages API and fails on request."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream, StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

KEY = "sk-of-the-operator-that-nobody-may-see"
VENDOR_MODEL = "vendor-model-20260101"
"""The model's name at the upstream."""
TEXT = "It is a truth universally acknowledged, that a single man is in want of a wife."
USAGE = {"input_tokens": 25, "output_tokens": 31}

PING = b'event: ping\ndata: {"type": "ping"}\n\n'

Ending = Literal["end", "cut", "reset", "hang", "pings"]
Data = dict[str, Any]


def message(*content: Data | str, usage: object = USAGE, **changes: Any) -> Data:
    """A reply; a string is a block of text. Without `content` it has one block."""
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content or (TEXT,)]
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": VENDOR_MODEL,
        "content": blocks,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
        **changes,
    }


def events_of(reply: Data) -> list[Data]:
    """The events of a streamed reply: text word by word, other blocks in one delta."""
    usage = reply["usage"] if isinstance(reply["usage"], dict) else {}
    first = {name: value for name, value in usage.items() if name != "output_tokens"}
    events: list[Data] = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None, "usage": first}}
    ]
    for index, block in enumerate(reply["content"]):
        begun, deltas = _in_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    last = {"output_tokens": usage["output_tokens"]} if "output_tokens" in usage else {}
    events.append({"type": "message_delta", "delta": ending, "usage": last})
    events.append({"type": "message_stop"})
    return events


def _in_deltas(block: Data) -> tuple[Data, list[Data]]:
    if block["type"] == "text":
        words = block["text"].replace(" ", "\0 ").split("\0")
        return {**block, "text": ""}, [{"type": "text_delta", "text": word} for word in words]
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        return {**block, "thinking": "", "signature": ""}, [
            *deltas,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    return block, []


def error(kind: str, text: str = "said by the server") -> Data:
    """An error in the API's envelope; an error event is the same."""
    return {"type": "error", "error": {"type": kind, "message": text}}


@dataclass(frozen=True)
class Plan:
    """The script for one request. `before`: cut, reset or hang before the first byte. `status`, `body`: an answer
    instead of the reply. `events`: those of a stream, by default made from `reply`; after `stops_after` of them (in a
    plain reply: bytes) comes `then`. `write` may split or change what is sent; `gate` lets one event pass at each
    release; nothing is sent, not even a status, before `opens` is set."""

    reply: Data = field(default_factory=message)
    events: Sequence[Data] | None = None
    before: Literal["", "cut", "reset", "hang"] = ""
    status: int = 200
    body: bytes | None = None
    stops_after: int | None = None
    then: Ending = "end"
    write: Callable[[bytes], Sequence[bytes]] = lambda piece: (piece,)
    gate: asyncio.Semaphore | None = None
    opens: asyncio.Event | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def stream(self) -> list[bytes]:
        """The events as bytes."""
        events = events_of(self.reply) if self.events is None else self.events
        return [b"event: %b\ndata: %b\n\n" % (one["type"].encode(), json.dumps(one).encode()) for one in events]


def failing(status: int, kind: str, text: str = "said by the server") -> Plan:
    """A plan for an error answer."""
    return Plan(status=status, body=json.dumps(error(kind, text)).encode())


class Incoming(RequestHandler):
    """One request: `question` is its body, `sent` the number of events written to the kernel. `over` is set when the
    other side hung up or everything was sent."""

    scripted: ScriptedUpstream

    def initialize(self, scripted: ScriptedUpstream) -> None:
        self.scripted = scripted
        self.sent = 0
        self.hung_up = False
        self.over = asyncio.Event()

    async def post(self) -> None:
        self.question: Data = json.loads(self.request.body)
        self.scripted.calls.append(self)
        plan = self.scripted.next_plan()
        try:
            await self._answer(plan)
        except StreamClosedError:
            self.hung_up = True
        finally:
            self.over.set()

    async def _answer(self, plan: Plan) -> None:
        if plan.before:
            return await self._end(plan.before)
        if plan.opens:
            await self._first(plan.opens.wait())
        self.set_status(plan.status)
        self.set_header("Content-Type", "application/json")
        for name, value in plan.headers.items():
            self.set_header(name, value)
        if self.request.path.endswith("count_tokens") and plan.body is None:
            return self._whole(b'{"input_tokens": 7}')
        if plan.body is not None or not self.question.get("stream"):
            body = json.dumps(plan.reply).encode() if plan.body is None else plan.body
            if plan.gate:
                await self._passed(plan.gate)
            if plan.stops_after is None:
                return self._whole(body)
            self.write(body[: plan.stops_after])
            await self.flush()
            return await self._end(plan.then)
        self.set_header("Content-Type", "text/event-stream; charset=utf-8")
        await self.flush()
        for piece in plan.stream()[: plan.stops_after]:
            if plan.gate:
                await self._passed(plan.gate)
            for part in plan.write(piece):
                self.write(part)
                await self.flush()
            self.sent += 1
        await self._end(plan.then)

    def _whole(self, body: bytes) -> None:
        self.finish(body)

    async def _passed(self, gate: asyncio.Semaphore) -> None:
        await self._first(gate.acquire())

    async def _first(self, comes: Coroutine[Any, Any, Any]) -> None:
        """Raises StreamClosedError if the other side has hung up."""
        waits = [asyncio.ensure_future(comes), asyncio.ensure_future(self.over.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self.over.is_set():
            raise StreamClosedError

    @property
    def _stream(self) -> IOStream:
        return cast(HTTP1Connection, self.request.connection).stream

    async def spoil(self) -> None:
        """Continues with bytes that are no HTTP."""
        await self._stream.write(b"no chunk\r\n")

    async def _end(self, ending: Ending) -> None:
        stream = self._stream
        if ending == "end":
            self.finish()
        elif ending in ("cut", "reset"):
            if ending == "reset":
                stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
        else:
            while not self.over.is_set():
                if ending == "pings":
                    self.write(PING)
                    await self.flush()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.02 if ending == "pings" else None):
                        await self.over.wait()

    def on_connection_close(self) -> None:
        self.hung_up = True
        self.over.set()

    def log_exception(self, *args: Any) -> None:
        """Keeps scripted failures out of the log."""


class ScriptedUpstream:
    """Listens on a free loopback port, or on sockets that a test has bound, in the loop of the test; other processes
    can reach it too. `calls` are its requests in order; `plan` applies where `script` has no entry."""

    def __init__(self, sockets: list[socket.socket] | None = None) -> None:
        self.calls: list[Incoming] = []
        self.plan = Plan()
        self._script: deque[Plan] = deque()
        self.sockets = sockets or bind_sockets(0, "127.0.0.1")
        self.url = f"http://127.0.0.1:{self.sockets[0].getsockname()[1]}"
        self._server = HTTPServer(Application([(r"/.*", Incoming, {"scripted": self})], log_function=lambda _: None))
        self._server.add_sockets(self.sockets)

    def script(self, *plans: Plan) -> None:
        """Sets the plans of the next requests, in order."""
        self._script.extend(plans)

    def next_plan(self) -> Plan:
        """Sets the plan."""
        return self._script.popleft() if self._script else self.plan

    async def close(self) -> None:
        """Ends all requests in progress."""
        self._server.stop()
        await self._server.close_all_connections()
