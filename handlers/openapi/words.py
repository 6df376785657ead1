"""What the OpenAPI document says to people: an introduction, what each group of operations is for, and what each does.

All of it is Markdown. What can be told from the code, such as the table of errors, is made of the code.
"""

from __future__ import annotations

from collections.abc import Iterable

from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.core.scopes import SCOPE_WORDS
from store.lifetimes import MINUTE, SECOND, Group

SUMMARY = "Sign-in, delegated access, hosted documents and AI calls that people pay."

_FIRST_STEPS = """\
## First steps

1. Register an app under [Your apps](BASE_URL/developer/apps). It gets a `client_id`, and a `client_secret` unless it
   cannot keep one.
2. Send the person's browser to `BASE_URL/oauth/authorize` with `response_type=code`, `client_id`, `redirect_uri`,
   `scope`, a fresh `state`, and a PKCE `code_challenge`.
3. The browser comes back to your `redirect_uri` with `code` and the same `state`. Within 60 seconds, exchange the code:

```sh
curl BASE_URL/api/oauth/token \\
  -d grant_type=authorization_code -d code=CODE --data-urlencode redirect_uri=https://app.example/callback \\
  -d code_verifier=VERIFIER -d client_id=CLIENT_ID -d client_secret=CLIENT_SECRET
```

4. Call with the access token, which lives an hour; `POST /api/oauth/token` with the refresh token gives the next two.

```sh
curl BASE_URL/api/oauth/userinfo -H "Authorization: Bearer ACCESS_TOKEN"
```

Client libraries find all addresses in
[`/.well-known/oauth-authorization-server`](BASE_URL/.well-known/oauth-authorization-server).

## Requests

Bodies are one JSON object or a form; in a form, a list or an object is its JSON text. Unknown parameters are ignored,
repeated ones refused. `GET` answers `HEAD` too. Times are UTC (RFC 3339), amounts whole micro-dollars. Every answer has
an `X-Request-Id`, under which it stands in the server's log.
"""

_ERRORS = """\
## Errors

An error is `{"error": "…", "error_description": "…"}`: the code is for programs, the description for people. A 429 has
`retryAfter` beside them, in seconds. A 503 does not say that nothing was done.

| code | status | default description |
|---|---|---|
"""

_LIMITS = """\
## Limits

Windows slide: a sustained rate at the limit is never refused. The answers of limited operations, and their 429s, carry
the figures of their window.

| header | content |
|---|---|
"""

_SCOPES = """\
## Scopes

| scope | what the person is told |
|---|---|
"""

TAGS: dict[str, str] = {
    "OAuth": (
        "From the person's consent to tokens, and what they are good for at once. OAuth 2.0 authorization code flow "
        "with PKCE (RFC 6749, RFC 7636), refresh tokens that rotate, revocation (RFC 7009)."
    ),
    "Hosted documents": (
        "JSON that an app keeps for a person. Each app sees its own documents for the person of the token, and no "
        "others. When the person disconnects the app they are kept for 30 days."
    ),
    "Credits and connected apps": "What the person can spend, and which other apps they use.",
    "AI": (
        "Calls of AI models that the person pays. Request, reply and events are those of the Anthropic Messages API."
    ),
    "AI for the SDKs": (
        "The same calls at the addresses, and with the errors, that the official Anthropic SDKs know: set the base "
        "URL to `/api/v1/ai` of this server and the access token as `auth_token`."
    ),
    "Discovery": "What programs read to know this server.",
    "Operation": "What load balancers and monitoring ask.",
    "Consent page": "Not for apps: what the page sends on which a person decides.",
}
"""The groups of operations, in their order."""

