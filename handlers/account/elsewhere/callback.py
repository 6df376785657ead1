"""/signin/with/NAME/callback: takes a person back from an identity provider."""

from __future__ import annotations

import hmac
from urllib.parse import urlencode

from handlers.account.elsewhere.page import FLOW_COOKIE, TARGET_COOKIE, ElsewherePage
from handlers.account.signin import HALF_COOKIE, KEEP
from handlers.core import mails
from handlers.core.page import Onward
from outbound.identity.calling import ProviderAway, ProviderRefused
from outbound.identity.config import callback_of
from outbound.identity.providers import Provider
from outbound.identity.sign_in import Cancelled
from store.accounts.signin.sessions import SecondStepNeeded
from store.accounts.signin.upstream import Admission, Arrival, Arrived, NewLink, NotLinked
from store.accounts.signin.upstream_flow import Flow
from store.clock import wall
from store.crypto.seal import NOBODY
from store.json_text import NotJSON, decode_strictly
from store.lifetimes import SECOND_STEP
from store.phrases import Phrase
from store.refused import Refused, Suspended

PASSED_ON = ("code", "state", "iss", "error")
LONGEST_FIELD = 4096
LONGEST_USER = 2048
"""Characters of what Apple says of a person, once."""
SIGN_IN = Onward("/signin", Phrase("Back to sign-in"))
SECURITY = Onward("/account/security", Phrase("Back to Security"))
NOT_HERE = Phrase("That took too long, or began in another browser. Try again.")


