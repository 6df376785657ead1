"""The clock of fakeredis, which has no setting for it: a function that tests can exchange.

Relies on: the modules in `READERS` read the time as `time.time()`, with `time` a global name of theirs, and no other
module of the store in memory reads it. tests/testkit/test_fakeredis_private.py checks both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fakeredis import _helpers
from fakeredis._socket import _base
from fakeredis.commands_mixins import server_mixin
from fakeredis.model import _stream

READERS = (_helpers, _base, server_mixin, _stream)
"""These read the time for lifetimes of hash fields and idle times, for lifetimes of keys, for TIME, and for ids."""


class _Clock:
    """Replaces the module `time` in fakeredis."""

    time: Callable[[], float] = staticmethod(time.time)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


_clock = _Clock()
for _reader in READERS:
    vars(_reader)["time"] = _clock


def follow(clock: Callable[[], float] = time.time) -> None:
    """Makes fakeredis's time that of `clock`, in seconds since 1970. Without one, it is the host's again."""
    _clock.time = clock
