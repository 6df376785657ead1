"""The clauses of the specification that say something, and the known traps: each has a test that names it.

A clause whose endpoints are not built yet says so in `later`; it must have no test, so that the list stays honest.
An id such as `3.1.replayed` names one row of section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Clause:
    """What the service promises, in one line; `later` says why there is nothing to test yet."""

    summary: str
    later: str = ""


CLAUSES: dict[str, Clause] = {
    "1": Clause("registration, consent, code, tokens, identity, revocation; POST takes JSON and forms"),
    "2.1": Clause("what an app registers: id, secret, redirect URIs, PKCE, scopes"),
    "2.2": Clause("the token response and its five fields"),
    "2.3": Clause("userinfo and its four fields"),
    "2.4": Clause("the six scopes; profile gives identity"),
    "2.4.rule": Clause("an app with hosted storage has to ask for a data scope"),
    "2.4.credits-read": Clause("credits:read shows the spendable balance"),
    "2.4.credits-spend": Clause("credits:spend charges AI calls to the paid balance"),
    "2.4.apps-read": Clause("apps:read lists the other connected apps"),
    "2.4.data-read": Clause("data:read reads the app's documents"),
    "2.4.data-write": Clause("data:write creates, updates and deletes documents"),
    "2.5": Clause("the error body: code, text for people, retryAfter on 429"),
    "3.1": Clause("states of tokens and grants"),
    "3.1.access-expired": Clause("an access token is over after an hour"),
    "3.1.rotated": Clause("a refresh uses the token up and returns two new ones"),
    "3.1.replayed": Clause("a revoked refresh token presented again ends all tokens of the pair"),
    "3.1.token-revoked": Clause("revocation ends the token it is given"),
    "3.1.app-revoked": Clause("disconnecting an app ends all its tokens of that person at once"),
    "3.1.grace-begins": Clause("disconnecting an app starts 30 days of grace for its data"),
    "3.1.grace-kept": Clause("reconnecting within the grace window keeps the data"),
    "3.1.grace-over": Clause("after the grace window the data is gone for good"),
    "3.2": Clause("a code is exchanged once; expired, replayed or with another redirect_uri it is refused"),
    "4.1": Clause("GET /oauth/authorize: parameters, and code and state in the redirect"),
    "4.2": Clause("POST /api/oauth/authorize takes the person's decision"),
    "4.3": Clause("POST /api/oauth/token: the fields of an exchange and of a refresh"),
    "4.4": Clause("GET /api/oauth/userinfo with a bearer token"),
    "4.5": Clause("POST /api/oauth/revoke answers 200 whether or not the token existed"),
    "4.6.read": Clause("GET one document, with an ETag"),
    "4.6.write": Clause("PUT one document"),
    "4.6.delete": Clause("DELETE one document"),
    "4.6.list": Clause("GET a collection"),
    "4.6.usage": Clause("GET the usage record"),
    "4.6.ai": Clause("POST an AI call that the person pays"),
    "5.1": Clause("client authentication: id and secret, or id and verifier; a wrong secret is invalid_client"),
    "5.2": Clause("PKCE: optional, S256, mandatory where registered so, verifier of 43 to 128 characters"),
    "5.3": Clause("state is required and comes back unchanged"),
    "5.4": Clause("bearer tokens: invalid_token when dead, insufficient_scope when too narrow"),
    "5.5": Clause("access token one hour; refresh token 30 days, single use"),
    "5.6": Clause("each endpoint has a scope that it demands"),
    "7": Clause("errors: statuses, codes, the 429 body"),
    "7.invalid_request": Clause("400: a parameter is missing or malformed"),
    "7.invalid_grant": Clause("400: the code is expired or replayed, or redirect_uri differs"),
    "7.invalid_scope": Clause("400: a scope the app did not register"),
    "7.invalid_client": Clause("401: a wrong client_secret"),
    "7.invalid_token": Clause("401: the access token is expired, revoked or wrong"),
    "7.insufficient_scope": Clause("403: the token lacks the scope"),
    "7.rate_limited": Clause("429: the window is full"),
    "8.1": Clause("sliding windows, counted so that nobody's traffic limits somebody else"),
    "8.1.oauth": Clause("100 a minute per user on /api/oauth/*, shared by all apps"),
    "8.1.data-read": Clause("300 a minute to read a document or the usage"),
    "8.1.data-write": Clause("60 a minute to write and delete documents"),
    "8.1.data-list": Clause("60 a minute to list a collection"),
    "8.1.ai": Clause("20 AI calls a minute per user across all apps"),
    "8.2": Clause("limit headers on every success, Retry-After on 429"),
    "8.3": Clause("lifetimes, verifier length, grace window"),
    "9": Clause("no version in the OAuth paths; no 304 for If-None-Match"),
    "9.v1": Clause("data and AI paths carry /v1/"),
}

TRAPS: dict[int, Clause] = {
    1: Clause("a hundred uses of one code or refresh token at once have one success"),
    2: Clause("a replay leaves nothing of the pair, whatever the winner is doing"),
    3: Clause("no token outlives a revocation that was answered"),
    4: Clause("a replay is detected within a second and after a restart"),
    5: Clause("no kind of token is taken for another"),
    6: Clause("a challenge needs its verifier, and a verifier its challenge"),
    7: Clause("an app revokes no token of another"),
    8: Clause("a retry window covers the latest rotation alone"),
    9: Clause("a replay without client authentication ends nothing"),
    10: Clause("a disabled person's tokens do not refresh"),
    11: Clause("a failed client authentication burns nothing"),
    12: Clause("a revocation that may not have happened is not acknowledged"),
    13: Clause("an invalid request is never redirected to an address that is not registered"),
    14: Clause("near misses of a registered redirect URI do not match"),
    15: Clause("a loopback match changes the port and nothing else"),
    16: Clause("script schemes never register"),
    17: Clause("sign-in leads nowhere off this origin"),
    18: Clause("303 after a POST, and no framing"),
    19: Clause("Basic credentials are form-decoded"),
    20: Clause("credentials or parameters sent twice are refused"),
    21: Clause("NUL, broken UTF-8 and endless input are 4xx"),
    22: Clause("forms check XSRF whatever Sec-Fetch-Mode says"),
    23: Clause("CORS reflects no origin, and errors carry its headers"),
    24: Clause("no log and no traceback holds a secret"),
    25: Clause("no automatic ETag and no 304"),
    26: Clause("errors keep limit headers and Retry-After"),
    27: Clause("XSRF is checked on pages and not on the API"),
    28: Clause("simultaneous calls never spend more than there is"),
    29: Clause("a hold always ends"),
    30: Clause("an automatic retry is charged once"),
    31: Clause("the ledger adds up to the balance"),
    32: Clause("a script whose answer was lost is not sent again"),
    33: Clause("form-action lets the redirect after consent through"),
    34: Clause("nobody reaches an app as the owner of somebody else's address"),
    35: Clause("what was disabled, deleted or rotated out is refused within 5 s everywhere"),
    36: Clause("dead or forged tokens lock nobody out"),
    37: Clause("deep nesting, long numbers and lone surrogates in a document are no 500"),
    38: Clause("a server with other keys refuses to start on the same store"),
    39: Clause("text is measured before it is normalised, matched, decoded or parsed"),
    40: Clause("no parser of a library runs what the sender names"),
    41: Clause("remembered consent holds for the redirect URI it was given to"),
    42: Clause("nobody who is signed out is redirected with an error to an app that anybody may have registered"),
    67: Clause("a stream is charged once and within its hold, however it reports its usage"),
}
