"""The operations of the OpenAPI document, by route and method: what the route map doesn't say."""

from __future__ import annotations

from handlers.core.params import JSON
from handlers.openapi.ai_operations import AI_OPERATIONS
from handlers.openapi.client_operations import CLIENT_OPERATIONS
from handlers.openapi.openid_operations import OPENID_OPERATIONS
from handlers.openapi.operation import HTML, Operation, Success

_CLIENT = (("client",), ())
_OK = {200: Success("all is well", "Status")}

OPERATIONS: dict[str, dict[str, Operation]] = {
    "authorize": {
        "get": Operation(
            "OAuth",
            "Ask a person for access",
            (
                "Not called by a program: the app sends the person's browser here. A person who is signed out signs in "
                "first. If the person has allowed everything before, the answer comes without a page.\n\n"
                "For an unknown app or an unregistered `redirect_uri`, the browser gets an error page and no redirect. "
                "Every other outcome goes back to `redirect_uri`, with `state` and `iss` (RFC 9207): `code`, or "
                "`error` and `error_description`. In addition to the codes of the table, errors are "
                "`unsupported_response_type`, `invalid_scope`, `invalid_target`, `access_denied`, "
                "`invalid_authorization_details`, "
                "`unmet_authentication_requirements`, `request_not_supported`, `request_uri_not_supported`, "
                "`registration_not_supported`, and for `prompt=none` `login_required`, `consent_required` and "
                "`interaction_required`. An app "
                "that an operator registered gets errors at once. An app with an owner gets errors after sign-in, and "
                "`prompt=none` without a covering grant shows a page that names the app's address and leads on with "
                "the error. The parameters may be sent as a form, which is answered by a redirect to this address. An "
                "app with keys may send `client_id` and a signed `request` (RFC 9101); nothing else counts then."
            ),
            {
                200: Success(
                    "the page on which the person decides, or one that names the app's address before the person goes "
                    "there",
                    "Page",
                    ("text/html",),
                ),
                303: Success(
                    "back to the app with code or error, state and iss; or to the sign-in page", "", (), ("Location",)
                ),
            },
            errors=("invalid_request", "invalid_request_uri", "rate_limited"),
            parameters=(
                *("client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge"),
                *("nonce", "max_age", "acr_values", "claims", "id_token_hint", "response_mode", "login_hint"),
                "ui_locales",
                *("code_challenge_method", "prompt", "request", "resource", "dpop_jkt", "authorization_details"),
            ),
            page=True,
            security=(("session",), ()),
        ),
    },
    "decide": {
        "post": Operation(
            "Consent page",
            "Send the person's decision",
            (
                "The form of the consent page. It needs the session cookie and the XSRF token, and `Origin`, if sent, "
                "must be this server. The answer to a form is a redirect, the answer to JSON the address to go to."
            ),
            {
                200: Success(
                    "where to go, for a client that asks for JSON; with `response_mode=form_post`, a page that posts "
                    "the answer to the app",
                    "Redirect",
                    (JSON, HTML),
                ),
                303: Success("to the app or the page that ends it, or to the sign-in page", "", (), ("Location",)),
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
            "Exchange a code, a refresh token, a device code or an access token for tokens",
            (
                "A code lives 60 seconds and works once. A code or refresh token that is used again ends every token "
                "that came from it. Client authentication is what the app registered: HTTP Basic, or `client_id` and "
                "`client_secret` in the body; a signed `client_assertion`, which counts once (RFC 7523); a public app "
                "sends its `client_id` alone. A failed check uses up neither code nor refresh token. An access token "
                "is for one resource: `resource` (RFC 8707), otherwise the API of the authorization, otherwise this "
                "server. With a DPoP proof, the tokens are bound to its key, and `token_type` is `DPoP`. A device "
                "polls with its device code (RFC 8628): until the person has decided, it hears "
                "`authorization_pending`, or `slow_down` if it polls too often. A token exchange (RFC 8693) makes an "
                "access token a delegated one, no wider in scope, resource, budget and life, which ends with it. An "
                "assertion of an identity provider that the operator trusts (RFC 7523, ID-JAG) gives an access token."
            ),
            {200: Success("the tokens", "Tokens", headers=("Pragma",))},
            errors=(
                *("invalid_request", "unsupported_grant_type", "invalid_client", "invalid_grant", "invalid_scope"),
                *("invalid_target", "unauthorized_client", "invalid_authorization_details"),
                *("authorization_pending", "slow_down", "expired_token", "device_denied"),
            ),
            body="TokenRequest",
            proof=True,
            security=_CLIENT,
        )
    },
    "userinfo": {
        "get": Operation(
            "OAuth",
            "Read the person's profile",
            "`sub` never changes and is never reused. E-mail addresses change hands, so tie accounts to `sub`.",
            {200: Success("the person", "Userinfo")},
        ),
        "post": Operation(
            "OAuth",
            "Read the person's profile",
            "The same as `GET`. OpenID clients may use either.",
            {200: Success("the person", "Userinfo")},
        ),
    },
    "revoke": {
        "post": Operation(
            "OAuth",
            "Revoke a token (RFC 7009)",
            (
                "A refresh token ends with its whole family, an access token alone. The answer is the same for a live, "
                "a dead and an invented token. Credentials are optional. With valid ones, only that app's tokens end; "
                "with wrong ones, the answer is 401."
            ),
            {200: Success("the same for a live, a dead and an invented token", "Nothing")},
            errors=("invalid_request", "invalid_client"),
            body="RevocationRequest",
            security=_CLIENT,
        )
    },
    "push": {
        "post": Operation(
            "OAuth",
            "Push an authorization request (RFC 9126)",
            "The parameters of `GET /oauth/authorize`, and the app's credentials. Send the browser to that address "
            "with `client_id` and `request_uri` alone, within 90 seconds. The first browser there has ten minutes. An "
            "app with keys may send a signed `request` instead (RFC 9101).",
            {201: Success("where the request waits", "PushedResponse")},
            errors=(
                *("invalid_request", "invalid_client", "invalid_scope", "invalid_target"),
                "invalid_authorization_details",
                *("unsupported_response_type", "invalid_request_object", "request_not_supported"),
                *("registration_not_supported", "unmet_authentication_requirements"),
            ),
            body="PushedRequest",
            proof=True,
            security=(("client",), ()),
        )
    },
    **CLIENT_OPERATIONS,
    "device-authorization": {
        "post": Operation(
            "OAuth",
            "Request the codes for a device (RFC 8628)",
            "For a device without a browser or keyboard. It shows `user_code` and `verification_uri`, and may show "
            "`verification_uri_complete` as a QR code. Meanwhile it polls the token endpoint with `device_code`. Both "
            "codes live ten minutes.",
            {200: Success("the codes", "DeviceResponse", headers=("Pragma",))},
            errors=(
                *("invalid_request", "invalid_client", "invalid_scope", "invalid_target", "unauthorized_client"),
                "invalid_authorization_details",
            ),
            body="DeviceRequest",
            proof=True,
            security=_CLIENT,
        )
    },
    "introspect": {
        "post": Operation(
            "OAuth",
            "Check whether a token is active (RFC 7662)",
            "For an API about tokens for it, and for a confidential app about its own access and refresh tokens. It "
            "changes nothing. Don't keep an answer longer than you want a revoked token to work.",
            {200: Success("what the token is, if it is live and the caller's", "Introspection")},
            errors=("invalid_request", "invalid_client"),
            body="IntrospectionRequest",
            security=(("client",),),
        )
    },
    "resource-metadata": {
        "get": Operation(
            "Discovery",
            "Metadata of this API as a protected resource (RFC 9728)",
            "Where to get a token for this API. A 401 names this address.",
            {200: Success("the metadata", "ResourceMetadata")},
            calls_store=False,
        )
    },
    "mcp-metadata": {
        "get": Operation(
            "Discovery",
            "Metadata of the MCP server as a protected resource (RFC 9728)",
            (
                "Where to get a token for `/mcp`, and the scopes to ask for first. A 401 of the MCP server names this "
                "address. 404 if the operator has not switched the MCP server on."
            ),
            {200: Success("the metadata", "ResourceMetadata")},
            errors=("not_found",),
            calls_store=False,
        )
    },
    "metadata": {
        "get": Operation(
            "Discovery",
            "Metadata (RFC 8414)",
            "The issuer, the endpoints, and what they support.",
            {200: Success("the metadata", "Metadata")},
            calls_store=False,
        )
    },
    **OPENID_OPERATIONS,
    "openapi": {
        "get": Operation(
            "Discovery",
            "Read this document",
            "What you are reading, for programs.",
            {200: Success("the document", "OpenAPI")},
            calls_store=False,
        )
    },
    "document": {
        "get": Operation(
            "Hosted documents",
            "Read a document",
            "The bytes that were sent. There is no conditional `GET`: `If-None-Match` is ignored.",
            {200: Success("the document, byte for byte as it was sent", "Document", headers=("ETag", "Last-Modified"))},
            errors=("invalid_request", "not_found"),
            path=("collection", "docId"),
        ),
        "put": Operation(
            "Hosted documents",
            "Write a document",
            (
                "Any JSON value. `If-Match` and `If-None-Match: *` make the write conditional. If the condition fails, "
                "the answer is 412 and nothing changes. Over quota, only writes that make no document larger work."
            ),
            {
                200: Success("replaced", "WrittenDocument", headers=("ETag",)),
                201: Success("created", "WrittenDocument", headers=("ETag",)),
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
            "404 if there is no such document, 412 if there is none and the request has `If-Match`.",
            {204: Success("deleted", "", ())},
            errors=("invalid_request", "not_found", "precondition_failed"),
            path=("collection", "docId"),
            parameters=("if-match",),
        ),
    },
    "collection": {
        "get": Operation(
            "Hosted documents",
            "List a collection",
            (
                "Ids in the order of their bytes. An unknown collection is empty. `nextCursor` is null on the last "
                "page. A document that exists during the whole listing is on exactly one page, whatever is written "
                "meanwhile."
            ),
            {200: Success("a page, in the order of the bytes of ids", "DocumentPage")},
            errors=("invalid_request",),
            path=("collection",),
            parameters=("prefix", "limit", "cursor", "include"),
        )
    },
    "usage": {
        "get": Operation(
            "Hosted documents",
            "Read how much the app stores, and its limits",
            "Documents and bytes, in all and by collection.",
            {200: Success("use and limits", "DocumentUsage")},
        )
    },
    "credits": {
        "get": Operation(
            "Credits and connected apps",
            "Read what the person can spend",
            (
                "`paid` is the credits added minus the charges, `held` the highest cost of calls in progress, "
                "`spendable` the rest. `appLimit` is the person's limit for this app in a calendar month (UTC), null "
                "for no limit."
            ),
            {200: Success("the balance", "Balance")},
        )
    },
    "credits-usage": {
        "get": Operation(
            "Credits and connected apps",
            "Read what the app's AI calls used",
            (
                "Sums of each day (UTC), model or app, for the days from `from` to `to`: by default today and the 29 "
                "days before. An app sees its own calls. `charged` is in micro-dollars; each token is of one kind. "
                "Days are kept for up to 400 days, and less long where a person uses many models."
            ),
            {200: Success("the sums", "Usage")},
            errors=("invalid_request",),
            parameters=("from", "to", "group"),
        )
    },
    "apps": {
        "get": Operation(
            "Credits and connected apps",
            "List the other apps that the person has connected",
            "At most the 200 newest, without the caller. The last use is updated at most once a minute.",
            {200: Success("the apps, newest first", "ConnectedApps")},
        )
    },
    **AI_OPERATIONS,
    "healthz": {
        "get": Operation(
            "Operation", "Check that the process answers", "200 as long as the process answers.", _OK, calls_store=False
        )
    },
    "readyz": {"get": Operation("Operation", "Check that the store answers", "200 as long as the store answers.", _OK)},
}