DESCRIPTIONS: dict[str, str] = {
    "authorize": (
        "Not called by a program: the address that the app sends the person's browser to. Who is not signed in "
        "signs in first. Where the person has allowed all of it before, the answer comes without a page.\n\n"
        "An app that is not known, or a `redirect_uri` that is not registered, is told on a page, and the browser "
        "goes nowhere. Every other outcome goes back to `redirect_uri`, with `state` and `iss` (RFC 9207): `code`, "
        "or `error` and `error_description`. Beside the codes of the table these are `unsupported_response_type`, "
        "`invalid_scope`, `access_denied`, and for `prompt=none` `login_required` and `consent_required`. "
        "An app that an operator registered gets errors at once. An error for an app with an owner comes after "
        "sign-in, and `prompt=none` without a covering grant is a page that names the app's address and leads on with "
        "the error."
    ),
    "decide": (
        "The form of the consent page. The session cookie and the XSRF token have to come with it, and where "
        "`Origin` is sent it has to be this server. A form is answered with a redirect, JSON with the address to go "
        "to."
    ),
    "token": (
        "A code lives 60 seconds and works once. A code or refresh token that is presented again after its use ends "
        "every token that came from it. Client authentication is HTTP Basic, or `client_id` and `client_secret` in "
        "the body; a public app sends its `client_id` alone. A failed check uses up neither code nor refresh token."
    ),
    "userinfo-get": "`sub` never changes and is never used again. Addresses change hands: accounts belong to `sub`.",
    "userinfo-post": "The same as `GET`, which OpenID clients may do either way.",
    "revoke": (
        "Ending a refresh token ends its whole family, ending an access token that one alone. The answer is the "
        "same for a live, a dead and an invented token. Credentials may be left out; sent and right, only that "
        "app's tokens are touched; sent and wrong, the answer is 401."
    ),
    "metadata": "The issuer, the endpoints, and what they support.",
    "openapi": "What you are reading, for programs.",
    "document-get": "The bytes that were sent. There is no conditional `GET`: `If-None-Match` is not looked at.",
    "document-put": (
        "Any JSON value. `If-Match` and `If-None-Match: *` make the write depend on what is there; what does not "
        "hold is 412 and changes nothing. A write that makes a document no larger is let in over quota too."
    ),
    "document-delete": "404 where there is no such document, 412 where there is none and `If-Match`.",
    "collection": (
        "Ids in the order of their bytes; an unknown collection is an empty one. `nextCursor` is null on the last "
        "page. A document that is there all the while is on exactly one page, whatever is written meanwhile."
    ),
    "usage": "Documents and bytes, in all and by collection.",
    "credits": (
        "`paid` is what was added less what was charged, `held` what calls under way may cost at most, `spendable` "
        "the rest. `appLimit` is what the person lets this app spend in a calendar month (UTC), null for no limit."
    ),
    "apps": "At most the 200 newest; the caller is left out. Last use is noted at most once a minute.",
    "ai-messages": (
        "Before the call the most that it can cost is held; after it, what the model's server reports is charged, "
        "never more than was held. A call that the model's server refused costs nothing; one that it accepted costs "
        "its input at least, also when the app hangs up. With `stream` the answer is events, and the last "
        "`message_delta` has the `credits`."
    ),
    "ai-models": (
        "Prices are micro-dollars per million tokens. `latchkey-echo` is built in, and answers with what it was told."
    ),
    "ai-sdk-messages": (
        "`messages.create` and `messages.stream`. In the same window as `POST /api/v1/ai/messages`. The SDKs send a "
        "request again after 409, 429 and 5xx: with an `Idempotency-Key` it is charged once."
    ),
    "ai-sdk-count": "`messages.count_tokens`. Nothing is charged.",
    "ai-sdk-models": "`models.list`. All are on one page.",
    "ai-sdk-model": "`models.retrieve`.",
    "healthz": "200 as long as the process answers.",
    "readyz": "200 as long as the store answers.",
}
"""What each operation does beyond its summary, by its id."""


def introduction(base_url: str, headers: Iterable[tuple[str, str]]) -> str:
    """The first words, for a server at this base URL; `headers` are those of windows, and what they contain."""
    errors = "\n".join(
        f"| `{PUBLIC_NAME.get(code, code)}` | {entry.status} | {entry.description} |"
        for code, entry in CATALOGUE.items()
    )
    scopes = "\n".join(f"| `{name}` | {words.title}. {words.detail} |" for name, words in SCOPE_WORDS.items())
    limits = "\n".join(f"| `{name}` | {content} |" for name, content in headers)
    first = _FIRST_STEPS.replace("BASE_URL", base_url)
    return f"{SUMMARY}\n\n{first}\n{_SCOPES}{scopes}\n\n{_ERRORS}{errors}\n\n{_LIMITS}{limits}\n"


def needs(scopes: Iterable[str]) -> str:
    """What a token must carry."""
    return f"Needs an access token with the scope {' or '.join(f'`{scope}`' for scope in scopes)}."


def limit(group: Group) -> str:
    """How often."""
    period = "a minute" if group.period == MINUTE else f"in {group.period // SECOND} seconds"
    return f"At most {group.limit} requests {period} (window `{group.name}`)."


def told(code: str) -> str:
    """An error, by the code that goes out."""
    return f"`{PUBLIC_NAME.get(code, code)}`: {CATALOGUE[code].description}"
