"""GET /.well-known/oauth-authorization-server (RFC 8414), the same as GET /.well-known/openid-configuration (OpenID
Connect Discovery 4), and GET /.well-known/jwks.json (RFC 7517)."""

from __future__ import annotations

from handlers.core.api import ApiHandler
from handlers.core.scopes import CLAIM_SCOPES
from handlers.oauth.delegated.assertion_grant import supported
from handlers.oauth.requests import PROMPTS, RESPONSE_MODES
from store.apps.sectors import SUBJECT_TYPES
from store.crypto.dpop import ALGORITHMS
from store.crypto.jose.private import OURS
from store.names import ADVERTISED, DEVICE_GRANT, EXCHANGE_GRANT
from store.oauth.budgets import BUDGET_TYPES
from store.oauth.client_assertions import CLIENT_ALGORITHMS
from store.oauth.sign_in import LEVELS

CACHED = "public, max-age=300"
CLAIMS = [
    *("sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash"),
    *CLAIM_SCOPES,
]


class MetadataHandler(ApiHandler):
    """The server metadata that client libraries discover."""

    def get(self) -> None:
        """Answers with the metadata document."""
        base = self.site.base_url
        confidential = ["client_secret_basic", "client_secret_post", "private_key_jwt"]
        asserted, profiles = supported(bool(self.site.issuers.all))
        methods, algorithms = [*confidential, "none"], list(CLIENT_ALGORITHMS)
        self.set_header("Cache-Control", CACHED)
        self.write_json(
            {
                "issuer": base,
                "authorization_endpoint": f"{base}/oauth/authorize",
                "token_endpoint": f"{base}/api/oauth/token",
                "device_authorization_endpoint": f"{base}/api/oauth/device_authorization",
                "pushed_authorization_request_endpoint": f"{base}/api/oauth/par",
                "require_pushed_authorization_requests": False,
                "revocation_endpoint": f"{base}/api/oauth/revoke",
                "introspection_endpoint": f"{base}/api/oauth/introspect",
                "introspection_endpoint_auth_methods_supported": confidential,
                "introspection_endpoint_auth_signing_alg_values_supported": algorithms,
                "userinfo_endpoint": f"{base}/api/oauth/userinfo",
                "end_session_endpoint": f"{base}/oauth/logout",
                "jwks_uri": f"{base}/.well-known/jwks.json",
                "scopes_supported": list(ADVERTISED),
                "authorization_details_types_supported": list(BUDGET_TYPES),
                "response_types_supported": ["code"],
                "response_modes_supported": list(RESPONSE_MODES),
                "grant_types_supported": [
                    "authorization_code",
                    "refresh_token",
                    "client_credentials",
                    DEVICE_GRANT,
                    EXCHANGE_GRANT,
                    *asserted,
                ],
                **profiles,
                "token_endpoint_auth_methods_supported": methods,
                "token_endpoint_auth_signing_alg_values_supported": algorithms,
                "revocation_endpoint_auth_methods_supported": methods,
                "revocation_endpoint_auth_signing_alg_values_supported": algorithms,
                "code_challenge_methods_supported": ["S256"],
                "require_pkce": self.site.require_pkce,
                "authorization_response_iss_parameter_supported": True,
                "subject_types_supported": list(SUBJECT_TYPES),
                "id_token_signing_alg_values_supported": list(OURS),
                "dpop_signing_alg_values_supported": list(ALGORITHMS),
                "acr_values_supported": [*reversed(LEVELS)],
                "claims_supported": CLAIMS,
                "claim_types_supported": ["normal"],
                "prompt_values_supported": list(PROMPTS),
                # Explicit where the default would mislead (Discovery 3).
                "claims_parameter_supported": True,
                "request_parameter_supported": True,
                "request_uri_parameter_supported": False,
                "require_signed_request_object": False,
                "request_object_signing_alg_values_supported": algorithms,
                "backchannel_logout_supported": True,
                "backchannel_logout_session_supported": True,
                **self.for_strangers(),
            }
        )

    def for_strangers(self) -> dict[str, object]:
        """How clients that nobody registered may begin, where the operator allows it."""
        found: dict[str, object] = {}
        if self.site.dynamic_registration != "off":
            found["registration_endpoint"] = f"{self.site.base_url}/api/oauth/register"
        if self.store.apps.documents:
            found["client_id_metadata_document_supported"] = True
        return found


class OpenIdConfigurationHandler(MetadataHandler):
    """The same under the name that OpenID Connect clients look for."""


class KeySetHandler(ApiHandler):
    """The public keys that verify what this server signs."""

    async def get(self) -> None:
        """Answers with the key set. A new key is in it a day before it signs, so everybody may cache it for minutes."""
        keys = await self.store.signing_keys.published()
        self.set_header("Cache-Control", CACHED)
        self.write_json(keys)
