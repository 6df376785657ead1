"""Finding people: the index over a million people, its memory, its pages, how fast it is filled, and what it costs a
sign-up.

    python -m dev.bench.directory [--people N] [--json FILE]

The people are rows with random names, written directly into the embedded store's Valkey; the index is written by the
product. The last part signs people up with the product's password hash, in turn with and without the index.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from dev.bench.measure import progress, table
from dev.bench.parts import results
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from dev.bench.parts.people import PASSWORD_BYTES
from dev.bench.parts.pipes import Pipe
from dev.bench.parts.stores import DURABLE, running, valkey_binary
from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import new_user_id
from store.directory.relay import Listed
from store.engine.connect import unix_url
from store.engine.script_source import Script, own_scripts
from store.engine.scripts import Scripts
from store.results import Visitor
from store.wiring import Store

PAGE_MS, PERSON_BYTES, SIGN_UP_RATIO, FILL_RATE = 20.0, 160.0, 1.05, 20_000
"""The aims: a page at the 99th percentile, the index of a person, a sign-up with and without, people a second."""
SEARCHES = 3000
LIMIT = 50
SIGN_UPS, ROUNDS = 20, 15
Cpu = Callable[[], float]
_ONSETS = ("b", "br", "c", "ch", "d", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "r", "s", "sh", "st", "t", "w")
_CODAS = ("", "", "n", "r", "s", "l", "th", "ck", "nd", "m")
_DOMAINS = ("gmail.com", "outlook.com", "yahoo.com", "icloud.com", "gmx.de", "example.org", "proton.me", "web.de")
"""The most frequent domains; half as many people have one of the next."""


class Names:
    """Random people whose first names, last names and domains are as unevenly frequent as real ones."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._first = [self._word(2).title() for _ in range(2_000)]
        self._last = [self._word(2 + number % 2).title() for number in range(50_000)]
        self._domains = [
            *_DOMAINS,
            *(f"{self._word(2 + n % 2)}.{('com', 'org', 'net', 'de')[n % 4]}" for n in range(20_000)),
        ]
        self._weights = {id(words): _by_rank(len(words)) for words in (self._first, self._last, self._domains)}

    def _word(self, syllables: int) -> str:
        pick = self._chance.choice
        return "".join(pick(_ONSETS) + pick("aeiou") + (pick(_CODAS) if n else "") for n in range(syllables))

    def _pick(self, words: Sequence[str]) -> str:
        return self._chance.choices(words, cum_weights=self._weights[id(words)])[0]

    def people(self, number: int) -> Iterator[Listed]:
        """Some people. One in eight has a third name."""
        for one in range(number):
            first, last = self._pick(self._first), self._pick(self._last)
            middle = f"{self._pick(self._first)} " if one % 8 == 0 else ""
            mark = str(one) if one % 3 == 0 else self._word(1)
            local = f"{first}.{last}{mark}".lower() if one % 2 else f"{first[0]}{last}{mark}".lower()
            yield Listed(new_user_id(), f"{local}@{self._pick(self._domains)}", f"{first} {middle}{last}")


def _by_rank(number: int) -> list[float]:
    """Weights of words by their rank: the tenth is a tenth as frequent as the first."""
    return list(accumulate(1 / (rank + 10) for rank in range(number)))


class Filled(NamedTuple):
    """A filled index: people, seconds, bytes for each person, keys, and the mean lengths of addresses and names."""

    people: int
    seconds: float
    bytes: float
    keys: int
    address: float
    name: float


def write_rows(socket_path: str, people: Sequence[Listed]) -> None:
    """Rows and addresses, as accounts have them."""
    with Pipe(socket_path) as pipe:
        pipe.send(
            (
                *("HSET", keys.person(one.user)["user"], "status", "active", "epoch", "1", "email", one.email),
                *("name", one.name, "password", os.urandom(PASSWORD_BYTES), "created_at", 1_790_000_000_000),
            )
            for one in people
        )
        pipe.send(("SADD", keys.shard_users(one.user[:3]), keys.member(one.user)) for one in people)


async def fill(store: Store, used: Callable[[], int], people: Sequence[Listed]) -> Filled:
    """Writes these people into an empty index."""
    before, size = used(), int(await store.client.dbsize())
    began = time.perf_counter()
    await store.directory.add_many(people)
    seconds = time.perf_counter() - began
    each = (used() - before) / len(people)
    made = int(await store.client.dbsize()) - size
    lengths = fmean(len(one.email) for one in people), fmean(len(one.name) for one in people)
    return Filled(len(people), seconds, each, made, *lengths)


async def search(store: Store, people: Sequence[Listed], searches: int) -> dict[str, list[float]]:
    """Milliseconds of pages of 50 people, by what was typed: the first page, and the one after it."""
    chance, found = random.Random(1), dict[str, list[float]]()

    async def timed(kind: str, query: str, by: str) -> None:
        cursor = ""
        for page in ("first page", "next page"):
            began = time.perf_counter()
            shown = await store.directory.search(query, by=by, limit=LIMIT, cursor=cursor)
            found.setdefault(f"{kind}, {page}", []).append((time.perf_counter() - began) * 1000)
            cursor = shown.cursor
            if not cursor:
                break

    for _ in range(searches):
        person = chance.choice(people)
        local, _, domain = person.email.partition("@")
        words = person.name.lower().split()
        length = chance.randint(1, 8)
        await timed("address", person.email[:length], "address")
        await timed("name", chance.choice(words)[:length], "name")
        await timed("domain", domain, "domain")
        await timed("address in a domain", f"{local[:length]}@{domain}", "domain")
        await timed("whole address", person.email, "any")
    return found


