"""The groups of people: names that an operator gives them, and that apps with the scope `groups` see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redis.asyncio import Redis

from store import keys
from store.accounts.audit.security_log import SecurityLog
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable, wrapped
from store.names import MAX_GROUPS, check_groups
from store.refused import Refused
from store.results import groups_in

ATTEMPTS = 10


class Groups:
    """Changes the groups of people."""

    def __init__(self, client: Redis, scripts: Scripts, security: SecurityLog) -> None:
        self._client = client
        self._scripts = scripts
        self._security = security

    async def take_over(self, user: str, managed: Iterable[str], granted: Iterable[str]) -> tuple[str, ...]:
        """Makes a person a member of exactly the `granted` ones of the groups that a provider decides about, `managed`;
        others stay. Beyond MAX_GROUPS the first ones count. Returns the groups afterwards. Raises as `change`."""
        decided = {*managed}
        if not decided:
            return ()
        with wrapped():
            found: Any = await self._client.hget(keys.person(user)["user"], "groups")
        present = groups_in(found.decode() if isinstance(found, bytes) else "")
        # A directory may decide about more groups than a person may be in.
        room = MAX_GROUPS - len({*present} - decided)
        given = sorted({*granted})[:room]
        return await self.change(user, present, given, ({*present} & decided) - {*given}, "groups_changed_by_provider")

    async def change(
        self,
        user: str,
        present: Iterable[str],
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        event: str = "groups_changed_by_operator",
    ) -> tuple[str, ...]:
        """Adds a person to groups, and removes them from others; returns the groups afterwards. `present`: the groups
        as they were read; a change meanwhile is kept. `event`: of the security log. Raises ValueError for a wrong name
        or too many groups, Refused("not_found"), StoreUnavailable."""
        added, removed, before = check_groups(add), check_groups(remove), tuple(present)
        for _ in range(ATTEMPTS):
            groups = check_groups({*before, *added} - {*removed})
            if groups == before:
                return groups
            reply = await self._scripts.run(
                "set_groups", keys.person(user), expected="\n".join(before), groups="\n".join(groups)
            )
            if reply.word == "not_found":
                raise Refused("not_found", "No such person.")
            now = groups if reply.word == "ok" else groups_in(reply.text("groups"))
            if now == groups:  # also after an answer was lost, and the script found its own change
                self._security.note(event, person=user, detail=described(before, groups))
                return groups
            before = now
        raise StoreUnavailable("the groups keep changing")


def described(before: Iterable[str], after: Iterable[str]) -> str:
    """A change of groups, for the security log: `+staff -admins`."""
    old, new = {*before}, {*after}
    return " ".join([*(f"+{name}" for name in sorted(new - old)), *(f"-{name}" for name in sorted(old - new))])
