"""The checker of the proof on trees of delegated tokens, on devices and on answers that depend on what happens: each
broken promise is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dev.proof.checker import check
from tests.support.lists.offenders import each
from tests.support.store.proof_histories import (
    ADA,
    AGENT,
    APP,
    BOB,
    DEVICE,
    USER,
    Made,
    ask,
    issued,
    reading,
    sound,
    spend,
    token,
    write,
)

Break = Callable[[Made], Any]
POLL: dict[str, Any] = {"device": DEVICE}
ALLOW: dict[str, Any] = {"device": DEVICE, "decision": "allow"}
DENY: dict[str, Any] = {"device": DEVICE, "decision": "deny"}


def counted(made: Made, number: int, **changes: Any) -> None:
    made.only("counted", number).result.update(changes)


def charge(made: Made, amount: int, account: int = 1) -> None:
    """One more charge in the ledger."""
    books = made.accounts[account]
    books.paid -= amount
    books.entries.append({"kind": "charge", "amount": -amount, "paid": books.paid, "reason": ""})


def bigger(made: Made) -> None:
    """A call with L that cost more than K, above it, may spend."""
    made.op("ai", {**spend("L", 9), "cost": 460}, {"charged": 460, "remaining": 1})
    charge(made, 460)


def a_cent(made: Made) -> None:
    """Two calls on a part that covers one."""
    made.op("hand_on", token("R", 0, part=50), {"child": "N", "user": USER})
    for number in (10, 11):
        made.op("ai", {**spend("N", number), "cost": 50}, {"charged": 50, "remaining": 1})
        charge(made, 50)


def nowhere(made: Made) -> None:
    """The call without an answer was not charged."""
    counted(made, 0, used=108)
    counted(made, 1, used=48)
    books = made.accounts[1]
    books.entries.pop(2)
    books.entries[2].update(paid=892)
    books.paid = 892


def denied(made: Made) -> None:
    made.only("device_decide").args.update(decision="deny")


def not_decided(made: Made) -> None:
    for op in made.of("device_decide"):
        made.forget(op)


BROKEN: list[tuple[str, str, Break]] = [
    ("parts", "a call below it that costs more than a part", bigger),
    ("parts", "calls that race for the last cent", a_cent),
    ("parts", "a reading above the part", lambda made: counted(made, 1, used=501)),
    (
        "parts",
        "a part wider than the one above it",
        lambda made: made.op("hand_on", token("L", 0, part=501), {"child": "N", "user": USER}),
    ),
    ("branches", "a call with an ended token", lambda made: made.op("userinfo", token("M", 0))),
    ("branches", "a budget that an ended token runs into", lambda made: made.refuse("ai", spend("M", 9), 402)),
    (
        "branches",
        "an exchange below a token that was given back",
        lambda made: (
            made.op("revoke_access", token("K", 0)),
            made.op("hand_on", token("L", 0, part=0), {"child": "N", "user": USER}),
        ),
    ),
    (
        "branches",
        "a call below a root that was revoked",
        lambda made: (made.op("revoke_refresh", token("R", 0)), made.op("userinfo", token("L", 0))),
    ),
    (
        "branches",
        "a call below a root whose code came again",
        lambda made: (made.refuse("exchange", {"family": "R"}, 400), made.op("userinfo", token("L", 0))),
    ),
    (
        "branches",
        "a call below a root that was disconnected",
        lambda made: (made.op("disconnect", {"session": "t"}, status=303), made.op("userinfo", token("L", 0))),
    ),
    ("handed-on", "a token that nothing ended", lambda made: made.refuse("userinfo", token("L", 0), 401)),
    (
        "handed-on",
        "a token whose sibling was ended",
        lambda made: (made.op("end_branch", {"family": "M"}), made.refuse("ai", spend("L", 9), 401)),
    ),
    ("ancestors", "a charge that counts below and not above", lambda made: counted(made, 0, used=115)),
    ("ancestors", "a charge that counts above and not below", lambda made: counted(made, 1, used=55)),
    (
        "ancestors",
        "a call without an answer that counts below and not above",
        lambda made: counted(made, 0, used=108),
    ),
    ("ancestors", "a call of an ended token that no longer counts", lambda made: counted(made, 0, used=103)),
    ("ancestors", "a charge that counts twice", lambda made: counted(made, 1, used=151)),
    ("answers", "a budget that nobody set", lambda made: made.refuse("ai", {**spend("R", 9), "tree": False}, 402)),
    ("answers", "a quota that nobody passed", lambda made: made.refuse("put", written(), 507)),
    ("decisions", "two decisions", lambda made: made.op("device_decide", DENY)),
    (
        "decisions",
        "a first decision that is refused",
        lambda made: made.refuse("device_decide", {"device": "B" * 22, "decision": "allow"}, 400),
    ),
    ("decisions", "an allowed device that is to wait", lambda made: waits(made, "authorization_pending")),
    ("decisions", "an allowed device that was denied", lambda made: waits(made, "access_denied")),
    ("decisions", "a denied device with tokens", denied),
    ("decisions", "a decision that nobody can make any more", lambda made: made.refuse("device_stuck", POLL, 0)),
    ("devices", "tokens twice", lambda made: made.op("device_poll", POLL, issued("U", 0))),
    ("devices", "tokens that nobody allowed", not_decided),
    ("devices", "tokens that outlive a replay", lambda made: made.op("userinfo", token("T", 0))),
    (
        "devices",
        "tokens that nothing ended",
        lambda made: made.forget(made.only("device_poll", 1)),
    ),
]


def waits(made: Made, error: str) -> None:
    made.refuse("device_poll", POLL, 400, error=error)


def two_cut_off(made: Made) -> None:
    """Two streams that their app left: the earlier one while a server died, so the one charge is for the later."""
    made.who = (ADA, APP)
    made.strike("server", "", 149.0, 151.0)
    for number, at in ((20, 150.0), (21, 170.0)):
        made.lose("ai", {**ask(number, stream=True), "began": True}, at=at)
    charge(made, 40, account=0)


def written() -> dict[str, Any]:
    return {**write("d7", "w"), **token("R", 0)}


FINE: list[tuple[str, Break]] = [
    ("a stream that was free in a fault, and another that was charged in part", two_cut_off),
    (
        "a document that a store refuses which was full a moment ago",
        lambda made: (
            made.strike("memory", "", 80.0, 81.0),
            made.refuse("put", written(), 507, at=90.0),
        ),
    ),
    ("a call without an answer that counts nowhere", nowhere),
    (
        "a token without an answer to its end, which is dead",
        lambda made: (made.lose("revoke_access", token("K", 0)), made.refuse("userinfo", token("L", 0), 401)),
    ),
    (
        "and which lives",
        lambda made: (made.lose("end_branch", {"family": "K"}), made.op("userinfo", token("L", 0))),
    ),
    (
        "a token of a root that refreshed, whose earlier access token was given back",
        lambda made: (
            made.op("refresh", token("R", 0), issued("R", 1)),
            made.op("hand_on", token("R", 1, part=0), {"child": "N", "user": USER}),
            made.op("revoke_access", token("R", 0)),
            made.op("userinfo", token("N", 0)),
            made.refuse("userinfo", token("L", 0), 401),
        ),
    ),
    (
        "a second decision, after one without an answer that was not carried out",
        lambda made: (
            made.lose("device_decide", {"device": "B" * 22, "decision": "deny"}),
            made.refuse("device_decide", {"device": "B" * 22, "decision": "allow"}, 400),
            made.op("device_decide", {"device": "B" * 22, "decision": "allow"}),
        ),
    ),
    (
        "tokens after a decision without an answer",
        lambda made: setattr(made.only("device_decide"), "outcome", "unknown"),
    ),
]


def broken_of(breaks: Break) -> set[str]:
    made = sound()
    made.who = (BOB, AGENT)
    breaks(made)
    return {verdict.invariant.name for verdict in check(made) if verdict.broken}


@each(("name", "breaks"), [pytest.param(name, breaks, id=f"{name}: {said}") for name, said, breaks in BROKEN])
def test_a_broken_promise_is_found(name: str, breaks: Break) -> None:
    assert name in broken_of(breaks)


@each("breaks", [pytest.param(breaks, id=said) for said, breaks in FINE])
def test_allowed_events_break_no_promise(breaks: Break) -> None:
    assert broken_of(breaks) == set()


def test_the_last_readings_of_all_tokens_with_a_part_are_compared() -> None:
    made = sound()
    (verdict,) = [one for one in check(made) if one.invariant.name == "ancestors"]
    assert verdict.checked == 2
    made.only("counted").args.update(reading("R"), last=False)
    (verdict,) = [one for one in check(made) if one.invariant.name == "ancestors"]
    assert verdict.checked == 0, "readings during the load prove nothing"
