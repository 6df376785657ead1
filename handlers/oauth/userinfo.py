"""GET and POST /api/oauth/userinfo. SPEC 4.4, OpenID Connect Core 5.3."""

from __future__ import annotations

from handlers.core.api import ApiHandler
from store.oauth.id_tokens import claims_of


class UserinfoHandler(ApiHandler):
    """The person's profile, for the app."""

    async def get(self) -> None:
        """Answers with `sub`, and the claims that the token's scopes give: with `profile`, the userinfo object of SPEC
        2.3."""
        caller = await self.caller()
        profile, scopes, window = await self.store.identity.read(caller, self.needed)
        # A token with one of the needed scopes comes from a grant of `profile` or `openid`.
        sub = await self.store.subjects.of(caller.client, caller.sector, caller.user)
        self.write_window(window)
        picture = f"{self.site.base_url}/picture/{self.store.profiles.address(profile)}"
        self.write_json({"sub": sub, **claims_of(profile, caller.sees(scopes), picture)})

    post = get  # OpenID Connect Core 5.3.1
