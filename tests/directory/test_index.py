"""The index against a plain model: random people who sign up, change and leave, in buckets that divide and join."""

from __future__ import annotations

import random
from typing import Any

import pytest

from store import keys
from store.directory.entries import IndexEntry, Section, entries_of, is_entry_of
from store.engine.pipeline import MOST_CALLS
from store.fsck.reading import COMMANDS_AT_ONCE, Reader
from store.fsck.walk import AT_ONCE
from store.wiring import Store
from tests.support.directory.listed_people import VISITOR, everybody, flaws, rename, session_of, sign_up

FIRST = ("Ada", "Alan", "Álan", "Ala", "Bob", "Jo", "John", "Johanna", "김", "Ørjan")
LAST = ("Smith", "Smyth", "Turing", "Lovelace", "S", "de la Cruz", "Müller", "철수")
DOMAINS = ("example.org", "example.com", "a.test")


class Model:
    """Random acts on a store, and what the store must then have: address and name by user id."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store, self._chance, self._number = store, random.Random(seed), 0
        self.people: dict[str, tuple[str, str]] = {}

    def _name(self) -> str:
        return f"{self._chance.choice(FIRST)} {self._chance.choice(LAST)}"

    async def act(self) -> None:
        """One random act; sign-ups are as frequent as all others."""
        user = self._chance.choice(list(self.people)) if self.people else ""
        act = self._chance.choices(("sign up", "rename", "leave", "move"), (5, 2, 2, 1))[0] if user else "sign up"
        if act == "sign up":
            self._number += 1
            email = f"{self._chance.choice(FIRST).lower()}{self._number}@{self._chance.choice(DOMAINS)}"
            name = self._name()
            self.people[await sign_up(self.store, email, name)] = (email, name)
        elif act == "rename":
            name = self._name()
            await rename(self.store, user, name)
            self.people[user] = (self.people[user][0], name)
        elif act == "leave":
            await self.store.people.delete(user)
            del self.people[user]
        else:
            await self._move(user)

    async def _move(self, user: str) -> None:
        self._number += 1
        old, email = self.people[user][0], f"moved{self._number}@{self._chance.choice(DOMAINS)}"
        session = await session_of(self.store, user)
        link = await self.store.links.to_change(session, old, email, b"$", VISITOR)
        await self.store.client.hset(keys.link(user, "change"), "shown", "1")
        await self.store.links.change(session, link.text, VISITOR)
        self.people[user] = (email, self.people[user][1])


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.slow) for one in (1, 2))])
async def test_the_index_has_what_the_rows_say(store: Store, seed: int) -> None:
    store.directory_relay.sections.most = 6
    model = Model(store, seed)
    for step in range(240):
        await model.act()
        if step % 40 == 39:
            await store.directory_relay.sweep()
            assert await flaws(store, model.people) == []
            for query, by in (("al", "name"), ("jo", "address"), ("s", "name"), ("example.org", "domain")):
                found = [one.user for one in await everybody(store, query, by=by, limit=7)]
                assert len(found) == len(set(found))
                assert set(found) == {user for user in model.people if _is_found(model.people[user], query, by)}
    for user in list(model.people):
        await store.people.delete(user)
    await store.directory_relay.sweep()
    assert await flaws(store, {}) == []
    assert [key async for key in store.client.scan_iter(match="{directory:*")] == []


def _is_found(person: tuple[str, str], query: str, by: str) -> bool:
    """Whether a search must find this person, by a rule that shares nothing with the index."""
    email, name = (text.lower().replace("á", "a").replace("ø", "o").replace("ü", "u") for text in person)
    if by == "domain":
        return email.endswith(f"@{query}")
    return email.startswith(query) if by == "address" else any(word.startswith(query) for word in name.split())


def test_one_entry_is_compared_as_all_of_a_person() -> None:
    people = [(f"{n:032x}", f"{first}.{n}@{DOMAINS[n % 3]}", f"{first} {LAST[n % 8]}") for n, first in enumerate(FIRST)]
    people += [("0" * 32, "", "Ada Smith"), ("f" * 32, "x" * 60 + "@a.test", "y" * 60), ("1" * 32, "a@a.test", "A")]
    everything = {entry for person in people for entry in entries_of(*person)}
    everything |= {IndexEntry(Section(family, begin[:1]), rest) for (family, begin), rest in everything}
    for person in people:
        assert {entry for entry in everything if is_entry_of(entry, *person)} == entries_of(*person)


@pytest.mark.gen_test
async def test_a_check_of_full_buckets_reads_no_more_at_once_than_a_connection_takes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(80):
        await sign_up(store, f"reader{number}@example.org", f"Reader {number}")
    await store.directory_relay.sweep()
    running, most, read = 0, 0, Reader.commands

    async def counted(reader: Reader, commands: Any) -> Any:
        nonlocal running, most
        running += min(len(commands), COMMANDS_AT_ONCE)
        most = max(most, running)
        try:
            return await read(reader, commands)
        finally:
            running -= min(len(commands), COMMANDS_AT_ONCE)

    monkeypatch.setattr(Reader, "commands", counted)
    async for done in store.fsck.run():
        report = done
    assert (report.clean, report.people) == (True, 80)
    assert 80 < most <= AT_ONCE * COMMANDS_AT_ONCE < MOST_CALLS
