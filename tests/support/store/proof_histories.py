"""Histories for the checker of the proof, written by hand."""

from __future__ import annotations

from typing import Any

from redis.crc import key_slot

from dev.proof.history import Account, Fault, History, Hosted, Op, Outcome
from store import keys

ADA, APP, USER = "ada@example.com", "app", "0123456789abcdef0123456789abcdef"
BOB, AGENT = "bob@example.com", "agent"
DEVICE = "A" * 22


SLOT = key_slot(keys.prefix(USER).encode())


class Made(History):
    """A history that is written by hand: each operation takes a tenth of a second, and begins a second after the one
    before, unless its time is given. `who`: whose the next ones are."""

    who = (ADA, APP)

    def op(
        self,
        kind: str,
        args: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
        *,
        outcome: Outcome = "acknowledged",
        status: int = 200,
        error: str = "",
        at: float | None = None,
    ) -> Op:
        start = float(len(self.ops)) if at is None else at
        op = Op(len(self.ops), "worker", *self.who, kind, start, args or {}, start + 0.1, outcome, status, error)
        op.result = result or {}
        self.ops.append(op)
        self.ops.sort(key=lambda op: op.start)
        return op

    def refuse(self, kind: str, args: dict[str, Any], status: int, **more: Any) -> Op:
        return self.op(kind, args, outcome="refused", status=status, **more)

    def lose(self, kind: str, args: dict[str, Any], **more: Any) -> Op:
        return self.op(kind, args, outcome="unknown", status=503, **more)

    def only(self, kind: str, number: int = 0) -> Op:
        """One of the operations of a kind."""
        return self.of(kind)[number]

    def forget(self, op: Op) -> Op:
        """Takes an operation out."""
        self.ops.remove(op)
        return op

    def strike(self, kind: str, what: str, start: float, end: float) -> Fault:
        """Adds a fault."""
        fault = Fault(kind, what, start, end)
        self.faults.append(fault)
        return fault


def token(family: str = "A", generation: int = 1, **more: Any) -> dict[str, Any]:
    return {"family": family, "generation": generation, **more}


def issued(family: str, generation: int) -> dict[str, Any]:
    return {"issued": generation, "of": family, "user": USER}


def write(name: str, digest: str, if_match: str = "") -> dict[str, Any]:
    return token(name=name, digest=digest, size=10, if_match=if_match)


def ask(number: int, *, stream: bool = False, key: str = "") -> dict[str, Any]:
    return token(number=number, cost=40 + 5 * number, stream=stream, key=key)


def spend(family: str, number: int, generation: int = 0) -> dict[str, Any]:
    """A call with a token of a tree."""
    return {**ask(number), "family": family, "generation": generation, "tree": True}


def reading(family: str) -> dict[str, Any]:
    """The last reading of what a token has spent."""
    return {"family": family, "generation": 0, "last": True}


def trees(made: Made) -> None:
    """A tree of tokens: R, and below it K, L and M; then a device."""
    made.who = (BOB, AGENT)
    made.op("consent", {"session": "t", "budget": 1000}, {"family": "R", "user": USER})
    made.op("exchange", {"family": "R"}, issued("R", 0))
    made.op("hand_on", token("R", 0, part=500), {"child": "K", "user": USER})
    made.op("hand_on", token("K", 0, part=0), {"child": "L", "user": USER})
    made.op("hand_on", token("R", 0, part=300), {"child": "M", "user": USER})
    made.op("ai", spend("L", 2), {"charged": 48, "remaining": 900, "replayed": False})
    made.lose("ai", spend("K", 3))
    made.op("ai", spend("M", 4), {"charged": 60, "remaining": 900, "replayed": False})
    made.refuse("ai", spend("M", 5), 402)
    made.op("userinfo", token("M", 0))
    made.op("end_branch", {"family": "M"}, status=303)
    made.refuse("userinfo", token("M", 0), 401)
    made.op("counted", reading("R"), {"active": True, "used": 163, "part": 1000})
    made.op("counted", reading("K"), {"active": True, "used": 103, "part": 500})
    made.op("counted", reading("L"), {"active": True, "used": 103, "part": 500})
    made.op("counted", reading("M"), {"active": False})
    entries = [{"kind": "grant", "amount": 1000, "paid": 1000, "reason": "k3"}]
    for charge, paid in ((48, 952), (55, 897), (60, 837)):
        entries.append({"kind": "charge", "amount": -charge, "paid": paid, "reason": ""})
    made.op("top_up", {"key": "k3", "amount": 1000}, {"replayed": False, "spendable": 1000})
    made.accounts.append(Account(BOB, USER, 837, 0, 0, entries))
    made.op("device_begin", result={"device": DEVICE})
    made.op("device_decide", {"device": DEVICE, "decision": "allow"})
    made.refuse("device_decide", {"device": DEVICE, "decision": "deny"}, 400)
    made.op("device_poll", {"device": DEVICE}, issued("T", 0))
    made.op("userinfo", token("T", 0))
    made.refuse("device_poll", {"device": DEVICE}, 400, error="invalid_grant")
    made.refuse("userinfo", token("T", 0), 401)
    made.who = (ADA, APP)


