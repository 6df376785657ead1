"""Makes the source of a script from its includes and its body, with no more of the includes than the body uses.

Lua makes each function of a script at each call of the script, whether the call uses it or not. In a store whose memory
is in many pieces, that was a third of what a script cost. So an include that only one branch of a body needs stands
there, indented::

    if leased == '1' then
      --- @include "daily"
      end_on_lease(lease, hold, charged)
    end
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from store.engine.script_names import names_offered, names_used

# A declaration begins at the start of a line, with the comment right above.
_DECLARATION = re.compile(r"^(?:--[^\n]*\n)*local ", re.MULTILINE)
_INCLUDE = re.compile(r'^( +)--- @include "(\w+)"\n', re.MULTILINE)


class Branch(NamedTuple):
    """A part of a body with an include of its own: the place of the line that says so, the name of the include, and the
    code that follows in the same block."""

    place: slice
    include: str
    code: str


def branches(body: str) -> list[Branch]:
    """The branches of a body with includes of their own."""
    found = []
    for match in _INCLUDE.finditer(body):
        # It ends before the next line that begins further left.
        end = re.compile("^" + " ?" * (len(match[1]) - 1) + r"\S", re.MULTILINE).search(body, match.end())
        code = body[match.end() : end.start() if end else len(body)]
        found.append(Branch(slice(match.start(), match.end()), match[2], code))
    return found


def without_branches(body: str) -> str:
    """The body without the code of such branches."""
    for branch in reversed(branches(body)):
        body = body[: branch.place.start] + body[branch.place.stop + len(branch.code) :]
    return body


def composed(shared: Iterable[str], given: str, body: str, of_branches: Iterable[Iterable[str]]) -> str:
    """The source. `shared`: the includes of the whole body, each after those that it needs; `given`: what is declared
    between them and the body; `of_branches`: the includes of each branch, in the same way."""
    parts, found = _parts(shared), branches(body)
    own = [_parts(includes) for includes in of_branches]
    used = names_used(without_branches(body))
    for branch, others in zip(found, own, strict=True):
        used |= names_used(branch.code).difference(*map(names_offered, others))
    kept = _used(parts, used)
    for branch, others in reversed([*zip(found, own, strict=True)]):
        inner = _used([part for part in others if part not in kept], names_used(branch.code))
        body = body[: branch.place.start] + "".join(inner) + body[branch.place.stop :]
    return "".join((*kept, given, body))


def _parts(includes: Iterable[str]) -> list[str]:
    """The declarations of includes, each with what follows up to the next one. An include has nothing but declarations
    of locals, which do nothing by themselves; each may use those before it."""
    found = []
    for source in includes:
        begins = [match.start() for match in _DECLARATION.finditer(source)]
        found += [source[start:end] for start, end in zip(begins, [*begins[1:], len(source)], strict=True)]
    return found


def _used(parts: list[str], names: set[str]) -> list[str]:
    """The parts that code with these names needs, in their order."""
    used, kept = set(names), []
    for part in reversed(parts):
        if names_offered(part) & used:
            kept.append(part)
            used |= names_used(part)
    return kept[::-1]
