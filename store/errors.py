"""Errors between Latchkey and its store, and the one place that turns the driver's errors into ours."""

from __future__ import annotations

import logging
import re
from types import TracebackType
from typing import Final

import redis.exceptions as driver

__all__ = [
    *("KeyMissing", "StartupError", "StoreError", "StoreFull", "StoreUnavailable", "Unacknowledged"),
    *("translate", "wrapped"),
]


class StoreError(Exception):
    """A store call failed because of a defect on our side. `word` names the error where answers are counted."""

    word = "failed"


class StoreUnavailable(StoreError):
    """The store cannot be reached or its answer was lost: nothing was done, or the outcome is unknown."""

    word = "unavailable"


class StoreFull(StoreUnavailable):
    """The store is at its `maxmemory` and refused a write: nothing was done."""

    word = "full"


class Unacknowledged(StoreUnavailable):
    """The write was done, but too few replicas acknowledged it: a failover may undo it."""

    word = "unconfirmed"


class KeyMissing(StoreError):
    """`what` was sealed with the secret key `key_id`, which is not configured. Nothing was done. `level`: of
    the log."""

    level = logging.ERROR

    def __init__(self, what: str, key_id: int) -> None:
        super().__init__(
            f"{what} was sealed with secret key {key_id}, which is not configured. Add that key to the secret keys"
        )


class StartupError(Exception):
    """The server must not start; the message says why and what to do."""


# asyncio's TimeoutError is the builtin one, an OSError. Pool exhaustion, LOADING and a refused login are kinds of the
# driver's ConnectionError.
_UNAVAILABLE: Final = (
    OSError,
    driver.ConnectionError,
    driver.TimeoutError,
    driver.ReadOnlyError,
    driver.MasterDownError,
    driver.ClusterError,
    driver.ClusterDownError,
    driver.TryAgainError,
    driver.SlotNotCoveredError,
)
# Answers of the server that redis-py has no class for.
_UNAVAILABLE_WORDS: Final = frozenset({"MISCONF", "BUSY", "NOREPLICAS", "READONLY", "MASTERDOWN", "CLUSTERDOWN"})
# Errors of a script while a slot moves or a cluster is down: the server starts the script, and ends it midway.
_UNAVAILABLE_TEXT: Final = re.compile(
    r"attempted to (access a non local key in a cluster node|execute a (write )?command while the cluster is down)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"([A-Z]{2,})(?: |$)")
_SCRIPT: Final = re.compile(r"script: ([0-9a-f]{40})")
_LINE: Final = re.compile(r"user_script:(\d+)")


def translate(exc: BaseException) -> StoreError | None:
    """Our error for `exc`; None when `exc` does not come from the driver.

    The message has the error's class, the server's error word and the place in the script. It never has the server's
    own text, which can repeat keys and arguments.
    """
    if isinstance(exc, driver.RedisError) and (isinstance(exc, driver.OutOfMemoryError) or _word(exc) == "OOM"):
        return StoreFull(_describe(exc))
    if isinstance(exc, _UNAVAILABLE):
        return StoreUnavailable(_describe(exc))
    if isinstance(exc, driver.RedisClusterException):
        # redis-py uses one class for a misuse and for "no node could be reached"; only the latter has a cause.
        return (StoreUnavailable if exc.__cause__ is not None else StoreError)(_describe(exc))
    if isinstance(exc, driver.RedisError):
        away = _word(exc) in _UNAVAILABLE_WORDS or _UNAVAILABLE_TEXT.search(str(exc))
        return (StoreUnavailable if away else StoreError)(_describe(exc))
    return None


def wrapped() -> _Wrapped:
    """`with wrapped(): await client...` raises StoreError or StoreUnavailable in place of the driver's errors.

    The object holds no state, so it serves all tasks at once, and a call without an error costs next to nothing.
    The original error is suppressed: a traceback that prints it could show keys and arguments.
    """
    return _WRAPPED


class _Wrapped:
    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc is not None and (ours := translate(exc)) is not None:
            raise ours from None


_WRAPPED: Final = _Wrapped()


def _word(exc: BaseException) -> str:
    """The first word of a server's error (`WRONGTYPE`); redis-py strips the words that it knows from the text."""
    status: str | None = getattr(exc, "status_code", None)
    found = _WORD.match(str(exc))
    return status or (found[1] if found else "")


def _describe(exc: BaseException) -> str:
    text = str(exc)
    parts = [type(exc).__name__]
    if word := _word(exc):
        parts.append(word)
    if script := _SCRIPT.search(text):
        parts.append(f"script {script[1]}")
    if line := _LINE.search(text):
        parts.append(f"line {line[1]}")
    if isinstance(exc, OSError) and exc.errno is not None:
        parts.append(f"errno {exc.errno}")
    return "store: " + ", ".join(parts)
