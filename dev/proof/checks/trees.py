"""Promises about trees of delegated tokens: parts bound them, charges count at each ancestor, and what ends, ends all
below."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cached_property

from dev.proof.checks.money import fits, leftovers
from dev.proof.checks.tokens import ALIVE, over, replays, threats
from dev.proof.history import History, Op
from dev.proof.verdict import Found

USES = ("ai", "userinfo", "hand_on")
"""Calls with a token of a tree."""
ENDINGS = ("revoke_access", "revoke_refresh", "disconnect", "end_branch")
At = tuple[str, int]
"""A token: its family and generation."""


class Forest:
    """All trees of a history. `handed`: the exchange from which each delegated token came; `budgets`: the decision on
    the budget that each root has, and its amount."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.handed = {op.result["child"]: op for op in history.of("hand_on") if op.acked and "child" in op.result}
        self.budgets = {
            op.result["family"]: op for op in history.of("consent") if op.acked and "budget" in op.args and op.result
        }
        self.below: dict[str, list[str]] = defaultdict(list)
        for child, op in self.handed.items():
            self.below[op.args["family"]].append(child)

    def part(self, family: str) -> int:
        """What a token may spend, in micro-dollars; 0 if only what is above it bounds it."""
        if family in self.handed:
            return int(self.handed[family].args["part"])
        return int(self.budgets[family].args["budget"]) if family in self.budgets else 0

    def chain(self, at: At) -> list[At]:
        """A token and those above it, the root last."""
        found = [at]
        while (op := self.handed.get(found[-1][0])) is not None:
            found.append((op.args["family"], op.args["generation"]))
        return found

    def tree(self, family: str) -> list[str]:
        """A token and everything below it."""
        found = [family]
        for one in found:
            found += self.below[one]
        return found

    def has(self, op: Op) -> bool:
        """Whether an operation is about a token of a tree."""
        family = op.args.get("family", "")
        return family in self.handed or family in self.budgets

    @cached_property
    def calls(self) -> dict[str, list[Op]]:
        """The AI calls of each token that may have been charged."""
        found: dict[str, list[Op]] = defaultdict(list)
        by_number: dict[tuple[str, int], list[Op]] = defaultdict(list)
        for op in self.history.of("ai"):
            if op.args.get("tree") and not op.refused:
                by_number[op.person, op.args["number"]].append(op)
        for ops in by_number.values():
            # A repeated call is one call.
            one = next((op for op in ops if op.acked), ops[0])
            found[one.args["family"]].append(one)
        return found


def parts_bound(history: History) -> Found:
    """The charges of a token and of all below it are never more than its part, or the budget of the grant, and no token
    has a larger part than those above it. 100 calls at the same moment on a cent spend at most a cent."""
    found, forest = Found(), Forest(history)
    for family in [*forest.budgets, *forest.handed]:
        part = forest.part(family)
        charged = [op for one in forest.tree(family) for op in forest.calls[one] if op.acked]
        spent = sum(op.result["charged"] for op in charged)
        found.checked += bool(charged)
        if part and spent > part:
            found.wrong(f"{family} may spend {part} and was charged {spent}", charged[0].person, *charged)
    for op in history.of("hand_on"):
        if op.acked and "child" in op.result:
            above = [forest.part(family) for family, _ in forest.chain((op.result["child"], 0))[1:]]
            if any(part and op.args["part"] > part for part in above):
                found.wrong(f"a token is wider than what it came from: {op}", op.person)
    for op in history.of("counted"):
        if op.acked and op.result["active"] and op.result["used"] > op.result["part"]:
            found.wrong(f"more than a part is used: {op}", op.person)
    return found


def nothing_below_the_ended(history: History) -> Found:
    """Once a token has ended, neither it nor anything below it works."""
    found, forest = Found(), Forest(history)
    deaths: dict[tuple[str, str], list[Op]] = defaultdict(list)
    for op in [*(op for op in history.of(*ENDINGS) if op.acked), *replays(history)]:
        deaths[op.pair].append(op)
        found.checked += forest.has(op) or op.pair in {root.pair for root in forest.budgets.values()}
    for op in history.of(*USES):
        if not forest.has(op) or not (op.acked or (op.kind != "hand_on" and op.status in ALIVE)):
            continue
        for death in deaths[op.pair]:
            if op.start > death.end and _ends(forest, death, op):
                found.wrong(f"it worked below a token that had ended: {op}; ended by {death}", op.person, death)
    return found


