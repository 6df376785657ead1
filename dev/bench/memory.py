"""Memory in the store: bytes for each person, grant, refresh token family, access token, document and so on.

    python -m dev.bench.memory [--people N] [--json FILE]

It measures the machine's own Redis 7 and the embedded store's Valkey: the growth of the store's allocation when many of
a thing are added, and the store's own figure for each key (`MEMORY USAGE`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from dev.bench.measure import progress, table
from dev.bench.parts import results
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from dev.bench.parts.people import Crowd, Lineage
from dev.bench.parts.pipes import Pipe
from dev.bench.parts.stores import IN_MEMORY, Store, redis_binary, running, valkey_binary
from store import keys
from store.crypto.keyring import KeyRing
from store.lifetimes import DATA_READ, OAUTH

BUDGET = 1536
"""Bytes that a person with one app, one family and one access token may take on Redis 7."""
SHARD_PEOPLE = 244
"""People in a shard when there are a million: a shard's lists change their encoding at 128."""
DOCUMENTS = 10
"""Documents of a pair after the first."""
DOCUMENT_BYTES = 1024
SCOPES = ("profile", "data:read", "data:write")
"""The app's scopes."""
_LOOKED_AT = 100

ACCOUNT, CONSENT = "person: account", "grant, family and access token of a first app"
PAIR = "family and access token"
TRAIL = "audit trail, in the two above"
SESSION, CODE, WINDOW, PAIR_WINDOW = "session", "authorization code", "window of a person", "window of a pair"
CREDITS = "credits"
FIRST, DOCUMENT = "first document of a pair, 1,024 B", "another document of 1,024 B"
ACCESS, FAMILY = "access token", "refresh token family"


@dataclass(frozen=True, slots=True)
class Row:
    """One key of a person: its encoding, the number of such keys, and its bytes including the name."""

    noun: str
    encoding: str
    each: int
    bytes: float


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of each thing in a store of this version, and a person's keys after a first consent."""

    version: str
    things: dict[str, float]
    rows: list[Row]

    @property
    def person(self) -> float:
        """Bytes of a person with one app, one family and one access token."""
        return self.things[ACCOUNT] + self.things[CONSENT]

    @property
    def without_trail(self) -> float:
        """The same without the person's audit trail."""
        return self.person - self.things[TRAIL]


