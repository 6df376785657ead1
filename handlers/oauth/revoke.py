"""POST /api/oauth/revoke. SPEC 4.5, RFC 7009."""

from __future__ import annotations

from handlers.core.api import ApiHandler


class RevokeHandler(ApiHandler):
    """Ends a token, and says the same of a live, a dead and an invented one."""

    async def post(self) -> None:
        """Answers 200 with an empty object."""
        params = self.body()
        token = params.require("token")
        params.get("token_type_hint")  # a hint only: what the token is stands in the token
        app = await self.authenticate(params, optional=True)
        # An app that was only named, without the secret it has, is no authenticated one.
        authenticated = bool(self.counted_app)
        self.write_window(await self.store.tokens.revoke(app, token, authenticated=authenticated))
        self.write_json({})
