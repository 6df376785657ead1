"""The sources of `lua/`: found by name, their includes put in, and the contract that each header states.

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

No two files have one name, whatever folder they are in.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LUA = Path(__file__).resolve().parent.parent.parent / "lua"

_HEADER = re.compile(r"^---\s+(?:(KEYS|ARGV)\[(\d+)\]\s+(\w+)|@(\w+)\s*(.*?))\s*(?::.*)?$")
_INCLUDE = re.compile(r'---\s+@include\s+"(\w+)"\s*$')
# An expiry of 1970 is never a later one, so this changes nothing, whatever the key is. It names no key of its own: a
# slot that is being moved would not have that.
_FROM_RESERVE = "redis.call('PEXPIREAT', KEYS[1], '1', 'GT')\n"
RECORDING = "audit"
"""The include whose `record` notes events in a trail."""
_OUTBOX_KEYS = """\
local noted = {{}}
local function run()
{0}end
local answer = run()
if #noted > 0 then answer[#answer + 1] = noted end
return answer
"""


class ScriptError(Exception):
    """A file in `lua/` breaks the rules of its header."""


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
        source = _OUTBOX_KEYS.format(source)
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
