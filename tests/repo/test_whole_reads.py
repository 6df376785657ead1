"""Every read of a whole collection in `lua/` is listed in docs/bounds.md with its bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from settings.declared import SETTINGS
from store.bounds import Bounds
from store.engine.script_source import LUA
from tests.support.lists.offenders import each

BOUNDS = (LUA.parent / "docs" / "bounds.md").read_text()
CALL = re.compile(r"redis\.call\('(\w+)', (\w+)(?=([^\n]*))")
WHOLE = {"HGETALL", "HKEYS", "HVALS", "SMEMBERS", "SINTER", "SUNION", "SDIFF", "SORT"}


def whole_reads(text: str) -> Iterator[tuple[str, str]]:
    """The commands that read all of a key, each with the name of the key."""
    for command, key, rest in CALL.findall(text):
        by_range = re.fullmatch(r"[LXZ](?:REV)?RANGE\w*", command) is not None
        # A number at most, or positions of which the second counts from the front, or is where the first is.
        bounded = re.search(r"'(?:LIMIT|COUNT)'", rest) or re.match(
            r", (?:[\w +]+, (?:\d+|\w+ [-+] \w+)|-1, -1)\b", rest
        )
        if command in WHOLE or (by_range and not bounded):
            yield command, key


@each(
    ("text", "found"),
    [
        pytest.param("redis.call('HGETALL', row)", True, id="a hash"),
        pytest.param("redis.call('SMEMBERS', recovery)", True, id="a set"),
        pytest.param("redis.call('ZRANGE', apps, 0, -1, 'WITHSCORES')", True, id="a sorted set"),
        pytest.param("redis.call('LRANGE', list, '0', '-1')", True, id="a list, with numbers as text"),
        pytest.param("redis.call('XRANGE', ledger, '-', '+')", True, id="a stream"),
        pytest.param("redis.call('ZRANGEBYSCORE', due, '-inf', now)", True, id="a range of scores"),
        pytest.param("redis.call('ZRANGE', apps, 0, steps - 1)", False, id="the first of them"),
        pytest.param("redis.call('ZREVRANGE', sessions, 0, 199)", False, id="the last of them"),
        pytest.param("redis.call('ZRANGE', listed, -1, -1, 'WITHSCORES')", False, id="the last one"),
        pytest.param("redis.call('XRANGE', ledger, '-', '+', 'COUNT', '100')", False, id="some of a stream"),
        pytest.param("redis.call('HMGET', row, 'epoch')", False, id="named fields"),
    ],
)
def test_reads_of_whole_collections_are_detected(text: str, found: bool) -> None:
    assert bool([*whole_reads(text)]) == found


def test_every_read_of_a_whole_collection_has_a_documented_bound() -> None:
    listed = re.findall(r"^\| `(lua/[\w/]+\.lua)` \| `(\w+) (\w+)` \| \S.* \|$", BOUNDS, re.MULTILINE)
    there = {
        (str(path.relative_to(LUA.parent)), command, key)
        for path in Path(LUA).rglob("*.lua")
        for command, key in whole_reads(path.read_text())
    }
    assert sorted(set(listed)) == sorted(there)
    assert len(set(listed)) == len(listed)


def test_a_persons_documented_bounds_match_the_settings() -> None:
    declared = {setting.name: setting for setting in SETTINGS}
    default = Bounds()
    for name, own in (("grant", default.grants), ("session", default.sessions), ("family", default.families)):
        setting = declared[f"person_{name}_limit"]
        assert setting.default == str(own)
        most = re.search(rf"`--person-{name}-limit` \| {own} \| (\d+) \|", BOUNDS)
        assert most, name
        assert setting.parse(most[1]) == int(most[1])
        with pytest.raises(ValueError, match=most[1]):
            setting.parse(str(int(most[1]) + 1))
