"""/scim/v2/Groups: the groups that operators give people, to read (RFC 7643 4.2)."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from handlers.admin.base import Record
from handlers.admin.scim.base import ScimHandler, ScimRefused
from handlers.admin.scim.filters import parse_filter
from handlers.admin.scim.resources import group_name, group_record
from store.operators.provisioning import GroupMember
from store.refused import Refused

MOST_MEMBERS = 10_000
"""Members in one answer."""
MOST_GROUPS = 100_000
FILTERED = {"displayname": "displayName", "id": "id"}


class ScimGroupAct(ScimHandler):
    """A call about groups."""

    @cached_property
    def with_members(self) -> bool:
        """Whether the answer has the members: read once, not for each of thousands of groups."""
        params = self.asked()
        wanted, excluded = ((params.get(name) or "").lower() for name in ("attributes", "excludedAttributes"))
        names = [one.strip().rpartition(":")[2].partition(".")[0] for one in (wanted or excluded).split(",")]
        return "members" in names if wanted else "members" not in names

    async def read_groups(self, group: str = "") -> dict[str, list[GroupMember]]:
        """The groups with their members, or one group; the lists are empty if the members are excluded. Raises
        ScimRefused("tooMany")."""
        found: dict[str, list[GroupMember]] = defaultdict(list)
        members = 0
        async for one in self.store.provisioning.in_groups(group):
            for name in (group,) if group else one.groups:
                listed = found[name]
                if self.with_members:
                    listed.append(one)
                    members += 1
            if members > MOST_MEMBERS or len(found) > MOST_GROUPS:
                few = f"An answer has at most {MOST_MEMBERS} members: ask with excludedAttributes=members."
                raise ScimRefused("tooMany", few)
            if group and not self.with_members:
                break
        return found

    def record(self, name: str, members: list[GroupMember]) -> Record:
        """A group, with members unless they are excluded."""
        listed = sorted(members, key=lambda one: one.user) if self.with_members else None
        return group_record(name, listed, self.address_of)

    def refuse_write(self) -> None:
        """Raises Refused("not_implemented")."""
        raise Refused("not_implemented", "Groups are read here. Operators give groups to people.")

    async def post(self, *_: str) -> None:
        """Refused: a group is a name that people have, and operators give it."""
        self.refuse_write()

    put = patch = delete = post


class ScimGroupsHandler(ScimGroupAct):
    """All groups that somebody is in."""

    async def get(self) -> None:
        """The group that a filter means, or a page of all groups, by name. Pages that are read one after the other are
        of the same list."""
        params = self.asked()
        start, count = self.span(params)
        name = ""
        if text := params.get("filter"):
            asked = parse_filter(text, FILTERED)
            name = (group_name(asked.value) if asked.attribute == "id" else asked.value) or ""
            found = await self.read_groups(name) if name and "\n" not in name else {}
            return self.write_page_of(found, start, count)
        pages, who = self.store.provisioning.group_pages, (self.actor.kind, self.actor.id, self.with_members)
        listed = pages.take(who, start) if start > 1 else None
        if listed is None:
            found = await self.read_groups()
            listed = {name: found[name] for name in sorted(found)}
        if count and start + count <= len(listed):
            pages.keep(who, listed, start + count)
        self.write_page_of(listed, start, count)

    def write_page_of(self, found: dict[str, list[GroupMember]], start: int, count: int) -> None:
        """Writes the page of these groups from the number `start`."""
        names = sorted(found)[start - 1 : start - 1 + count]
        self.write_list([self.record(one, found[one]) for one in names], len(found), start)


class ScimGroupHandler(ScimGroupAct):
    """One group."""

    async def get(self, one_id: str) -> None:
        """The group. Raises Refused("not_found") if nobody is in it."""
        name = group_name(one_id)
        found = await self.read_groups(name) if name else {}
        if not name or name not in found:
            raise Refused("not_found", "Nobody is in such a group.")
        self.write_resource(self.record(name, found[name]))
