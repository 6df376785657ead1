"""Reads and repairs of a check: each reads or writes one slot at one moment; keys come from SCAN."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from store import keys
from store.engine.many import SharedWrites
from store.engine.scripts import Reply, Scripts
from store.errors import StoreError, wrapped
from store.fsck.invariants import Mend

KEYS_AT_ONCE, SORTED_TOGETHER = 500, 50_000
"""Keys in one step of SCAN; and keys that are sorted together, so that those of a slot share calls: some 5 MB."""
DOCUMENTS_AT_ONCE = 200
READS_AT_ONCE, COMMANDS_AT_ONCE = 100, 100
"""The reads of several looks that share a call, and the commands of one caller that are sent together."""
LONG_READS = {"HGETALL": 10, **dict.fromkeys(("HKEYS", "SSCAN", "XRANGE", "XREVRANGE", "ZRANGE"), READS_AT_ONCE)}
"""The number of reads that each of these adds to the limit. A read of a list gets a call of its own."""
PAST_ALL = b"\xff"

Read = tuple[str, ...]
"""A command, a key, and arguments."""
Expected = tuple[str, ...]
"""An answer ("" for none), and the read that gives it."""


class Look(NamedTuple):
    """The result of reads at one moment: the store's time, the key's type, its time left and its end (ms; -1: without
    end), and the answers. The answer for a key of another type is None, as for a missing key."""

    now: int
    kind: str
    left: int
    expires: int
    seen: list[Any]


class _Waiting(NamedTuple):
    """A look that waits for the next call: its key, its reads as JSON, as how many they count, and who waits."""

    anchor: str
    packed: bytes
    size: int
    found: asyncio.Future[Look]


class Reader:
    """Reads and repairs a store. Every method raises StoreUnavailable.

    Looks that begin in the same turn of the event loop are sent together, those in one slot in one call."""

    def __init__(self, client: Redis, scripts: Scripts) -> None:
        self._client = client
        self._scripts = scripts
        self._waiting: dict[str, list[_Waiting]] = defaultdict(list)
        self._sending: set[asyncio.Task[None]] = set()

    async def look(self, anchor: str, *reads: Read) -> Look:
        """Runs these reads at one moment, with the type and the expiry of `anchor`; all keys are in its slot."""
        tag, loop = tag_of(anchor), asyncio.get_running_loop()
        packed = _json([anchor[len(tag) :], [_behind(tag, read) for read in reads]])
        if not self._waiting:
            loop.call_soon(self._send)
        found: asyncio.Future[Look] = loop.create_future()
        size = sum(len(read) - 1 + LONG_READS.get(read[0], 0) for read in reads)
        self._waiting[tag].append(_Waiting(anchor, packed, size, found))
        return await found

    def _send(self) -> None:
        """Sends the looks that wait."""
        calls: list[tuple[str, list[_Waiting]]] = []
        for tag, waiting in self._waiting.items():
            size = 0
            calls.append((tag, []))
            for one in waiting:
                if size and size + one.size > READS_AT_ONCE:
                    calls.append((tag, []))
                    size = 0
                calls[-1][1].append(one)
                size += one.size
        self._waiting.clear()
        task = asyncio.ensure_future(self._run(calls))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _run(self, calls: list[tuple[str, list[_Waiting]]]) -> None:
        waiting = [one for _, some in calls for one in some]
        try:
            replies = await self._scripts.run_many(
                "inspect_keys",
                [
                    ({"anchor": some[0].anchor}, {"tag": tag, "looks": b"[%b]" % b",".join(one.packed for one in some)})
                    for tag, some in calls
                ],
            )
            found = ((reply.number("now"), *row) for reply in replies for row in reply.rows("found"))
            for one, (now, kind, expires, seen) in zip(waiting, found, strict=True):
                if not one.found.done():  # or the caller has gone
                    left = expires if expires < 0 else max(expires - now, 0)
                    one.found.set_result(Look(now, kind.decode(), left, expires, seen))
        except Exception as error:  # whatever it is, those who wait must fail with it
            for one in waiting:
                if not one.found.done():
                    one.found.set_exception(error)

    async def look_at_pair(self, user: str, client: str, after: bytes) -> Reply:
        """Reads a (person, app) pair, with a page of the names after `after`."""
        person = keys.person(user)
        return await self._scripts.run(
            "inspect_documents",
            {
                **keys.hosted(user, client),
                "user": person["user"],
                "leaving": person["leaving"],
                "grant": keys.grant(user, client),
                "app_users": keys.shard_app_users(user[:3], client),
            },
            member=keys.member(user),
            client=client,
            after=after,
            past=PAST_ALL,
            most=DOCUMENTS_AT_ONCE,
        )

    async def all_exist(self, names: Sequence[str]) -> bool:
        """Whether all of these keys of one slot exist: one read, where a look would need one a key."""
        return not names or bool((await self.look(names[0], ("EXISTS", *names))).seen[0] == len(names))

    async def command(self, *words: str | int | bytes) -> Any:
        """The answer to one command about one key, in any slot."""
        return (await self.commands([words]))[0]

    async def commands(self, commands: Sequence[Sequence[str | int | bytes]]) -> list[Any]:
        """The answers to commands that are sent together, each about one key, in any slots. The answer about a key of
        another type is None, as about a missing one."""
        client = self._client
        answers: list[Any] = []
        with wrapped():
            if isinstance(client, SharedWrites):
                for some in in_steps(commands, COMMANDS_AT_ONCE):
                    answers += await client.answers(some)
            else:
                for some in in_steps(commands, COMMANDS_AT_ONCE // 10):
                    calls = (client.execute_command(*words) for words in some)
                    answers += await asyncio.gather(*calls, return_exceptions=True)
            for place, answer in enumerate(answers):
                if isinstance(answer, BaseException):
                    if not isinstance(answer, ResponseError) or not str(answer).startswith("WRONGTYPE"):
                        raise answer
                    answers[place] = None
        return answers

    async def size(self) -> int:
        """About how many keys there are."""
        with wrapped():
            return int(await self._client.dbsize())

    async def every_key(self) -> AsyncIterator[list[bytes]]:
        """Yields the keys of every node, many at a time, those of a slot one behind the other; a key that appears or
        disappears meanwhile may be missing."""
        gathered: list[bytes] = []
        with wrapped():
            async for key in self._client.scan_iter(count=KEYS_AT_ONCE):
                gathered.append(key)
                if len(gathered) == SORTED_TOGETHER:
                    yield sorted(gathered)
                    gathered = []
        yield sorted(gathered)

    def mend(self, anchor: str, expected: Sequence[Expected], *writes: Read) -> Mend:
        """A repair that writes in one step if each read still gives the expected answer; otherwise does nothing."""
        tag = tag_of(anchor)

        async def put_right() -> None:
            await self._scripts.run(
                "mend_keys",
                {"anchor": anchor},
                tag=tag,
                expected=_json([[answer, *_behind(tag, tuple(read))] for answer, *read in expected]),
                writes=_json([_behind(tag, write) for write in writes]),
            )

        return put_right

    def shorten(self, key: str, look: Look, lasts: int) -> Mend:
        """A repair that makes a key end `lasts` (ms) after the look, unless its end has changed since: a reservation
        that became permanent must stay so."""
        return self.mend(
            key, [(str(look.expires), "PEXPIRETIME", key)], ("PEXPIREAT", key, str(look.now + lasts), "LT")
        )


def _behind(tag: str, read: Read) -> list[str]:
    command, key, *arguments = read
    assert key.startswith(tag), f"{command} is about another slot"
    assert command != "EXISTS" or all(one.startswith(tag) for one in arguments)
    return [command, key[len(tag) :], *arguments]


def _json(value: object) -> bytes:
    return orjson.dumps(value)


def in_words(raw: bytes | None) -> str:
    """An answer as text, for a condition; "" for a missing answer, and for bytes that are not text."""
    try:
        return (raw or b"").decode()
    except UnicodeDecodeError:
        return ""


def is_wrong_type(error: StoreError) -> bool:
    """Whether a script met a key of another type, which has a finding of its own."""
    return "WRONGTYPE" in str(error)


def row_of(flat: Sequence[bytes] | None) -> dict[str, bytes]:
    """Parses an answer to HGETALL."""
    if not flat:
        return {}
    return {name.decode("utf-8", "replace"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def number(row: Mapping[str, bytes], name: str) -> int | None:
    """A field as a whole number; None if the field is missing or something else."""
    raw = row.get(name, b"")
    return int(raw) if raw.removeprefix(b"-").isdigit() else None


def in_steps(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """A sequence in pieces of at most `most`."""
    return [items[start : start + most] for start in range(0, len(items), most)]


def tag_of(key: str) -> str:
    """The hash tag that all keys of this key's slot begin with."""
    return key[: key.index("}") + 1]