class CallbackHandler(ElsewherePage):
    """Signs a person in, or links the identity to their account."""

    onward = SIGN_IN

    async def post(self, name: str) -> None:
        """An answer that the provider's page posts (`form_post`). Browsers send our cookies with no such form, so it
        goes on as an address. Nothing happens before that, so it needs no XSRF token."""
        provider, params = self.provider_named(name), self.body()
        passed = {field: params.get(field) or "" for field in PASSED_ON}
        passed["name"] = _name_in(params.get("user") or "")
        kept = {field: value for field, value in passed.items() if value and len(value) <= LONGEST_FIELD}
        self.see_other(f"/signin/with/{provider.name}/callback?{urlencode(kept)}")

    async def get(self, name: str) -> None:
        """Checks that this browser asked, exchanges the code, and lets the person in."""
        provider, query = self.provider_named(name), self.query()
        flow = self.flow_of(provider, query.get("state") or "")
        if flow.links:
            self.onward = SECURITY
        await self.store.limits.passkey(self.counted_address)
        answer = {field: value for field in (*PASSED_ON, "name") if (value := query.get(field))}
        callback = callback_of(self.site.base_url, provider.name)
        title = provider.title
        try:
            arrival = await self.site.elsewhere.arrive(provider, flow, answer, callback, self.counted_address)
        except Cancelled:
            return await self.failed(
                flow, 400, Phrase("You didn't finish signing in with %(provider)s.", provider=title)
            )
        except ProviderAway as away:
            return await self.failed(flow, 503, self.note_away(provider, away))
        except ProviderRefused as refused:
            self.note_refused(provider, str(refused))
            return await self.failed(flow, 400, _refused(provider, str(refused)))
        if flow.links:
            return await self.link(provider, flow, arrival)
        await self.sign_in(provider, flow, arrival)

    def flow_of(self, provider: Provider, state: str) -> Flow:
        """The request of this browser with this `state`, which is over now. Raises Refused("access_denied")."""
        flow = self.store.upstream_flows.open(self.read_cookie(FLOW_COOKIE), wall.time())
        if flow is None or flow.provider != provider.name or not _same(flow.state, state):
            self.note_refused(provider, "state")
            raise Refused("access_denied", NOT_HERE)
        self.write_cookie(FLOW_COOKIE, None)
        return flow

    async def failed(self, flow: Flow, status: int, why: str) -> None:
        """The sign-in page with the reason; of a link, an error page."""
        self.write_cookie(TARGET_COOKIE, None)
        if flow.links:
            raise Refused("temporarily_unavailable" if status == 503 else "access_denied", why)
        self.set_status(status)
        await self.show_sign_in(self.target_of(flow), trouble=why, keep=flow.kept)

    async def sign_in(self, provider: Provider, flow: Flow, arrival: Arrival) -> None:
        """Starts a session, or leads to the second step."""
        target = self.target_of(flow)
        try:
            arrived = await self.admitted(provider, arrival)
            found = await self.store.upstream.sign_in(
                arrived.user, arrival, provider.own_step, self.visitor, self.device(), kept=flow.kept
            )
        except NotLinked:
            self.note_refused(provider, "not linked")
            return await self.failed(flow, 403, _not_linked(provider))
        except Suspended as refusal:
            return await self.failed(flow, 403, refusal.description)
        except SecondStepNeeded as needed:
            self.write_cookie(TARGET_COOKIE, None)
            self.write_cookie(HALF_COOKIE, needed.text, SECOND_STEP)
            query = {"next": target, **({KEEP: "1"} if flow.kept else {})}
            return self.see_other(f"/signin/second?{urlencode(query)}")
        self.write_cookie(TARGET_COOKIE, None)
        await self.signed_in(found, target)

    async def admitted(self, provider: Provider, arrival: Arrival) -> Arrived:
        """The account of an arrival, which may be linked or made now. Raises NotLinked, Refused."""
        upstream, visitor = self.store.upstream, self.visitor
        try:
            return await upstream.admit(arrival, Admission(), visitor)
        except NotLinked:
            create = provider.create and self.site.signup in ("open", "upstream")
            admission = Admission(provider.by_address, create and self.site.may_sign_up(arrival.email))
            if not arrival.email:
                raise
        known = await self.store.people.find(arrival.email)
        if known is None and admission.create:
            await self.store.limits.sign_up(self.counted_address)
        with mails.undoable(self.site, known or NOBODY, "second_step", visitor):
            arrived = await upstream.admit(arrival, admission, visitor)
            if arrived.link:
                self.tell(provider, arrived.user, arrived.link)
        return arrived

    def tell(self, provider: Provider, user: str, link: NewLink) -> None:
        """Mails a notice of a new link, with the link that undoes it."""
        what = Phrase("Your %(provider)s account was connected", provider=provider.title)
        mails.factors_changed(self.site, user, link.warned, what, self.visitor, link.undo)

    async def link(self, provider: Provider, flow: Flow, arrival: Arrival) -> None:
        """Links the identity to the account of the session that asked. Raises SignedOut, Unproved, Refused."""
        session = self.require_session()
        if (session.user, session.session_id) != (flow.user, flow.session_id):
            raise Refused("access_denied", NOT_HERE)
        with mails.undoable(self.site, session.user, "second_step", self.visitor):
            made = await self.store.upstream.link(session, arrival, self.visitor)
            self.tell(provider, session.user, made)
        self.see_done("/account/security?linked")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "surrogatepass"))


def _refused(provider: Provider, why: str) -> Phrase:
    if why == "auth_time":
        return Phrase(
            "This app asks for a new sign-in, and %(provider)s doesn't say when you signed in there. Sign in another "
            "way.",
            provider=provider.title,
        )
    return Phrase("%(provider)s couldn't sign you in. Try again, or sign in another way.", provider=provider.title)


def _not_linked(provider: Provider) -> Phrase:
    # The same whoever has an account: whether the address has one is nobody else's business.
    return Phrase(
        "No account here is connected to that %(provider)s account. If you have an account, sign in with it, and "
        "connect %(provider)s under Security.",
        provider=provider.title,
    )


def _name_in(text: str) -> str:
    """The name that Apple sends with the first sign-in: `{"name":{"firstName":"…","lastName":"…"}}`. Nobody signed it,
    so it only begins a new account's name."""
    if not text or len(text) > LONGEST_USER:
        return ""
    try:
        found = decode_strictly(text.encode("utf-8", "replace"), 4)
    except NotJSON:
        return ""
    name = found.get("name") if isinstance(found, dict) else None
    parts = [name.get(part) for part in ("firstName", "lastName")] if isinstance(name, dict) else []
    return " ".join(part for part in parts if isinstance(part, str) and part)[:100]
