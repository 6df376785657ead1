"""Promises about money: the ledger adds up, payments are booked once, and use is charged once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container

from dev.proof.history import Account, History, Op
from dev.proof.verdict import Found

SETTLED_WITHIN = 5.0
"""Seconds within which a server settles a stream whose app has gone, if the store answers."""


def ledger_adds_up(history: History) -> Found:
    """A person's balance is the sum of the entries, and each entry has the right running balance."""
    found = Found()
    for account in history.accounts:
        found.checked += len(account.entries)
        balance = account.opening
        for entry in account.entries:
            balance += entry["amount"]
            if entry["paid"] != balance:
                found.wrong(f"the entry {entry} says another balance than {balance}", account.person)
        if balance != account.paid:
            found.wrong(f"the balance is {account.paid} and the entries add up to {balance}", account.person)
    return found


def payments_once(history: History) -> Found:
    """Each payment key is booked once."""
    found = Found()
    tries: dict[str, list[Op]] = defaultdict(list)
    for op in history.of("top_up"):
        tries[op.args["key"]].append(op)
    booked = {account.person: _booked(account) for account in history.accounts}
    for key, ops in tries.items():
        person, amount = ops[0].person, ops[0].args["amount"]
        entries = booked.get(person, {}).pop(key, [])
        acked = [op for op in ops if op.acked]
        found.checked += 1
        if len(entries) > 1 or any(entry != amount for entry in entries):
            found.wrong(f"the payment {key} of {amount} is booked as {entries}", person, *acked[:1])
        elif acked and not entries:
            found.wrong(f"the payment {key} of {amount} is not booked: {acked[0]}", person, acked[0])
        elif entries and not acked and all(op.refused for op in ops):
            found.wrong(f"the payment {key} was refused and is booked: {ops[0]}", person)
    for person, left in booked.items():
        for key, entries in left.items():
            found.wrong(f"{entries} was booked as {key!r}, which nobody paid", person)
    return found


def _booked(account: Account) -> dict[str, list[int]]:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for entry in account.entries:
        if entry["kind"] != "charge":
            by_reason[entry["reason"]].append(entry["amount"])
    return by_reason


def charges_once(history: History) -> Found:
    """An answered AI call is charged its cost once; a refused one is free. A call with a token of a tree may be charged
    less, if a part or a budget covers no more. A stream that its app left after the start is charged, unless a fault
    was active. Each call of a person who spends no part has a different cost, so a charge identifies its call."""
    found = Found()
    for account in history.accounts:
        charges, open_calls, answered = _charges(account), list[Op](), defaultdict[int, list[Op]](list)
        for ops in _calls(history, account.person).values():
            found.checked += 1
            acked = [op for op in ops if op.acked]
            if not acked:
                open_calls += [op for op in ops if op.unknown][:1]
                continue
            said = {op.result["charged"] for op in acked}
            if len(said) > 1 or not fits(acked[0], *said):
                found.wrong(f"a call that costs {acked[0].args['cost']} was charged {said}: {acked[0]}", account.person)
            charged = acked[0].result["charged"]
            answered[charged].append(acked[0])
            if charges[charged] == 0:
                # Of several calls with the same charge, any may be the one.
                found.wrong(f"a charge of {charged} is not booked: {acked[0]}", account.person, *answered[charged])
            charges[charged] -= charges[charged] > 0
        due = {op.number for op in open_calls if op.args.get("began") and not _broken_near(history, op)}
        _settle(found, account.person, +charges, open_calls, due)
        for op in open_calls:
            if op.number in due:
                found.wrong(f"a stream that the model's server had accepted was free: {op}", account.person, op)
    return found


def fits(op: Op, charge: int) -> bool:
    """Whether this may be the charge of a call: its cost; or less, if it ended early or little was left for it."""
    whole, part = op.args["cost"], op.args.get("tree") or (op.args["stream"] and not op.acked)
    return bool(charge == whole or (part and charge < whole))


def leftovers(history: History) -> dict[str, Counter[int]]:
    """Each person's charges without those of answered calls: what calls without an answer were charged."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for account in history.accounts:
        charges = _charges(account)
        for ops in _calls(history, account.person).values():
            charges -= Counter([op.result["charged"] for op in ops if op.acked][:1])
        found[account.person] = +charges
    return found


def _charges(account: Account) -> Counter[int]:
    return Counter(-entry["amount"] for entry in account.entries if entry["kind"] == "charge")


def _calls(history: History, person: str) -> dict[int, list[Op]]:
    calls: dict[int, list[Op]] = defaultdict(list)
    for op in history.of("ai"):
        if op.person == person:
            calls[op.args["number"]].append(op)
    return calls


def _broken_near(history: History, op: Op) -> bool:
    """Whether a server or the store may have been away when the call was due to be settled."""
    begin, end = op.start, op.end + SETTLED_WITHIN
    return any(one.begin < end and (one.end or end) > begin for one in history.faults if one.name != "hang-up")


def _settle(found: Found, person: str, charges: Counter[int], calls: list[Op], due: Container[int]) -> None:
    """Matches the other charges to `calls` with an unknown end and removes those calls; a cut-off stream may be charged
    in part. The numbers in `due` are those of calls that must have been charged."""
    for charge in sorted(charges.elements(), reverse=True):
        fit = [op for op in calls if fits(op, charge)]
        if not fit:
            found.wrong(f"{charge} was charged once too often, or for nothing that anybody asked for", person)
            continue
        calls.remove(min(fit, key=lambda op: (op.number not in due, not op.args.get("began"), op.args["cost"])))


def no_hold_left(history: History) -> Found:
    """When every call is over and the cut-off ones have expired, nothing is held."""
    found = Found()
    for account in history.accounts:
        found.checked += 1
        if account.held:
            found.wrong(f"{account.held} is held for calls that nobody makes", account.person)
    return found


def never_below_zero(history: History) -> Found:
    """Available credits are never negative."""
    found = Found()
    for op in history.of("ai", "balance", "top_up"):
        for name in ("remaining", "spendable"):
            if op.acked and name in op.result:
                found.checked += 1
                if op.result[name] < 0:
                    found.wrong(f"less than nothing is left: {op}", op.person)
    return found
