"""GET and POST /api/oauth/userinfo. SPEC 4.4."""

from __future__ import annotations

from handlers.core.api import ApiHandler


class UserinfoHandler(ApiHandler):
    """The person's profile, for the app."""

    async def get(self) -> None:
        """Answers with the userinfo object of SPEC 2.3."""
        profile, window = await self.store.identity.read(await self.caller(), self.needed)
        self.write_window(window)
        self.write_json(
            {
                "sub": profile.user,
                "email": profile.email,
                "email_verified": profile.email_verified,
                "name": profile.name,
                "picture": f"{self.site.base_url}/picture/{self.store.profiles.address(profile)}",
            }
        )

    post = get  # OpenID Connect Core 5.3.1
