"""/account/security: the person's password, second step, passkeys, devices and activity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import SimpleNamespace

from handlers.account.connected_apps import EVENTS
from handlers.account.reauth_forms import GuardedPage
from handlers.core import mails
from handlers.core.devices import device_phrase
from handlers.core.errors import REAUTH_FIRST
from handlers.core.lists.paging import page_number, part_of
from handlers.core.params import Params, once, parse_pairs
from handlers.core.words.sentences import sentences
from store.accounts.identities import LinkedIdentity
from store.accounts.signin.factors import Factors
from store.accounts.signin.reauth import ReauthFailed
from store.accounts.signin.sessions import Activity, LiveSession
from store.crypto.passwords import check_password
from store.phrases import Phrase
from store.refused import Refused, reason_of

NOTICES = {
    "changed": Phrase("Your password was changed."),
    "confirmed": Phrase("Thank you. You can now change how you sign in."),
    "ended": Phrase("Session ended."),
    "others-ended": Phrase("All other sessions ended."),
    "app": Phrase("Your authenticator app is set up."),
    "app-removed": Phrase("Your authenticator app was removed."),
    "passkey": Phrase("Your passkey was added."),
    "passkey-renamed": Phrase("The passkey was renamed."),
    "passkey-removed": Phrase("The passkey was removed."),
    "linked": Phrase("The account was connected. You can now sign in with it."),
    "unlinked": Phrase("The account was disconnected."),
}
LOOK_AT_FACTORS = Phrase(
    "A new password doesn’t remove any passkey, authenticator app or recovery codes. Check those below, and remove "
    "what isn’t yours."
)
SECURITY = "/account/security"
SECURITY_SHOWN, ORDINARY_SHOWN = 10, 5
"""Events shown on this page; all are on the page of the activity."""
SESSIONS_SHOWN, PASSKEYS_SHOWN, ACCOUNTS_SHOWN = 12, 5, 5
"""Rows of the lists on a page."""
_SESSION_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def by_use(live: Iterable[LiveSession], here: str) -> list[LiveSession]:
    """Sessions by device: the one with the session `here` first, then those used last. The sessions of a device are in
    the same order."""
    used = sorted(live, key=lambda one: (one.session_id != here, -one.seen_at.timestamp()))
    devices = list(dict.fromkeys(device_phrase(one.agent) for one in used))
    return sorted(used, key=lambda one: devices.index(device_phrase(one.agent)))


def devices_of(live: Iterable[LiveSession]) -> dict[str, list[LiveSession]]:
    """Sessions by the name of their device, in the order in which they come."""
    devices: dict[str, list[LiveSession]] = {}
    for one in live:
        devices.setdefault(device_phrase(one.agent), []).append(one)
    return devices


class SecurityPage(GuardedPage):
    """The page. It shows each error in its section, and asks for re-authentication itself."""

    uses_scripts = True

    async def names_of(self, ids: Iterable[str]) -> dict[str, str]:
        """The names of apps and APIs by their ids; the id of one that is gone."""
        found: dict[str, str] = {}
        for client_id in dict.fromkeys(filter(None, ids)):
            app = await self.store.apps.remembered(client_id) or await self.store.apis.find(client_id)
            found[client_id] = app.name if app else client_id
        return found

    def shown(self, entry: Activity, names: Mapping[str, str]) -> SimpleNamespace:
        """An event as templates/base/activity_rows.html shows it."""
        return SimpleNamespace(
            at=entry.at,
            text=EVENTS.get(entry.event, entry.event),
            app=names.get(entry.client, ""),
            address=entry.address,
            device=device_phrase(entry.agent),
        )

    def shown_identity(self, linked: LinkedIdentity) -> SimpleNamespace:
        """A connected account as the page shows it; `works`: it can sign the person in."""
        provider = self.site.providers.of(linked.identity)
        return SimpleNamespace(
            name=linked.identity.name,
            title=provider.title if provider else linked.identity.issuer,
            type=provider.type if provider else "oidc",
            label=linked.label,
            linked_at=linked.linked_at,
            used_at=linked.used_at,
            works=provider is not None,
        )

    async def show(self, part: str = "", error: str = "", notice: str | None = None, wrong: str = "") -> None:
        """The page, with a notice or an error. `part` is the section of the error, `wrong` the wrong field there."""
        session = self.require_session()
        # A mistake in a form of a later page is shown there.
        params = self.body() if self.request.method == "POST" else once(parse_pairs(self.request.query))
        asked = {name: page_number(params.get(name) or "", name) for name in ("sessions", "passkeys", "accounts")}
        profile, entries = await self.store.sessions.activity(session)
        # Apart, so that no number of ordinary events hides a sign-in.
        activity = [entry for entry in entries if not entry.ordinary][:SECURITY_SHOWN]
        ordinary = [entry for entry in entries if entry.ordinary][:ORDINARY_SHOWN]
        apps = await self.names_of(entry.client for entry in (*activity, *ordinary))
        live = by_use(await self.store.sessions.live(session), session.session_id)
        sessions = part_of(live, SESSIONS_SHOWN, asked["sessions"], SECURITY, "sessions", "devices")
        factors = await self.store.factors.of(session)
        identities = [self.shown_identity(one) for one in factors.identities]
        if notice == NOTICES["changed"] and factors.second:
            notice = sentences(notice, LOOK_AT_FACTORS)
        self.render(
            "account/security.html",
            title=Phrase("Security"),
            signed_in=profile,
            errors={part: error} if error else {},
            wrong=wrong,
            notice=notice,
            activity=[self.shown(entry, apps) for entry in activity],
            ordinary=[self.shown(entry, apps) for entry in ordinary],
            devices=devices_of(sessions.rows),
            at_device=Counter(device_phrase(one.agent) for one in live),
            sessions=sessions,
            passkeys=part_of(factors.passkeys, PASSKEYS_SHOWN, asked["passkeys"], SECURITY, "passkeys", "passkeys"),
            here_id=session.session_id,
            factors=factors,
            identities=part_of(identities, ACCOUNTS_SHOWN, asked["accounts"], SECURITY, "accounts", "identities"),
            providers=list(self.site.providers),
            link_key=self.link_key(),
            confirm_with=self.confirm_with(factors),
            passkeys_offered=self.site.relying_party is not None,
            here=device_phrase(self.visitor.agent),
        )

    async def show_refusal(self, part: str, refusal: Refused, wrong: str = "") -> None:
        """The page with a refusal that the person can act on; `wrong` is the field. Raises any other refusal."""
        if self.wants_json() or refusal.code not in ("access_denied", "invalid_request"):
            raise refusal
        self.set_status(400)
        await self.show(part, refusal.description, wrong=wrong)

    def has_reauth(self, params: Params) -> bool:
        """False: these forms have their own passkey field, and fields that no page may keep."""
        return False

    async def ask(self, factors: Factors, params: Params, wrong: ReauthFailed | None = None) -> None:
        """Asks on this page. Raises Refused for a script."""
        if self.wants_json():
            raise Refused("access_denied", REAUTH_FIRST)
        await self.show_unproved()

    async def show_unproved(self) -> None:
        """The page, which first asks for re-authentication."""
        self.set_status(403)
        await self.show("confirm", REAUTH_FIRST)


class SecurityHandler(SecurityPage):
    """The page, and the form for the password."""

    async def get(self) -> None:
        """Shows the page."""
        await self.show(notice=self.notice(NOTICES))

    async def post(self) -> None:
        """Changes the password. Every other session ends."""
        self.check_same_origin()
        session = self.require_session()
        params = self.body()
        current, new = params.get("current_password") or "", params.get("new_password") or ""
        profile = await self.store.sessions.profile(session)
        try:
            check_password(new, profile.email, profile.name)
            async with await self.store.limits.own_password(session.user, session.session_id):
                await self.site.breaches.check(new)
                credentials = await self.store.people.credentials(profile.email)
                cookie = await self.store.sessions.change_password(session, current, new, credentials, self.visitor)
        except (ValueError, Refused) as error:
            if isinstance(error, Refused) and error.code != "access_denied":
                raise
            self.set_status(400)
            wrong = "current" if isinstance(error, Refused) else "new"
            return await self.show("password", reason_of(error), wrong=wrong)
        mails.password_changed(self.site, session.user, profile.warned, self.visitor)
        self.write_session(cookie)
        await self.keep_device(session.user)
        self.see_done("/account/security?changed")


class ReauthHandler(SecurityPage):
    """Re-authenticates the person before a change to how they sign in."""

    async def post(self) -> None:
        """Notes the re-authentication in the session, which gets a new cookie."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        reauth = self.store.reauth
        try:
            if params.get("credential"):
                cookie = await reauth.with_passkey(session, *self.read_passkey(params), self.visitor)
            else:
                password, code = params.get("password") or "", params.get("code") or ""
                cookie = await reauth.with_password(session, password, code, self.visitor)
        except ReauthFailed as wrong:
            mails.codes_guessed(self.site, session.user, wrong.notice, self.visitor)
            return await self.show_refusal("confirm", Refused("access_denied", wrong.text), wrong.part)
        self.write_session(cookie)
        self.see_done("/account/security?confirmed")


class ReauthOptionsHandler(SecurityPage):
    """WebAuthn options for re-authentication with a passkey."""

    async def post(self) -> None:
        """Lists this person's passkeys."""
        self.check_same_origin()
        self.ask_passkey(*await self.store.reauth.challenge(self.require_session()))


class EndSessionHandler(SecurityPage):
    """Ends another session."""

    async def post(self) -> None:
        """Ends the session that the form names. To end this one, people sign out."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        session_id, number = params.get("session") or "", page_number(params.get("sessions") or "", "sessions")
        if not _SESSION_ID.fullmatch(session_id) or session_id == session.session_id:
            raise Refused("not_found", Phrase("That session has already ended."))
        await self.store.sessions.end_other(session, session_id, self.visitor)
        self.see_done(f"{SECURITY}?sessions={number}&ended" if number > 1 else f"{SECURITY}?ended")


class EndOtherSessionsHandler(SecurityPage):
    """Ends every other session, on all devices."""

    async def post(self) -> None:
        """Takes one click."""
        self.check_same_origin()
        session = self.require_session()
        await self.store.sessions.end_others(session, self.visitor)
        self.see_done("/account/security?others-ended")