def sound() -> Made:
    """A day on which nothing goes wrong."""
    made = Made(run={"store": "redis", "title": "a store", "wait_replicas": 0, "retry": {}, "seconds": 40.0})
    made.run.update(workers=1, servers=1, seed=1, went_on=1)
    made.op("sign_in", result={"session": "s", "user": USER}, status=303)
    made.op("consent", {"session": "s"}, {"family": "A", "user": USER})
    made.op("exchange", {"family": "A"}, issued("A", 0))
    made.op("refresh", token(generation=0), issued("A", 1))
    made.op("put", write("d0", "x"), {"etag": 101}, status=201)
    made.op("get", token(name="d0"), {"etag": 101, "digest": "x"})
    made.op("put", write("d0", "y", "101"), {"etag": 102})
    made.op("get", token(name="d0"), {"etag": 102, "digest": "y"})
    made.op("delete", token(name="d0"), {"absent": False}, status=204)
    made.op("get", token(name="d0"), {"absent": True}, status=404)
    made.op("put", write("d1", "z"), {"etag": 103}, status=201)
    made.op("list", token(), {"items": {"d1": 103}})
    made.op("get", token(name="d1"), {"etag": 103, "digest": "z"})
    made.op("top_up", {"key": "k1", "amount": 1000}, {"replayed": False, "spendable": 1000})
    made.op("ai", ask(1), {"charged": 45, "remaining": 955, "replayed": False})
    made.op("balance", token(), {"paid": 955, "held": 0, "spendable": 955})
    made.op("revoke_refresh", token())
    made.refuse("userinfo", token(), 401)
    made.op("consent", {"session": "s"}, {"family": "B", "user": USER})
    made.op("exchange", {"family": "B"}, issued("B", 0))
    made.op("userinfo", token("B", 0))
    made.op("page", {"session": "s"})
    made.op("sign_out", {"session": "s"}, status=303)
    made.refuse("page", {"session": "s"}, 401)
    entries = [
        {"kind": "grant", "amount": 1000, "paid": 1000, "reason": "k1"},
        {"kind": "charge", "amount": -45, "paid": 955, "reason": ""},
    ]
    made.accounts.append(Account(ADA, USER, 955, 0, 0, entries))
    usage: dict[str, Any] = {"documents": {"used": 1}, "bytes": {"used": 10}}
    usage |= {"collections": [{"name": "notes", "documents": 1, "bytes": 10}]}
    trees(made)
    made.hosted.append(Hosted(ADA, APP, usage, [{"collection": "notes", "id": "d1", "size": 10}]))
    made.fsck = {"status": 0, "findings": []}
    return made


def failed_over(**run: Any) -> Made:
    """A cluster in which a replica took over for the person between the seconds 10 and 12, with a document gone that
    was written at 10."""
    made = sound()
    made.run.update(store="cluster", **run)
    made.faults.append(Fault("failover", "node 1", 10.0, 12.0, [(SLOT - 1, SLOT + 1)]))
    made.op("get", token("B", 0, name="d1"), {"absent": True}, status=404)
    return made
