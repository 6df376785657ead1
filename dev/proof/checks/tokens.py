"""Promises about codes, tokens and sessions: each works once, ends when it should, and is never lost."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable

from dev.proof.history import History, Op
from dev.proof.verdict import Found

RESOURCE = ("userinfo", "usage", "balance", "put", "get", "delete", "list", "ai")
"""Calls with an access token."""
ALIVE = (402, 404, 409, 412, 422, 429, 507)
"""Statuses that refuse a call although its token is live: the token is checked first."""
_REVOCATIONS = ("revoke_access", "revoke_refresh", "disconnect")


def codes_once(history: History) -> Found:
    """An authorization code is accepted once (SPEC 3.2)."""
    found, accepted = Found(), defaultdict(list)
    for op in history.of("exchange"):
        accepted[op.args["family"]].append(op)
    for ops in accepted.values():
        found.checked += 1
        done = [op for op in ops if op.acked]
        if len(done) > 1:
            found.wrong(f"a code was accepted {len(done)} times: {_both(done)}", done[0].person, *done[:-1])
    return found


def generations_once(history: History) -> Found:
    """A refresh token is accepted once. An app with a retry time may get the same successor again until the successor
    is used (SPEC 2.2, 3.1)."""
    found, presented = Found(), defaultdict(list)
    for op in history.of("refresh"):
        presented[op.args["family"], op.args["generation"]].append(op)
    for (family, generation), ops in presented.items():
        found.checked += 1
        done = sorted((op for op in ops if op.acked), key=lambda op: op.end)
        for op in done:
            if op.result.get("of") != family or op.result.get("issued") != generation + 1:
                found.wrong(f"a refresh token was traded for another than its successor: {op}", op.person)
        retry = history.run["retry"].get(ops[0].client, 0)
        for first, again in itertools.pairwise(done):
            used = [op for op in presented.get((family, generation + 1), ()) if op.acked and op.end < again.start]
            if not retry or again.start - first.end > retry or used:
                found.wrong(f"a refresh token was accepted twice: {_both((first, again))}", first.person, first, *used)
    return found


def dead_stay_dead(history: History) -> Found:
    """After an acknowledged revocation or a refused replay, the tokens stay dead (SPEC 3.1, RFC 7009)."""
    found = Found()
    born = _born(history)
    uses = defaultdict(list)
    for op in history.of(*RESOURCE, "refresh", "exchange"):
        if op.acked or (op.kind in RESOURCE and op.status in ALIVE):
            uses[op.pair].append(op)
    for death in [*(op for op in history.of(*_REVOCATIONS) if op.acked), *replays(history)]:
        found.checked += 1
        for op in uses[death.pair]:
            if op.start > death.end and _covers(death, op, born):
                found.wrong(f"it worked after it was ended: {op}; ended by {death}", death.person, death)
    return found


def _born(history: History) -> dict[str, Op]:
    """The consent that each family comes from."""
    return {op.result["family"]: op for op in history.of("consent") if op.acked and "family" in op.result}


def _covers(death: Op, use: Op, born: dict[str, Op]) -> bool:
    family = use.args["family"]
    if death.kind == "disconnect":
        consent = born.get(family)
        return consent is not None and consent.end < death.start
    if family != death.args["family"]:
        return False
    if death.kind == "revoke_access":
        return use.kind in RESOURCE and use.args["generation"] == death.args["generation"]
    return True


def replays(history: History) -> list[Op]:
    """Codes and refresh tokens that were refused after an earlier use was accepted: their family is dead."""
    found: list[Op] = []
    accepted: dict[tuple[object, ...], Op] = {}
    for op in sorted(history.of("exchange", "refresh"), key=lambda op: op.end):
        what = (op.kind, op.args["family"], op.args.get("generation"))
        if op.acked:
            accepted.setdefault(what, op)
        elif op.refused and op.status == 400 and what in accepted and accepted[what].end < op.start:
            found.append(op)
    return found


def living_live(history: History) -> Found:
    """An issued token lives until it expires or something ends it."""
    found = Found()
    issued = {
        (op.result["of"], op.result["issued"]): op for op in history.of("exchange", "refresh") if op.acked and op.result
    }
    known = threats(history)
    for op in history.of(*RESOURCE):
        birth = issued.get((op.args["family"], op.args["generation"]))
        if birth is None or birth.end > op.start or op.unknown:
            continue
        found.checked += 1
        if op.status == 401 and not any(_may_end(threat, birth, op) for threat in known[op.pair]):
            found.wrong(f"a token was refused that nothing had ended: {op}; issued by {birth}", op.person, birth)
    return found


def threats(history: History) -> dict[tuple[str, str], list[Op]]:
    """What may have ended the tokens of a pair: revocations, codes and refresh tokens presented again, and refresh
    tokens of a family from before one of these, which are replays even on first use."""
    found: dict[tuple[str, str], list[Op]] = defaultdict(list)
    seen: dict[tuple[object, ...], Op] = {}
    for op in history.of(*_REVOCATIONS, "exchange", "refresh"):
        what = (op.kind, op.args.get("family"), op.args.get("generation"))
        began = history.families.get(op.args.get("family", ""), 0.0)
        stale = op.kind == "refresh" and any(began < over(before) for before in found[op.pair])
        if op.kind in _REVOCATIONS or what in seen or stale:
            found[op.pair].append(op)
            # Without an answer, the first request may be carried out after the second.
            found[op.pair] += [first for first in (seen.get(what),) if first is not None and first.unknown]
        seen.setdefault(what, op)
    return found


def over(op: Op) -> float:
    """The latest time at which the operation may have been carried out."""
    return math.inf if op.unknown else op.end


def _may_end(threat: Op, birth: Op, use: Op) -> bool:
    if threat.start >= use.end or over(threat) <= birth.start:
        return False
    family = birth.result["of"]
    if threat.kind in ("exchange", "revoke_refresh"):
        return bool(threat.args["family"] == family)
    if threat.kind == "revoke_access":
        return bool(threat.args["family"] == family and threat.args["generation"] == use.args["generation"])
    return True


def sessions(history: History) -> Found:
    """A session works until it is signed out, and not longer."""
    found = Found()
    begun = {op.result["session"]: op for op in history.of("sign_in", "sign_up") if op.acked and op.result}
    ended: dict[str, list[Op]] = defaultdict(list)
    for op in history.of("sign_out"):
        if not op.refused:
            ended[op.args["session"]].append(op)
    for op in history.of("page"):
        begin, ends = begun.get(op.args["session"]), ended[op.args["session"]]
        if op.unknown or begin is None:
            continue
        found.checked += 1
        for end in ends:
            if op.acked and end.acked and op.start > end.end:
                found.wrong(f"a session worked after it was signed out: {op}; {end}", op.person, end)
        if op.status == 401 and not any(end.start < op.end for end in ends):
            found.wrong(f"a session was over that nobody had ended: {op}; {begin}", op.person, begin)
    return found


def accounts(history: History) -> Found:
    """Whoever has an account can sign in."""
    found = Found()
    made = {op.person: op for op in history.of("sign_up") if op.acked}
    for op in history.of("sign_in"):
        found.checked += op.acked
        if op.refused and op.status == 400:
            undone = [made[op.person]] if op.person in made else []
            found.wrong(f"somebody could not sign in: {op}", op.person, *undone)
    return found


def _both(ops: Iterable[Op]) -> str:
    return "; ".join(map(str, ops))
