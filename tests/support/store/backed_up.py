"""People who write documents while a copy of the store is made, and what the restored copy must have of theirs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import cast

from store import keys as spell
from store.crypto.seal import TokenKind
from store.documents.documents import Conditions
from store.wiring import Store
from tests.support.store.many_documents import check_usage
from tests.support.store.world import PASSWORD, World, refusal_of

WRITERS = 6


MOST = 55


PAUSE = 0.02  # seconds between two writes, since the window is 60 a minute


@dataclass
class Writer:
    """A person and an app that writes documents one after the other, and is credited a micro-dollar for each."""

    world: World
    access: str
    refresh: str
    written: int = 0  # that were answered
    rotated: list[str] = field(default_factory=list)  # refresh tokens, the newest last

    @classmethod
    async def make(cls, store: Store) -> Writer:
        world = await World.make(store)
        tokens = await world.tokens()
        return cls(world, tokens.access_token, tokens.refresh_token)

    async def write(self) -> None:
        """One round: a document, a credit, and a rotation now and then."""
        store, caller = self.world.store, self.world.caller(self.access)
        name, content = f"n{self.written:05d}", b'"%05d"' % self.written
        await store.documents.write(caller, "data:write", "notes", name, content, Conditions())
        await store.credits.grant(self.world.user, 1, reason=name)
        if self.written % 5 == 0:
            tokens = await self.world.refresh((self.rotated or [self.refresh])[-1])
            self.rotated.append(tokens.refresh_token)
        self.written += 1

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set() and self.written < MOST:
            await self.write()
            await asyncio.sleep(PAUSE * self.written)


async def generation_in(store: Store, family: str) -> int:
    """The generation in the row of a refresh family."""
    return int(cast(bytes, await store.client.hget(family, "generation")))


@contextlib.asynccontextmanager
async def load(writers: list[Writer]) -> AsyncIterator[None]:
    """The writers at work around the block."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(writer.run(stop)) for writer in writers]
    while any(writer.written < 3 for writer in writers):
        await asyncio.sleep(0.01)
    yield
    before = [writer.written for writer in writers]
    assert max(before) < MOST, "they had stopped before the block ended"
    while not all(writer.written > begun for writer, begun in zip(writers, before, strict=True)):
        await asyncio.sleep(0.01)
    stop.set()
    await asyncio.gather(*tasks)


@dataclass(frozen=True)
class Before:
    """What was so when the copy was begun, and what had been written when it was done."""

    least: list[int]
    most: list[int]
    ends: dict[str, int]


async def ends_of(store: Store, writers: list[Writer]) -> dict[str, int]:
    """When, in epoch ms, what hangs on each writer's first token and session ends."""
    rows = [writer.world.rows(writer.refresh)["access"] for writer in writers]
    rows += [spell.session(writer.world.user, writer.world.session.session_id) for writer in writers]
    return {row: int(await store.client.execute_command("PEXPIRETIME", row)) for row in rows}


async def check_restored(store: Store, writers: list[Writer], before: Before) -> None:
    """Everything is as it was at one moment while the copy was made."""
    assert await ends_of(store, writers) == before.ends
    for writer, least, most in zip(writers, before.least, before.most, strict=True):
        user, client = writer.world.user, writer.world.app.client_id
        documents = await check_usage(store, user, client)
        account = await store.credits.show(user)
        assert account.paid == account.opening + sum(entry.amount for entry in account.entries)
        # What one writer does comes one after the other, so a moment is a number of documents and as many credits, or
        # one less while it was between the two.
        assert least <= documents <= most + 1
        assert account.paid in (documents, documents - 1)
        names = await store.client.zrange(spell.hosted(user, client)["index"], 0, -1)
        assert names == [b"notes/n%05d" % number for number in range(documents)]
        caller = writer.world.caller(writer.access)
        for number in (0, documents - 1):
            _, content, _ = await store.documents.read(caller, "data:read", "notes", f"n{number:05d}")
            assert content == b'"%05d"' % number
    await check_tokens(store, writers)


async def check_tokens(store: Store, writers: list[Writer]) -> None:
    """Sessions and tokens of then live; a refresh token given since rotates, and one used up before is a replay."""
    for place, writer in enumerate(writers):
        world, app = writer.world, await store.apps.active(writer.world.app.client_id)
        assert app is not None
        assert (await store.sessions.profile(world.session)).email == world.email
        assert await store.people.verify(world.email, PASSWORD) is not None
        newest = writer.rotated[-1]
        row = world.rows(newest)["family"]
        generation = await generation_in(store, row)
        presented = world.opened(TokenKind.REFRESH, newest).generation
        assert presented >= generation, "the copy is not younger than what came after it"
        if place % 2 == 0:
            tokens = await store.tokens.refresh(app, newest, ())
            assert await generation_in(store, row) == presented + 1
            assert store.tokens.open_access(tokens.access_token) is not None
        else:
            assert await refusal_of(store.tokens.refresh(app, writer.refresh, ())) == "invalid_grant"
            assert await refusal_of(store.identity.read(world.caller(writer.access), "profile")) == "invalid_token"


def moved(writers: list[Writer], store: Store) -> list[Writer]:
    """The writers as people of another store."""
    for writer in writers:
        writer.world.store = store
    return writers
