"""/signin/with/NAME/callback: takes a person back from an identity provider."""

from __future__ import annotations

import hmac
from urllib.parse import urlencode

from handlers.account.elsewhere.arriving import NOT_HERE, ArrivingPage
from handlers.account.elsewhere.page import FLOW_COOKIE, NO_SUCH
from handlers.core.page import Onward
from outbound.identity.calling import ProviderAway, ProviderRefused
from outbound.identity.config import callback_of
from outbound.identity.providers import Provider
from outbound.identity.sign_in import Cancelled
from store.accounts.signin.upstream_flow import Flow
from store.json_text import NotJSON, decode_strictly
from store.phrases import Phrase
from store.refused import Refused

PASSED_ON = ("code", "state", "iss", "error")
LONGEST_FIELD = 4096
LONGEST_USER = 2048
"""Characters of what Apple says of a person, once."""
SIGN_IN = Onward("/signin", Phrase("Back to sign-in"))
SECURITY = Onward("/account/security", Phrase("Back to Security"))


class CallbackHandler(ArrivingPage):
    """Signs a person in, or links the identity to their account."""

    onward = SIGN_IN

    def server_named(self, name: str) -> Provider:
        """The provider of this name, which sends people back. Raises Refused("not_found")."""
        provider = self.provider_named(name)
        if provider.directory is not None:
            raise Refused("not_found", NO_SUCH)
        return provider

    async def post(self, name: str) -> None:
        """An answer that the provider's page posts (`form_post`). Browsers send our cookies with no such form, so it
        goes on as an address. Nothing happens before that, so it needs no XSRF token."""
        provider, params = self.server_named(name), self.body()
        passed = {field: params.get(field) or "" for field in PASSED_ON}
        passed["name"] = _name_in(params.get("user") or "")
        kept = {field: value for field, value in passed.items() if value and len(value) <= LONGEST_FIELD}
        self.see_other(f"/signin/with/{provider.name}/callback?{urlencode(kept)}")

    async def get(self, name: str) -> None:
        """Checks that this browser asked, exchanges the code, and lets the person in."""
        provider, query = self.server_named(name), self.query()
        flow = self.flow_of(provider, query.get("state") or "")
        if flow.of_session:
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
            return await self.failed(flow, 400, _refused(provider, flow, str(refused)))
        await self.arrived(provider, flow, arrival)

    def flow_of(self, provider: Provider, state: str) -> Flow:
        """The request of this browser with this `state`, which is over now. Raises Refused("access_denied")."""
        flow = self.flow_here(provider)
        if flow is None or not _same(flow.state, state):
            self.note_refused(provider, "state")
            raise Refused("access_denied", NOT_HERE)
        self.write_cookie(FLOW_COOKIE, None)
        return flow


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode("utf-8", "surrogatepass"))


def _refused(provider: Provider, flow: Flow, why: str) -> Phrase:
    if why == "auth_time" and flow.confirms:
        return Phrase(
            "%(provider)s doesn't say when you signed in there, so it can't confirm that it's you. Choose “Forgot your "
            "password?” on the sign-in page to set a password, and confirm with it.",
            provider=provider.title,
        )
    if why == "auth_time":
        return Phrase(
            "This app asks for a new sign-in, and %(provider)s doesn't say when you signed in there. Sign in another "
            "way.",
            provider=provider.title,
        )
    return Phrase("%(provider)s couldn't sign you in. Try again, or sign in another way.", provider=provider.title)


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
