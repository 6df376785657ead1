"""/account/security/accounts/…: a person's connected accounts at identity providers."""

from __future__ import annotations

import re

from handlers.account.elsewhere.page import ElsewherePage, packed_target
from handlers.account.factors import FactorsPage
from handlers.account.reauth import link_key
from handlers.core import mails
from handlers.core.errors import REAUTH_FIRST
from handlers.core.page import Onward, safe_next
from outbound.identity.calling import ProviderAway
from store.clock import wall
from store.phrases import Phrase
from store.refused import Refused, Unproved

_NAME = re.compile(r"[A-Za-z0-9_-]{22}")


class ConnectHandler(ElsewherePage):
    """Sends a signed-in person to a provider, to connect the account there."""

    onward = Onward("/account/security", Phrase("Back to Security"))

    async def get(self, name: str) -> None:
        """Takes the link of the page of security, which has a key of this session: nobody else can make it. Raises
        SignedOut, Refused("access_denied") without a recent re-authentication."""
        provider, session = self.provider_named(name), self.require_session()
        if self.query().get("key") != link_key(self.store.sessions, session):
            return self.see_other("/account/security")
        if not (await self.store.factors.of(session)).proved:
            raise Refused("access_denied", REAUTH_FIRST)
        flow = self.store.upstream_flows.begin(
            provider.name, wall.time(), "/", user=session.user, session_id=session.session_id
        )
        try:
            await self.send_away(provider, flow, "/")
        except ProviderAway as away:
            raise Refused("temporarily_unavailable", self.note_away(provider, away)) from None


class ConfirmElsewhereHandler(ElsewherePage):
    """Sends a signed-in person without a password to a provider, to confirm who they are."""

    onward = Onward("/account/security", Phrase("Back to Security"))

    async def get(self, name: str) -> None:
        """Takes the link of a page of this session. The provider must ask for a new sign-in (OpenID Connect Core
        3.1.2.1). Raises SignedOut."""
        provider, session, query = self.provider_named(name), self.require_session(), self.query()
        if query.get("key") != link_key(self.store.sessions, session):
            return self.see_other("/account/security")
        target = safe_next(query.get("next"))
        going = target if packed_target(target) else "/account/security"
        flow = self.store.upstream_flows.begin(
            provider.name,
            wall.time(),
            going,
            fresh=True,
            user=session.user,
            session_id=session.session_id,
            confirms=True,
        )
        try:
            await self.send_away(provider, flow, going)
        except ProviderAway as away:
            raise Refused("temporarily_unavailable", self.note_away(provider, away)) from None


class RemoveIdentityHandler(FactorsPage):
    """Disconnects an account at a provider."""

    async def post(self) -> None:
        """Unless the person could not sign in any more."""
        self.check_same_origin()
        session, name = self.require_session(), self.body().require("identity")
        if not _NAME.fullmatch(name):
            raise Refused("not_found", Phrase("That account is already disconnected."))
        factors, providers = await self.store.factors.of(session), self.site.providers
        usable = providers.usable(one.identity for one in factors.identities)
        known = next((one.identity for one in factors.identities if one.identity.name == name), None)
        provider = providers.of(known) if known else None
        try:
            await self.store.upstream.unlink(session, name, usable, self.visitor)
        except Unproved:
            return await self.show_unproved()
        except Refused as refusal:
            return await self.show_refusal("identities", refusal)
        title = provider.title if provider else known.issuer if known else ""
        what = Phrase("Your %(provider)s account was disconnected", provider=title)
        mails.factors_changed(self.site, factors.user, factors.warned, what, self.visitor)
        self.see_done("/account/security?unlinked")
