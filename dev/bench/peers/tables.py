"""The tables of the peers."""

from __future__ import annotations

from dev.bench.aims import STUB_SYSTEM
from dev.bench.measure import table
from dev.bench.parts.latchkey import BARE, BOUND, CEILING, PUSHED, SYSTEM
from dev.bench.parts.rounds import Found, Key

COMPARED = (
    "userinfo",
    BOUND,
    "introspection",
    "refresh",
    "refresh, ES256 id_token",
    PUSHED,
    "document GET",
    "document PUT",
    "AI call",
)
"""Latchkey's endpoints that peers have too."""
HEADER = ("call", "server", "requests/s", "p50, ms", "p99, ms", "server, ms", "store, ms", "Latchkey is", "by CPU")


def counterpart(endpoint: str) -> str:
    """The endpoint of Latchkey that matches an endpoint of a peer or of a ceiling: `refresh, not rotating` matches a
    refresh, and a bare handler userinfo."""
    known = endpoint if endpoint in COMPARED else endpoint.partition(",")[0]
    return "userinfo" if known == BARE else known


def peer_table(found: Found, connections: int) -> str:
    """The table of all rows with this many connections, by call. The column `Latchkey is` has the ratio of the
    rates."""
    rows = []
    for call in COMPARED:
        ours = Key(SYSTEM, call, connections)
        for key in found.samples:
            if key.connections != connections or counterpart(key.endpoint) != call:
                continue
            rate, p50, p99, server, store = (
                found.figure(key, name) for name in ("rate", "p50", "p99", "server", "store")
            )
            cells = [key.endpoint, key.system, f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}", f"{server:.3f}"]
            cells.append(f"{store:.3f}" if store else "")
            compared = key.system not in (SYSTEM, STUB_SYSTEM, CEILING) and ours in found.samples
            cells.append(f"{found.ratio(ours, key):.2f} ×" if compared else "")
            cells.append(f"{found.ratio(key, ours, 'server'):.2f} ×" if compared else "")
            rows.append(cells)
    return table(HEADER, rows)


def absent(found: Found) -> str:
    """Setups that could not be measured, and why: a line for each."""
    return "".join(f"- Not measured: {name}: {' '.join(why.split())[:200]}\n" for name, why in found.missing.items())


def tables(found: Found) -> str:
    """A table for each number of connections, and the missing setups."""
    numbers = list(dict.fromkeys(key.connections for key in found.samples))
    made = [f"{number} connection{'s' * (number > 1)}:\n\n{peer_table(found, number)}" for number in numbers]
    return "\n\n".join([*made, absent(found)]).rstrip()
