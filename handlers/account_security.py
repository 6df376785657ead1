"""/account/security: password, second step, passkeys, devices and activity of the person."""

from __future__ import annotations

import re
from types import SimpleNamespace

from handlers import letters
from handlers.account import EVENTS
from handlers.agents import device_words
from handlers.page import PageHandler
from handlers.params import Params
from store.passwords import check_password
from store.refused import Refused
from store.sessions import Session

NOTICES = {
    "changed": "Your password was changed.",
    "confirmed": "Thank you. For ten minutes you can change how you sign in.",
    "ended": "That device is signed out.",
    "others-ended": "All other devices are signed out.",
    "app": "Your authenticator app is set up.",
    "app-removed": "Your authenticator app was removed.",
    "passkey": "Your passkey was added.",
    "passkey-removed": "That passkey was removed.",
}
CONFIRM_FIRST = "Confirm that it is you first: type your password."
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class SecurityPage(PageHandler):
    """The page, which shows what went wrong beside the part it belongs to."""

    uses_scripts = True

    async def show(self, part: str = "", error: str = "", notice: str | None = None) -> None:
        """The page, with what happened; `part` is the part that the error belongs to."""
        session = self.require_session()
        profile, entries = await self.store.sessions.activity(session)
        activity = []
        for entry in entries:
            app = await self.store.apps.find(entry.client) if entry.client else None
            activity.append(
                SimpleNamespace(
                    at=entry.at,
                    text=EVENTS.get(entry.event, entry.event),
                    app=app.name if app else entry.client,
                    address=entry.address,
                    agent=entry.agent,
                    device=device_words(entry.agent) if entry.agent else "",
                )
            )
        devices = [
            SimpleNamespace(
                session_id=one.session_id,
                device=device_words(one.agent),
                agent=one.agent,
                address=one.address,
                created_at=one.created_at,
                seen_at=one.seen_at,
                here=one.session_id == session.session_id,
            )
            for one in await self.store.sessions.live(session)
        ]
        self.render(
            "account_security.html",
            title="Security",
            signed_in=profile,
            errors={part: error} if error else {},
            notice=notice,
            activity=activity,
            devices=devices,
            factors=await self.store.factors.of(session),
            passkeys_offered=self.site.party is not None,
            here=device_words(self.visitor.agent),
        )

    async def show_refusal(self, part: str, refusal: Refused) -> None:
        """The page with a refusal that the person can do something about. Raises any other again."""
        if self.wants_json() or refusal.code not in ("access_denied", "invalid_request"):
            raise refusal
        self.set_status(400)
        await self.show(part, refusal.description)

    async def show_unproved(self) -> None:
        """The page, which asks for the password first."""
        self.set_status(403)
        await self.show("confirm", CONFIRM_FIRST)

    async def prove(self, session: Session, params: Params) -> None:
        """Holds the password that was typed against the account. Raises Refused, SignedOut."""
        profile = await self.store.sessions.profile(session)
        await self.store.limits.sign_in(self.counted_address, profile.email)
        credentials = await self.store.people.credentials(profile.email)
        await self.store.sessions.prove(session, params.get("password") or "", credentials)


class SecurityHandler(SecurityPage):
    """The page, and its first form: the password."""

    async def get(self) -> None:
        """Shows it."""
        await self.show(notice=self.notice(NOTICES))

    async def post(self) -> None:
        """Changes the password; every other session ends."""
        self.check_same_origin()
        session = self.require_session()
        params = self.body()
        current, new = params.get("current_password") or "", params.get("new_password") or ""
        profile = await self.store.sessions.profile(session)
        try:
            check_password(new, profile.email)
            await self.store.limits.sign_in(self.counted_address, profile.email)
            credentials = await self.store.people.credentials(profile.email)
            cookie = await self.store.sessions.change_password(session, current, new, credentials, self.visitor)
        except (ValueError, Refused) as error:
            if isinstance(error, Refused) and error.code != "access_denied":
                raise
            self.set_status(400)
            return await self.show("password", error.description if isinstance(error, Refused) else str(error))
        letters.password_changed(self.site, profile.email, self.visitor)
        self.write_session(cookie)
        self.see_done("/account/security?changed")


class ProveHandler(SecurityPage):
    """The password typed again, before how the person signs in is changed."""

    async def post(self) -> None:
        """Notes it in the session."""
        self.check_same_origin()
        session = self.require_session()
        try:
            await self.prove(session, self.body())
        except Refused as refusal:
            return await self.show_refusal("confirm", refusal)
        self.see_done("/account/security?confirmed")


class EndSessionHandler(SecurityPage):
    """Signs another device out."""

    async def post(self) -> None:
        """Ends the session that the form names; this one is ended by signing out."""
        self.check_same_origin()
        session, session_id = self.require_session(), self.body().get("session") or ""
        if not _SESSION_ID.fullmatch(session_id) or session_id == session.session_id:
            raise Refused("not_found", "There is no such device.")
        await self.store.sessions.end_other(session, session_id, self.visitor)
        self.see_done("/account/security?ended")


class EndOtherSessionsHandler(SecurityPage):
    """Signs every other device out."""

    async def post(self) -> None:
        """One click."""
        self.check_same_origin()
        await self.store.sessions.end_others(self.require_session(), self.visitor)
        self.see_done("/account/security?others-ended")
