"""What OpenID Connect Core and Discovery demand of a provider with the code flow.

Each has a test that is marked for it, or a reason why not. A name is the section, by errata set 2, and a word. What the
standards demand of clients is left out, and so are the implicit flow, the hybrid flow and self-issued providers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """A MUST, in one line; `without` says why no test holds it."""

    summary: str
    without: str = ""


TLS = "a proxy in front ends TLS; with an https base URL cookies are Secure, and answers carry HSTS"
NOT_DYNAMIC = "no app is established without registration: response types, grants and discovery of a dynamic provider"

DEMANDS: dict[str, Demand] = {
    "core 2 iss": Demand("iss is the issuer"),
    "core 2 sub": Demand("sub is unique, never given to another person, and short ASCII"),
    "core 2 aud": Demand("aud has the client id, and azp is the client id"),
    "core 2 times": Demand("exp and iat are numbers of seconds"),
    "core 2 auth_time": Demand("auth_time is the time of the sign-in; with max_age it is required"),
    "core 2 nonce": Demand("the nonce of the request is in the ID token, unmodified"),
    "core 2 acr": Demand("a registered name of a level has its registered meaning"),
    "core 2 signed": Demand("an ID token is signed, and never with none"),
    "core 2 header": Demand("the header of an ID token brings no key and no address of one"),
    "core 2 encrypted": Demand("an encrypted ID token is signed first", "no ID token is encrypted"),
    "core 3.1.2.1 methods": Demand("the authorization endpoint takes GET and POST"),
    "core 3.1.2.1 redirect_uri": Demand("redirect_uri is a registered one, character by character"),
    "core 3.1.2.1 none": Demand("prompt=none shows no page and answers with an error"),
    "core 3.1.2.1 none of an owner's app": Demand(
        "prompt=none shows no page, whoever registered the app",
        "not met: for an app that anybody may have registered, the error needs a click (RFC 9700 4.11.2)",
    ),
    "core 3.1.2.1 none alone": Demand("none with another prompt is an error"),
    "core 3.1.2.1 login": Demand("prompt=login takes a new sign-in"),
    "core 3.1.2.1 consent": Demand("prompt=consent without consent is an error"),
    "core 3.1.2.1 select_account": Demand(
        "without a choice of the account there is an error", "the page waits for the choice, and none excludes it"
    ),
    "core 3.1.2.1 max_age": Demand("a sign-in older than max_age is renewed"),
    "core 3.1.2.1 id_token_hint": Demand("another person than the hint's gets an error"),
    "core 3.1.2.2 oauth": Demand("the parameters are checked as OAuth 2.0 says"),
    "core 3.1.2.2 required": Demand("every required parameter is there"),
    "core 3.1.2.2 sub": Demand("no ID token and no access token for another person than the requested sub"),
    "core 3.1.2.2 id_token_hint": Demand("a hint was issued here"),
    "core 3.1.2.2 error": Demand("an error leads to an error response"),
    "core 3.1.2.3 signed out": Demand("a person who is signed out signs in"),
    "core 3.1.2.3 login": Demand("prompt=login signs in again even a person who is signed in"),
    "core 3.1.2.3 none": Demand("prompt=none is an error for a person who is signed out"),
    "core 3.1.2.3 forgery": Demand("pages are safe from forged requests and from framing"),
    "core 3.1.2.4 consent": Demand("the app learns nothing before the person has decided"),
    "core 3.1.2.5 query": Demand("the answer is in the query, unless the app wants another mode"),
    "core 3.1.2.6 redirect_uri": Demand("nobody is redirected to an invalid redirect_uri"),
    "core 3.1.2.6 response_mode": Demand("an unsupported response mode is a 400 without error parameters"),
    "core 3.1.2.6 state": Demand("an error has the state of the request"),
    "core 3.1.3.1 client": Demand("a confidential client authenticates at the token endpoint"),
    "core 3.1.3.2 client": Demand("a code is for the client that it was issued to"),
    "core 3.1.3.2 code": Demand("a code is valid, and was not used before"),
    "core 3.1.3.2 redirect_uri": Demand("redirect_uri is that of the authorization request"),
    "core 3.1.3.2 openid": Demand("only a code of an OpenID request gives an ID token"),
    "core 3.1.3.3 token_type": Demand("the token type is Bearer"),
    "core 3.1.3.3 id_token": Demand("the token response has an ID token"),
    "core 3.1.3.3 no-store": Demand("nobody stores a token response"),
    "core 3.1.3.4 error": Demand("a wrong token request is a 400 with JSON"),
    "core 3.1.3.6 at_hash": Demand("at_hash is the left half of the token's hash by the ID token's algorithm"),
    "core 5.1 picture": Demand("picture is the address of an image"),
    "core 5.1 email": Demand("email is an address, and email_verified says whether the person confirmed it"),
    "core 5.1 phone": Demand("a verified phone number is in E.164", "no phone number is kept"),
    "core 5.3 methods": Demand("userinfo takes GET and POST"),
    "core 5.3 bearer": Demand("userinfo takes bearer tokens"),
    "core 5.3.2 json": Demand("userinfo answers with a JSON object, and says so"),
    "core 5.3.2 sub": Demand("userinfo always has sub, the same as in the ID token"),
    "core 5.3.2 signed": Demand("a signed userinfo has iss and aud", "userinfo is neither signed nor encrypted"),
    "core 5.5 ignored": Demand("unknown members of claims are ignored"),
    "core 5.5.1 missing": Demand("a requested claim that is not given is no error, essential or not"),
    "core 5.5.1 sub": Demand("another sub than a requested one fails the request"),
    "core 5.5.1 ignored": Demand("unknown members of a requested claim are ignored"),
    "core 5.5.1.1 acr": Demand("an essential acr is one of the requested values, or the sign-in fails"),
    "core 5.6 normal": Demand("claims are members of the object"),
    "core 5.6.2 sources": Demand("aggregated and distributed claims have a form", "there are none of either kind"),
    "core 6.1 request": Demand("an unsupported request object has its own error"),
    "core 6.1 supersede": Demand("the parameters in a request object count, those beside it do not"),
    "core 6.1 nested": Demand("no request object has request or request_uri"),
    "core 8 subject_types": Demand("discovery lists the subject types"),
    "core 8.1 sector": Demand("each sector has its own sub, which nobody else can compute or reverse"),
    "core 9 client_secret_jwt": Demand("an assertion with the client secret is checked", "the method is not offered"),
    "core 10.1 algorithm": Demand("the client chooses among the signature algorithms"),
    "core 10.1 key": Demand("what signs is in the published set"),
    "core 10.1 kid": Demand("the header names the key"),
    "core 10.1 use": Demand("published keys are for signatures"),
    "core 10.1 symmetric": Demand("public clients get no MAC", "nothing is signed with a client secret"),
    "core 10.2": Demand("encryption uses a published key", "nothing is encrypted for clients"),
    "core 11 ignored": Demand("offline_access without its conditions is ignored"),
    "core 11 consent": Demand("offline access takes consent", "offline_access gives nothing, so nobody is asked"),
    "core 12.1 token": Demand("a refresh token is valid, and of the client that authenticates"),
    "core 12.2 same": Demand("a refreshed ID token has the iss, sub and aud of the first"),
    "core 12.2 iat": Demand("its iat is its own time"),
    "core 12.2 auth_time": Demand("its auth_time is that of the sign-in"),
    "core 12.2 nonce": Demand("it has no nonce"),
    "core 14 comparison": Demand("texts are compared code point by code point, without normalisation"),
    "core 14 delimiter": Demand("words of a list have single spaces between them"),
    "core 15.1 RS256": Demand("ID tokens can be signed with RS256"),
    "core 15.1 prompt": Demand("prompt is supported"),
    "core 15.1 display": Demand("display is no error"),
    "core 15.1 locales": Demand("ui_locales and claims_locales are no errors"),
    "core 15.1 auth_time": Demand("auth_time is given when it is requested"),
    "core 15.1 max_age": Demand("max_age is enforced"),
    "core 15.1 acr_values": Demand("acr_values is no error"),
    "core 15.2": Demand("a dynamic provider has more to offer", NOT_DYNAMIC),
    "core 16.4 disclosure": Demand("no access token reaches anybody but the client"),
    "core 16.15 issuer": Demand("discovery's issuer is the ID token's"),
    "core 16.17 TLS": Demand("every endpoint is behind TLS", TLS),
    "core 16.19 entropy": Demand("client secrets are long enough for MACs", "nothing is signed with a client secret"),
    "core 16.22 307": Demand("nobody is redirected to an app with a 307"),
    "discovery 2": Demand(
        "WebFinger names the issuer", "WebFinger is for addresses of many providers; none is offered"
    ),
    "discovery 3 issuer": Demand("issuer is an address without query and fragment, and the ID token's iss"),
    "discovery 3 endpoints": Demand("endpoints are addresses of the issuer, so https if it is"),
    "discovery 3 jwks_uri": Demand("the key set has no private and no symmetric key"),
    "discovery 3 x5c": Demand("certificates fit their keys", "keys have no certificates"),
    "discovery 3 openid": Demand("the scope openid is supported"),
    "discovery 3 dynamic": Demand("a dynamic provider supports id_token and implicit", NOT_DYNAMIC),
    "discovery 3 RS256": Demand("RS256 is among the algorithms of ID tokens"),
    "discovery 3 none": Demand("none is not among the algorithms"),
    "discovery 4 path": Demand("the document is at its path below the issuer, as application/json"),
    "discovery 4.1 path": Demand(
        "an issuer's path goes before /.well-known", "the base URL is an origin without a path"
    ),
    "discovery 4.2 response": Demand("the document is a 200 with a JSON object"),
    "discovery 4.2 empty": Demand("a list without elements is left out"),
    "discovery 4.3 issuer": Demand("issuer is the address under which the document was asked for"),
    "discovery 7.1 TLS": Demand("the document is behind TLS", TLS),
}
