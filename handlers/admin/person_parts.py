"""/api/admin/v1/people/ID/sessions, …/grants and …/identities: what operators see and take one by one."""

from __future__ import annotations

from handlers.admin.base import AdminHandler
from store.moments import timestamp
from store.operators.records import identity_record, session_record


class AdminSessionsHandler(AdminHandler):
    """…/sessions."""

    async def get(self, user: str) -> None:
        """Every live session, the newest first: at most 200, so this list has one page."""
        self.query()
        security = await self.store.operator.security(user)
        self.write_page([session_record(one) for one in security.sessions], "")


class AdminSessionHandler(AdminHandler):
    """…/sessions/ID."""

    async def delete(self, user: str, session_id: str) -> None:
        """Ends one session; apps keep their access."""
        self.query()
        await self.store.people_acts.end_session(self.actor, user, session_id)
        self.write_json({"id": session_id, "ended": True})


class AdminGrantHandler(AdminHandler):
    """…/grants/CLIENT."""

    async def delete(self, user: str, client: str) -> None:
        """Disconnects an app: its tokens end at once, the documents after 30 days."""
        self.query()
        until = await self.store.people_acts.disconnect(self.actor, user, client)
        self.write_json({"person": user, "client_id": client, "dataUntil": timestamp(until)})


class AdminIdentitiesHandler(AdminHandler):
    """…/identities."""

    async def get(self, user: str) -> None:
        """The person's accounts at other sites: at most 20, so this list has one page."""
        self.query()
        security = await self.store.operator.security(user)
        self.write_page([identity_record(one) for one in security.identities], "")


class AdminIdentityHandler(AdminHandler):
    """…/identities/ID."""

    async def delete(self, user: str, name: str) -> None:
        """Disconnects an account at another site, unless it is the person's only way to sign in."""
        self.query()
        security = await self.store.operator.security(user)
        others = self.site.providers.usable(one.identity for one in security.identities)
        await self.store.people_acts.unlink(self.actor, user, name, others)
        self.write_json({"id": name, "ended": True})
