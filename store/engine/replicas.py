"""Calls whose answers count only after replicas have their writes: a WAIT follows them in the same write.

WAIT blocks its connection until the replicas have answered. So these calls have their own connections, and reads do not
wait behind them. While all connections wait, new calls gather and share the next WAIT, which covers everything that its
connection wrote before. Nothing is ever sent twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from store.engine import pipeline
from store.engine.pipeline import PipelinedConnection
from store.errors import Unacknowledged, translate

CONNECTIONS: Final = 4
"""The most connections to each server whose calls wait for replicas. If a replica does not answer, as many groups of
calls run before the next group has to wait for the first to time out."""

_Call = tuple[tuple[Any, ...], "asyncio.Future[Any]"]


@dataclass(frozen=True, slots=True)
class Wait:
    """How many replicas must acknowledge a write, and within how many seconds."""

    replicas: int
    seconds: float


class WaitingConnections:
    """A few connections to one server; a new one opens when the others are busy. `timeout` is in seconds."""

    def __init__(self, connect: Callable[[], AbstractConnection], timeout: float, wait: Wait) -> None:
        self._loop = asyncio.get_running_loop()
        self.connections = tuple(PipelinedConnection(connect, timeout) for _ in range(CONNECTIONS))
        self._wait = wait
        # A time limit of 0 would mean no limit.
        self._command = (b"WAIT", wait.replicas, max(1, round(wait.seconds * 1000)))
        self._gathered: list[_Call] = []
        self._calls = 0
        self._flushing = False

    @property
    def is_idle(self) -> bool:
        """Whether no call is waiting."""
        return not self._calls

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """The reply to a command, after the replicas have its writes. Raises Unacknowledged if they do not have them in
        time; otherwise as `PipelinedConnection.call`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._calls >= pipeline.MOST_CALLS - 1:  # leaves room for the WAIT
            future.set_exception(RedisConnectionError("too many calls wait for the store"))
            return future
        self._gathered.append((words, future))
        self._calls += 1
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        """Gives the gathered calls to an idle connection; without one, the next free connection takes them."""
        self._flushing = False
        connection = next((one for one in self.connections if one.is_idle), None)
        if connection is None or not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        calls = [(connection.call(*words), future) for words, future in gathered]
        # The WAIT is called in the same turn, so it is in the same write, and its answer is the last.
        connection.call(*self._command).add_done_callback(lambda acknowledged: self._answer(calls, acknowledged))

    def _answer(
        self, calls: list[tuple[asyncio.Future[Any], asyncio.Future[Any]]], acknowledged: asyncio.Future[Any]
    ) -> None:
        """Hands out the answers that arrived before the answer to WAIT."""
        self._calls -= len(calls)
        doubt = self._doubt(acknowledged)
        for answer, future in calls:
            failed = answer.exception() or doubt
            if future.done():  # the caller has gone
                continue
            if failed is None:
                future.set_result(answer.result())
            else:
                future.set_exception(failed)
        self._flush()

    def _doubt(self, acknowledged: asyncio.Future[Any]) -> BaseException | None:
        """The reason why the answers do not count; None if they do."""
        error = acknowledged.exception()
        if error is None:
            if acknowledged.result() >= self._wait.replicas:
                return None
            replicas, seconds = self._wait.replicas, self._wait.seconds
            return Unacknowledged(f"{acknowledged.result()} of {replicas} replicas confirmed it within {seconds:g} s")
        # A server that becomes a replica ends every WAIT; a lost answer is reported as such.
        return (
            Unacknowledged(f"no replica confirmed it: {translate(error)}")
            if isinstance(error, ResponseError)
            else error
        )

    def drop(self, reason: str) -> None:
        """Leaves the server: the calls in progress fail, and the gathered calls use the next connection."""
        for connection in self.connections:
            connection.drop(reason)

    async def close(self) -> None:
        """Drops the connections; waiting calls fail."""
        gathered, self._gathered = self._gathered, []
        self._calls -= len(gathered)
        for _, future in gathered:
            if not future.done():
                future.set_exception(RedisConnectionError("the store was closed"))
        for connection in self.connections:
            await connection.close()


class AcknowledgedScripts:
    """Runs scripts with `call`, which takes the first key and the words of the command, and waits for replicas."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply. Raises Unacknowledged."""
        return self._call(keys_and_args[0], b"EVALSHA", sha, numkeys, *keys_and_args)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply. Raises Unacknowledged."""
        return self._call(keys_and_args[0], b"EVAL", script, numkeys, *keys_and_args)
