"""Calls the scripts of `lua/` by name, with named keys and arguments; answers have named fields.

`store/engine/script_source.py` reads the files and the contracts in their headers.

A script that includes "audit" returns the events that it recorded after the fields of its answer: `Reply.noted`.

No writing script is ever sent twice: a lost answer is `StoreUnavailable`, its outcome unknown.

A script is durable if a failover must not undo it after its answer: it removes something for good, counts once, moves
money, or writes the only copy of something. Such a script writes something before each answer that reports success,
even if nothing was left to do, because WAIT covers only what its own connection has written.

A store at its `maxmemory` refuses a script at its first write, unless that write takes no memory. In that case the rest
of the script runs (see EVAL's documentation). So a script with `@reserve` begins with a write that changes nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from operator import itemgetter
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from store.engine.many import SharedWrites
from store.engine.script_source import NOTED_AS, Script, own_scripts
from store.engine.security_outcomes import OUTCOMES, WORDS
from store.errors import StoreError, Unacknowledged, wrapped

Value = str | bytes | int
ScriptObserver = Callable[[str, float], None]
"""Receives how many seconds a script took, for one call in `TIMED`, because reading the clock has a cost."""
TIMED = 8
NOTING = ("local function note_change(", "local function note_new(")
"""In scripts that note a person whom the index of people no longer fits."""
Hear = Callable[[str, "Reply", Mapping[str, str], Mapping[str, "Value"]], None]
"""Receives each answer that concerns security: the script, its answer, keys and arguments."""


class Run(Protocol):
    """`Scripts.run`."""

    def __call__(self, name: str, keys: Mapping[str, str], /, **args: Value) -> Coroutine[Any, Any, Reply]: ...


class Evaluator(Protocol):
    """The part of a Redis client that the scripts need."""

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Value) -> Awaitable[Any]: ...

    def eval(self, script: str, numkeys: int, *keys_and_args: Value) -> Awaitable[Any]: ...


class Reply(NamedTuple):
    """A script's answer: a word, and the fields that its header names after the word."""

    word: str
    fields: Mapping[str, Any]
    noted: Sequence[Sequence[bytes]] = ()
    """The events that the script recorded: trail, event, client, address, agent, the id of the note about it,
    and a detail."""

    def text(self, name: str) -> str:
        """The field as text."""
        value: bytes = self.fields[name]
        return value.decode()

    def raw(self, name: str) -> bytes:
        """The field's bytes."""
        value: bytes = self.fields[name]
        return value

    def number(self, name: str) -> int:
        """The field as an integer."""
        return int(self.fields[name])

    def rows(self, name: str) -> list[Any]:
        """The field as a list."""
        value: list[Any] = self.fields[name]
        return value


@dataclass(slots=True)
class Word:
    """A first word of a script's answers: the fields after it, how often `Scripts` received it, and whether the answer
    concerns security."""

    name: str
    fields: tuple[str, ...]
    count: int = 0
    heard: bool = False


_Picker = Callable[[Mapping[str, Any]], Sequence[Any]]
_Row = tuple[Script, dict[bytes, Word], _Picker, _Picker, bool]
"""A script, the words of its answers, what orders its keys and arguments, and whether it notes changes."""


class _Prepared(dict[str, _Row]):
    """What a call of each script needs. A script's first call reads the script; later calls only look it up."""

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        self._sources = scripts

    def __missing__(self, name: str) -> _Row:
        script = self._sources[name]
        words = {
            word.encode(): Word(word, fields, heard=word in WORDS or (name, word) in OUTCOMES)
            for word, fields in script.replies.items()
        }
        self[name] = row = (
            script,
            words,
            _picker(script.keys),
            _picker(script.args),
            any(one in script.source for one in NOTING),
        )
        return row

    def read_all(self) -> None:
        """Reads every script now."""
        for name in self._sources:
            self[name]


