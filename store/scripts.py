"""The scripts of `lua/`: loaded once, called by name with named keys and arguments, answered with named fields.

The header of each file is its contract::

    --- One line that says what it does. (clause)
    --- KEYS[1] user: what it is
    --- ARGV[1] limit: requests per period
    --- @reply ok remaining reset
    --- @reply rate_limited reset retry
    --- @include "window"
    --- @idempotent                 may be sent again when its answer was lost
    --- @durable                    its answer waits for replicas, where the server is told to
    --- @derives grant_prefix       builds keys of the same hash tag from that argument
    --- @reserve                    runs in a full store too: it ends, frees, pays or only reads

A script that includes "audit" tells, behind the fields of its answer, which events it recorded: `Reply.noted`.

No writing script is ever sent twice: a lost answer is `StoreUnavailable`, its outcome unknown.

Durable is what takes something away for good, counts once, moves money or puts something where nothing else has it:
what a failover must not undo once it was answered. Such a script writes something with each answer that says it was
done, also when there was nothing left to do: WAIT covers what its own connection has written.

A store at its `maxmemory` refuses a script at its first write, unless that write can take no memory: then the rest of
the script runs (as EVAL's documentation says). So a script with `@reserve` begins with one that changes nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from store.errors import StoreError, Unconfirmed, wrapped
from store.security_events import OUTCOMES, WORDS

LUA = Path(__file__).resolve().parent.parent / "lua"

_HEADER = re.compile(r"^---\s+(?:(KEYS|ARGV)\[(\d+)\]\s+(\w+)|@(\w+)\s*(.*?))\s*(?::.*)?$")
_INCLUDE = re.compile(r'---\s+@include\s+"(\w+)"\s*$')
# An expiry of 1970 is never a later one, so this changes nothing, whatever the key is. It names no key of its own: a
# slot that is being moved would not have that.
_FROM_RESERVE = "redis.call('PEXPIREAT', KEYS[1], '1', 'GT')\n"
RECORDING = "audit"
"""The include whose `record` notes events in a trail."""
_TELLING = """\
local noted = {{}}
local function run()
{0}end
local answer = run()
if #noted > 0 then answer[#answer + 1] = noted end
return answer
"""
Value = str | bytes | int
Watch = Callable[[str, float], None]
"""Is told how many seconds a script took; of one call in `TIMED`, since it is reading the clock that costs."""
TIMED = 8
Hear = Callable[[str, "Reply", Mapping[str, str], Mapping[str, "Value"]], None]
"""Hears of an answer that concerns security: the script, its answer, keys and arguments."""


class ScriptError(Exception):
    """A file in `lua/` breaks the rules of its header."""


class Evaluator(Protocol):
    """What the scripts need of a Redis client."""

    def evalsha(self, sha: str, numkeys: int, *keys_and_args: Value) -> Awaitable[Any]: ...

    def eval(self, script: str, numkeys: int, *keys_and_args: Value) -> Awaitable[Any]: ...


class Reply(NamedTuple):
    """What a script answered: a word and the fields its header names after it."""

    word: str
    fields: Mapping[str, Any]
    noted: Sequence[Sequence[bytes]] = ()
    """The events that the script recorded: trail, event, client, address, agent."""

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
    """What a script answers first, the names of the fields behind it, how often `Scripts` was answered it, and whether
    this answer concerns security."""

    name: str
    fields: tuple[str, ...]
    count: int = 0
    heard: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """One operation: its source with includes resolved, and the contract its header states."""

    name: str
    source: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    replies: Mapping[str, tuple[str, ...]]
    idempotent: bool
    durable: bool
    reserve: bool
    derives: tuple[str, ...]
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest())


def load_scripts(folder: Path = LUA) -> dict[str, Script]:
    """Every script of the folder by name. Raises ScriptError for an unknown or circular include, a bad header, or a
    name that two files have."""
    includes = {name: path.read_text(encoding="utf-8") for name, path in include_files(folder).items()}
    return {name: _load(path, includes) for name, path in script_files(folder).items()}


def script_files(folder: Path = LUA) -> dict[str, Path]:
    """The files of the scripts by name: every `*.lua` of the folder and its folders, except in `include/`. Raises
    ScriptError for a name that two files have."""
    return _by_name(path for path in folder.rglob("*.lua") if "include" not in path.relative_to(folder).parts)


def include_files(folder: Path = LUA) -> dict[str, Path]:
    """The files of the includes by name: every `*.lua` in `include/` and its folders. Raises as `script_files`."""
    return _by_name((folder / "include").rglob("*.lua"))


def _by_name(paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(paths):
        if found.setdefault(path.stem, path) is not path:
            raise ScriptError(f"{path.name}: {found[path.stem]} has this name too")
    return found


@cache
def own_scripts() -> Mapping[str, Script]:
    """Those of `lua/`, read once in a process."""
    return load_scripts()


def _load(path: Path, includes: Mapping[str, str]) -> Script:
    text = path.read_text(encoding="utf-8")
    keys: dict[int, str] = {}
    args: dict[int, str] = {}
    replies: dict[str, tuple[str, ...]] = {}
    derives: tuple[str, ...] = ()
    idempotent = durable = reserve = False
    for line in text.splitlines():
        match = line.startswith("---") and _HEADER.match(line)
        if not match:
            continue
        table, position, name, directive, rest = match.groups()
        if table:
            (keys if table == "KEYS" else args)[int(position)] = name
        elif directive == "reply":
            word, *names = rest.split()
            replies[word] = tuple(names)
        elif directive == "idempotent":
            idempotent = True
        elif directive == "durable":
            durable = True
        elif directive == "reserve":
            reserve = True
        elif directive == "derives":
            derives = tuple(rest.split())
        elif directive != "include":
            raise ScriptError(f"{path.name}: unknown directive @{directive}")
    for table, names in (("KEYS", keys), ("ARGV", args)):
        if sorted(names) != list(range(1, len(names) + 1)) or len(set(names.values())) != len(names):
            raise ScriptError(f"{path.name}: {table} must be numbered from 1 and named once each")
    if not replies:
        raise ScriptError(f"{path.name}: no @reply")
    if reserve and not keys:
        raise ScriptError(f"{path.name}: @reserve needs a key")
    done: set[str] = set()
    source = _resolve(text, includes, path.name, [], done)
    if RECORDING in done:
        source = _TELLING.format(source)
    if reserve:
        source = _FROM_RESERVE + source
    return Script(
        name=path.stem,
        source=source,
        keys=tuple(keys[n] for n in sorted(keys)),
        args=tuple(args[n] for n in sorted(args)),
        replies=replies,
        idempotent=idempotent,
        durable=durable,
        reserve=reserve,
        derives=derives,
    )


def _resolve(text: str, includes: Mapping[str, str], origin: str, stack: list[str], done: set[str]) -> str:
    """Puts each include once, before its first use, in place of the directive; drops the other header lines."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("---"):
            lines.append(line)
            continue
        match = _INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        if name in stack:
            raise ScriptError(f"{origin}: circular include of {name}")
        if name in done:
            continue
        if name not in includes:
            raise ScriptError(f"{origin}: unknown include {name}")
        lines.append(_resolve(includes[name], includes, origin, [*stack, name], done))
        done.add(name)
    return "\n".join(lines) + "\n"


