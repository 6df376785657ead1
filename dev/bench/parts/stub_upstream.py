"""A cheap stand-in for a model server, as its own process.

    python -m dev.bench.parts.stub_upstream

It implements the part of the Anthropic Messages API that benchmarks use: one kind of reply, whole or in events. The
model's name, `<events>x<pause>`, sets the reply: the number of events of text, and the milliseconds between events (0:
all in one write), or `hold` for a stream that stops half-way and stays open.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

FRAME = 6
"""Events of a stream without text: three before the text, three after it."""
HOLD = "hold"

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_MODEL = re.compile(rb'"model": *"(\d+)x(\d+|hold)"')
_STREAM = re.compile(rb'"stream": *true')
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%b\r\n\r\n"
_END = b"0\r\n\r\n"
_WORDS = (" the", " key", " opens", " every", " door", " there", " is", ",")


def model_name(events: int, pause: int | str) -> str:
    """The model whose streams have this many events of text."""
    return f"{events}x{pause}"


def text_of(events: int) -> list[str]:
    """The text of each event: one token of the built-in count."""
    return [_WORDS[number % len(_WORDS)] for number in range(events)]


class Stream(NamedTuple):
    """A stream's pieces and the seconds between them. The end of the body is a separate write right after the last
    piece, as most servers send it."""

    pieces: Sequence[bytes]
    pause: float
    ends: bool = True


@lru_cache(maxsize=64)
def whole(events: int) -> bytes:
    """The reply in one piece."""
    content = [{"type": "text", "text": "".join(text_of(events))}]
    usage = {"input_tokens": 40, "output_tokens": events}
    body = json.dumps({**_message(), "content": content, "stop_reason": "end_turn", "usage": usage}).encode()
    return _HEAD % (b"application/json", b"Content-Length: %d" % len(body)) + body


@lru_cache(maxsize=64)
def stream(events: int, pause: str) -> Stream:
    """The same reply in events."""
    usage = {"output_tokens": events}
    data: list[dict[str, Any]] = [
        {"type": "message_start", "message": _message()},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
            for text in text_of(events)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    pieces = [_chunk(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n".encode()) for item in data]
    pieces[0] = _HEAD % (b"text/event-stream; charset=utf-8", b"Transfer-Encoding: chunked") + pieces[0]
    if pause == HOLD:
        return Stream([b"".join(pieces[: len(pieces) // 2])], 0.0, ends=False)
    if pause == "0":
        return Stream([b"".join(pieces)], 0.0)
    return Stream(pieces, int(pause) / 1000)


def _message() -> dict[str, Any]:
    return {
        "id": "msg_stub",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 1},
    }


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


class Stub(asyncio.Protocol):
    """One keep-alive connection. Requests arrive one after another."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n") + 4
        if head < 4:
            return
        length = _LENGTH.search(self._received, 0, head)
        if len(self._received) < head + (int(length[1]) if length else 0):
            return
        model, streamed = _MODEL.search(self._received, head), _STREAM.search(self._received, head)
        self._received = b""
        if model is None:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        elif streamed is None:
            self._transport.write(whole(int(model[1])))
        else:
            self._next(stream(int(model[1]), model[2].decode()), 0)

    def _next(self, reply: Stream, position: int) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(reply.pieces[position])
        if position + 1 < len(reply.pieces):
            self._loop.call_later(reply.pause, self._next, reply, position + 1)
        elif reply.ends:
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """Ends the body of a stream."""
        self._transport.write(_END)


async def serve() -> None:
    """Listens on a free port, prints the port on standard output, and runs until it is ended."""
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0, backlog=2048, family=socket.AF_INET)
    print(f"Stub listening on port {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
    sys.exit(0)
