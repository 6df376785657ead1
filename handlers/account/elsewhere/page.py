"""Shared by the pages that send people to an identity provider and take them back."""

from __future__ import annotations

import base64
import zlib
from contextlib import suppress

from handlers.account.signin import SignInPage
from handlers.core.page import safe_next
from outbound.identity.calling import ProviderAway
from outbound.identity.config import callback_of
from outbound.identity.providers import Provider
from store.accounts.signin.upstream_flow import LASTS, Flow
from store.phrases import Phrase
from store.refused import Refused

FLOW_COOKIE, TARGET_COOKIE = "elsewhere", "elsewhere-next"
NO_SUCH = Phrase("There's no such way to sign in here.")
LONGEST_COOKIE = 3500
"""Characters of the packed target. Browsers keep 4,096 bytes of a cookie."""
LONGEST_TARGET = 16_000


class ElsewherePage(SignInPage):
    """A page about one provider."""

    uses_scripts = True

    def provider_named(self, name: str) -> Provider:
        """The provider of this name. Raises Refused("not_found")."""
        provider = self.site.providers.find(name)
        if provider is None:
            raise Refused("not_found", NO_SUCH)
        return provider

    async def send_away(self, provider: Provider, flow: Flow, target: str, hint: str = "") -> None:
        """Redirects to the provider, or to the form of a directory, and notes the request in this browser. Raises
        ProviderAway."""
        url = f"/signin/with/{provider.name}/password"
        if provider.directory is None:
            callback = callback_of(self.site.base_url, provider.name)
            url = await self.site.elsewhere.request(provider, flow, callback, hint)
        self.write_cookie(FLOW_COOKIE, flow.text, LASTS)
        packed = packed_target(target)
        self.write_cookie(TARGET_COOKIE, packed or None, LASTS)
        self.see_other(url)

    def target_of(self, flow: Flow) -> str:
        """Where the request goes on: what this browser was asked for with it, and nothing else."""
        target = safe_next(unpacked_target(self.read_cookie(TARGET_COOKIE) or ""))
        return target if flow.leads_to(target) else "/"

    def note_refused(self, provider: Provider, why: str) -> None:
        """Notes in the security log why a sign-in failed, in words of ours."""
        self.store.security.note("provider_refused", detail=f"{provider.name} {why}")

    def note_away(self, provider: Provider, away: ProviderAway) -> str:
        """The text for a provider that does not answer, which is noted."""
        self.note_refused(provider, f"away: {away}")
        return Phrase(
            "%(provider)s isn't answering right now. Try again in a minute, or sign in another way.",
            provider=provider.title,
        )


def packed_target(target: str) -> str:
    """A target in the form of a cookie; empty for the front page, and for one that does not fit."""
    if target == "/":
        return ""
    packed = base64.urlsafe_b64encode(zlib.compress(target.encode(), 9)).rstrip(b"=").decode()
    return packed if len(packed) <= LONGEST_COOKIE else ""


def unpacked_target(packed: str) -> str:
    """The target in a cookie; empty for anything else."""
    if not packed or len(packed) > LONGEST_COOKIE:
        return ""
    with suppress(ValueError, zlib.error):
        raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        opened = zlib.decompressobj()
        text = opened.decompress(raw, LONGEST_TARGET + 1)
        return text.decode("ascii") if len(text) <= LONGEST_TARGET else ""
    return ""
