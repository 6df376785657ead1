"""The supervisor's latest handover reaches its workers complete."""

from __future__ import annotations

import os
import signal
import time

import pytest

from runtime.handover import LARGEST, Handover


def test_the_latest_handover_is_taken() -> None:
    handover = Handover()
    assert handover.take() is None
    for content in (b"first", b"the second", b"", b"x" * LARGEST, b"last"):
        handover.give(content)
        assert [handover.take(), handover.take()] == [content, content]


def test_a_handover_that_is_too_large_keeps_the_previous_one() -> None:
    handover = Handover()
    handover.give(b"before")
    with pytest.raises(ValueError, match="room"):
        handover.give(b"x" * (LARGEST + 1))
    assert handover.take() == b"before"


def test_partial_handovers_are_never_taken() -> None:
    handover, contents = Handover(), [b"a" * 50_000, b"b" * 70_000, b"c" * 60_000]
    handover.give(contents[0])
    child = os.fork()
    if child == 0:
        try:
            while True:
                for content in contents:
                    handover.give(content)
        finally:
            os._exit(1)
    taken: set[bytes | None] = set()
    try:
        # However late the child starts, and however slow it is.
        deadline = time.monotonic() + 30
        while len(taken) < len(contents) and time.monotonic() < deadline:
            taken.add(handover.take())
        taken |= {handover.take() for _ in range(3000)}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert taken == set(contents)
