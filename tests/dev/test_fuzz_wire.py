"""Malformed bytes cause no 5xx, hang, traceback or change. A fixed set of mutants here, others with `make fuzz`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from dev.fuzz import run
from dev.fuzz import wire as dev_wire
from dev.fuzz.messages import Message
from dev.fuzz.run import Case, Wire
from dev.fuzz.target import Target
from dev.fuzz.tokens import Cast
from dev.fuzz.wire import Heard, Wrong, check
from handlers.oauth.revoke import RevokeHandler
from tests.support.lists.offenders import each

pytestmark = pytest.mark.slow

MUTANTS = 1_500
SEED = 20_260


@pytest.fixture(scope="module", params=["fast", "tornado"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    with Target(request.param) as target:
        yield Wire(target, target.run(Cast.make(target)))


def test_every_request_is_valid_before_mutation(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every answer is awaited, even on a machine so busy that a client would hang up at once.
    monkeypatch.setattr(dev_wire, "QUIET", 0.0)
    wire.valid()
    assert wire.answered == wire.sent == len(wire.messages)
    # Deep enough: the scripts themselves refuse what may not be done.
    assert {200, 303, 400, 401, 402, 403, 404} <= set(wire.statuses)
    for status in (200, 303, 400, 401, 403):
        assert wire.statuses[status] > 1, wire.statuses


@pytest.mark.trap(21)
@pytest.mark.trap(37)
def test_mutants_are_refused_and_change_nothing(wire: Wire) -> None:
    before = wire.sent
    wire.mutants(SEED, range(MUTANTS))
    assert wire.sent == before + MUTANTS


def test_a_request_cut_at_any_byte_changes_nothing(wire: Wire) -> None:
    """One of each kind of body, and one without."""
    first: dict[bytes, Message] = {}
    for message in wire.messages:
        first.setdefault(message.value(b"Content-Type").partition(b";")[0], message)
    assert len(first) == 5
    # A body that never ends is waited for: of a long one, not every byte.
    upload = first.pop(b"multipart/form-data")
    wire.prefixes(list(first.values()))
    wire.prefixes([upload], step=6)


def test_a_mutant_is_the_same_each_time(wire: Wire) -> None:
    assert wire.case(1, 2) == wire.case(1, 2)
    assert len({tuple(wire.case(1, number).pieces) for number in range(100)}) > 95


@each(
    ("received", "reason"),
    [
        pytest.param(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "500", id="a 500"),
        pytest.param(b"HTTP/1.1 503 Oops\r\nContent-Length: 0\r\n\r\n", "503", id="a 503 that nothing explains"),
        pytest.param(b"HTTP/1.1 418 Tea\r\nContent-Length: 0\r\n\r\n", "418", id="a status that nobody documents"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "half", id="half an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nbody", "end", id="an answer without an end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyrest", "status line", id="more than an answer"),
        pytest.param(
            b"HTTP/1.1 400 No\r\nContent-Length: 33\r\n\r\nTraceback (most recent call last)",
            "traceback",
            id="a traceback",
        ),
        pytest.param(
            b"HTTP/1.1 400 No\r\nX-Request-Id: a\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
            b'{"error":"a"}',
            "error",
            id="a code that nobody documents",
        ),
    ],
)
def test_wrong_answers_are_detected(received: bytes, reason: str) -> None:
    with pytest.raises(Wrong, match=reason):
        check(Heard(received, False))


def test_a_request_that_never_finishes_is_detected(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer detects it, although nobody waits for the answer any more."""
    released = asyncio.Event()

    async def never(self: RevokeHandler) -> None:
        await released.wait()

    monkeypatch.setattr(RevokeHandler, "post", never)
    monkeypatch.setattr(run, "BOUND", 0.1)
    revocation = next(message for message in wire.messages if b"revoke" in message.target)
    with pytest.raises(Wrong, match="at work"):
        wire.send([Case("never", [revocation.encoded()])])
    monkeypatch.undo()
    wire.target.loop.call_soon_threadsafe(released.set)
    wire.compare()


def test_a_change_of_the_store_is_detected(wire: Wire) -> None:
    """The fuzzer detects a change behind its back."""
    key = b"{email:ada@example.com}"
    kept = wire.target.client.get(key)
    wire.target.client.set(key, b"somebody else")
    with pytest.raises(Wrong, match="has changed"):
        wire.send([Case("nothing", [b""])])
    assert isinstance(kept, bytes)
    wire.target.client.set(key, kept)
    wire.compare()
