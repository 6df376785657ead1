"""Two sliding windows: the Lua of `lua/include/window.lua` in a bare interpreter, and a model in Python.

fakeredis runs scripts in the same interpreter; here its `redis.call` has only the two commands that the window uses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lupa import lua51  # type: ignore[import-untyped]  # it has no types

from store.engine.script_source import LUA, own_scripts

STEPS = 20


def full(limit: int) -> str:
    """The row of a window that is full at its next use, whenever that is: its time is in the far future, so the clock
    seems to have stepped back and the count stays. After that use the window empties as usual."""
    later = 4_000_000_000_000
    return f"{later} {limit} {later}"


@dataclass(frozen=True)
class Answer:
    """The answer to one request: `reset` in epoch ms, `retry` in whole seconds."""

    admitted: bool
    remaining: int
    reset: int
    retry: int


class LuaWindow:
    """A window whose time a test chooses."""

    def __init__(self, limit: int, period: int = 60_000) -> None:
        self.limit, self.period = limit, period
        self.row: bytes | None = None
        self.expires = 0
        self.writes = 0
        self.now = 0
        runtime = lua51.LuaRuntime(encoding=None)
        runtime.globals().redis = runtime.table_from({b"call": self._call})
        runtime.globals().KEYS = runtime.table(b"window")
        source = own_scripts()["take_window"].source
        includes = source[: source.index("local window = KEYS[1]")]
        self._take: Any = runtime.execute(includes.encode() + b"return take_window")

    def take(self, now: int) -> Answer:
        """Counts one request at `now` (epoch ms)."""
        self.now = now
        admitted, remaining, reset, retry, taken = self._take(b"window", self.limit, self.period, now)
        assert taken == int(admitted)
        assert remaining == int(remaining)
        assert reset == int(reset)
        assert retry == int(retry)
        return Answer(admitted, int(remaining), int(reset), int(retry))

    def _call(self, command: bytes, key: bytes, *words: Any) -> bytes | None:
        if command == b"GET":
            return self.row if self.now < self.expires else None
        if command == b"PEXPIREAT":  # the first write of a script that may run in a full store; changes nothing
            assert words == (b"1", b"GT")
            return None
        assert command == b"SET"
        self.row, option, expires = words[0], words[1], int(words[2])
        assert option == b"PXAT"
        self.expires = expires
        self.writes += 1
        return None


class Model:
    """The window as described: of its count, floor(k * limit / 20) have expired by step k after its anchor."""

    def __init__(self, limit: int, period: int = 60_000) -> None:
        self.limit, self.step = limit, period // STEPS
        self.anchor = self.count = self.last = 0

    def _left(self, at: int) -> int:
        return (at - self.anchor) // self.step * self.limit // STEPS

    def take(self, now: int) -> Answer:
        """Counts one request at `now`."""
        if now < self.last:  # the clock stepped back: the count at the last use stays, from now on
            self.count = max(0, self.count - self._left(self.last))
            self.anchor = self.last = now
        if self.count - self._left(now) <= 0:
            self.anchor, self.count = now, 0
        inside = self.count - self._left(now)
        admitted = inside < self.limit
        if admitted:
            self.count, self.last = self.count + 1, now
        reset = self.anchor + self.step * math.ceil(STEPS * self.count / self.limit)
        if admitted:
            return Answer(True, self.limit - inside - 1, reset, 0)
        free = self.anchor + self.step * math.ceil(STEPS * (self.count - self.limit + 1) / self.limit)
        return Answer(False, 0, reset, max(1, math.ceil((free - now) / 1000)))


# Counts a request at each of the times in one script: on a real engine too, the test sets the schedule.
DRIVER = """--- Drives the window of the tests.
--- KEYS[1] window
--- ARGV[1] limit (number)
--- ARGV[2] times (json): a list
--- @reply ok answers
--- @include "window"

local answers = {}
for i, time in ipairs(times) do
  local admitted, remaining, reset, retry = take_window(window, limit, 60000, time)
  answers[i] = {admitted and 1 or 0, remaining, reset, retry}
end
return {'ok', answers}
"""
INCLUDES = LUA / "include"
