"""The OpenAPI document's texts for people: an introduction, and the purpose of each group of operations.

All texts are Markdown. Parts that follow from the code, such as the table of errors, are generated.
"""

from __future__ import annotations

from collections.abc import Iterable

from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.core.scopes import SCOPE_WORDS
from store.lifetimes import MINUTE, SECOND, Group

SUMMARY = "Sign-in, delegated access, hosted documents and AI calls that people pay for."

_FIRST_STEPS = """\
## First steps

1. Register an app under [Your apps](BASE_URL/developer/apps). It gets a `client_id`, and a `client_secret` if it
   can keep one.
2. Send the person's browser to `BASE_URL/oauth/authorize` with `response_type=code`, `client_id`, `redirect_uri`,
   `scope`, a fresh `state`, and a PKCE `code_challenge`.
3. The browser comes back to your `redirect_uri` with `code` and the same `state`. Within 60 seconds, exchange the code:

```sh
curl BASE_URL/api/oauth/token \\
  -d grant_type=authorization_code -d code=CODE --data-urlencode redirect_uri=https://app.example/callback \\
  -d code_verifier=VERIFIER -d client_id=CLIENT_ID -d client_secret=CLIENT_SECRET
```

4. Call the API with the access token, which is valid for an hour. Then `POST /api/oauth/token` with the refresh token
   to get new ones.

```sh
curl BASE_URL/api/oauth/userinfo -H "Authorization: Bearer ACCESS_TOKEN"
```

Client libraries find all addresses in
[`/.well-known/oauth-authorization-server`](BASE_URL/.well-known/oauth-authorization-server).

## Requests

Send one JSON object or a form; in a form, write a list or an object as JSON. Unknown parameters are ignored, and
repeated ones are refused. Where `GET` works, `HEAD` works too. Times are in UTC (RFC 3339), and amounts are whole
micro-dollars. Every response has an `X-Request-Id`, which is also in the server's log.
"""

_ERRORS = """\
## Errors

An error is `{"error": "…", "error_description": "…"}`: the code is for programs, the description for people. A 429 also
has `retryAfter`, in seconds. After a 503, the request may still have taken effect.

| code | status | default description |
|---|---|---|
"""

_LIMITS = """\
## Limits

Limits are sliding windows: a sustained rate at the limit is never refused. Every response of a limited operation,
including a 429, describes its window in headers.

| header | content |
|---|---|
"""

_SCOPES = """\
## Scopes

| scope | what people read |
|---|---|
"""

TAGS: dict[str, str] = {
    "OAuth": (
        "From the person's consent to tokens and the profile. OAuth 2.0 authorization code flow "
        "with PKCE (RFC 6749, RFC 7636), refresh tokens that rotate, revocation (RFC 7009)."
    ),
    "Hosted documents": (
        "JSON that an app keeps for a person. Each app sees only its own documents for the token's person. After "
        "the person disconnects the app, they are kept for 30 days."
    ),
    "Credits and connected apps": "What the person can spend, and which other apps they use.",
    "AI": (
        "Calls of AI models that the person pays for. Requests, replies and events follow the Anthropic Messages API."
    ),
    "AI for the SDKs": (
        "The same calls, with the addresses and errors that the official Anthropic SDKs expect: set the base "
        "URL to `/api/v1/ai` of this server and the access token as `auth_token`."
    ),
    "Discovery": "How programs learn about this server.",
    "Operation": "For load balancers and monitoring.",
    "Consent page": "Not for apps: the form of the page where a person decides.",
}
"""The groups of operations, in order."""


def introduction(base_url: str, headers: Iterable[tuple[str, str]]) -> str:
    """The introduction for a server at this base URL. `headers` are those of windows, and their meaning."""
    errors = "\n".join(
        f"| `{PUBLIC_NAME.get(code, code)}` | {entry.status} | {entry.description} |"
        for code, entry in CATALOGUE.items()
    )
    scopes = "\n".join(f"| `{name}` | {words.title}. {words.detail} |" for name, words in SCOPE_WORDS.items())
    limits = "\n".join(f"| `{name}` | {content} |" for name, content in headers)
    first = _FIRST_STEPS.replace("BASE_URL", base_url)
    return f"{SUMMARY}\n\n{first}\n{_SCOPES}{scopes}\n\n{_ERRORS}{errors}\n\n{_LIMITS}{limits}\n"


def needs(scopes: Iterable[str]) -> str:
    """The scopes that a token needs."""
    return f"Needs an access token with the scope {' or '.join(f'`{scope}`' for scope in scopes)}."


def limit(group: Group) -> str:
    """The rate limit."""
    period = "a minute" if group.period == MINUTE else f"in {group.period // SECOND} seconds"
    return f"At most {group.limit} requests {period} (window `{group.name}`), unless the operator sets another limit."


def describe(code: str) -> str:
    """An error, under the code that clients see."""
    return f"`{PUBLIC_NAME.get(code, code)}`: {CATALOGUE[code].description}"
