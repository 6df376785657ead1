"""Every script that changes the address or the name of a person notes the person for the index."""

from __future__ import annotations

import re

import pytest

from store import keys
from store.engine.script_source import own_scripts, script_files
from store.engine.scripts import NOTING
from store.wiring import Store
from tests.support.directory.listed_people import rename, sign_up

CHANGES = re.compile(
    r"redis\.call\('HSET', user,[^)]*'(?:name|email)'|redis\.call\('(?:RENAME|DEL|UNLINK)', user\b", re.S
)
EARLIER = {"upgrade_person": "turns rows of layout 1 into those of layout 2, before there was an index"}


def test_every_change_of_address_or_name_is_noted() -> None:
    changing = {name for name, path in script_files().items() if CHANGES.search(path.read_text())}
    noting = {name for name, script in own_scripts().items() if any(one in script.source for one in NOTING)}
    assert {"create_user", "rename_user", "rename_person", "change_address", "undo_change", "delete_user"} <= noting
    assert changing - set(EARLIER) <= noting


@pytest.mark.gen_test
async def test_the_note_is_before_the_change_and_wakes_the_relay(memory_store: Store) -> None:
    user = await sign_up(memory_store, "ada@example.org", "Ada")
    changed = keys.changed(user)["changed"]
    assert await memory_store.client.hgetall(changed) == {keys.member(user).encode(): b""}
    await memory_store.directory_relay.hinted()
    assert not await memory_store.client.exists(changed)
    for name in ("Ada Byron", "Ada Lovelace", "Ada Byron"):
        await rename(memory_store, user, name)
    noted = await memory_store.client.hget(changed, keys.member(user))
    assert noted == b"ada@example.org\tAda\nada@example.org\tAda Byron\nada@example.org\tAda Lovelace\n"
    await memory_store.directory_relay.hinted()
    assert not await memory_store.client.exists(changed)
