"""The needs of 1, 10 and 100 million people, computed from measurements. `python -m dev.bench.report` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from dev.bench.flat import EMPTY, FULL
from dev.bench.measure import table
from dev.bench.memory import ACCESS, ACCOUNT, CONSENT, CREDITS, DOCUMENT, FIRST, PAIR, SESSION, WINDOW, Footprint
from dev.bench.parts.latchkey import SYSTEM
from dev.bench.parts.rounds import Found, Key

HARD = 32
MILLIONS = (1, 10, 100)
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Assumed:
    """Usage per person, and how full machines may be. Adjust these to your own."""

    active: float = 0.2
    """Share of people who use an app on a given day."""
    apps: float = 2.0
    """Connected apps per person, each with one refresh token family."""
    documents: float = 20.0
    """Documents of 1 KiB per person, all apps together."""
    paying: float = 0.1
    """Share of people with credits."""
    signed_in: float = 0.3
    """Share of people with a browser session."""
    peak: float = 4.0
    """Ratio of the busiest second to the day's average."""
    server_busy: float = 0.6
    store_busy: float = 0.5
    """Share of a core used at the peak."""
    node_gib: float = 24.0
    """Memory for data on a store node with 32 GiB; the rest is for copy-on-write, buffers and fragmentation."""
    fragmented: float = 1.15
    asked_bytes: int = 600
    """Bytes of a request on the wire, with a token."""


CALLS = {
    "userinfo": 4.0,
    "document GET": 40.0,
    "document PUT": 10.0,
    "list of 10": 6.0,
    "refresh": 6.0,
    "code exchange": 0.2,
    "consent page": 0.2,
    "revoke": 0.05,
    "AI call": 1.0,
}
"""Requests per day of an active person's apps."""


@dataclass(frozen=True, slots=True)
class Need:
    """The needs of `people` people: requests/s at the peak, cores for servers, store primaries, GiB of data, Gbit/s of
    requests and answers."""

    people: int
    rate: float
    cores: int
    primaries: int
    by_memory: int
    by_work: int
    data_gib: float
    gigabits: float


def bytes_of_person(things: Mapping[str, float], assumed: Assumed) -> float:
    """Bytes of an average person in the store."""
    lively = assumed.active * sum(CALLS.values()) / 24
    return (
        things[ACCOUNT]
        + assumed.apps * things[CONSENT]
        # An active person's apps have refreshed within the last hour, so the previous access token is still there.
        + min(assumed.apps, lively) * things[ACCESS]
        + assumed.signed_in * things[SESSION]
        + assumed.paying * things[CREDITS]
        + _documents(things, min(assumed.apps, assumed.documents), assumed.documents)
        + assumed.active * things[WINDOW]
    )


def _documents(things: Mapping[str, float], pairs: float, documents: float) -> float:
    """Bytes of documents, spread over pairs of person and app."""
    return pairs * things[FIRST] + (documents - pairs) * things[DOCUMENT]


def need(people: int, found: Found, things: Mapping[str, float], assumed: Assumed) -> Need:
    """The needs of `people` people at the peak."""
    daily = people * assumed.active
    rates = {call: daily * number / 86_400 * assumed.peak for call, number in CALLS.items()}
    serving = sum(rate * _figure(found, call, "server") / 1000 for call, rate in rates.items())
    storing = sum(rate * _figure(found, call, "store") / 1000 for call, rate in rates.items())
    wire = sum(rate * (_figure(found, call, "bytes") + assumed.asked_bytes) * 8 for call, rate in rates.items())
    data = people * bytes_of_person(things, assumed) * assumed.fragmented / GIB
    by_memory, by_work = ceil(data / assumed.node_gib), ceil(storing / assumed.store_busy)
    return Need(
        people=people,
        rate=sum(rates.values()),
        cores=ceil(serving / assumed.server_busy),
        primaries=max(by_memory, by_work),
        by_memory=by_memory,
        by_work=by_work,
        data_gib=data,
        gigabits=wire / 1e9,
    )


def _figure(found: Found, call: str, name: str) -> float:
    return found.figure(Key(SYSTEM, call, HARD), name)


def need_table(found: Found, things: Mapping[str, float], assumed: Assumed) -> str:
    """A column of needs for each number of millions."""
    needs = [need(number * 1_000_000, found, things, assumed) for number in MILLIONS]
    rows = [
        ("requests/s at the peak", *(f"{one.rate:,.0f}" for one in needs)),
        ("cores that serve", *(f"{one.cores:,}" for one in needs)),
        ("data in the store", *(f"{one.data_gib:,.0f} GiB" for one in needs)),
        ("store primaries", *(f"{one.primaries:,}" for one in needs)),
        ("… for the memory alone", *(f"{one.by_memory:,}" for one in needs)),
        ("… for the work alone", *(f"{one.by_work:,}" for one in needs)),
        ("store nodes with a replica each", *(f"{2 * one.primaries:,}" for one in needs)),
        ("network of apps", *(f"{one.gigabits:,.2f} Gbit/s" for one in needs)),
    ]
    return table(("", *(f"{number} million people" for number in MILLIONS)), rows, words=1)


def cost_table(found: Found) -> str:
    """The cost of each call, and how often it is made."""
    rows = [
        (
            call,
            f"{number:g}",
            f"{_figure(found, call, 'server'):.3f}",
            f"{_figure(found, call, 'store'):.3f}",
            f"{_figure(found, call, 'bytes'):,.0f}",
        )
        for call, number in CALLS.items()
    ]
    return table(("call", "a day, active person", "server, ms", "store, ms", "answer, B"), rows, words=1)


def predicted(things: Mapping[str, float], how: Mapping[str, Any]) -> float:
    """Bytes that the full store of `dev/bench/flat.py` adds to the empty one, according to the model."""
    users, pairs = how["users"], how["tokens"] / 2
    tokens = users * (things[ACCOUNT] + things[CONSENT]) + (pairs - users) * things[PAIR]
    return float(tokens + _documents(things, min(users, how["documents"]), how["documents"]))


def check(flat: Mapping[str, Any], stores: list[Footprint]) -> tuple[float, float]:
    """Bytes that the full store adds to the empty one: by the model, and measured on Valkey."""
    things = stores[-1].things
    measured = flat["memory"][FULL] - flat["memory"][EMPTY]
    return predicted(things, flat["how"]), float(measured)