class Scripts:
    """Calls scripts by name on one client; durable scripts run on `durable`, if given."""

    def __init__(
        self, client: Evaluator, scripts: Mapping[str, Script] | None = None, durable: Evaluator | None = None
    ) -> None:
        self._client = client
        self._durable = client if durable is None else durable
        self._scripts = _Prepared(own_scripts() if scripts is None else scripts)
        self.observer: ScriptObserver | None = None
        self.hear: Hear | None = None
        self.noted_as: Callable[[], str] = str
        """What scripts that record events note with them (`store/accounts/audit/recorded.py`)."""
        self.changed: Callable[[str], None] | None = None
        """Receives the key of the notes that a script may have written (`lua/include/directory/changed.lua`)."""
        self._lost: Counter[tuple[str, str]] = Counter()
        self._timed = cycle((True, *[False] * (TIMED - 1))).__next__

    def read_all(self) -> None:
        """Reads and checks every script now. Raises ScriptError."""
        self._scripts.read_all()

    def wrap(self, around: Callable[[Run], Run]) -> None:
        """Puts a function around `run`, which costs nothing without one."""
        self.run = around(self.run)  # type: ignore[method-assign]  # found before the method

    def answers(self) -> Iterator[tuple[str, str, int]]:
        """Yields each script, the words of its answers or StoreErrors here, and how often."""
        for name, (_, words, *_) in self._scripts.items():
            for word in words.values():
                if word.count:
                    yield name, word.name, word.count
        for (name, lost), count in self._lost.items():
            yield name, lost, count

    async def run(self, name: str, keys: Mapping[str, str], /, **args: Value) -> Reply:
        """Runs one script.

        Raises StoreUnavailable if the store cannot be reached or the answer was lost (the outcome is unknown, but an
        idempotent script is sent once more), Unacknowledged if the script ran but too few replicas confirmed in time,
        StoreError if the answer breaks the script's header.
        """
        script, words, keys_of, args_of, notes = self._scripts[name]
        if script.records:
            args[NOTED_AS] = self.noted_as()
        if len(args) != len(script.args):
            raise StoreError(f"{name}: takes {script.args}")
        ordered: list[Value] = [*keys_of(keys), *args_of(args)]
        client = self._durable if script.durable else self._client
        observer = self.observer
        began = perf_counter() if observer is not None and self._timed() else 0.0
        try:
            try:
                answer = await client.evalsha(script.sha, len(script.keys), *ordered)
            except Exception as error:
                answer = await _after(error, client, script, ordered)
            found, reply = _reply(name, words, answer)
        except StoreError as error:
            self._lost[name, error.word] += 1
            if observer is not None and began:
                observer(name, perf_counter() - began)
            raise
        if observer is not None and began:
            observer(name, perf_counter() - began)
        if (found.heard or reply.noted) and self.hear is not None:
            self.hear(name, reply, keys, args)
        if notes and self.changed is not None:
            self.changed(keys["changed"])
        return reply

    async def run_many(self, name: str, calls: Sequence[tuple[Mapping[str, str], Mapping[str, Value]]]) -> list[Reply]:
        """Runs an idempotent script for several keys and arguments, all sent together: for many calls much faster than
        `run`. Raises as `run`, after all have ended."""
        script, words, keys_of, args_of, notes = self._scripts[name]
        if (
            not isinstance(self._client, SharedWrites)
            or not script.idempotent
            or script.durable
            or script.records
            or notes
        ):
            return await asyncio.gather(*(self.run(name, keys, **args) for keys, args in calls))
        ordered: list[list[Value]] = [[*keys_of(keys), *args_of(args)] for keys, args in calls]
        found = await self._client.answers(("EVALSHA", script.sha, len(script.keys), *one) for one in ordered)
        for place, answer in enumerate(found):
            if isinstance(answer, Exception):
                found[place] = await _after(answer, self._client, script, ordered[place])
        return [_reply(name, words, answer)[1] for answer in found]


def _picker(names: Sequence[str]) -> _Picker:
    """What takes the values of these names out of a mapping, in this order."""
    # With one name, `itemgetter` gives the value alone.
    return itemgetter(*names) if len(names) > 1 else lambda values: [values[name] for name in names]


async def _after(error: Exception, client: Evaluator, script: Script, ordered: list[Value]) -> Any:
    """The answer that there is in spite of this error of the first attempt. Apart from it, because only a call that
    fails should pay for what is to be done."""
    with wrapped():
        try:
            if isinstance(error, NoScriptError):
                return await _load_and_run(client, script, ordered)
            if script.idempotent and isinstance(error, (RedisConnectionError, RedisTimeoutError)):
                return await _run_again(client, script, ordered)
            raise error
        except Unacknowledged as doubt:
            raise Unacknowledged(f"{script.name} ran, but {doubt}") from None


async def _load_and_run(client: Evaluator, script: Script, ordered: list[Value]) -> Any:
    # The script did not run, so it may be sent again; EVAL also loads it.
    try:
        return await client.eval(script.source, len(script.keys), *ordered)
    except (RedisConnectionError, RedisTimeoutError):
        if not script.idempotent:
            raise
        return await _run_again(client, script, ordered)


async def _run_again(client: Evaluator, script: Script, ordered: list[Value]) -> Any:
    try:
        return await client.evalsha(script.sha, len(script.keys), *ordered)
    except NoScriptError:
        return await client.eval(script.source, len(script.keys), *ordered)


def _reply(name: str, words: Mapping[bytes, Word], answer: Any) -> tuple[Word, Reply]:
    if not isinstance(answer, list) or not answer or not isinstance(answer[0], bytes):
        raise StoreError(f"{name}: the answer is not a word and its fields")
    found = words.get(answer[0])
    noted: Sequence[Sequence[bytes]] = ()
    if found is not None and len(answer) == len(found.fields) + 2 and _is_noted(answer[-1]):
        noted = answer.pop()
    if found is None or len(answer) != len(found.fields) + 1:
        raise StoreError(f"{name}: the answer {answer[0].decode(errors='replace')!r} does not fit the header")
    found.count += 1
    fields = dict(zip(found.fields, answer[1:]))  # noqa: B905  # the lengths were checked above
    return found, Reply(found.name, fields, noted)


def _is_noted(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 7 for one in value)
