"""What RFC 9449 (DPoP) and RFC 7523 (client assertions) demand of an authorization server and of a resource server.

Each has a test that is marked for it, or a reason why not. A name is the RFC, the section and a word. What the RFCs
demand of clients is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

NO_GRANT = "a JWT is no authorization grant here; the metadata does not name the grant type"

DPOP: dict[str, Demand] = {
    "9449 2 HTTPS": Demand("DPoP MUST be used with HTTPS", TLS),
    "9449 4.2 typ": Demand("the header MUST have typ dpop+jwt"),
    "9449 4.2 alg": Demand("alg MUST NOT be none or symmetric"),
    "9449 4.2 jwk": Demand("the header MUST have a public key, and MUST NOT have a private one"),
    "9449 4.2 claims": Demand("a proof MUST contain jti, htm, htu and iat"),
    "9449 4.2 ath": Demand("with an access token a proof MUST contain its SHA-256 hash in ath"),
    "9449 4.3-1 one": Demand("there is not more than one DPoP header field"),
    "9449 4.3-2 single": Demand("its value is a single well-formed JWT"),
    "9449 4.3-3 claims": Demand("all required claims are there"),
    "9449 4.3-4 typ": Demand("typ is dpop+jwt"),
    "9449 4.3-5 alg": Demand("alg is asymmetric, not none, and supported"),
    "9449 4.3-6 signature": Demand("the signature verifies with the key in jwk"),
    "9449 4.3-7 private": Demand("jwk has no private key"),
    "9449 4.3-8 htm": Demand("htm is the method of the request"),
    "9449 4.3-9 htu": Demand("htu is the URI of the request, ignoring query and fragment"),
    "9449 4.3-10 nonce": Demand("nonce is one that the server provided"),
    "9449 4.3-11 time": Demand("the creation time is within an acceptable window"),
    "9449 4.3-12 ath": Demand("ath is the hash of the access token"),
    "9449 4.3-12 key": Demand("the key is the one that the access token is bound to"),
    "9449 4.3 normal": Demand("htu SHOULD be normalized before it is compared"),
    "9449 5 all grants": Demand("a proof binds the token of every grant type"),
    "9449 5 error": Demand("an invalid proof is invalid_dpop_proof"),
    "9449 5 token_type": Demand("the token type MUST be DPoP"),
    "9449 5 bound": Demand("the refresh token of a public client MUST be bound to the key"),
    "9449 5 validated": Demand("the binding MUST be validated when the refresh token is used"),
    "9449 5 confidential": Demand("refresh tokens of confidential clients are not bound to the key"),
    "9449 5.1 metadata": Demand("the metadata has dpop_signing_alg_values_supported"),
    "9449 5.2 always": Demand("a client that always uses DPoP MUST be refused without the header"),
    "9449 6 identify": Demand("resource servers MUST be able to identify that and to which key a token is bound"),
    "9449 6.1 jkt": Demand("cnf.jkt of a JWT MUST be the SHA-256 thumbprint of the key in base64url"),
    "9449 6.2 cnf": Demand("introspection has the same cnf"),
    "9449 6.2 token_type": Demand("token_type at introspection MUST be DPoP"),
    "9449 7 both": Demand("a call MUST include both a proof and the access token"),
    "9449 7.1 checks": Demand("a resource server MUST check proof and key, and MUST NOT grant access otherwise"),
    "9449 7.1 error": Demand("a challenge SHOULD include the error if a token was sent"),
    "9449 7.1 algs": Demand("a challenge SHOULD include algs"),
    "9449 7.1 exposed": Demand("WWW-Authenticate is exposed to scripts of other origins"),
    "9449 7.2 bearer": Demand("a bound token that is sent as a bearer token MUST be rejected"),
    "9449 7.2 no error": Demand("without credentials the challenges SHOULD NOT include an error"),
    "9449 7.2 scheme": Demand("the challenge of the scheme that was tried SHOULD deliver the error"),
    "9449 8 demanded": Demand("a token request without a demanded nonce is a 400 use_dpop_nonce with a nonce"),
    "9449 8 unpredictable": Demand("nonces MUST be unpredictable"),
    "9449 8 one header": Demand("there MUST NOT be more than one DPoP-Nonce header"),
    "9449 8 match": Demand("a proof with a nonce that is not a recent one MUST be rejected"),
    "9449 8 exposed": Demand("DPoP-Nonce is exposed to scripts of other origins"),
    "9449 8.1 syntax": Demand("a nonce has the characters of a scope"),
    "9449 8.2 uncacheable": Demand("an answer with a nonce should be uncacheable"),
    "9449 9 resource": Demand("a call without a demanded nonce is a 401 with a DPoP challenge and a nonce"),
    "9449 10 dpop_jkt": Demand("a token request whose key is not dpop_jkt's MUST be rejected"),
    "9449 10.1 parameter": Demand("dpop_jkt in a pushed request MUST be supported"),
    "9449 10.1 header": Demand("a DPoP header of a pushed request MUST be supported, checked, and bind the code"),
    "9449 10.1 mismatch": Demand("a pushed request whose dpop_jkt is not the header's key MUST be rejected"),
    "9449 11.1 limited": Demand("proofs MUST only be accepted for a limited time"),
    "9449 11.1 once": Demand("a jti counts once in the context of its URI, on all servers"),
    "9449 11.1 large": Demand("a large jti should be rejected, or only a hash kept"),
    "9449 11.2 short": Demand("without nonces, bound access tokens SHOULD NOT be long-lived"),
    "9449 11.3 downgrade": Demand("where nonces are demanded, a proof without one MUST NOT be accepted"),
    "9449 11.3 offered": Demand(
        "a proof without a nonce MUST NOT be accepted once the client was given one",
        "not met by default: every answer to a proof offers a nonce, and --dpop-nonce required demands it",
    ),
    "9449 11.5 typ": Demand("typ MUST be verified, so that no JWT for another purpose is a proof"),
    "9449 11.6 algorithms": Demand("only secure asymmetric algorithms MUST be accepted"),
}

ASSERTIONS: dict[str, Demand] = {
    "7523 2.1 grant": Demand("assertion MUST contain a single JWT", NO_GRANT),
    "7523 2.2 type": Demand("client_assertion_type is the URN of JWTs"),
    "7523 2.2 one": Demand("client_assertion MUST NOT contain more than one JWT"),
    "7523 3-1 iss": Demand("the JWT MUST contain iss, compared as a string"),
    "7523 3-2 sub": Demand("sub MUST be the client_id"),
    "7523 3-3 aud": Demand("aud MUST identify the server, compared as a string, or the JWT MUST be rejected"),
    "7523 3-3 token endpoint": Demand("aud may be the token endpoint"),
    "7523 3-4 exp": Demand("the JWT MUST contain exp, and MUST be rejected after it"),
    "7523 3-4 far": Demand("an exp that is unreasonably far away may be rejected"),
    "7523 3-5 nbf": Demand("the JWT MUST NOT be accepted before nbf"),
    "7523 3-6 iat": Demand("iat may be there, or not"),
    "7523 3-7 jti": Demand("a jti may count once, for as long as the JWT is valid"),
    "7523 3-8 others": Demand("the JWT may contain other claims"),
    "7523 3-9 signature": Demand("a JWT with an invalid signature MUST be rejected"),
    "7523 3-10 valid": Demand("a JWT that is not valid in all other respects MUST be rejected"),
    "7523 3.1 invalid_grant": Demand("an invalid JWT as a grant MUST be invalid_grant", NO_GRANT),
    "7523 3.2 invalid_client": Demand("an invalid JWT of a client MUST be invalid_client"),
    "7523 5 RS256": Demand("RS256 is mandatory to implement"),
}

PROOF_CLAUSES: dict[str, Demand] = {**DPOP, **ASSERTIONS}
