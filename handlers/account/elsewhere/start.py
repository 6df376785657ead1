"""/signin/with/NAME: sends a person to an identity provider."""

from __future__ import annotations

from handlers.account.authorize_address import pairs_of, wants_proof
from handlers.account.elsewhere.page import ElsewherePage, packed_target
from handlers.account.pending_target import email_for
from handlers.account.setup.half_signin import KEEP
from handlers.core.page import safe_next
from outbound.identity.calling import ProviderAway
from store.clock import wall

_OWN = (None, "same-origin", "none")
"""The values of `Sec-Fetch-Site` of our own links and of typed addresses."""


class StartHandler(ElsewherePage):
    """Begins a sign-in. A link does, because browsers apply `form-action` to every redirect after a form."""

    async def get(self, name: str) -> None:
        """Redirects to the provider. A link on another site leads to the sign-in page: a visit there must not sign
        anybody in here, nor make an account."""
        provider, query = self.provider_named(name), self.query()
        target = safe_next(query.get("next"))
        if self.request.headers.get("Sec-Fetch-Site") not in _OWN:
            return self.to_sign_in(target)
        if await self.went_on(target):
            return
        going = target if packed_target(target) else "/"
        fresh = wants_proof(pairs_of(target))
        flow = self.store.upstream_flows.begin(
            provider.name, wall.time(), going, kept=bool(query.get(KEEP)), fresh=fresh
        )
        try:
            await self.send_away(provider, flow, going, email_for(self.store.links, target, None))
        except ProviderAway as away:
            trouble = self.note_away(provider, away)
            self.set_status(503)
            await self.show_sign_in(target, trouble=trouble)
