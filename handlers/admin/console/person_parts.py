"""/admin/people/ID/…: the forms that take one thing from a person: a session, an app, an account at another site."""

from __future__ import annotations

import re

from handlers.admin.console.person_acts import PersonAct
from handlers.core.params import Params
from store.refused import Refused

_PART, _CLIENT = re.compile(r"[A-Za-z0-9_-]{22}"), re.compile(r"[A-Za-z0-9_-]{1,64}")


class ConsoleEndSessionHandler(PersonAct):
    """…/end-session."""

    part, done = "end-session", "session"

    async def act(self, user: str, params: Params) -> None:
        """Ends one session."""
        await self.store.people_acts.end_session(self.actor, user, _named(params, "session", _PART))


class ConsoleDisconnectHandler(PersonAct):
    """…/disconnect."""

    part, done = "disconnect", "disconnected"

    async def act(self, user: str, params: Params) -> None:
        """Ends the access of one app."""
        await self.store.people_acts.disconnect(self.actor, user, _named(params, "client_id", _CLIENT))


class ConsoleUnlinkHandler(PersonAct):
    """…/unlink."""

    part, done = "unlink", "unlinked"

    async def act(self, user: str, params: Params) -> None:
        """Disconnects an account at another site, unless it is the person's only way to sign in."""
        name, security = _named(params, "identity", _PART), await self.store.operator.security(user)
        others = self.site.providers.usable(one.identity for one in security.identities)
        await self.store.people_acts.unlink(self.actor, user, name, others)


def _named(params: Params, field: str, form: re.Pattern[str]) -> str:
    """The id in a field. Raises Refused("not_found") for what is none."""
    text = params.require(field)
    if not form.fullmatch(text):
        raise Refused("not_found")
    return text
