"""What a supervisor hands to its workers arrives whole, and the last of it."""

from __future__ import annotations

import os

import pytest

from serving.handover import LARGEST, Handover


def test_what_was_given_last_is_taken() -> None:
    handover = Handover()
    assert handover.take() is None
    for content in (b"first", b"the second", b"", b"x" * LARGEST, b"last"):
        handover.give(content)
        assert [handover.take(), handover.take()] == [content, content]


def test_what_there_is_no_room_for_leaves_what_was_given_before() -> None:
    handover = Handover()
    handover.give(b"before")
    with pytest.raises(ValueError, match="room"):
        handover.give(b"x" * (LARGEST + 1))
    assert handover.take() == b"before"


def test_nobody_takes_the_half_of_anything() -> None:
    handover, contents = Handover(), [b"a" * 50_000, b"b" * 70_000, b"c" * 60_000]
    handover.give(contents[-1])
    child = os.fork()
    if child == 0:
        for _ in range(3000):
            for content in contents:
                handover.give(content)
        os._exit(0)
    taken, ended = set(), 0
    while not ended:
        taken |= {handover.take() for _ in range(20)}
        ended, status = os.waitpid(child, os.WNOHANG)
    assert status == 0
    assert taken <= set(contents)
    assert len(taken) > 1
