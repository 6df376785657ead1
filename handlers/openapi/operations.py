"""The operations of the OpenAPI document, by route and method: what `ROUTES` and `POLICIES` do not say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from handlers.ai.routes import IDEMPOTENCY_KEY
from handlers.core.params import JSON
from handlers.documents.documents import COLLECTION, DOCUMENT_ID, MOST_ITEMS, PREFIX
from handlers.oauth.authorize import CHALLENGE, MAX_STATE, PROMPTS
from handlers.openapi.schemas import FILLED, SCOPE_LIST, TEXT, Schema, exactly


@dataclass(frozen=True, slots=True)
class Answer:
    """A success. `schema` names what its body is; none, where there is no body. `headers` are beside those of every
    answer and those of the window."""

    description: str
    schema: str = ""
    kinds: tuple[str, ...] = (JSON,)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """`errors` are codes of the catalogue beside those that follow from the policy. `path` names what the pattern of
    the address leaves open. `body` names the schema of what is read, `document`: as JSON alone.
    `calls_store`: 503 while the store is away. `page`: errors are a page for a client that does not ask for JSON.
    `security` are alternatives beside the scopes of the policy."""

    tag: str
    summary: str
    answers: Mapping[int, Answer]
    errors: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    body: str = ""
    document: bool = False
    calls_store: bool = True
    page: bool = False
    sdk: bool = False
    security: tuple[tuple[str, ...], ...] = field(default=())


HTML = "text/html"
EVENTS = "text/event-stream"
_CLIENT = (("client",), ())
_MESSAGES = {
    200: Answer("the reply and what it cost; with stream, events", "AIReply", (JSON, EVENTS), ("Idempotent-Replayed",))
}
_UPSTREAM = ("upstream_error", "upstream_timeout", "overloaded")
_CALL = (
    *("invalid_request", "insufficient_credits", "app_spend_limit", "not_found", "idempotency_in_progress"),
    *("idempotency_reply_gone", "idempotency_mismatch", *_UPSTREAM),
)
_OK = {200: Answer("all is well", "Status")}

OPERATIONS: dict[str, dict[str, Operation]] = {
    "authorize": {
        "get": Operation(
            "OAuth",
            "An app asks a person for access",
            {
                200: Answer(
                    "the page on which the person decides, or one that names the app's address before the person goes "
                    "there",
                    "Page",
                    ("text/html",),
                ),
                303: Answer(
                    "back to the app with code or error, state and iss; or to the sign-in page", "", (), ("Location",)
                ),
            },
            errors=("invalid_request", "rate_limited"),
            parameters=(
                *("client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge"),
                *("code_challenge_method", "prompt"),
            ),
            page=True,
            security=(("session",), ()),
        )
    },
    "decide": {
        "post": Operation(
            "Consent page",
            "The person's decision",
            {
                200: Answer("where to go, for a client that asks for JSON", "Redirect"),
                303: Answer("to the app, or to the sign-in page", "", (), ("Location",)),
            },
            errors=("invalid_request", "invalid_scope", "login_required", "access_denied"),
            body="Decision",
            page=True,
            security=(("session", "xsrf"),),
        )
    },
    "token": {
        "post": Operation(
            "OAuth",
            "Exchange a code, or a refresh token, for tokens",
            {200: Answer("the tokens", "Tokens", headers=("Pragma",))},
            errors=("invalid_request", "unsupported_grant_type", "invalid_client", "invalid_grant", "invalid_scope"),
            body="TokenRequest",
            security=_CLIENT,
        )
    },
    "userinfo": {
        method: Operation("OAuth", "Who the person is", {200: Answer("the person", "Userinfo")})
        for method in ("get", "post")
    },
    "revoke": {
        "post": Operation(
            "OAuth",
            "End a token (RFC 7009)",
            {200: Answer("the same for a live, a dead and an invented token", "Nothing")},
            errors=("invalid_request", "invalid_client"),
            body="RevocationRequest",
            security=_CLIENT,
        )
    },
    "metadata": {
        "get": Operation(
            "Discovery", "Metadata (RFC 8414)", {200: Answer("the metadata", "Metadata")}, calls_store=False
        )
    },
    "openapi": {
        "get": Operation("Discovery", "This document", {200: Answer("the document", "OpenAPI")}, calls_store=False)
    },
    "document": {
        "get": Operation(
            "Hosted documents",
            "Read a document",
            {200: Answer("the document, byte for byte as it was sent", "Document", headers=("ETag", "Last-Modified"))},
            errors=("invalid_request", "not_found"),
            path=("collection", "docId"),
        ),
        "put": Operation(
            "Hosted documents",
            "Write a document",
            {
                200: Answer("replaced", "WrittenDocument", headers=("ETag",)),
                201: Answer("created", "WrittenDocument", headers=("ETag",)),
            },
            errors=("invalid_request", "precondition_failed", "quota_exceeded"),
            path=("collection", "docId"),
            parameters=("if-match", "if-none-match"),
            body="Document",
            document=True,
        ),
        "delete": Operation(
            "Hosted documents",
            "Delete a document",
            {204: Answer("deleted", "", ())},
            errors=("invalid_request", "not_found", "precondition_failed"),
            path=("collection", "docId"),
            parameters=("if-match",),
        ),
    },
    "collection": {
        "get": Operation(
            "Hosted documents",
            "List a collection",
            {200: Answer("a page, in the order of the bytes of ids", "DocumentPage")},
            errors=("invalid_request",),
            path=("collection",),
            parameters=("prefix", "limit", "cursor", "include"),
        )
    },
    "usage": {
        "get": Operation(
            "Hosted documents", "What the app keeps, and its limits", {200: Answer("use and limits", "DocumentUsage")}
        )
    },
    "credits": {
        "get": Operation(
            "Credits and connected apps", "What the person can spend", {200: Answer("the balance", "Balance")}
        )
    },
    "apps": {
        "get": Operation(
            "Credits and connected apps",
            "The other apps the person has connected",
            {200: Answer("the apps, newest first", "ConnectedApps")},
        )
    },
    "ai-messages": {
        "post": Operation(
            "AI",
            "A call of a model that the person pays",
            _MESSAGES,
            errors=_CALL,
            parameters=("idempotency-key",),
            body="AIRequest",
        )
    },
    "ai-models": {"get": Operation("AI", "Models and prices", {200: Answer("all models", "AIModels")})},
    "ai-sdk-messages": {
        "post": Operation(
            "AI for the SDKs",
            "A call of a model",
            _MESSAGES,
            errors=_CALL,
            parameters=("idempotency-key",),
            body="AIRequest",
            sdk=True,
        )
    },
    "ai-sdk-count": {
        "post": Operation(
            "AI for the SDKs",
            "Count the tokens of a request",
            {200: Answer("their number", "AICount")},
            errors=("invalid_request", "not_found", *_UPSTREAM),
            body="AICountRequest",
            sdk=True,
        )
    },
    "ai-sdk-models": {
        "get": Operation("AI for the SDKs", "List models", {200: Answer("all of them", "SdkModels")}, sdk=True)
    },
    "ai-sdk-model": {
        "get": Operation(
            "AI for the SDKs",
            "One model",
            {200: Answer("the model", "SdkModel")},
            errors=("invalid_request", "not_found"),
            path=("model",),
            sdk=True,
        )
    },
    "healthz": {"get": Operation("Operation", "Whether the process answers", _OK, calls_store=False)},
    "readyz": {"get": Operation("Operation", "Whether the store answers", _OK)},
}


def _query(name: str, schema: Schema, description: str, *, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": schema, "description": description}


def _path(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema, "description": description}


def _header(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "header", "schema": schema, "description": description}


PARAMETERS: dict[str, Schema] = {
    "collection": _path("collection", exactly(COLLECTION.pattern), "it is there while it has a document"),
    "docId": _path("docId", exactly(DOCUMENT_ID.pattern), "the id of the document"),
    "model": _path("model", FILLED, "the id of the model"),
    "prefix": _query("prefix", exactly(PREFIX.pattern), "only ids that begin so"),
    "limit": _query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": 50}, "items a page"),
    "cursor": _query("cursor", TEXT, "nextCursor of the page before"),
    "include": _query("include", {"const": "data"}, "each item has its document under data"),
    "if-match": _header(
        "If-Match", FILLED, "ETags with commas between them, of which the document must have one; or *"
    ),
    "if-none-match": _header("If-None-Match", {"const": "*"}, "only where there is no such document"),
    "idempotency-key": _header(
        "Idempotency-Key", exactly(IDEMPOTENCY_KEY.pattern), "one call and one charge for each key and body in 24 hours"
    ),
    "client_id": _query("client_id", FILLED, "the app", required=True),
    "redirect_uri": _query("redirect_uri", FILLED, "one of the registered ones, to the letter", required=True),
    "response_type": _query("response_type", {"const": "code"}, "the authorization code flow", required=True),
    "scope": _query("scope", SCOPE_LIST, "among the app's registered scopes", required=True),
    "state": _query("state", {**FILLED, "maxLength": MAX_STATE}, "32 random bytes are recommended", required=True),
    "code_challenge": _query("code_challenge", exactly(CHALLENGE.pattern), "base64url(SHA-256(code_verifier))"),
    "code_challenge_method": _query("code_challenge_method", {"const": "S256"}, "with code_challenge"),
    "prompt": _query("prompt", {"type": "string", "enum": sorted(PROMPTS)}, "several with spaces; none stands alone"),
}
