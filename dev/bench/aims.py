"""The aims, and whether they were reached. Ratios compare bursts of the same round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

from dev.bench.flat import EMPTY, worst
from dev.bench.measure import table
from dev.bench.memory import BUDGET, Footprint
from dev.bench.parts.latchkey import BOUND, CEILING, EVALSHA, PUSHED, SIGNED, SYSTEM
from dev.bench.parts.rounds import Found, Key
from dev.bench.starting import START_SECONDS

HARD = 32
"""Connections that keep the server busy."""
OF_CEILING = {"userinfo": 0.75, "document GET": 0.75, "refresh": 0.6}
TIMES = (
    ("userinfo", "oidc-provider", "userinfo", 1.5),
    ("userinfo", "@node-oauth/oauth2-server", "userinfo", 1.5),
    ("refresh", "oidc-provider", "refresh", 3.0),
    ("refresh", "@node-oauth/oauth2-server", "refresh", 2.5),
    ("introspection", "oidc-provider", "introspection", 3.0),
    ("refresh, ES256 id_token", "oidc-provider", "refresh, ES256 id_token", 3.5),
    (PUSHED, "oidc-provider", PUSHED, 3.0),
    (BOUND, "oidc-provider", BOUND, 2.0),
    ("refresh", "Authlib, Flask", "refresh", 18.0),
    ("refresh", "django-oauth-toolkit", "refresh", 40.0),
    ("document GET", "Kinto, memory", "document GET", 8.0),
    ("document PUT", "Kinto, memory", "document PUT", 8.0),
    ("document GET", "Kinto, Redis", "document GET", 20.0),
    ("document PUT", "Kinto, Redis", "document PUT", 20.0),
    ("AI call", "LiteLLM proxy", "AI call", 15.0),
)
"""An endpoint of Latchkey, a peer, its endpoint, and how many times as many requests/s Latchkey should serve."""
REQUESTS = {PUSHED: 2}
"""Requests of a call that has more than one."""
SIGNS = ("refresh, ES256 id_token",)
"""Calls that sign: so does the bare handler that they are compared with."""
STUB_SYSTEM = "the stub alone"
ADDED = 1.5
"""Most ms that a call through Latchkey may add to a call of the stub itself, at one connection."""
TAIL = 2.5
FLAT = 0.95


class Aim(NamedTuple):
    """`measured` and `wanted` in words. A ratio compares requests per second of the server's core; `by_rate` compares
    requests/s, and is lower if the load generator or the store is busy before the server is."""

    what: str
    wanted: str
    measured: str
    met: bool
    by_rate: str = ""
    reach: float = 0.0
    """What a bare handler reaches in the same run, with one script call a request and the signature of a call that
    signs, where that was measured."""


def of_endpoints(found: Found) -> Iterator[Aim]:
    """The aims for ceilings, tail latency and round trips."""
    ceiling = Key(CEILING, EVALSHA, HARD)
    for endpoint, wanted in OF_CEILING.items():
        key = Key(SYSTEM, endpoint, HARD)
        if key in found.samples and ceiling in found.samples:
            share, by_cpu = found.ratio(key, ceiling), found.ratio(ceiling, key, "server")
            yield Aim(
                f"{endpoint}, of the ceiling",
                f"≥ {100 * wanted:.0f} %",
                f"{100 * by_cpu:.0f} %",
                by_cpu >= wanted,
                f"{100 * share:.0f} %",
            )
    tails = {
        key.endpoint: found.figure(key, "p99") / found.figure(key, "p50")
        for key in found.samples
        if key.system == SYSTEM and key.connections == HARD
    }
    if tails:
        endpoint = max(tails, key=tails.__getitem__)
        measured = f"{tails[endpoint]:.2f} × ({endpoint})"
        yield Aim(f"p99 of p50 at {HARD} connections, the worst", f"≤ {TAIL} ×", measured, tails[endpoint] <= TAIL)
    # A pushed request is in the slot of its app, and its code in that of a person.
    calls = {name: number for name, number in found.calls.items() if not name.startswith("AI") and name != PUSHED}
    if calls:
        endpoint = max(calls, key=calls.__getitem__)
        measured = f"{calls[endpoint]}" + (f" ({endpoint})" if calls[endpoint] > 1 else "")
        what = "commands at the store for a request, the most, without AI calls and pushed requests"
        yield Aim(what, "1", measured, calls[endpoint] == 1)


def of_peers(found: Found) -> Iterator[Aim]:
    """The aims for peers."""
    for endpoint, peer, theirs, wanted in TIMES:
        one, other = Key(SYSTEM, endpoint, HARD), Key(peer, theirs, HARD)
        what = f"{endpoint}, of {peer}'s"
        if one not in found.samples:
            continue
        if other not in found.samples:
            yield Aim(what, f"≥ {wanted:g} ×", "not measured", False)
            continue
        ratio, by_cpu = found.ratio(one, other), found.ratio(other, one, "server")
        ceiling = Key(CEILING, SIGNED if endpoint in SIGNS else EVALSHA, HARD)
        reach = found.ratio(other, ceiling, "server") / REQUESTS.get(endpoint, 1) if ceiling in found.samples else 0.0
        yield Aim(what, f"≥ {wanted:g} ×", f"{by_cpu:.2f} ×", by_cpu >= wanted, f"{ratio:.2f} ×", reach)
    one, other = Key(SYSTEM, "AI call", 1), Key(STUB_SYSTEM, "AI call", 1)
    if one in found.samples and other in found.samples:
        added = found.figure(one, "p50") - found.figure(other, "p50")
        yield Aim("AI call, added at one connection", f"≤ {ADDED} ms", f"{added:.2f} ms", added <= ADDED)


def of_flat(found: Found) -> Iterator[Aim]:
    """The aims for a full store."""
    key, ratio = worst(found, "server")
    by_rate = f"{found.ratio(key, key._replace(system=EMPTY)):.2f} ×"
    what = "over the full store, of the empty one's, the worst"
    yield Aim(f"requests {what}", f"≥ {FLAT} ×", f"{ratio:.3f} × ({key.endpoint})", ratio >= FLAT, by_rate)
    key, ratio = worst(found, "store")
    yield Aim(
        f"requests that a core of the store carries, {what}",
        f"≥ {FLAT} ×",
        f"{ratio:.3f} × ({key.endpoint})",
        ratio >= FLAT,
    )


def of_memory(found: list[Footprint]) -> Iterator[Aim]:
    """The aims for memory; the first store is Redis 7."""
    what = f"person with one app, one family, one access token, on {found[0].version}"
    yield Aim(what, f"≤ {BUDGET:,} B", f"{found[0].person:,.0f} B", found[0].person <= BUDGET)
    without = found[0].without_trail
    yield Aim("the same without the audit trail", f"≤ {BUDGET:,} B", f"{without:,.0f} B", without <= BUDGET)


def of_starts(measured: Mapping[str, Any]) -> Iterator[Aim]:
    """The aim for a start on an existing store."""
    seconds = max(median(found["seconds"]) for found in measured["starts"].values())
    yield Aim("start on an embedded store", f"≤ {START_SECONDS} s", f"{seconds:.2f} s", seconds <= START_SECONDS)


def verdict(aim: Aim) -> str:
    """Whether an aim was met; if not, what a bare handler reaches."""
    if aim.met:
        return "met"
    return f"**not met**; a bare handler: {aim.reach:.2f} ×" if aim.reach else "**not met**"


def aim_table(aims: list[Aim]) -> str:
    """Every aim and its result."""
    rows = [(aim.what, aim.wanted, aim.measured, aim.by_rate, verdict(aim)) for aim in aims]
    return table(("aim", "wanted", "per core", "requests/s", ""), rows, words=1)
