"""Calls about assertions that were checked, and the issuer that made them."""

from __future__ import annotations

from typing import Any

from store.crypto.seal import new_id
from store.oauth.assertions.id_jag import AssertionClaims
from store.oauth.assertions.issuers import TrustedIssuer
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World

BASE_URL = "https://id.example"
ISSUER = "https://works.idp.example"


def said_of(email: str, **changes: Any) -> AssertionClaims:
    """What a new assertion about a person says."""
    facts: dict[str, Any] = {"user": "", "resources": (), "scopes": None, "jkt": "", "digest": new_id(), "kept": 60_000}
    return AssertionClaims(email, **{**facts, **changes})


def trusted_for(client: str, resource: str, *scopes: str, **changes: Any) -> TrustedIssuer:
    """An issuer that may give an app these scopes of a resource."""
    resources = ((resource, scopes or ("*",)),)
    return TrustedIssuer(ISSUER, "Example Works", ("example.com",), (client,), resources, **changes)


@call("assertion_grants.issue", "accept_assertion")
async def _(w: World) -> Call:
    said, trusted = said_of(w.email), trusted_for(w.app.client_id, BASE_URL)
    return lambda: w.store.assertion_grants.issue(w.app, trusted, said, "", (), BASE_URL)
