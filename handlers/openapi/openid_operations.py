"""The operations of OpenID Connect that OAuth does not have."""

from __future__ import annotations

from handlers.openapi.operation import HTML, Operation, Success

OPENID_OPERATIONS: dict[str, dict[str, Operation]] = {
    "logout": {
        "get": Operation(
            "OAuth",
            "Sign a person out",
            (
                "Not called by a program: the app sends the person's browser here (OpenID Connect RP-Initiated Logout "
                "1.0). If `id_token_hint` is of the session in this browser, that session ends at once. Otherwise a "
                "page asks the person. Afterwards the browser goes to `post_logout_redirect_uri` with `state`, if the "
                "app registered that address, or to a page. Sessions end, and no token of an app does.\n\n"
                "Whatever is wrong with the request, the answer is a page and no redirect. `client_id` names the app "
                "where there is no `id_token_hint`; if both are sent, they must fit. The parameters may be sent as a "
                "form, which is answered by a redirect to this address."
            ),
            {
                200: Success(
                    "the page on which the person decides, or one that says that the person is signed out",
                    "Page",
                    (HTML,),
                ),
                303: Success("back to the app, with state", "", (), ("Location",)),
            },
            errors=("invalid_request",),
            parameters=("id_token_hint", "asking_client_id", "post_logout_redirect_uri", "asking_state"),
            page=True,
            security=(("session",), ()),
        ),
    },
    "openid-configuration": {
        "get": Operation(
            "Discovery",
            "Metadata (OpenID Connect Discovery)",
            "The same document as `/.well-known/oauth-authorization-server`.",
            {200: Success("the metadata", "Metadata")},
            calls_store=False,
        )
    },
    "jwks": {
        "get": Operation(
            "Discovery",
            "Keys (RFC 7517)",
            (
                "The public keys that verify what this server signs, the signing one of each algorithm first. A new "
                "key is here a day before it signs, and an old one until its last token is over."
            ),
            {200: Success("the key set", "KeySet")},
        )
    },
}
