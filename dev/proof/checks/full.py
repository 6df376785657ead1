"""What a full store must still do: end sessions, tokens, documents and accounts, and let people sign in for that."""

from __future__ import annotations

from dev.proof.history import History, Op
from dev.proof.verdict import Found
from runtime.memory_watch import LOOK_SECONDS

ENDINGS = ("sign_in", "sign_out", "revoke_access", "revoke_refresh", "disconnect", "delete", "erase")
NOTICED = LOOK_SECONDS + 5.0
"""Seconds within which every server has noticed that the store has room again."""


def may_be_full(history: History, op: Op) -> bool:
    """Whether a server may take the store for too full for documents: see docs/operations.md."""
    return any(one.name == "memory" and one.begin < op.end and op.start < one.end + NOTICED for one in history.faults)


def ends_all_the_same(history: History) -> Found:
    """In a store that is full and has no other fault, requests that end something succeed."""
    found = Found()
    for fault in history.faults:
        others = [one for one in history.faults if one is not fault]
        if fault.name != "memory" or any(one.begin < fault.end and fault.begin < one.end for one in others):
            continue
        for op in history.of(*ENDINGS):
            if op.start >= fault.begin and op.end <= fault.end and op.sent:
                found.checked += op.acked
                if op.unknown:
                    found.wrong(f"a full store did not take it: {op} {op.error}", op.person)
    return found
