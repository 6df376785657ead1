"""What the FAPI 2.0 Security Profile demands of an authorization server and of a resource server.

Each has a test that is marked for it, or a reason why not. A name is the section, the number in its list, and a word.
What the profile demands of clients is left out. A demand on the server holds for apps with the profile `fapi2`.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

MTLS = "apps prove themselves by private_key_jwt and bind tokens by DPoP; MTLS is not offered"

FAPI: dict[str, Demand] = {
    "5.2.1-1 TLS": Demand("only endpoints behind TLS are offered", TLS),
    "5.2.1-1 connections": Demand("connections to other servers use TLS"),
    "5.2.1-2 version": Demand("TLS is 1.2 or later", TLS),
    "5.2.1-3 BCP 195": Demand("TLS follows BCP 195", TLS),
    "5.2.1-4 DNSSEC": Demand("DNSSEC should protect the names", "the operator of the name's zone signs it"),
    "5.2.1-5 certificates": Demand("certificates of other servers are checked"),
    "5.2.2-1 cipher suites": Demand("endpoints for servers have only the recommended cipher suites", TLS),
    "5.2.2.1 MTLS": Demand("an ecosystem may demand MTLS of every connection", MTLS),
    "5.2.3-1 stripping": Demand("browsers can't be downgraded from TLS"),
    "5.2.3-2 cipher suites": Demand("endpoints for browsers have only allowed cipher suites", TLS),
    "5.2.3-3 CORS": Demand("the authorization endpoint has no CORS"),
    "5.3.2.1-1 metadata": Demand("the metadata is a document of Discovery and of RFC 8414"),
    "5.3.2.1-2 passwords": Demand("the password grant is refused"),
    "5.3.2.1-3 confidential": Demand("an app is confidential"),
    "5.3.2.1-4 bound": Demand("access tokens are bound to their sender"),
    "5.3.2.1-5 DPoP": Demand("they are bound by DPoP"),
    "5.3.2.1-6 authentication": Demand("an app authenticates by private_key_jwt"),
    "5.3.2.1-7 open redirectors": Demand("there are no open redirectors"),
    "5.3.2.1-8 audience": Demand("the audience of an assertion is the issuer alone, as a string"),
    "5.3.2.1-9 rotation": Demand(
        "refresh tokens are not rotated",
        "not met: every refresh token is rotated; as note 1 demands of those who rotate, an app may repeat a refresh",
    ),
    "5.3.2.1-9 repeat": Demand("who rotates lets an app repeat a refresh with the old token, for some time"),
    "5.3.2.1-10 nonces": Demand("the server may demand its nonces in proofs"),
    "5.3.2.1-11 codes": Demand("a code lives for at most 60 seconds"),
    "5.3.2.1-12 code binding": Demand("a code can be bound to a DPoP key"),
    "5.3.2.1-13 early": Demand("a JWT is accepted if its iat or nbf is up to 10 seconds ahead"),
    "5.3.2.1-13 too early": Demand("a JWT is refused if its iat or nbf is more than 60 seconds ahead"),
    "5.3.2.1-14 privileges": Demand("an access token should have no more privileges than needed"),
    "5.3.2.2-1 response_type": Demand("response_type is code"),
    "5.3.2.2-2 PAR": Demand("an app can push its requests and authenticates for it"),
    "5.3.2.2-3 only PAR": Demand("other authorization requests are refused"),
    "5.3.2.2-4 PAR by a stranger": Demand("a pushed request without authentication is refused"),
    "5.3.2.2-5 PKCE": Demand("PKCE with S256 is required"),
    "5.3.2.2-6 redirect_uri": Demand("a pushed request has a redirect_uri"),
    "5.3.2.2-7 iss": Demand("an authorization response has iss"),
    "5.3.2.2-8 http": Demand("no redirect URI is http"),
    "5.3.2.2-9 once": Demand("a code works once"),
    "5.3.2.2-10 307": Demand("nobody is redirected with a 307"),
    "5.3.2.2-11 303": Demand("browsers should be redirected with a 303"),
    "5.3.2.2-12 request_uri": Demand("a request_uri lives for less than 600 seconds"),
    "5.3.2.2-13 consent": Demand("the person should see who asks, and for what"),
    "5.3.2.2-14 nonce": Demand("a nonce of 64 characters works"),
    "5.3.2.3-1 sub": Demand("OpenID Connect tells the app who the person is"),
    "5.3.4-1 header": Demand("a resource takes access tokens in the header"),
    "5.3.4-2 query": Demand("a resource takes none in the query"),
    "5.3.4-3 validity": Demand("a resource checks that a token is intact, live and not revoked"),
    "5.3.4-4 sufficient": Demand("a resource checks that a token is sufficient"),
    "5.3.4-5 sender": Demand("a resource checks the sender"),
    "5.4.1-1.1 RFC 8725": Demand("JWTs are read as RFC 8725 says"),
    "5.4.1-1.2 algorithms": Demand("JWTs are signed with PS256, ES256 or EdDSA with Ed25519"),
    "5.4.1-1.3 none": Demand("none is no algorithm"),
    "5.4.1-2 RSA": Demand("RSA keys have at least 2,048 bits"),
    "5.4.1-3 curves": Demand("keys of elliptic curves have at least 224 bits"),
    "5.4.1-4 entropy": Demand("credentials have at least 128 random bits"),
    "5.4.2-1 TLS": Demand("the server's key set is behind TLS", TLS),
    "5.4.2-2 jku": Demand("headers should have neither x5u nor jku"),
    "5.4.2-3 kid": Demand("the server's key set should not have a name twice"),
    "5.4.3 kid": Demand("of keys with one name, the right one is chosen"),
    "6.6 client ids": Demand("a client_id should not pass for a person's sub"),
}