class Scripts:
    """Calls scripts by name on one client; what is durable goes by `durable`, where that is given."""

    def __init__(
        self, client: Evaluator, scripts: Mapping[str, Script] | None = None, durable: Evaluator | None = None
    ) -> None:
        self._client = client
        self._durable = client if durable is None else durable
        self._scripts = {
            name: (
                script,
                {
                    word.encode(): Word(word, fields, heard=word in WORDS or (name, word) in OUTCOMES)
                    for word, fields in script.replies.items()
                },
            )
            for name, script in (own_scripts() if scripts is None else scripts).items()
        }
        self.watch: Watch | None = None
        self.hear: Hear | None = None
        self._lost: Counter[tuple[str, str]] = Counter()
        self._timed = cycle((True, *[False] * (TIMED - 1))).__next__

    def answers(self) -> Iterator[tuple[str, str, int]]:
        """Scripts, the words that they have answered here, or those of StoreErrors, and how often."""
        for name, (_, words) in self._scripts.items():
            for word in words.values():
                if word.count:
                    yield name, word.name, word.count
        for (name, lost), count in self._lost.items():
            yield name, lost, count

    async def run(self, name: str, keys: Mapping[str, str], /, **args: Value) -> Reply:
        """Runs one script.

        Raises StoreUnavailable when the store cannot be reached or the answer was lost (outcome unknown unless the
        script is idempotent, which is sent once more), Unconfirmed when it ran and too few replicas said so in time,
        StoreError when the answer breaks the script's header.
        """
        script, words = self._scripts[name]
        if len(args) != len(script.args):
            raise StoreError(f"{name}: takes {script.args}")
        ordered: list[Value] = [keys[key] for key in script.keys]
        ordered += [args[arg] for arg in script.args]
        client = self._durable if script.durable else self._client
        watch = self.watch
        began = perf_counter() if watch is not None and self._timed() else 0.0
        try:
            with wrapped():
                try:
                    try:
                        answer = await client.evalsha(script.sha, len(script.keys), *ordered)
                    except NoScriptError:
                        answer = await _load_and_run(client, script, ordered)
                    except (RedisConnectionError, RedisTimeoutError):
                        if not script.idempotent:
                            raise
                        answer = await _run_again(client, script, ordered)
                except Unconfirmed as doubt:
                    raise Unconfirmed(f"{name} ran, but {doubt}") from None
            found, reply = _reply(name, words, answer)
        except StoreError as error:
            self._lost[name, error.word] += 1
            if watch is not None and began:
                watch(name, perf_counter() - began)
            raise
        if watch is not None and began:
            watch(name, perf_counter() - began)
        if (found.heard or reply.noted) and self.hear is not None:
            self.hear(name, reply, keys, args)
        return reply


async def _load_and_run(client: Evaluator, script: Script, ordered: list[Value]) -> Any:
    # The script did not run, so it may be sent again; EVAL loads it on the way.
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
    word, *values = answer
    found = words.get(word)
    noted: Sequence[Sequence[bytes]] = ()
    if found is not None and len(values) == len(found.fields) + 1 and _is_noted(values[-1]):
        noted = values.pop()
    if found is None or len(found.fields) != len(values):
        raise StoreError(f"{name}: the answer {word.decode(errors='replace')!r} does not fit the header")
    found.count += 1
    fields = dict(zip(found.fields, values))  # noqa: B905  # of one length, as was looked at
    return found, Reply(found.name, fields, noted)


def _is_noted(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 5 for one in value)