def _ends(forest: Forest, death: Op, use: Op) -> bool:
    chain = forest.chain((use.args["family"], use.args["generation"]))
    if death.kind == "disconnect":
        consent = forest.budgets.get(chain[-1][0])
        return consent is not None and consent.end < death.start
    if death.kind == "revoke_access":
        return (death.args["family"], death.args["generation"]) in chain
    return death.args["family"] in {family for family, _ in chain}


def branches_live(history: History) -> Found:
    """A delegated token works until it or a token above it is ended."""
    found, forest = Found(), Forest(history)
    known, ended = threats(history), defaultdict(list)
    for op in history.of("end_branch"):
        if not op.refused:
            ended[op.pair].append(op)
    for op in history.of("ai", "userinfo"):
        if op.unknown or op.args.get("family") not in forest.handed:
            continue
        found.checked += 1
        if op.status != 401:
            continue
        births = [forest.handed[family] for family, _ in forest.chain(_at(op)) if family in forest.handed]
        if not any(_may_end(forest, threat, births[-1], op) for threat in [*known[op.pair], *ended[op.pair]]):
            root = forest.chain(_at(op))[-1][0]
            births += [one for one in forest.history.of("exchange") if one.acked and one.args["family"] == root]
            births += [one for one in [forest.budgets.get(root)] if one is not None]
            found.wrong(f"a token was refused and nothing above it had ended: {op}", op.person, *births)
    return found


def _at(op: Op) -> At:
    return op.args["family"], op.args["generation"]


def _may_end(forest: Forest, threat: Op, birth: Op, use: Op) -> bool:
    if threat.start >= use.end or over(threat) <= birth.start:
        return False
    chain = forest.chain(_at(use))
    families = {family for family, _ in chain}
    if threat.kind == "revoke_access":
        return (threat.args["family"], threat.args["generation"]) in chain
    if threat.kind in ("exchange", "revoke_refresh", "end_branch"):
        return threat.args["family"] in families
    return True  # disconnected, or a refresh token that may be a replay


def charges_count_above(history: History) -> Found:
    """At the end, what each token counts are the charges of the calls with it and with all below it. A call without an
    answer counts once or not at all, in the same way at every token above it."""
    found, forest = Found(), Forest(history)
    last = {op.args["family"]: op for op in history.of("counted") if op.acked and op.args["last"]}
    visible = {family: op for family, op in last.items() if op.result["active"] and forest.part(family)}
    unmatched = leftovers(history)
    for root in forest.budgets:
        if root in visible:
            _count(found, forest, root, visible, unmatched[visible[root].person])
    return found


def _count(found: Found, forest: Forest, root: str, visible: dict[str, Op], unmatched: Counter[int]) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    inner: Counter[str] = Counter()
    for family in forest.tree(root):
        above = [one for one, _ in forest.chain((family, 0)) if one in visible]
        # Tokens that have ended, and those without a part, show nothing themselves.
        groups[above[0]].append(family)
        if family in visible and len(above) > 1:
            inner[above[1]] += visible[family].result["used"]
    for family, group in groups.items():
        reading = visible[family]
        found.checked += 1
        own = reading.result["used"] - inner[family]
        calls = [op for one in group for op in forest.calls[one]]
        acked = [op for op in calls if op.acked]
        # A call without an answer has one of the charges of the ledger that no other call explains, or none.
        sums = {sum(op.result["charged"] for op in acked)}
        for op in calls:
            if op.unknown:
                sums |= {one + charge for one in sums for charge in unmatched if fits(op, charge)}
        if own not in sums:
            below = [op for one in forest.tree(family) for op in forest.calls[one] if op.acked]
            found.wrong(
                f"{reading} counts {own} of its own calls, which were charged {_some(sums)}", reading.person, *below
            )


def _some(sums: Iterable[int]) -> str:
    return " or ".join(map(str, sorted(sums)[:5]))
