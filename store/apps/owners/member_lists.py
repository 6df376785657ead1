"""The lists of apps that people are in the teams of, kept in step with the registrations.

A person has two lists: `apps`, for those whose first owner they are, and `teams`, for the others. A registration and
these lists are in several slots. An entry is written before the registration and removed after it. So after any
interruption everybody finds their apps, and whoever reads a list drops what the registration does not confirm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.apps.apps import Apps
from store.apps.cache import Spent
from store.apps.owners.roles import Act
from store.apps.registration import Registration
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable, wrapped
from store.refused import Refused

ListEntry = tuple[str, str]
"""A person, and one of their lists: `apps` or `teams`."""


class _Missing(Exception):
    """A change needs entries first."""

    def __init__(self, entries: set[ListEntry]) -> None:
        super().__init__()
        self.entries = entries


def entries_of(app: Registration) -> set[ListEntry]:
    """The lists that have the app."""
    return {*((one.user, "teams") for one in app.members), *({(app.owner, "apps")} if app.owner else ())}


class MemberLists:
    """Changes teams of apps together with the lists of their people."""

    def __init__(self, client: Redis, scripts: Scripts, apps: Apps) -> None:
        self._client = client
        self._scripts = scripts
        self._apps = apps

    async def change(
        self,
        client_id: str,
        change: Callable[[Registration], Registration],
        by: str | None = None,
        *,
        act: Act = "team",
        entered: ListEntry | None = None,
        spent: Spent | None = None,
    ) -> tuple[Registration, Registration]:
        """As `Apps.change`, for a change of the team. `entered` is an entry that is there already. Returns the
        registration before and after. Raises Refused as that, and Refused("not_found") for a person who does not
        exist."""
        there = {entered} if entered else set()
        before: Registration | None = None

        def prepared(present: Registration) -> Registration:
            nonlocal before
            before = present
            changed = change(present)
            if missing := entries_of(changed) - entries_of(present) - there:
                raise _Missing(missing)
            return changed

        while True:
            try:
                after = await self._apps.change(client_id, prepared, by, act=act, spent=spent)
                break
            except _Missing as needs:
                for user, noun in needs.entries:
                    await self._enter(user, noun, client_id)
                there |= needs.entries
        assert before is not None
        # If this is cut short, the next reader of the list drops the entry.
        with suppress(StoreUnavailable):
            for user, noun in (entries_of(before) | there) - entries_of(after):
                await self.leave(user, noun, client_id)
        return before, after

    async def of(self, user: str) -> list[str]:
        """The client ids in both lists of a person. Raises StoreUnavailable."""
        known = keys.person(user)
        with wrapped():
            own: list[Any] = await self._client.zrange(known["apps"], 0, -1)
            joined: list[Any] = await self._client.zrange(known["teams"], 0, -1)
        return list(dict.fromkeys(one.decode() for one in (*own, *joined)))

    async def drop(self, user: str) -> None:
        """Removes both lists of a person whose account is being deleted. Raises StoreUnavailable."""
        known = keys.person(user)
        with wrapped():
            await self._client.delete(known["apps"], known["teams"])

    async def _enter(self, user: str, noun: str, client_id: str) -> None:
        known = keys.person(user)
        reply = await self._scripts.run("list_app", {"user": known["user"], "list": known[noun]}, client=client_id)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")

    async def leave(self, user: str, noun: str, client_id: str) -> None:
        """Drops an app from a list of a person. Raises StoreUnavailable."""
        with wrapped():
            await self._client.zrem(keys.person(user)[noun], client_id)
