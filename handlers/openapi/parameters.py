"""The parameters of paths, queries and headers in the OpenAPI document."""

from __future__ import annotations

from handlers.ai.calls import IDEMPOTENCY_KEY
from handlers.documents.documents import COLLECTION, DOCUMENT_ID, MOST_ITEMS, PREFIX
from handlers.oauth.requests import CHALLENGE, MAX_NONCE, MAX_STATE, PROMPTS, RESPONSE_MODES
from handlers.openapi.budget_schemas import ASKED_DETAILS
from handlers.openapi.shapes import ANY_SCOPES, FILLED, TEXT, Schema, exactly, listed


def _query(name: str, schema: Schema, description: str, *, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": description}


def _path(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": description}


def _header(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "header", "schema": schema, "description": description}


PARAMETERS: dict[str, Schema] = {
    "collection": _path("collection", exactly(COLLECTION.pattern), "a collection exists while it has a document"),
    "docId": _path("docId", exactly(DOCUMENT_ID.pattern), "the id of the document"),
    "model": _path("model", FILLED, "the id of the model"),
    "registered": _path("registered", exactly("[A-Za-z0-9_-]{1,64}"), "the client id of the app"),
    "prefix": _query("prefix", exactly(PREFIX.pattern), "only ids that begin with it"),
    "limit": _query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": 50}, "items a page"),
    "cursor": _query("cursor", TEXT, "nextCursor of the previous page"),
    "include": _query("include", {"const": "data"}, "each item has its document under data"),
    "if-match": _header("If-Match", FILLED, "ETags separated by commas; the document must have one of them; or *"),
    "if-none-match": _header("If-None-Match", {"const": "*"}, "only if there is no such document"),
    "idempotency-key": _header(
        "Idempotency-Key", exactly(IDEMPOTENCY_KEY.pattern), "one call and one charge for each key and body in 24 hours"
    ),
    "response": _path("response", FILLED, "the id of a response"),
    "openai-beta": _header("OpenAI-Beta", TEXT, "goes to a model's server of this dialect"),
    "anthropic-version": _header("Anthropic-Version", TEXT, "goes to the model's server"),
    "anthropic-beta": _header("Anthropic-Beta", TEXT, "goes to the model's server; names that cost more are refused"),
    "from": _query("from", {"type": "string", "format": "date"}, "the first day"),
    "to": _query("to", {"type": "string", "format": "date"}, "the last day"),
    "group": _query("group", {"enum": ["day", "model", "app"], "default": "day"}, "what an item is of"),
    "client_id": _query("client_id", FILLED, "the app", required=True),
    "redirect_uri": _query(
        "redirect_uri", FILLED, "one of the registered ones, character for character", required=True
    ),
    "response_type": _query("response_type", {"const": "code"}, "the authorization code flow", required=True),
    "resource": _query(
        "resource", listed(FILLED), "the API to call, by its identifier, and the base URL for this server, too"
    ),
    "scope": _query("scope", ANY_SCOPES, "among the app's registered scopes; needed without authorization_details"),
    "authorization_details": _query(
        "authorization_details", ASKED_DETAILS, "budgets that the person grants; `credits:spend` comes with them"
    ),
    "state": _query(
        "state",
        {**FILLED, "maxLength": MAX_STATE},
        "32 random bytes are recommended; it may be missing if the scope has `openid` and PKCE is used",
    ),
    "code_challenge": _query("code_challenge", exactly(CHALLENGE.pattern), "base64url(SHA-256(code_verifier))"),
    "code_challenge_method": _query("code_challenge_method", {"const": "S256"}, "with code_challenge"),
    "nonce": _query("nonce", {**FILLED, "maxLength": MAX_NONCE}, "returned in the ID token"),
    "max_age": _query(
        "max_age", {"type": "integer", "minimum": 0, "maximum": 999_999_999}, "seconds since the sign-in, at most"
    ),
    "acr_values": _query("acr_values", TEXT, "levels of sign-in of which one is required, the best first: phr, 2, 1"),
    "claims": _query("claims", TEXT, "requests for single claims, as JSON"),
    "id_token_hint": _query("id_token_hint", TEXT, "an ID token of the app: of the expected person or the session"),
    "asking_client_id": _query("client_id", FILLED, "the app, if there is no id_token_hint"),
    "asking_state": _query("state", {**FILLED, "maxLength": MAX_STATE}, "comes back with the redirect"),
    "post_logout_redirect_uri": _query(
        "post_logout_redirect_uri", FILLED, "one of the app's registered ones, character for character"
    ),
    "request": _query("request", FILLED, "a signed request that has all the others as claims (RFC 9101)"),
    "login_hint": _query("login_hint", TEXT, "the e-mail address that the sign-in page begins with"),
    "ui_locales": _query("ui_locales", TEXT, "the languages of the pages (RFC 5646), the best first"),
    "response_mode": _query("response_mode", {"enum": [*RESPONSE_MODES]}, "how the answer comes back"),
    "dpop_jkt": _query(
        "dpop_jkt", exactly(CHALLENGE.pattern), "the thumbprint of the DPoP key that the code is bound to"
    ),
    "dpop": _header("DPoP", FILLED, "a proof of the key that the tokens are bound to (RFC 9449)"),
    "prompt": _query(
        "prompt", {"type": "string", "enum": [*PROMPTS]}, "one or several separated by spaces; none must be alone"
    ),
}
