"""Every field that a script writes to a row is known to the check of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator

from store.engine.script_source import include_files, script_files
from store.fsck.kinds import KINDS

UNCHECKED = "?"  # the field that `touch` writes and removes


def code(text: str) -> str:
    """Lua without its comments."""
    return "\n".join(line.partition("--")[0] for line in text.splitlines())


def arguments(text: str) -> list[str]:
    """The arguments of a call, whose text begins behind its opening parenthesis."""
    found, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "({[") - (character in ")}]")
        if depth < 0:
            break
        if character == "," and depth == 0 and not quoted:
            found.append("")
        else:
            found[-1] += character
    return [one.strip() for one in found]


def names(field: str, before: str) -> list[str]:
    """The names that an expression of a field can have, as far as they are literals."""
    if field == "field":  # of the loop around the call
        listed = "".join(re.findall(r"for (?:_, )?field(?:, value)? in i?pairs\(\{(.*?)\}\)", before, re.S)[-1:])
        return re.findall(r"(\w+) =", listed) or re.findall(r"'(\w+)'", listed)
    if re.search(r" or '", field):  # `... and 'one' or 'other'`
        return re.findall(r"(?:and|or) '(\w+)'", field)
    return re.findall(r"^'([^']+)'$", field)


def written() -> Iterator[tuple[str, str, str]]:
    """The file, the kind of key and the name of each field that a script writes to a row."""
    for path in [*script_files().values(), *include_files().values()]:
        text = code(path.read_text())
        for call in re.finditer(r"redis\.p?call\('(HSET|HSETNX|HINCRBY)',\s*", text):
            key, *rest = arguments(text[call.end() :])
            for field in rest[::2]:
                yield from ((path.stem, key, name) for name in names(field, text[: call.start()]))


def test_the_check_of_the_store_knows_every_field_that_a_script_writes() -> None:
    fields = {(kind, name) for _, kind, name in written()}
    assert {("user", "suspended_note"), ("user", "zone"), ("session", "shown_at")} <= fields, "all forms are read"
    unknown = [
        f"{script} writes {name} to {kind}"
        for script, kind, name in written()
        if kind in KINDS and KINDS[kind].others is not None and name not in {*KINDS[kind].fields, UNCHECKED}
        if not re.fullmatch(str(KINDS[kind].others), name)
    ]
    assert unknown == []
