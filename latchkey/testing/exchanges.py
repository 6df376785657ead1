"""Token exchange in a test: an app or an API hands on a token (RFC 8693)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from latchkey.testing.calls import Calls
from latchkey.testing.values import Api, App, TokenResponse

_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS = "urn:ietf:params:oauth:token-type:access_token"


class Exchanges:
    """The part of `Latchkey` that exchanges tokens."""

    _calls: Calls

    def exchange(
        self,
        token: TokenResponse,
        asker: App | Api,
        scopes: str | Sequence[str] = (),
        *,
        name: str | None = None,
        seconds: int | None = None,
        budget: Mapping[str, Any] | None = None,
        proof: str | None = None,
    ) -> TokenResponse:
        """A delegated token that comes from the access token of `token`, as the app that has it, or the API that it is
        for, gets it from the token endpoint: with all of its scopes or only `scopes`, for all of its life or `seconds`,
        with a part of its `budget`. `name` is what the person reads. A token that is bound to a key needs a `proof` for
        the token endpoint. The answer has no `refresh_token`."""
        wanted = {
            "grant_type": _EXCHANGE,
            **{"subject_token": token.access_token, "subject_token_type": _ACCESS},
            "scope": scopes if isinstance(scopes, str) else " ".join(scopes),
            "name": name or "",
            "expires_in": str(seconds or ""),
            "authorization_details": json.dumps([dict(budget)]) if budget else "",
            **{"client_id": asker.client_id, "client_secret": asker.client_secret or ""},
        }
        fields = {field: value for field, value in wanted.items() if value}
        answer = self._calls.send_form("/api/oauth/token", fields, {"DPoP": proof} if proof else {})
        return TokenResponse(answer["access_token"], answer["token_type"], answer["expires_in"], "", answer["scope"])
