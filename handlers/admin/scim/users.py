"""/scim/v2/Users: people, for the directory that provisions them (RFC 7644 3.3 to 3.6)."""

from __future__ import annotations

from handlers.admin.base import valid
from handlers.admin.scim.attributes import Asserted, of_operations, of_resource
from handlers.admin.scim.base import ScimHandler, ScimRefused
from handlers.admin.scim.filters import Equals, parse_filter
from handlers.admin.scim.resources import user_record
from store.names import is_user_id, normalise_email
from store.operators.people_pages import PersonSummary

FILTERED = {
    **{"username": "userName", "emails": "userName", "emails.value": "userName"},
    **{'emails[type eq "work"].value': "userName", "externalid": "externalId", "id": "id"},
}


class ScimUserAct(ScimHandler):
    """A call that answers with one person."""

    async def write_user(self, user: str, status: int = 200) -> None:
        """Writes the person as they are now."""
        self.write_resource(user_record(await self.store.provisioning.one(user), self.address_of), status)


class ScimUsersHandler(ScimUserAct):
    """All people."""

    async def get(self) -> None:
        """The person whom a filter means, or a page of everybody, by id."""
        params = self.asked()
        start, count = self.span(params)
        if text := params.get("filter"):
            found = await self._find(parse_filter(text, FILTERED))
            total, people = len(found), found[start - 1 : start - 1 + count]
        else:
            total, people = await self.store.provisioning.page(start, count)
        self.write_list([user_record(one, self.address_of) for one in people], total, start)

    async def _find(self, asked: Equals) -> list[PersonSummary]:
        provisioning, value = self.store.provisioning, asked.value
        if asked.attribute == "id":
            found = await self.store.people_pages.one(value) if is_user_id(value) else None
        elif asked.attribute == "externalId":
            found = await provisioning.with_external_id(value)
        else:
            try:
                found = await provisioning.with_email(normalise_email(value))
            except ValueError:
                found = None
        return [found] if found else []

    async def post(self) -> None:
        """Makes an account: without a password, with a confirmed address."""
        with valid():
            asserted = of_resource(self.resource())
            wanted = asserted.wanted
        if not asserted.email or not wanted.name:
            raise ScimRefused("invalidValue", "Send userName, an e-mail address, and displayName or name.")
        user = await self.store.provisioning.create(
            self.actor, asserted.email, wanted.name, wanted.external_id or "", active=wanted.active is not False
        )
        await self.write_user(user, 201)


class ScimUserHandler(ScimUserAct):
    """One person."""

    async def get(self, user: str) -> None:
        """The person."""
        await self.write_user(user)

    async def put(self, user: str) -> None:
        """Replaces what is sent. What is left out stays (RFC 7644 3.5.1)."""
        with valid():
            asserted = of_resource(self.resource())
        if not asserted.email:
            raise ScimRefused("invalidValue", "userName is missing.")
        await self._change(user, asserted)

    async def patch(self, user: str) -> None:
        """Adds, replaces and removes attributes: all operations, or none."""
        with valid():
            asserted = of_operations(self.resource())
        await self._change(user, asserted)

    async def delete(self, user: str) -> None:
        """Deletes the person with everything that is theirs."""
        await self.store.provisioning.delete(self.actor, user)
        self.set_status(204)
        self.finish()

    async def _change(self, user: str, asserted: Asserted) -> None:
        with valid():
            wanted = asserted.wanted
        asserted.check_address((await self.store.provisioning.one(user)).email)
        await self.store.provisioning.change(self.actor, user, wanted)
        await self.write_user(user)