class SignUp(NamedTuple):
    """The cost of a sign-up: seconds of processor time, of this process and the store together, and seconds."""

    cpu: float
    seconds: float


async def sign_ups(store: Store, plain: Store, store_cpu: Cpu, number: int, rounds: int) -> tuple[SignUp, SignUp]:
    """The mean cost of a sign-up with the index, which is written before the time ends, and without it. Which one goes
    first changes with each round, and the people are the same."""
    costs: dict[bool, list[SignUp]] = {True: [], False: []}
    for number_of_round in range(rounds):
        for listed in (True, False) if number_of_round % 2 else (False, True):
            people = list(Names(100 + number_of_round).people(number))
            cpu, began = time.process_time() + store_cpu(), time.perf_counter()
            await asyncio.gather(
                *(
                    _sign_up(store if listed else plain, f"{number_of_round}.{listed}{one.email}", one.name)
                    for one in people
                )
            )
            if listed:
                await store.directory_relay.hinted()
            seconds = time.perf_counter() - began
            costs[listed].append(SignUp(time.process_time() + store_cpu() - cpu, seconds))
    listed_cost, plain_cost = (
        SignUp(*(sum(part) / (number * rounds) for part in zip(*costs[listed], strict=True)))
        for listed in (True, False)
    )
    return listed_cost, plain_cost


def _sign_up(store: Store, email: str, name: str) -> Awaitable[str]:
    return store.people.create(email, name, "a good password", verified=True, event="signed_up", visitor=Visitor())


def without_notes() -> Mapping[str, Script]:
    """The scripts, of which the one that signs up notes nobody for the index."""
    found = dict(own_scripts())
    script = found["create_user"]
    source = script.source.replace("\nnote_new(changed, member)\n", "\n", 1)
    assert source != script.source
    found["create_user"] = replace(script, source=source)
    return found


async def measure(socket_path: str, used: Callable[[], int], store_cpu: Cpu, number: int) -> dict[str, Any]:
    """All measurements over one store."""
    people = list(Names(7).people(number))
    write_rows(socket_path, people)
    progress(f"{number:,} people are written")
    keyring = Keys(KeyRing.parse(KeyRing.generate(1)))
    hasher = PasswordHasher()
    how: dict[str, Any] = {"timeout": 30.0, "connections": 10, "session_idle": 3600, "session_lifetime": 7200}
    store = await Store.open(unix_url(socket_path), keyring, hasher, **how)
    plain = await Store.open(unix_url(socket_path), keyring, hasher, **how)
    try:
        filled = await fill(store, used, people)
        progress(f"filled: {filled}")
        pages = await search(store, people, max(1, min(SEARCHES, number)))
        for create in (plain.people,):
            create._scripts = Scripts(plain.client, without_notes())
        listed, alone = await sign_ups(store, plain, store_cpu, SIGN_UPS, ROUNDS)
    finally:
        await store.close()
        await plain.close()
    times = {kind: {"median": median(one), "p99": _p99(one), "pages": len(one)} for kind, one in pages.items()}
    return {
        "filled": filled._asdict(),
        "pages": times,
        "sign_up": {"with": listed._asdict(), "without": alone._asdict()},
    }


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[max(0, round(len(values) * 0.99) - 1)]


def report(measured: dict[str, Any]) -> str:
    """The tables in Markdown."""
    filled, signed = measured["filled"], measured["sign_up"]
    rate, slowest = filled["people"] / filled["seconds"], max(one["p99"] for one in measured["pages"].values())
    ratio = signed["with"]["cpu"] / signed["without"]["cpu"]
    rows = [
        ("index of a person", f"{filled['bytes']:.0f} B", f"{PERSON_BYTES:.0f} B"),
        ("people a second into the index", f"{rate:,.0f}", f"{FILL_RATE:,}"),
        (f"page of {LIMIT}, 99th percentile of the slowest kind", f"{slowest:.1f} ms", f"{PAGE_MS:.0f} ms"),
        ("processor time of a sign-up with the index : without", f"{ratio:.3f}", f"{SIGN_UP_RATIO:.2f}"),
    ]
    pages = [
        (kind, f"{one['median']:.1f} ms", f"{one['p99']:.1f} ms", f"{one['pages']:,}")
        for kind, one in measured["pages"].items()
    ]
    lengths = f"An address has {filled['address']:.1f} characters and a name {filled['name']:.1f} on average."
    return "\n\n".join(
        (
            table(("what", "measured", "at most, or at least"), rows, words=1),
            table(("page", "median", "p99", "pages"), pages, words=1),
            lengths,
        )
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the tables, and writes the figures as JSON. Raises Unexpected."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.directory", allow_abbrev=False)
    parser.add_argument("--people", type=count, default=1_000_000, metavar="N", help="people (default 1000000)")
    parser.add_argument(
        "--json", type=Path, default=RESULTS / "directory.json", metavar="FILE", help="where figures go"
    )
    options = parser.parse_args(argv)
    end_on_sigterm()
    with (
        tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as directory,
        running(valkey_binary(), Path(directory), DURABLE) as store,
    ):
        measured = asyncio.run(measure(store.socket_path, store.used_memory, store.cpu, options.people))
    print(report(measured))
    results.write(options.json, measured, people=options.people)
    return 0


if __name__ == "__main__":
    sys.exit(main())
