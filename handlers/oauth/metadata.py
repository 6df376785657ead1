"""GET /.well-known/oauth-authorization-server (RFC 8414) and GET /.well-known/jwks.json (RFC 7517)."""

from __future__ import annotations

from handlers.core.api import ApiHandler
from store.names import SCOPES

CACHED = "public, max-age=300"


class MetadataHandler(ApiHandler):
    """The server metadata that client libraries discover."""

    def get(self) -> None:
        """Answers with the metadata document."""
        base = self.site.base_url
        methods = ["client_secret_basic", "client_secret_post", "none"]
        self.set_header("Cache-Control", CACHED)
        self.write_json(
            {
                "issuer": base,
                "authorization_endpoint": f"{base}/oauth/authorize",
                "token_endpoint": f"{base}/api/oauth/token",
                "revocation_endpoint": f"{base}/api/oauth/revoke",
                "introspection_endpoint": f"{base}/api/oauth/introspect",
                "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "userinfo_endpoint": f"{base}/api/oauth/userinfo",
                "scopes_supported": list(SCOPES),
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": methods,
                "revocation_endpoint_auth_methods_supported": methods,
                "code_challenge_methods_supported": ["S256"],
                "require_pkce": self.site.require_pkce,
                "authorization_response_iss_parameter_supported": True,
            }
        )


class KeySetHandler(ApiHandler):
    """The public keys that verify what this server signs."""

    async def get(self) -> None:
        """Answers with the key set. A new key is in it a day before it signs, so everybody may cache it for minutes."""
        keys = await self.store.signing_keys.published()
        self.set_header("Cache-Control", CACHED)
        self.write_json(keys)
