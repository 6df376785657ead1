"""What RFC 7662, 8707 and 9068 demand of the server: introspection, resource indicators, JWT access tokens.

Each has a test that is marked for it, or a reason why not. A name is the RFC, the section, and a word. What the RFCs
demand of clients and of other resource servers is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

INTROSPECTION: dict[str, Demand] = {
    "7662 2 TLS": Demand("the introspection endpoint is behind TLS", TLS),
    "7662 2.1 form": Demand("a question is a POST with a form"),
    "7662 2.1 token": Demand("token is required"),
    "7662 2.1 hint": Demand("a wrong token_type_hint narrows no search"),
    "7662 2.1 authorization": Demand("who asks must prove itself"),
    "7662 2.2 json": Demand("the answer is a JSON object, as application/json, with the Boolean active"),
    "7662 2.2 scope": Demand("scope is a list of scopes with spaces between them"),
    "7662 2.2 times": Demand("exp and iat are integers in seconds"),
    "7662 2.2 registered": Demand("members of the answer are registered names"),
    "7662 2.2 inactive": Demand("dead, unknown and foreign tokens are active: false"),
    "7662 2.2 no more": Demand("nothing else should be said about them"),
    "7662 2.3 credentials": Demand("wrong credentials are a 401"),
    "7662 2.3 bearer": Demand("a wrong bearer token of the caller is a 401", "callers prove themselves as clients do"),
    "7662 2.3 no error": Demand("a question about a dead token is no error"),
    "7662 4 expired": Demand("a token past its end is inactive"),
    "7662 4 early": Demand("a token before its time is inactive", "every token counts from its issue"),
    "7662 4 revoked": Demand("a revoked token is inactive"),
    "7662 4 signature": Demand("the signature of a signed token is checked"),
    "7662 4 resource": Demand("a token for another resource is inactive"),
    "7662 4 authorized": Demand("who asks should be authorized to ask: an API, or the token's own app"),
    "7662 4 throttled": Demand("questions are limited"),
    "7662 4 TLS": Demand("TLS is 1.2 or later", TLS),
    "7662 4 cached": Demand("nobody keeps an answer longer than it is true"),
    "7662 5 privacy": Demand("ids of persons are kept from who must not know them"),
}

RESOURCES: dict[str, Demand] = {
    "8707 2 absolute": Demand("resource is an absolute URI"),
    "8707 2 fragment": Demand("resource has no fragment"),
    "8707 2 several": Demand("a request may name several resources"),
    "8707 2 invalid_target": Demand("an unknown, malformed or missing resource is invalid_target"),
    "8707 2 audience": Demand("an access token should be for the named resource alone, and aud says so"),
    "8707 2.1 grant": Demand("the resource of an authorization request applies to the whole grant"),
    "8707 2.1 JWT": Demand("in a request object resource is a string or an array of strings"),
    "8707 2.1 default": Demand("without resource there is a default, or invalid_target"),
    "8707 2.1 error": Demand("a resource that is not acceptable goes back to the client as invalid_target"),
    "8707 2.2 grants": Demand("every grant type takes resource at the token endpoint"),
    "8707 2.2 granted": Demand("a token request gets no resource beyond those granted"),
    "8707 2.2 refresh token": Demand("the refresh token keeps the whole grant, whatever resource the exchange names"),
    "8707 2.2 downscope": Demand("a token should have only the scopes of its resource"),
    "8707 2.2 scope": Demand("the answer says which scopes the token has, if not those asked for"),
    "8707 3 tenant": Demand("a path makes another resource"),
}

JWT_TOKENS: dict[str, Demand] = {
    "9068 2.1 signed": Demand("a JWT access token is signed, and never with none"),
    "9068 2.1 asymmetric": Demand("its algorithm should be asymmetric"),
    "9068 2.1 RS256": Demand("RS256 is among the algorithms"),
    "9068 2.1 typ": Demand("typ is at+jwt"),
    "9068 2.2 claims": Demand("it has iss, exp, aud, sub, client_id, iat and jti"),
    "9068 2.2 person": Demand("sub should be the person who granted it"),
    "9068 2.2 app": Demand("without a person, sub should be the client"),
    "9068 2.2.1 same": Demand("acr and auth_time are the same in all tokens of an authorization"),
    "9068 2.2.2 identity": Demand("other claims about the person have their registered names"),
    "9068 2.2.3 scope": Demand("scope should be in it"),
    "9068 2.2.3 meaning": Demand("every scope in it has a meaning at its audience"),
    "9068 2.2.3.1 groups": Demand(
        "groups, roles and entitlements are called as SCIM calls them", "no access token has any of them"
    ),
    "9068 3 aud": Demand("aud should be the resource of the request"),
    "9068 3 ambiguous": Demand("no token whose meaning is ambiguous is issued"),
    "9068 3 default": Demand("without resource, aud is a default, which should follow from the scopes"),
    "9068 3 several": Demand(
        "scopes of several default resources should be invalid_scope",
        "not met: the answer is invalid_target, RFC 8707 2 has it for a wrong combination of resource and scope",
    ),
    "9068 4 metadata": Demand("metadata should publish the keys and the issuer"),
    "9068 4 consistent": Demand("RFC 8414's and OpenID's metadata are consistent"),
    "9068 4 invalid_token": Demand("a resource answers a wrong token with invalid_token"),
    "9068 5 sub": Demand("a client can't choose an id that is a person's sub"),
    "9068 5 aud": Demand("each resource has an identifier of its own"),
    "9068 6 correlation": Demand("a person's sub can differ by resource"),
}

TOKEN_CLAUSES: dict[str, Demand] = {**INTROSPECTION, **RESOURCES, **JWT_TOKENS}