def measure(store: Store, people: int) -> Footprint:
    """Fills an empty store, step by step. Raises Unexpected."""
    crowd = Crowd.gather(store.socket_path, KeyRing.parse(KeyRing.generate(1)), SCOPES)
    spare = crowd.sign_up(1)  # absorbs one-time allocations, such as scripts
    crowd.write(crowd.consent(spare), 1, 100)
    crowd.codes(crowd.sign_in(spare))
    crowd.pay(spare, 1)
    _windows(store, crowd, spare)
    things: dict[str, float] = {}

    def taken(thing: str, work: Callable[[], object], number: int = people) -> None:
        """Bytes for each of the `number` things that the step adds or removes."""
        before = store.used_memory()
        work()
        things[thing] = abs(store.used_memory() - before) / number
        progress(f"{store.version}: {thing}: {things[thing]:,.0f} B")

    users: list[str] = []
    lineages: list[Lineage] = []
    second: list[Lineage] = []
    cookies: list[str] = []
    taken(ACCOUNT, lambda: users.extend(crowd.sign_up(people, max(1, people // SHARD_PEOPLE))))
    taken(CONSENT, lambda: lineages.extend(crowd.consent(users)))
    rows = look(store, crowd, lineages[:_LOOKED_AT])
    others = crowd.consent(crowd.sign_up(people // 5))
    taken(TRAIL, lambda: _unlink(store, (keys.person(one.user)["audit"] for one in others)), len(others))
    taken(PAIR, lambda: second.extend(crowd.consent(users)))
    taken(ACCESS, lambda: _unlink(store, (_token(crowd, one)["access"] for one in second)))
    taken(FAMILY, lambda: _unlink(store, (_token(crowd, one)["family"] for one in second)))
    taken(SESSION, lambda: cookies.extend(crowd.sign_in(users)))
    taken(CODE, lambda: crowd.codes(cookies))
    taken(WINDOW, lambda: _windows(store, crowd, users))
    taken(PAIR_WINDOW, lambda: _windows(store, crowd, users, DATA_READ.name))
    taken(CREDITS, lambda: crowd.pay(users, 1_000_000))
    taken(FIRST, lambda: crowd.write(lineages, 1, DOCUMENT_BYTES))
    taken(DOCUMENT, lambda: crowd.write(lineages, DOCUMENTS, DOCUMENT_BYTES, first=1), people * DOCUMENTS)
    return Footprint(store.version, things, rows)


def look(store: Store, crowd: Crowd, lineages: Sequence[Lineage]) -> list[Row]:
    """Every key of these people, by noun."""
    found: dict[str, list[tuple[str, int]]] = {}
    for one in lineages:
        prefix = keys.prefix(one.user)
        named = {key: key.removeprefix(prefix).partition(":")[0] for key in map(bytes.decode, _keys(store, prefix))}
        named[keys.email(crowd.address(one.user))] = "e-mail index"
        for key, noun in named.items():
            encoding = store.client.object("encoding", key)
            used = store.client.memory_usage(key, samples=0) or 0
            found.setdefault(noun, []).append((encoding.decode(), int(used)))
    return [
        Row(noun, seen[0][0], len(seen) // len(lineages), fmean(used for _, used in seen))
        for noun, seen in sorted(found.items())
    ]


def _keys(store: Store, prefix: str) -> list[bytes]:
    pattern = prefix.replace("{", "\\{").replace("}", "\\}") + "*"
    found: list[bytes] = list(store.client.scan_iter(match=pattern, count=100_000))
    return found


def _token(crowd: Crowd, lineage: Lineage) -> dict[str, str]:
    return keys.token(lineage.user, crowd.app.client_id, lineage.family, 0)


def _unlink(store: Store, names: Iterable[str]) -> None:
    with Pipe(store.socket_path) as pipe:
        pipe.send(("DEL", name) for name in names)


def _windows(store: Store, crowd: Crowd, users: Sequence[str], group: str = OAUTH.name) -> None:
    client = "" if group == OAUTH.name else crowd.app.client_id
    arguments = {"limit": OAUTH.limit, "period": 10 * 60_000}
    with Pipe(store.socket_path) as pipe:
        pipe.run("take_window", (({"window": keys.limit(user, group, client)}, arguments) for user in users))


def thing_table(found: Sequence[Footprint]) -> str:
    """Bytes of each thing in each store."""
    rows = [(thing, *(f"{one.things[thing]:,.0f}" for one in found)) for thing in found[0].things]
    rows.append(("**person with one app, one family, one access token**", *(f"**{one.person:,.0f}**" for one in found)))
    return table(("what", *(f"{one.version}, B" for one in found)), rows, words=1)


def key_table(one: Footprint) -> str:
    """A person's keys after a first consent."""
    rows = [(f"`{row.noun}`", row.encoding, f"{row.bytes:,.0f}") for row in one.rows]
    return table(("key", "encoding", f"{one.version}, B"), rows)


def load(measured: dict[str, Any]) -> list[Footprint]:
    """The footprints from a run's JSON."""
    stores: list[dict[str, Any]] = measured["stores"]
    return [Footprint(str(one["version"]), one["things"], [Row(**row) for row in one["rows"]]) for one in stores]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options. Raises SystemExit for an impossible measurement."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.memory", allow_abbrev=False)
    parser.add_argument("--people", type=count, default=50_000, metavar="N", help="people in a store (default 50000)")
    parser.add_argument("--json", type=Path, default=RESULTS / "memory.json", metavar="FILE", help="where it all goes")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, and prints tables in Markdown. Raises Unexpected."""
    options = parse(argv)
    end_on_sigterm()
    found = []
    for name, binary in (("redis", redis_binary()), ("valkey", valkey_binary())):
        with (
            tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as directory,
            running(binary, Path(directory) / name, IN_MEMORY) as store,
        ):
            found.append(measure(store, options.people))
    print(thing_table(found), *map(key_table, found), sep="\n\n")
    results.write(options.json, {"stores": [asdict(one) for one in found], "budget": BUDGET}, people=options.people)
    return 0


if __name__ == "__main__":
    sys.exit(main())
