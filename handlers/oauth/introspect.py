"""POST /api/oauth/introspect. RFC 7662."""

from __future__ import annotations

from typing import Any

from handlers.core.api import ApiHandler
from store.apps.registration import Registration
from store.oauth.budgets import details_of, used_of
from store.oauth.introspection import LiveToken


class IntrospectHandler(ApiHandler):
    """Tells an app or an API whether a token of its own is live. A dead, a foreign and an invented token get the same
    answer in the same time."""

    async def post(self) -> None:
        """Answers with the token's facts, or `{"active": false}` and nothing else."""
        params = self.body()
        token = params.require("token")
        params.get("token_type_hint")  # only a hint: the token itself has its kind
        asker = await self.authenticate_asker(params)
        base = self.site.base_url
        own = asker.introspections_per_minute if isinstance(asker, Registration) else 0
        self.write_window(await self.store.introspection_windows.take(asker.client_id, own))
        if isinstance(asker, Registration):
            found = await self.store.introspection.by_app(asker, token, base)
        else:
            found = await self.store.introspection.by_api(asker, token, base)
        self.write_json({"active": False} if found is None else facts_of(found, base))


def facts_of(found: LiveToken, base: str) -> dict[str, Any]:
    """The answer about a live token. `base`: this server's base URL."""
    facts = {
        "active": True,
        "client_id": found.client,
        "sub": found.sub,
        "scope": found.scope,
        "iss": base,
        "aud": found.audience or base,
        "exp": found.expires,
    }
    if found.is_access:
        # RFC 7662 2.2: the type by which a token is used; a refresh token has none.
        facts |= {"iat": found.issued, "token_type": "DPoP" if found.jkt else "Bearer"}
    if found.jkt:
        # RFC 9449 6.2: the API checks the proof of each call against it.
        facts["cnf"] = {"jkt": found.jkt}
    if found.auth_time is not None:
        # RFC 9470 6.2: how and when the person signed in.
        facts |= {"acr": found.acr, "auth_time": found.auth_time}
    if found.act:
        # RFC 8693 4.1: whoever exchanged last, and inside who did before.
        facts["act"] = found.act
    if found.budgets:
        # RFC 9396 9.2, and the use of the budget.
        facts |= {"authorization_details": details_of(found.budgets), "budget_used": used_of(found.budgets)}
    return facts
