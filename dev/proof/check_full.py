"""What a full store must do all the same: end sessions, tokens, documents and accounts, and let people in to do so."""

from __future__ import annotations

from dev.proof.history import History
from dev.proof.verdict import Found

ENDINGS = ("sign_in", "sign_out", "revoke_access", "revoke_refresh", "disconnect", "delete", "erase")


def ends_all_the_same(history: History) -> Found:
    """In a full store that nothing else is done to, whoever ends something has an answer."""
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
