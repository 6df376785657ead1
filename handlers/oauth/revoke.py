"""POST /api/oauth/revoke. SPEC 4.5, RFC 7009."""

from __future__ import annotations

from handlers.core.api import ApiHandler


class RevokeHandler(ApiHandler):
    """Revokes a token. Gives the same answer for a live, a dead and an invented one."""

    async def post(self) -> None:
        """Answers 200 with an empty object."""
        params = self.body()
        token = params.require("token")
        params.get("token_type_hint")  # only a hint: the token itself has its kind
        app = await self.authenticate(params, optional=True)
        # A confidential app that sent only its id, without its secret, is not authenticated.
        authenticated = bool(self.counted_app)
        base = self.site.base_url
        self.write_window(await self.store.tokens.revoke(app, token, authenticated=authenticated, issuer=base))
        self.write_json({})
