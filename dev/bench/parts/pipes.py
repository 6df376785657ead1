"""Store commands and script calls by the hundred thousand over one connection: one batch is in flight while the next is
packed."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Self

import hiredis

from dev.bench.measure import Unexpected
from store.engine.script_source import NOTED_AS, Script, own_scripts

_BATCH = 500

Value = str | bytes | int
Call = tuple[Mapping[str, str], Mapping[str, Value]]
"""The keys and arguments of a script call, by name."""


def pack(*words: Value) -> bytes:
    """The bytes of a command."""
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]  # it says that it takes one word
    return packed


class Pipe:
    """One connection to the store on a unix socket."""

    def __init__(self, socket_path: str) -> None:
        self._scripts = own_scripts()
        self._loaded: set[str] = set()
        self._reader = hiredis.Reader()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(socket_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()

    def run(self, name: str, calls: Iterable[Call], words: Sequence[str] = ("ok",)) -> int:
        """Calls a script of the product, and returns the number of calls. Raises Unexpected for any other reply."""
        script = self._script(name)
        return self._send((_packed(script, *call) for call in calls), tuple(word.encode() for word in words))

    def send(self, commands: Iterable[tuple[Value, ...]]) -> int:
        """Sends plain commands, and returns the number sent."""
        return self._send((pack(*command) for command in commands), None)

    def _script(self, name: str) -> Script:
        script = self._scripts[name]
        if name not in self._loaded:
            self._send([pack("SCRIPT", "LOAD", script.source)], None)
            self._loaded.add(name)
        return script

    def _send(self, packed: Iterable[bytes], words: tuple[bytes, ...] | None) -> int:
        left = iter(packed)
        sent = on_the_way = 0
        while batch := list(islice(left, _BATCH)):
            self._check(on_the_way, words)
            self._socket.sendall(b"".join(batch))
            on_the_way = len(batch)
            sent += on_the_way
        self._check(on_the_way, words)
        return sent

    def _check(self, replies: int, words: tuple[bytes, ...] | None) -> None:
        for _ in range(replies):
            reply = self._receive()
            if words is not None and reply[0] not in words:
                raise Unexpected(f"the store answered {reply}")

    def _receive(self) -> Any:
        while (reply := self._reader.gets()) is False:
            received = self._socket.recv(1 << 16)
            if not received:
                raise Unexpected("the store closed the connection")
            self._reader.feed(received)
        if isinstance(reply, hiredis.ReplyError):
            raise Unexpected(f"the store refused a call: {reply}")
        return reply


def _packed(script: Script, keys: Mapping[str, str], arguments: Mapping[str, Value]) -> bytes:
    return pack(
        *("EVALSHA", script.sha, len(script.keys)),
        *(keys[one] for one in script.keys),
        # Without a name of the process, a script notes no events.
        *("" if one == NOTED_AS else arguments[one] for one in script.args),
    )
