"""The cost of requests: hostile ones are cheap, and an expensive one is detected."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice

import pytest

from dev.fuzz import cost
from dev.fuzz.cost import LOOP, Cost, Scales, weigh_all
from dev.fuzz.hostile import Stage
from dev.fuzz.run import Case, Wire
from dev.fuzz.target import Target
from dev.fuzz.tokens import Cast
from dev.fuzz.wire import Wrong
from handlers.oauth.revoke import RevokeHandler
from handlers.routes import POSTS, ROUTES
from tests.support.http import http_servers

STEP = 61
"""One in this many hostile requests is sent here; `make fuzz` sends all of them."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Target(http_servers.CHOSEN, signup="open") as target:
        yield target.run(Stage.make(target, target.run(Cast.make(target))))


@pytest.mark.trap(39)
@pytest.mark.trap(40)
def test_hostile_requests_are_cheap(stage: Stage) -> None:
    rest = chain(
        *(stage.forms(), stage.tokens(), stage.issued(), stage.proofs(), stage.documents()),
        *(stage.queries(), stage.heads(), stage.paths()),
    )
    # Each picture is sent to three forms in turn, of which the first decodes it.
    few = chain(islice(stage.passkeys(), 3), islice(stage.pictures(), 0, None, 3), islice(rest, 0, None, STEP))
    assert weigh_all(stage.target, few).loop <= LOOP
    assert weigh_all(stage.target, chain(stage.large(), stage.framed())).loop <= LOOP


NO_FIELD = "its form has no field of its own"
OPTIONS = "a script asks for a challenge, and sends no field"
NOT_HOSTILE = {
    **dict.fromkeys((name for name in POSTS if name.startswith("console-")), "for people without a role it is no page"),
    **dict.fromkeys((name for name in POSTS if name.endswith("-options")), OPTIONS),
    **dict.fromkeys(
        (
            *("account-data-delete", "account-document-delete", "account-picture-remove", "account-sessions-end"),
            "account-passkey-offer",
            *("account-authenticator-remove", "account-recovery"),
            *("developer-logo-remove", "developer-team-leave"),
            *("developer-rotate", "developer-api-rotate", "developer-webhook-test", "developer-delivery-again"),
        ),
        NO_FIELD,
    ),
    "signout": "its field `next` is the one of /signin, and it would end the session of those behind it",
    "signin-choose": "as /signout, and its field `account` is the one of /signin/choose/remove",
    "account-app-revoke": "it would end the tokens that those behind it carry",
    "account-app-end": "as /revoke",
    "account-app-pause": "it would stop the calls of those behind it",
    "account-app-resume": "its only field is the one that every hurried form has",
    "developer-try": "it takes no field; what its page reads comes in the query",
}
"""Forms of people that get no hostile message, with the reason."""


def test_every_form_of_people_gets_a_hostile_message_or_has_a_reason(stage: Stage) -> None:
    messages = chain(stage.forms(), stage.passkeys(), stage.pictures())
    sent = {one.target.decode().partition("?")[0] for one in messages if one.method == b"POST"}
    paths = {route.name: re.compile(route.pattern) for route in ROUTES}
    reached = {name for name in POSTS if any(paths[name].fullmatch(target) for target in sent)}
    assert set(POSTS) - reached == set(NOT_HOSTILE)


def spend(seconds: float) -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < seconds:
        pass


async def on_the_loop(self: RevokeHandler) -> None:
    spend(0.06)


async def turn_by_turn(self: RevokeHandler) -> None:
    for _ in range(10):
        spend(0.006)
        await asyncio.sleep(0)


async def in_a_thread(self: RevokeHandler) -> None:
    await asyncio.to_thread(spend, 0.3)


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        pytest.param(on_the_loop, "loop", id="at once"),
        pytest.param(turn_by_turn, "loop", id="turn by turn"),
        pytest.param(in_a_thread, "threads", id="in a thread"),
    ],
)
def test_an_expensive_request_is_detected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, handler: Callable[[RevokeHandler], object], words: str
) -> None:
    """The fuzzer detects it."""
    monkeypatch.setattr(cost, "TRIES", 1)
    monkeypatch.setattr(RevokeHandler, "post", handler)
    wire = Wire(stage.target, stage.cast)
    revocation = next(message for message in wire.messages if b"revoke" in message.target)
    with Scales(stage.target) as scales, pytest.raises(Wrong, match=words):
        scales.check(stage.target.port, revocation.encoded())


def test_the_expensive_one_of_concurrent_requests_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "TRIES", 1)
    monkeypatch.setattr(RevokeHandler, "post", on_the_loop)
    wire = Wire(stage.target, stage.cast)
    health = next(message for message in wire.messages if message.target == b"/readyz").encoded()
    revocation = next(message for message in wire.messages if b"revoke" in message.target).encoded()
    cases = [Case("cheap", [health]), Case("dear", [revocation]), Case("cheap too", [health])]
    with pytest.raises(Wrong, match=r"^dear: "):
        wire.send(cases)


def test_a_longer_request_may_cost_more() -> None:
    assert "loop" in Cost(0.06).over(1000)
    assert not Cost(0.06).over(2**16)
    assert "loop" in Cost(0.1).over(2**18)
    assert not Cost(0.0, threads=1.2).over(2**18)
    assert "threads" in Cost(0.0, threads=0.3).over(1000)
    assert "store" in Cost(0.0, store=0.06).over(1000)
