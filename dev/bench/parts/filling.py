"""A store for a measurement, filled with people, tokens, and documents by the million."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

import redis

from dev.bench.measure import Unexpected
from dev.bench.parts.pipes import Pipe, pack
from store import keys
from store.apps.registration import Registration
from store.crypto.cipher import Cipher
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.documents.documents import Quotas
from store.engine.connect import unix_url
from store.engine.embedded import EmbeddedStore
from store.engine.script_source import Script
from store.lifetimes import DATA_WRITE
from store.results import Caller, Visitor
from store.wiring import Store

PER_PAIR = Quotas().documents
COLLECTION = "notes"
SCOPES = ("credits:spend", "data:read", "data:write")

_NO_LIMIT = 10**12
_REWRITE_SECONDS = 300.0


def name_of(number: int) -> str:
    """`collection/id` of a document: 18 bytes, the length with short random ids."""
    return f"{COLLECTION}/{number:012x}"


def document(size: int) -> bytes:
    """A JSON document of exactly `size` bytes, at least 80."""
    record = {"title": "A note", "tags": ["home", "later"], "done": False, "rank": 3, "text": ""}
    record["text"] = "x" * (size - len(json.dumps(record)))
    return json.dumps(record).encode()


@dataclass(slots=True)
class Pair:
    """An app's access to a person's documents; the documents have the numbers 0 to `documents` - 1."""

    caller: Caller
    token: str
    documents: int = 0


class FilledStore:
    """An embedded store, its secret keys, and a client to inspect it."""

    def __init__(self, embedded: EmbeddedStore) -> None:
        self.url = unix_url(embedded.socket_path)
        self.ring = KeyRing.parse(KeyRing.generate(1))
        self.client = redis.Redis(unix_socket_path=embedded.socket_path, protocol=2)
        self._cipher = Cipher(Keys(self.ring))
        self._socket_path = embedded.socket_path

    @classmethod
    @contextlib.contextmanager
    def started(cls, directory: Path) -> Iterator[Self]:
        """A new store in `directory`; it ends with the block."""
        embedded = EmbeddedStore.start(directory, "server")
        try:
            made = cls(embedded)
            with made.client:
                yield made
        finally:
            embedded.stop()

    def mint(self, people: int, credits: int = 0) -> list[Pair]:
        """Creates people, each with a token for one app and with credits in micro-dollars."""
        return asyncio.run(self.minted(people, credits))

    async def minted(self, people: int, credits: int = 0) -> list[Pair]:
        """As `mint`."""
        async with self.opened() as store:
            app = Registration("bench", "Bench", ("https://app.example/callback",), SCOPES, hosted_storage=True)
            await store.apps.create(app)
            return [await _pair(store, app, number, credits) for number in range(people)]

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        """The product's own way to the store."""
        store = await Store.open(
            self.url,
            Keys(self.ring),
            PasswordHasher(8192, 1, workers=1, queue=1),
            timeout=30,
            connections=2,
            session_idle=60,
            session_lifetime=60,
        )
        try:
            yield store
        finally:
            await store.close()

    def fill(self, pairs: list[Pair], documents: int, size: int) -> float:
        """Shares `documents` of `size` bytes among the pairs; returns the seconds that the writing took.

        Every document goes through `write_document.lua`. Raises Unexpected when a document is not kept.
        """
        with self.unlogged():
            start = monotonic()
            with _Loader(self._socket_path, self._cipher) as loader:
                for number, pair in enumerate(pairs):
                    pair.documents = documents // len(pairs) + (number < documents % len(pairs))
                    loader.write(pair, size)
            seconds = monotonic() - start
        return seconds

    @contextlib.contextmanager
    def unlogged(self) -> Iterator[None]:
        """Turns the append-only file off for the block and writes it at the end. Raises Unexpected if that fails."""
        self.client.config_set("appendonly", "no")
        yield
        self.client.config_set("appendonly", "yes")
        self._await_rewrite()

    def _await_rewrite(self) -> None:
        deadline = monotonic() + _REWRITE_SECONDS
        while True:
            seen = self._info("persistence")
            if not seen["aof_rewrite_in_progress"] and not seen["aof_rewrite_scheduled"]:
                break
            if monotonic() > deadline:
                raise Unexpected("the append-only file is not written in time")
            sleep(0.05)
        if seen["aof_last_bgrewrite_status"] != "ok":
            raise Unexpected("the append-only file could not be written")

    def script_time(self) -> tuple[int, int]:
        """Script calls so far, and the µs that they held the store."""
        seen = self._info("commandstats").get("cmdstat_evalsha", {"calls": 0, "usec": 0})
        return seen["calls"], seen["usec"]

    def used_memory(self) -> int:
        """Bytes that the store has allocated, without buffers of connections and of the append-only file."""
        seen = self._info("memory")
        return int(seen["used_memory"] - seen["mem_clients_normal"] - seen["mem_aof_buffer"])

    def memory_of(self, key: str) -> int:
        """Bytes of one key, with every element counted."""
        found: Any = self.client.memory_usage(key, samples=0)
        return int(found)

    def _info(self, section: str) -> dict[str, Any]:
        found: Any = self.client.info(section)
        return dict(found)


