"""Loads the sources of `lua/` by name, with includes resolved and the contract of each header.

The header of each file is its contract::

    --- One line that says what the script does. (clause)
    --- KEYS[1] user: what it is
    --- ARGV[1] limit (number): requests per period
    --- ARGV[2] reads (json): a list
    --- @reply ok remaining reset
    --- @reply rate_limited reset retry
    --- @include "window"
    --- @idempotent                 may be sent again if its answer was lost
    --- @durable                    its answer waits for replicas, if the server is configured to
    --- @derives grant_prefix       builds keys of the same hash tag from that argument
    --- @reserve                    runs in a full store too: it ends, frees, pays or only reads

The loader writes a local for each key and argument (`local limit = tonumber(ARGV[1])`) between includes and body.
No body reads `KEYS` or `ARGV` itself. The loader refuses a body with a name that neither the body nor the header nor
an include declares. It leaves out what the body doesn't use of its includes (`store/engine/script_parts.py`).

No two files have the same name, whatever folder they are in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from store.engine.script_names import names_offered, unknown_names
from store.engine.script_parts import branches, composed, without_branches

LUA = Path(__file__).resolve().parent.parent.parent / "lua"

_HEADER = re.compile(r"^---\s+(?:(KEYS|ARGV)\[(\d+)\]\s+(\w+)(?:\s+\((\w+)\))?|@(\w+)\s*(.*?))\s*(?::.*)?$")
_TAKEN = {None: "{}", "number": "tonumber({})", "json": "cjson.decode({})"}
"""How the loader reads a key or an argument, by its type."""
_INCLUDE = re.compile(r'---\s+@include\s+"(\w+)"\s*$')
# An expiry in 1970 is never later than the present one, so this changes nothing, whatever the key is. It names no key
# of its own, because a slot that is being moved would not have that key.
_FROM_RESERVE = "redis.call('PEXPIREAT', KEYS[1], '1', 'GT')\n"
RECORDING = "noted[#noted + 1] ="
"""In the functions of the include "audit" that record events."""
NOTED_AS = "noted_as"
"""The last argument of a script that records events: the id of the first of them, a tab, and who asked for it."""
MOST_NOTES = 200
"""Notes in a shard."""
_RECORDING = """\
local noted = {{}}
local noted_as = ARGV[{place}]
local function run()
{body}end
local answer = run()
if #noted > 0 then
  -- In the shard of the trail, until the event is in the security log (store/accounts/audit/recorded.py).
  local notes, id = string.sub(noted[1][1], 1, 6) .. 'recorded', string.match(noted_as, '^[^\t]+')
  local keeps = id and redis.call('HLEN', notes) < {most}
  for number, one in ipairs(noted) do
    local note, at, asked = keeps and id .. ':' .. number or '', one[6], noted_as
    if keeps then
      -- After the id, where earlier releases read nothing.
      if one[7] then asked = id .. ' ' .. one[7] .. string.sub(noted_as, #id + 1) end
      redis.call('HSET', notes, note, cjson.encode({{at, one[1], one[2], one[3], one[4], one[5], asked}}))
    end
    one[6], one[7] = note, one[7] or ''
  end
  answer[#answer + 1] = noted
end
return answer
"""


class ScriptError(Exception):
    """A file in `lua/` breaks the rules of its header."""


@dataclass(frozen=True, slots=True)
class Script:
    """One operation: its source with includes resolved, and the contract of its header."""

    name: str
    source: str
    keys: tuple[str, ...]
    args: tuple[str, ...]
    replies: Mapping[str, tuple[str, ...]]
    idempotent: bool
    durable: bool
    reserve: bool
    derives: tuple[str, ...]
    records: bool
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest())


class Include(NamedTuple):
    """A file of `include/`: the includes that it needs, its body, and the names that the body declares."""

    needs: tuple[str, ...]
    body: str
    offered: frozenset[str]


FindInclude = Callable[[str], Include | None]
"""Finds an include by its name."""


class ScriptFolder(Mapping[str, Script]):
    """The scripts of a folder by name. Each is read and checked when it is first asked for; iteration names them all
    and reads none. Raises ScriptError for an unknown or circular include, a bad header, a name that two files have, or
    a body that uses what its header lacks."""

    def __init__(self, folder: Path = LUA) -> None:
        self._files = script_files(folder)
        self._include_files = include_files(folder)
        self._includes: dict[str, Include] = {}
        self._read: dict[str, Script] = {}

    def __getitem__(self, name: str) -> Script:
        script = self._read.get(name)
        if script is None:
            script = self._read[name] = _load(self._files[name], self.include)
        return script

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def include(self, name: str) -> Include | None:
        """The include with this name, if there is one."""
        if name not in self._includes and name in self._include_files:
            self._includes[name] = _include(self._include_files[name].read_text(encoding="utf-8"))
        return self._includes.get(name)


def load_scripts(folder: Path = LUA) -> dict[str, Script]:
    """Every script of the folder by name. Raises as ScriptFolder."""
    return dict(ScriptFolder(folder))


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
    """The scripts of `lua/`, each read once in a process."""
    return ScriptFolder()


def _load(path: Path, include: FindInclude) -> Script:
    head, body = _parted(path.read_text(encoding="utf-8"))
    keys: dict[int, str] = {}
    args: dict[int, str] = {}
    taken: list[str] = []
    replies: dict[str, tuple[str, ...]] = {}
    derives: tuple[str, ...] = ()
    idempotent = durable = reserve = False
    for line in head:
        match = _HEADER.match(line)
        if not match:
            if line.startswith(("--- KEYS[", "--- ARGV[")):
                raise ScriptError(f"{path.name}: cannot read {line!r}")
            continue
        table, position, name, kind, directive, rest = match.groups()
        if table:
            if kind is not None and (table == "KEYS" or kind not in _TAKEN):
                raise ScriptError(f"{path.name}: {name} cannot be a {kind}")
            (keys if table == "KEYS" else args)[int(position)] = name
            taken.append(f"local {name} = {_TAKEN[kind].format(f'{table}[{position}]')}\n")
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
        if sorted(names) != list(range(1, len(names) + 1)):
            raise ScriptError(f"{path.name}: {table} must be numbered from 1")
    if len({*keys.values(), *args.values()}) != len(taken):
        raise ScriptError(f"{path.name}: keys and arguments must be named once each")
    if not replies:
        raise ScriptError(f"{path.name}: no @reply")
    if reserve and not keys:
        raise ScriptError(f"{path.name}: @reserve needs a key")
    done: dict[str, Include] = {}
    _resolve(_needs(head), include, path.name, (), done)
    known = frozenset().union(*(found.offered for found in done.values()), keys.values(), args.values())
    odd, of_branches = unknown_names(without_branches(body), known), []
    for branch in branches(body):
        own: dict[str, Include] = {}
        _resolve((branch.include,), include, path.name, (), own)
        offered = (found.offered for found in own.values())
        odd |= unknown_names(without_branches(body) + branch.code, known.union(*offered))
        of_branches.append([found.body for found in own.values()])
    if odd:
        raise ScriptError(f"{path.name}: neither in the header nor declared: {', '.join(sorted(odd))}")
    source = composed([found.body for found in done.values()], "".join(taken), body, of_branches)
    records = RECORDING in source
    if records:
        args[len(args) + 1] = NOTED_AS
        source = _RECORDING.format(place=len(args), body=source, most=MOST_NOTES)
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
        records=records,
    )


def _include(text: str) -> Include:
    head, body = _parted(text)
    return Include(_needs(head), body, names_offered(body))


def _parted(text: str) -> tuple[list[str], str]:
    """The lines of the header, and the body."""
    lines = text.splitlines()
    end = next((number for number, line in enumerate(lines) if not line.startswith("---")), len(lines))
    return lines[:end], "\n".join(lines[end:]) + "\n"


def _needs(head: Iterable[str]) -> tuple[str, ...]:
    return tuple(match[1] for match in map(_INCLUDE.match, head) if match)


def _resolve(
    needs: Iterable[str], include: FindInclude, origin: str, stack: tuple[str, ...], done: dict[str, Include]
) -> None:
    """Adds includes, each once and after the includes that it needs."""
    for name in needs:
        if name in stack:
            raise ScriptError(f"{origin}: circular include of {name}")
        if name in done:
            continue
        found = include(name)
        if found is None:
            raise ScriptError(f"{origin}: unknown include {name}")
        _resolve(found.needs, include, origin, (*stack, name), done)
        done[name] = found
