"""GET /.well-known/oauth-protected-resource. RFC 9728."""

from __future__ import annotations

from handlers.core.api import ApiHandler
from store.crypto.dpop import ALGORITHMS
from store.names import ADVERTISED
from store.oauth.budgets import BUDGET_TYPES


class ResourceMetadataHandler(ApiHandler):
    """The metadata of Latchkey's own API as a protected resource."""

    def get(self) -> None:
        """Answers with the metadata document."""
        base = self.site.base_url
        self.set_header("Cache-Control", "public, max-age=300")
        self.write_json(
            {
                "resource": base,
                "authorization_servers": [base],
                "scopes_supported": list(ADVERTISED),
                "authorization_details_types_supported": list(BUDGET_TYPES),
                "bearer_methods_supported": ["header"],
                "dpop_signing_alg_values_supported": list(ALGORITHMS),
                "resource_name": self.site.brand.name,
                "resource_documentation": f"{base}/docs",
            }
        )