async def _pair(store: Store, app: Registration, number: int, credits: int) -> Pair:
    email = f"person{number}@example.com"
    user = await store.people.create(
        email, "A Person", "correct horse battery", verified=True, event="created_by_operator", visitor=Visitor()
    )
    if credits:
        await store.credits.grant(user, credits)
    token = (await store.tokens.mint(user, app, SCOPES)).access_token
    opened = store.tokens.open_access(token)
    assert opened is not None
    return Pair(Caller.of(opened, app.scopes), token)


class _Call:
    """Calls of `write_document.lua` that create documents of one pair, all with the same content."""

    def __init__(self, caller: Caller, content: bytes, script: Script, cipher: Cipher) -> None:
        key = {
            **keys.token(caller.user, caller.client, caller.family, caller.generation),
            **keys.hosted(caller.user, caller.client),
            # Not the requests' rate limit window, which must be empty when the requests start.
            "window": keys.limit(caller.user, "fill", caller.client),
        }
        self._caller, self._content, self._cipher = caller, content, cipher
        ordered = [key[one] for one in script.keys]
        self._start: tuple[str | int, ...] = ("EVALSHA", script.sha, len(ordered), *ordered)
        self._order = script.args
        self._argument: dict[str, str | bytes | int] = {
            "needed": "data:write",
            "limit": _NO_LIMIT,
            "period": DATA_WRITE.period,
            "collection": COLLECTION,
            "size": len(content),
            "if_match": "",
            "if_none": "*",
            "max_documents": _NO_LIMIT,
            "max_collections": _NO_LIMIT,
            "max_bytes": _NO_LIMIT,
            "usages": keys.usage_prefix(caller.user),
            "person_documents": _NO_LIMIT,
            "person_bytes": _NO_LIMIT,
            "full": "",
            "counted": "",
            "proof": "",
        }

    def packed(self, name: str) -> bytes:
        """The bytes of the script call for the document `name`."""
        argument = self._argument
        argument["name"] = name
        argument["sealed"] = self._cipher.seal(self._caller.user, self._caller.client, name, self._content)
        return pack(*self._start, *(argument[one] for one in self._order))


class _Loader(Pipe):
    """Calls of `write_document.lua` over one connection."""

    def __init__(self, socket_path: str, cipher: Cipher) -> None:
        super().__init__(socket_path)
        self._cipher = cipher

    def write(self, pair: Pair, size: int) -> None:
        """Creates the documents of a pair. Raises Unexpected when a document is not kept."""
        call = _Call(pair.caller, document(size), self._script("write_document"), self._cipher)
        self._send((call.packed(name_of(number)) for number in range(pair.documents)), (b"created",))


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of a document of `size` bytes in the store: in total, and in each of the pair's keys."""

    size: int
    total: float
    docs: float
    meta: float
    index: float

    @classmethod
    def measure(cls, store: FilledStore, pair: Pair, documents: int, size: int) -> Footprint:
        """Fills an empty pair and measures the difference."""
        before = store.used_memory()
        store.fill([pair], documents, size)
        total = store.used_memory() - before
        hosted = keys.hosted(pair.caller.user, pair.caller.client)
        split = {noun: store.memory_of(hosted[noun]) / documents for noun in ("docs", "meta", "index")}
        return cls(size, total / documents, **split)
