"""The checker of the proof: a sound history passes, and each promise that a history breaks is found to be broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dev.proof import plot, report
from dev.proof.checker import FSCK, INVARIANTS, check, kept
from dev.proof.history import UNREACHABLE, Fault, History, Recorder
from dev.proof.verdict import Verdict
from tests.dev import test_proof_trees as trees
from tests.support.lists.offenders import each
from tests.support.store.proof_histories import (
    APP,
    SLOT,
    USER,
    Made,
    ask,
    failed_over,
    issued,
    sound,
    token,
    write,
)


def in_a_full_store(made: Made, *others: Fault) -> None:
    """Somebody signs out, and has no answer."""
    made.faults += [Fault("memory", "", 30.0, 40.0), *others]
    made.lose("sign_out", {"session": "t"}, at=35.0)


def verdict_on(history: History, name: str) -> Verdict:
    return next(verdict for verdict in check(history) if verdict.invariant.name == name)


def broken(history: History) -> set[str]:
    return {verdict.invariant.name for verdict in check(history) if verdict.broken}


def test_a_sound_history_keeps_every_promise() -> None:
    made = sound()
    out = made.only("sign_out")
    made.faults.append(Fault("memory", "", out.start, out.end))
    verdicts = check(made)
    assert kept(verdicts)
    assert {verdict.invariant for verdict in verdicts} == {*INVARIANTS, FSCK}
    assert all(verdict.held for verdict in verdicts), [one.invariant.name for one in verdicts if not one.held]


def test_a_truncated_history_leaves_promises_unchecked() -> None:
    made = sound()
    del made.run["went_on"]
    made.fsck = None
    verdicts = check(made)
    assert {one.invariant.name for one in verdicts if not one.held} == {"recovery", "fsck", "full"}
    assert report.promises(verdicts).count("| not looked at |") == 3


def finding(invariant: str) -> dict[str, Any]:
    return {"invariant": invariant, "severity": "error", "key": "k", "what": "wrong"}


def entry(made: Made, number: int) -> dict[str, Any]:
    found: dict[str, Any] = made.accounts[0].entries[number]
    return found


Break = Callable[[Made], Any]
BROKEN: list[tuple[str, str, Break]] = [
    ("codes", "a code twice", lambda made: made.op("exchange", {"family": "A"}, issued("A", 0))),
    ("rotations", "a refresh token twice", lambda made: made.op("refresh", token(generation=0), issued("A", 1))),
    (
        "rotations",
        "a successor of another family",
        lambda made: made.op("refresh", token("B", 0), issued("C", 1)),
    ),
    ("revocations", "a revoked family", lambda made: made.op("userinfo", token())),
    ("revocations", "a revoked family that refreshes", lambda made: made.op("refresh", token(), issued("A", 2))),
    ("revocations", "a limit that a revoked token runs into", lambda made: made.refuse("userinfo", token(), 429)),
    (
        "revocations",
        "an access token that was given back",
        lambda made: (made.op("revoke_access", token("B", 0)), made.op("userinfo", token("B", 0))),
    ),
    (
        "revocations",
        "an app that was disconnected",
        lambda made: (made.op("disconnect", {"session": "s"}, status=303), made.op("usage", token("B", 0))),
    ),
    (
        "revocations",
        "a family whose code was replayed",
        lambda made: (made.refuse("exchange", {"family": "B"}, 400), made.op("userinfo", token("B", 0))),
    ),
    (
        "revocations",
        "a family whose refresh token was replayed",
        lambda made: (
            made.op("refresh", token("B", 0), issued("B", 1)),
            made.refuse("refresh", token("B", 0), 400),
            made.op("userinfo", token("B", 1)),
        ),
    ),
    ("tokens", "a token that nothing ended", lambda made: made.refuse("userinfo", token("B", 0), 401)),
    ("sessions", "a session that was signed out", lambda made: made.op("page", {"session": "s"})),
    ("sessions", "a session that nobody ended", lambda made: made.refuse("page", {"session": "s"}, 401, at=0.5)),
    ("accounts", "an account that is gone", lambda made: made.refuse("sign_in", {}, 400)),
    (
        "accounts",
        "an account that was made and is gone",
        lambda made: (made.op("sign_up", status=303), made.refuse("sign_in", {}, 400)),
    ),
    (
        "documents",
        "a document that is gone",
        lambda made: made.op("get", token(name="d1"), {"absent": True}, status=404),
    ),
    ("documents", "one that a list leaves out", lambda made: made.op("list", token(), {"items": {}})),
    ("documents", "a deletion that finds nothing", lambda made: made.op("delete", token(name="d1"), {"absent": True})),
    (
        "documents",
        "an older version",
        lambda made: made.op("get", token(name="d0"), {"etag": 101, "digest": "x"}, at=7.5),
    ),
    (
        "documents",
        "a document that was deleted",
        lambda made: made.op("get", token(name="d0"), {"etag": 102, "digest": "y"}),
    ),
    (
        "documents",
        "one that went before its deletion was asked for",
        lambda made: (made.op("get", token(name="d1"), {"absent": True}), made.lose("delete", token(name="d1"))),
    ),
    ("whole", "a content nobody sent", lambda made: made.op("get", token(name="d1"), {"etag": 103, "digest": "half"})),
    (
        "whole",
        "a content of another version",
        lambda made: made.op("get", token(name="d0"), {"etag": 102, "digest": "x"}, at=7.5),
    ),
    (
        "whole",
        "two contents under one ETag",
        lambda made: (
            made.lose("put", write("d1", "p")),
            made.lose("put", write("d1", "q")),
            made.op("get", token(name="d1"), {"etag": 104, "digest": "p"}),
            made.op("get", token(name="d1"), {"etag": 104, "digest": "q"}),
        ),
    ),
    ("versions", "an ETag twice", lambda made: made.op("put", write("d2", "v"), {"etag": 103})),
    ("versions", "a version replaced twice", lambda made: made.op("put", write("d0", "v", "101"), {"etag": 104})),
    ("versions", "an ETag that falls", lambda made: made.op("put", write("d1", "v", "103"), {"etag": 99})),
    ("usage", "documents that are not counted", lambda made: made.hosted[0].usage["documents"].update(used=0)),
    ("usage", "bytes that are not there", lambda made: made.hosted[0].usage["bytes"].update(used=11)),
    ("usage", "an empty collection", lambda made: made.hosted[0].usage["collections"].append({"name": "left"})),
    ("ledger", "a cent that is lost", lambda made: setattr(made.accounts[0], "paid", 954)),
    ("ledger", "an entry that says another balance", lambda made: entry(made, 0).update(paid=999)),
    (
        "payments",
        "a payment booked twice",
        lambda made: made.accounts[0].entries.append({"kind": "grant", "amount": 1000, "paid": 1955, "reason": "k1"}),
    ),
    ("payments", "a payment that is lost", lambda made: made.op("top_up", {"key": "k2", "amount": 1})),
    ("payments", "a payment that nobody made", lambda made: made.forget(made.only("top_up"))),
    (
        "payments",
        "a payment that was refused",
        lambda made: (made.forget(made.only("top_up")), made.refuse("top_up", {"key": "k1", "amount": 1000}, 422)),
    ),
    ("payments", "another amount", lambda made: entry(made, 0).update(amount=1001)),
    ("charges", "a charge that is lost", lambda made: made.op("ai", ask(2), {"charged": 50, "remaining": 1})),
    ("charges", "a charge beyond the cost", lambda made: made.only("ai").result.update(charged=46)),
    (
        "charges",
        "a call charged twice",
        lambda made: made.accounts[0].entries.append({"kind": "charge", "amount": -45, "paid": 910, "reason": ""}),
    ),
    (
        "charges",
        "a call that was refused",
        lambda made: (made.forget(made.only("ai")), made.refuse("ai", ask(1), 502)),
    ),
    (
        "charges",
        "a whole call that was cut off, charged in part",
        lambda made: (made.forget(made.only("ai")), made.lose("ai", ask(2))),
    ),
    (
        "charges",
        "a stream that began and was free",
        lambda made: made.lose("ai", {**ask(2, stream=True), "began": True}),
    ),
    ("holds", "a hold that is left", lambda made: setattr(made.accounts[0], "held", 1)),
    ("spendable", "less than nothing", lambda made: made.only("balance").result.update(spendable=-1)),
    ("recovery", "somebody who is shut out", lambda made: made.run.update(stuck="nobody lets me in")),
    ("answers", "a defect", lambda made: made.op("userinfo", token("B", 0), outcome="unknown", status=500)),
    ("answers", "a refusal that the interface does not have", lambda made: made.refuse("put", write("d1", "w"), 404)),
    ("answers", "tokens that do not open", lambda made: made.only("exchange").result.update(broken=True)),
    ("full", "a session that nobody could end", lambda made: in_a_full_store(made)),
    ("fsck", "what fsck finds", lambda made: setattr(made, "fsck", {"status": 1, "findings": [finding("owner")]})),
]


@each(("name", "breaks"), [pytest.param(name, breaks, id=f"{name}: {said}") for name, said, breaks in BROKEN])
def test_a_broken_promise_is_found(name: str, breaks: Break) -> None:
    made = sound()
    breaks(made)
    assert name in broken(made)
    assert not kept(check(made))


def test_every_promise_has_a_test_that_breaks_it() -> None:
    assert {name for name, _, _ in (*BROKEN, *trees.BROKEN)} == {one.name for one in (*INVARIANTS, FSCK)}


FINE: list[tuple[str, Break]] = [
    (
        "a sign-out without an answer, when a server was killed in a full store",
        lambda made: in_a_full_store(made, Fault("server", "", 34.0, 36.0)),
    ),
    ("a code that was refused the second time", lambda made: made.refuse("exchange", {"family": "B"}, 400)),
    ("a rotation that was lost and may have happened", lambda made: made.lose("refresh", token("B", 0))),
    (
        "a pair that died of a refresh token presented twice",
        lambda made: (
            made.lose("refresh", token("B", 0)),
            made.refuse("refresh", token("B", 0), 400),
            made.refuse("userinfo", token("B", 0), 401),
        ),
    ),
    (
        "a new family that dies of a rotation that came late",
        lambda made: (
            made.lose("refresh", token("B", 0)),
            made.op("refresh", token("B", 0), issued("B", 1)),
            made.op("consent", result={"family": "C", "user": USER}),
            made.op("exchange", {"family": "C"}, issued("C", 0)),
            made.refuse("userinfo", token("C", 0), 401),
        ),
    ),
    (
        "a revocation without an answer, after which the token is dead",
        lambda made: (made.lose("revoke_refresh", token("B", 0)), made.refuse("userinfo", token("B", 0), 401)),
    ),
    (
        "and after which it lives",
        lambda made: (made.lose("revoke_refresh", token("B", 0)), made.op("userinfo", token("B", 0))),
    ),
    ("a call that began before the revocation ended", lambda made: made.op("userinfo", token(), at=16.05)),
    (
        "a write without an answer that came late",
        lambda made: (
            made.lose("put", write("d1", "late"), at=9.5),
            made.op("get", token("B", 0, name="d1"), {"etag": 104, "digest": "late"}),
        ),
    ),
    (
        "a deletion without an answer",
        lambda made: (
            made.lose("delete", token("B", 0, name="d1")),
            made.op("get", token("B", 0, name="d1"), {"absent": True}),
        ),
    ),
    (
        "a stream that was cut off, charged in part",
        lambda made: (made.forget(made.only("ai")), made.lose("ai", ask(2, stream=True))),
    ),
    (
        "a stream that was cut off and cost nothing",
        lambda made: made.lose("ai", ask(2, stream=True)),
    ),
    (
        "a stream that began and was free, since its server was killed",
        lambda made: (
            made.lose("ai", {**ask(2, stream=True), "began": True}),
            made.strike("server", "kill -9", 0.0, 100.0),
        ),
    ),
    (
        "a call made again under its key",
        lambda made: (
            made.lose("ai", ask(1, key="k"), at=12.5),
            made.op("ai", ask(1, key="k"), {"charged": 45, "remaining": 955, "replayed": True}, at=14.5),
        ),
    ),
    ("a payment without an answer", lambda made: made.lose("top_up", {"key": "k2", "amount": 7})),
    (
        "a request that was never sent",
        lambda made: made.refuse("disconnect", {"session": "s"}, 0, error=UNREACHABLE, at=19.5),
    ),
    ("a store that was away", lambda made: made.lose("userinfo", token("B", 0))),
]


@each("breaks", [pytest.param(breaks, id=said) for said, breaks in FINE])
def test_allowed_events_break_no_promise(breaks: Break) -> None:
    made = sound()
    breaks(made)
    assert broken(made) == set()


def test_a_retry_time_returns_the_same_successor_until_its_use() -> None:
    made = sound()
    made.run["retry"] = {APP: 30}
    made.op("refresh", token("B", 0), issued("B", 1), at=30)
    made.op("refresh", token("B", 0), issued("B", 1), at=31)
    assert broken(made) == set()
    made.op("refresh", token("B", 1), issued("B", 2), at=32)
    made.op("refresh", token("B", 0), issued("B", 1), at=33)
    assert broken(made) == {"rotations"}


@pytest.mark.parametrize("store", ["cluster", "sentinel"])
def test_a_failover_may_lose_recent_acknowledged_writes(store: str) -> None:
    made = failed_over()
    made.run.update(store=store)
    verdict = verdict_on(made, "documents")
    assert (len(verdict.allowed), len(verdict.broken)) == (1, 0)
    assert "d1 is gone" in verdict.allowed[0].text


@pytest.mark.parametrize(
    "otherwise",
    [
        pytest.param(lambda made: made.run.update(store="redis"), id="on one server"),
        pytest.param(lambda made: made.faults[0].moved.clear(), id="where no replica took over"),
        pytest.param(lambda made: setattr(made.faults[0], "moved", [(0, SLOT - 1)]), id="for other people"),
        pytest.param(lambda made: setattr(made.faults[0], "begin", 13.0), id="before it began"),
        pytest.param(lambda made: setattr(made.faults[0], "end", 8.0), id="after it was over"),
    ],
)
def test_no_other_fault_may_lose_acknowledged_writes(otherwise: Break) -> None:
    made = failed_over()
    otherwise(made)
    assert "documents" in broken(made)


def test_writes_that_waited_for_replicas_may_not_be_lost() -> None:
    made = failed_over()
    made.op("top_up", {"key": "k2", "amount": 1}, at=11.5)
    assert broken(made) == set()
    made.run.update(wait_replicas=1)
    assert broken(made) == {"payments"}, "an app's document is not waited for"


def test_a_failover_excuses_no_torn_document_and_no_wrong_sum() -> None:
    made = failed_over()
    made.op("get", token("B", 0, name="d1"), {"etag": 103, "digest": "half"}, at=11.5)
    made.accounts[0].paid = 954
    assert {"whole", "ledger"} <= broken(made)


def test_a_history_round_trips(tmp_path: Path) -> None:
    made, path = failed_over(), tmp_path / "history.jsonl"
    recorder = Recorder(path)
    recorder.run(**made.run)
    for op in reversed(made.ops):
        recorder.op(op)
    for fault in made.faults:
        recorder.fault(fault)
    for account in made.accounts:
        recorder.account(account)
    recorder.hosted(made.hosted[0])
    assert made.fsck is not None
    recorder.fsck(made.fsck)
    written, read = recorder.close(), History.load(path)
    assert (written.ops, read.ops) == (made.ops, made.ops)
    assert (read.run, read.accounts, read.hosted, read.fsck) == (made.run, made.accounts, made.hosted, made.fsck)
    assert [(one.begin, one.end) for one in read.faults] == [(10.0, 12.0)]
    assert len(verdict_on(read, "documents").allowed) == 1


def test_the_report_names_and_quotes_violations() -> None:
    made = failed_over()
    made.op("exchange", {"family": "A"}, issued("A", 0), at=30.0)
    said = report.summary(made, check(made))
    assert "| No authorization code is accepted twice. | 3 codes | **broken** |" in said
    assert "a code was accepted 2 times" in said
    assert "held; 1 lost to asynchronous replication" in said
    assert "| kill -9 of a primary until its replica has taken over | 1 | 1 | 2.0 |" in said
    overview = report.overview([(made, check(made))])
    # The family of that code was revoked, so two promises are broken.
    assert overview.splitlines()[-1].endswith("| 2 | 1 |")


def test_the_plot_shows_every_answer_and_every_fault() -> None:
    made = failed_over()
    made.lose("put", write("d1", "v"), at=20.0)
    drawn = plot.draw(made)
    assert drawn.count('<rect class="unknown"') == 3, "two, and the legend"
    assert "kill -9 of a primary" in drawn
    assert 'class="moved" x=' in drawn
