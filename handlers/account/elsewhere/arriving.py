"""Shared by the pages that let a person in who comes from an identity provider or a directory."""

from __future__ import annotations

from handlers.account.account_list import note_provider
from handlers.account.elsewhere.page import FLOW_COOKIE, TARGET_COOKIE, ElsewherePage
from handlers.account.pending_target import must_set_up
from handlers.account.setup.half_signin import ask_step
from handlers.core import mails
from outbound.identity.providers import Provider
from store.accounts.signin.sessions import SecondStepNeeded, Session
from store.accounts.signin.upstream import Admission, Arrival, Arrived, NewLink, NotLinked
from store.accounts.signin.upstream_flow import Flow
from store.clock import wall
from store.crypto.seal import NOBODY
from store.phrases import Phrase
from store.refused import Refused, Suspended

SECURITY_PAGE = "/account/security"
NOT_HERE = Phrase("That took too long, or began in another browser. Try again.")


class ArrivingPage(ElsewherePage):
    """Signs a person in, or links the identity to their account."""

    def flow_here(self, provider: Provider) -> Flow | None:
        """The request to this provider that this browser made."""
        flow = self.store.upstream_flows.open(self.read_cookie(FLOW_COOKIE), wall.time())
        return flow if flow and flow.provider == provider.name else None

    async def arrived(self, provider: Provider, flow: Flow, arrival: Arrival) -> None:
        """Does what the request was made for. Raises SignedOut, Unproved, Refused."""
        if flow.of_session:
            session = self.require_session()
            if (session.user, session.session_id) != (flow.user, flow.session_id):
                raise Refused("access_denied", NOT_HERE)
            if flow.confirms:
                return await self.confirm(session, flow, arrival)
            return await self.link(provider, session, arrival)
        await self.sign_in(provider, flow, arrival)

    async def before_session(self, user: str) -> None:
        """What a provider's answer changes of a person who comes in."""

    async def failed(self, flow: Flow, status: int, why: str) -> None:
        """The sign-in page with the reason; of a link, an error page."""
        self.write_cookie(TARGET_COOKIE, None)
        if flow.of_session:
            raise Refused("temporarily_unavailable" if status == 503 else "access_denied", why)
        self.set_status(status)
        await self.show_sign_in(self.target_of(flow), trouble=why, keep=flow.kept)

    async def sign_in(self, provider: Provider, flow: Flow, arrival: Arrival) -> None:
        """Starts a session, or leads to the second step."""
        target = self.target_of(flow)
        try:
            arrived = await self.admitted(provider, arrival)
            await self.before_session(arrived.user)
            found = await self.store.upstream.sign_in(
                arrived.user,
                arrival,
                provider.own_step,
                self.visitor,
                self.device(),
                kept=flow.kept,
                must=must_set_up(self.store.progress, target),
            )
        except NotLinked:
            self.note_refused(provider, "not linked")
            return await self.failed(flow, 403, _not_linked(provider))
        except Suspended as refusal:
            return await self.failed(flow, 403, refusal.description)
        except SecondStepNeeded as needed:
            self.write_cookie(TARGET_COOKIE, None)
            note_provider(self, provider.name)
            return ask_step(self, needed, target, keep=flow.kept)
        self.write_cookie(TARGET_COOKIE, None)
        note_provider(self, provider.name)
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

    async def confirm(self, session: Session, flow: Flow, arrival: Arrival) -> None:
        """Notes in the session that asked that its person signed in just now. Raises SignedOut, Refused."""
        self.write_session(await self.store.reauth.with_identity(session, arrival.identity))
        target = self.target_of(flow)
        self.write_cookie(TARGET_COOKIE, None)
        if target != SECURITY_PAGE:
            return self.see_other(target)
        self.see_done(f"{SECURITY_PAGE}?confirmed")

    async def link(self, provider: Provider, session: Session, arrival: Arrival) -> None:
        """Links the identity to the account of the session. Raises SignedOut, Unproved, Refused."""
        with mails.undoable(self.site, session.user, "second_step", self.visitor):
            made = await self.store.upstream.link(session, arrival, self.visitor)
            self.tell(provider, session.user, made)
        self.see_done("/account/security?linked")


def _not_linked(provider: Provider) -> Phrase:
    # The same whoever has an account: whether the address has one is nobody else's business.
    return Phrase(
        "No account here is connected to that %(provider)s account. If you have an account, sign in with it, and "
        "connect %(provider)s under Security.",
        provider=provider.title,
    )
