"""Calls that count once replicas have what they wrote: WAIT goes behind them, in the same write.

WAIT holds up its connection until the replicas have answered, so these calls have connections of their own, and reads
pass them by. What comes while all of them wait gathers, and shares the next WAIT: it covers all that its connection
wrote before. Nothing is ever sent twice.
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
"""Connections on which calls wait, at most, for each server: with a replica that does not answer, so many groups of
calls run before the next one has to wait for the first to give up."""

_Call = tuple[tuple[Any, ...], "asyncio.Future[Any]"]


@dataclass(frozen=True, slots=True)
class Wait:
    """By how many replicas a write must be acknowledged, and within how many seconds."""

    replicas: int
    seconds: float


class WaitingConnections:
    """A few connections to one server, each opened when the others are busy. `timeout` is in seconds."""

    def __init__(self, connect: Callable[[], AbstractConnection], timeout: float, wait: Wait) -> None:
        self._loop = asyncio.get_running_loop()
        self.connections = tuple(PipelinedConnection(connect, timeout) for _ in range(CONNECTIONS))
        self._wait = wait
        # A time limit of 0 would be none.
        self._command = (b"WAIT", wait.replicas, max(1, round(wait.seconds * 1000)))
        self._gathered: list[_Call] = []
        self._calls = 0
        self._flushing = False

    @property
    def is_idle(self) -> bool:
        """Whether no call waits."""
        return not self._calls

    def call(self, *words: Any) -> asyncio.Future[Any]:
        """The reply to a command, once the replicas have what it wrote. Raises Unacknowledged where they have
        not, or not in time; else as `PipelinedConnection.call`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._calls >= pipeline.MOST_CALLS - 1:  # one is the WAIT
            future.set_exception(RedisConnectionError("too many calls wait for the store"))
            return future
        self._gathered.append((words, future))
        self._calls += 1
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        """Gives what has gathered to a connection on which nobody waits; without one, the next free one takes it."""
        self._flushing = False
        connection = next((one for one in self.connections if one.is_idle), None)
        if connection is None or not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        calls = [(connection.call(*words), future) for words, future in gathered]
        # In the same turn, so it is the same write; its answer is the last.
        connection.call(*self._command).add_done_callback(lambda acknowledged: self._answer(calls, acknowledged))

    def _answer(
        self, calls: list[tuple[asyncio.Future[Any], asyncio.Future[Any]]], acknowledged: asyncio.Future[Any]
    ) -> None:
        """Hands out the answers that came before the one to WAIT."""
        self._calls -= len(calls)
        doubt = self._doubt(acknowledged)
        for answer, future in calls:
            failed = answer.exception() or doubt
            if future.done():  # its caller went away
                continue
            if failed is None:
                future.set_result(answer.result())
            else:
                future.set_exception(failed)
        self._flush()

    def _doubt(self, acknowledged: asyncio.Future[Any]) -> BaseException | None:
        """Why the answers do not count, if they do not."""
        error = acknowledged.exception()
        if error is None:
            if acknowledged.result() >= self._wait.replicas:
                return None
            replicas, seconds = self._wait.replicas, self._wait.seconds
            return Unacknowledged(f"{acknowledged.result()} of {replicas} replicas confirmed it within {seconds:g} s")
        # A server that is made a replica ends every WAIT; a lost answer is told as one.
        return (
            Unacknowledged(f"no replica confirmed it: {translate(error)}")
            if isinstance(error, ResponseError)
            else error
        )

    def drop(self, reason: str) -> None:
        """Leaves the server: the calls under way fail, and those that gathered go over the next connection."""
        for connection in self.connections:
            connection.drop(reason)

    async def close(self) -> None:
        """Drops the connections; calls that wait fail."""
        gathered, self._gathered = self._gathered, []
        self._calls -= len(gathered)
        for _, future in gathered:
            if not future.done():
                future.set_exception(RedisConnectionError("the store was closed"))
        for connection in self.connections:
            await connection.close()


class AcknowledgedScripts:
    """Runs scripts by `call`, which takes the first key and then the words of the command, and waits for replicas."""

    def __init__(self, call: Callable[..., Awaitable[Any]]) -> None:
        self._call = call

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply. Raises Unacknowledged."""
        return self._call(keys_and_args[0], b"EVALSHA", sha, numkeys, *keys_and_args)

    def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Awaitable[Any]:
        """The script's reply. Raises Unacknowledged."""
        return self._call(keys_and_args[0], b"EVAL", script, numkeys, *keys_and_args)
