"""Checks of delegated tokens: what their calls were charged, against the charges of the ledger. RFC 8693."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from store import keys
from store.fsck.budgets import CountedCharge
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, found
from store.fsck.reading import Expected, Read, in_steps, in_words
from store.lifetimes import ACCESS_TOKEN, MINUTE

AT_ONCE = 100
LONGEST = ACCESS_TOKEN + 2 * MINUTE
"""ms that the row of a delegated token may live, as `lua/oauth/delegated/exchange_token.lua` sets it, and a minute in
which the clock may have stepped back."""
_COUNTER = re.compile(r"[A-Za-z0-9_-]{22}")


async def delegated_found(
    context: FsckContext,
    user: str,
    clients: Iterable[str],
    charges: Iterable[CountedCharge],
    folded: int,
    now: int,
    still: Sequence[Expected],
) -> list[Finding]:
    """Compares what each delegated token of a person counts with the charges that name it. `folded` is the time of the
    newest charge that the ledger has no more (ms): since then every charge is there, and before it the sum is a least
    one. `still`: what says that the books are the same."""
    sums: Counter[str] = Counter()
    for charge in charges:
        if charge.at >= now - LONGEST:
            for counter in filter(_COUNTER.fullmatch, charge.counters):
                sums[counter] += charge.amount
    for one in await _listed(context, user, sorted(clients)):
        sums[one] += 0
    wrong: list[Finding] = []
    for some in in_steps(sorted(sums), AT_ONCE):
        families = [keys.token(user, "-", one, 0)["family"] for one in some]
        unchanged: list[Read] = [(command, *rest) for _, command, *rest in still]
        look = await context.reader.look(families[0], *unchanged, *(("HMGET", name, "up", "used") for name in families))
        if [_text(answer) for answer in look.seen[: len(still)]] != [answer for answer, *_ in still]:
            return wrong  # charged meanwhile
        for one, family, row in zip(some, families, look.seen[len(still) :], strict=True):
            up, used = (in_words(value) for value in row or (None, None))
            if not up:
                continue  # it has ended, or is a sign-in
            least, whole = sums[one], folded < now - LONGEST
            amount = int(used or 0) if used.isdigit() or not used else -1
            # What a folded charge counted for stays counted: a repair gives nobody a part back.
            if amount == least or (amount > least and not whole):
                continue
            expected: list[Expected] = [*still, (used, "HGET", family, "used"), ("1", "EXISTS", family)]
            mend = context.reader.mend(family, expected, ("HSET", family, "used", str(least)))
            what = f"the delegated token counts {used or 0}, but {least} was charged"
            wrong.append(found("budgets", family, what, mend))
    return wrong


async def _listed(context: FsckContext, user: str, clients: Sequence[str]) -> list[str]:
    """The ids of the delegated tokens on the lists of these apps' grants."""
    ids: list[str] = []
    for some in in_steps(clients, AT_ONCE):
        grants = [keys.grant(user, client) for client in some]
        look = await context.reader.look(grants[0], *(("HGET", grant, "delegated") for grant in grants))
        for raw in look.seen:
            ids += [
                one for one in (entry.partition(":")[0] for entry in in_words(raw).split()) if _COUNTER.fullmatch(one)
            ]
    return ids


def _text(answer: object) -> str:
    return in_words(answer) if isinstance(answer, bytes) else str(answer if answer is not None else "")
