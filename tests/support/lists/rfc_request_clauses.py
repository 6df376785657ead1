"""What RFC 9126 (pushed requests) and RFC 9101 (signed requests) demand of an authorization server.

Each has a test that is marked for it, or a reason why not. A name is the RFC, the section and a word. What the RFCs
demand of clients is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

BY_VALUE = "a request object comes by value: request_uri is only what the server gave out itself"
NOT_ENCRYPTED = "encrypted request objects are not offered, and an object that is no JWS is refused"

PUSHED: dict[str, Demand] = {
    "9126 2 https": Demand("the endpoint's URL MUST use https", TLS),
    "9126 2 metadata": Demand("the metadata SHOULD include the endpoint"),
    "9126 2 authentication": Demand("the rules for client authentication at the token endpoint apply"),
    "9126 2 audience": Demand("the server MUST accept the issuer, the token endpoint and this endpoint as audience"),
    "9126 2.1 authenticate": Demand("the server MUST authenticate the client as at the token endpoint"),
    "9126 2.1 request_uri": Demand("the server MUST reject a request with request_uri"),
    "9126 2.1 validate": Demand("the server MUST validate the request as at the authorization endpoint"),
    "9126 2.1 germane": Demand("parameters of client authentication are not part of the authorization request"),
    "9126 2.2 created": Demand("a verified request MUST get a request URI, in JSON, with a 201"),
    "9126 2.2 expires_in": Demand("expires_in is a positive integer of seconds"),
    "9126 2.2 random": Demand("request_uri MUST contain a part that nobody can predict or guess"),
    "9126 2.2 bound": Demand("request_uri MUST be bound to the client that posted the request"),
    "9126 2.3 error": Demand("an error has the format of the token endpoint and a fitting code"),
    "9126 2.3 signed": Demand(
        "a client that has to sign its requests MUST be refused otherwise", "no client can be registered to have to"
    ),
    "9126 2.3 405": Demand("another method than POST is a 405"),
    "9126 2.3 413": Demand("a request that is too large is a 413"),
    "9126 2.3 429": Demand("too many requests are a 429"),
    "9126 3 claims": Demand("with a request object, all other parameters MUST be claims in it"),
    "9126 3 decrypt": Demand("an encrypted request object MUST be decrypted", NOT_ENCRYPTED),
    "9126 3 signature": Demand("the signature of a request object MUST be validated"),
    "9126 3 client_id": Demand("client_id in the request object MUST be the authenticated client's"),
    "9126 4 once": Demand("request_uri SHOULD be one-time use; a reload may be allowed"),
    "9126 4 expired": Demand("an expired request_uri MUST be rejected"),
    "9126 4 validate": Demand("a pushed request MUST be validated like any other"),
    "9126 4 only": Demand("a client that has to push is refused with invalid_request otherwise"),
    "9126 5 required": Demand("require_pushed_authorization_requests says what the server accepts"),
    "9126 7.1 entropy": Demand("the server MUST account for the entropy of request URIs"),
    "9126 7.2 redirect": Demand("new redirect URIs MUST only be accepted from authenticated clients"),
    "9126 7.3 replay": Demand("the server SHOULD make request URIs one-time use"),
    "9126 7.4 policy": Demand("the request is checked against the client's registration when the browser arrives"),
}

SIGNED: dict[str, Demand] = {
    "9101 4 all": Demand("a request object MUST contain all parameters of the request"),
    "9101 4 JSON": Demand("strings MUST be JSON strings in UTF-8, and numbers MUST be JSON numbers"),
    "9101 4 iss and aud": Demand("the object SHOULD contain iss and aud, which should be the issuer"),
    "9101 4 encrypted": Demand("an encrypted object MUST be signed first", NOT_ENCRYPTED),
    "9101 4 metadata": Demand("the metadata can name the algorithms"),
    "9101 4 nested": Demand("request and request_uri MUST NOT be in an object"),
    "9101 4 type": Demand("the media type is oauth-authz-req+jwt, and older programs use jwt"),
    "9101 5 both": Demand("request and request_uri MUST NOT be in one request"),
    "9101 5 client_id": Demand("client_id MUST match the object's"),
    "9101 5 signed": Demand("the object MUST be signed, or signed and encrypted"),
    "9101 5 only": Demand("the server MUST only use the parameters in the object"),
    "9101 5.2 content": Demand("request_uri MUST lead to an object that the server can reach", BY_VALUE),
    "9101 5.2 URN": Demand("a request_uri that the server gave out MUST be a URN"),
    "9101 5.2.1 entropy": Demand("request_uri MUST have appropriate entropy for its lifetime"),
    "9101 5.2.3 fetch": Demand("the server MUST fetch the object with GET", BY_VALUE),
    "9101 6.1 decrypt": Demand("an encrypted object MUST be decrypted", NOT_ENCRYPTED),
    "9101 6.2 signature": Demand("the signature MUST be validated with a key of the client and the algorithm in alg"),
    "9101 6.2 kid": Demand("the key that kid names MUST be the one that is used, and MUST be the client's"),
    "9101 6.2 algorithm": Demand("the algorithm MUST be verified"),
    "9101 6.2 error": Demand("a wrong key or signature MUST be invalid_request_object"),
    "9101 6.2 redirect": Demand(
        "at the authorization endpoint the client MUST get this error",
        "not met: an object that nobody signed names no redirect URI to trust, so the error is on a page",
    ),
    "9101 6.3 extract": Demand("the server MUST extract the parameters from the object"),
    "9101 6.3 only": Demand("the server MUST only use these, even if the query has the same parameter"),
    "9101 6.3 client_id": Demand("client_id in the query and in the object MUST be identical"),
    "9101 6.3 error": Demand("a failed check MUST be an error to the client"),
    "9101 7 request_not_supported": Demand("a client that can't use request gets request_not_supported"),
    "9101 7 request_uri_not_supported": Demand("an address of the client's gets request_uri_not_supported"),
    "9101 8 TLS": Demand("confidentiality MUST be protected by TLS", TLS),
    "9101 10.1 signed": Demand("an object in request MUST be signed with an appropriate algorithm"),
    "9101 10.2 source": Demand("the source of the request MUST be verified"),
    "9101 10.2 given out": Demand("who gives out request URIs MUST authenticate the client and validate the signature"),
    "9101 10.2 short": Demand("the lifetime of such a request URI MUST be short, and its entropy large"),
    "9101 10.4.1 fetch": Demand("the server should not be led to fetch what an attacker names"),
    "9101 10.5 downgrade": Demand(
        "require_signed_request_object of a client or the server MUST be enforced", "neither can be set; it is false"
    ),
    "9101 10.8 assertion": Demand("an object should be no client assertion, and an assertion no object"),
    "9101 11.1 consent": Demand("the consent page MUST indicate the client"),
}

REQUEST_CLAUSES: dict[str, Demand] = {**PUSHED, **SIGNED}
