"""GET /.well-known/oauth-protected-resource/mcp. RFC 9728 3.1."""

from __future__ import annotations

from tornado.web import HTTPError

from handlers.core.api import ApiHandler
from store.crypto.dpop import ALGORITHMS
from store.oauth.budgets import BUDGET_TYPES
from store.oauth.resources import MCP_PATH


class McpMetadataHandler(ApiHandler):
    """The metadata of the MCP server as a protected resource: where tokens for it come from."""

    def get(self) -> None:
        """Answers with the metadata document."""
        base, server = self.site.base_url, self.site.mcp
        if server is None:
            raise HTTPError(404)
        self.set_header("Cache-Control", "public, max-age=300")
        self.write_json(
            {
                "resource": f"{base}{MCP_PATH}",
                "authorization_servers": [base],
                "scopes_supported": list(server.scopes),
                "bearer_methods_supported": ["header"],
                "dpop_signing_alg_values_supported": list(ALGORITHMS),
                "authorization_details_types_supported": list(BUDGET_TYPES),
                "resource_name": self.site.brand.name,
                "resource_documentation": f"{base}/docs",
            }
        )
