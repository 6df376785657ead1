"""How a client presents itself: HTTP Basic, a secret in the body, an assertion, or its client_id alone. RFC 6749 2.3,
RFC 7521 4.2."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handlers.core.params import Params, decode_form
from store.apps.profiles import ProfileRules, listed
from store.crypto.jose import jws
from store.crypto.jose.refusal import JoseError
from store.oauth.client_assertions import CLIENT_ALGORITHMS
from store.refused import Refused

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
WHY = {
    "no_keys": "the app's keys could not be read from its jwksUri",
    "unknown_key": "the app has no such key",
    "signature": "the signature is wrong",
    "typ": "typ is JWT, client-authentication+jwt or missing",
    "sender": "iss and sub are the client_id",
    "aud": "aud is the issuer, the token endpoint or the called endpoint, and nothing else",
    "exp": "exp is missing, or more than ten minutes away",
    "expired": "it has expired",
    "not_yet": "nbf or iat is in the future",
    "jti": "jti is missing or too long",
    "too_long": "it is too long",
}
"""Why an assertion is refused, for people, by the reason of a JoseError."""


def why_refused(error: JoseError, rules: ProfileRules, words: Mapping[str, str] = WHY) -> str:
    """Why a token that an app signed is refused, for people. `rules`: of the app's profile."""
    if error.reason == "alg":
        return f"alg is {listed(rules.among(CLIENT_ALGORITHMS))}"
    if error.reason == "aud" and rules.issuer_alone:
        return "aud is the issuer alone, as a string"
    return words.get(error.reason, error.reason)


class ClientCredentials(NamedTuple):
    """What a client sent. At most one of `secret` and `assertion` is there."""

    client_id: str | None
    secret: str | None = None
    assertion: str | None = None

    @property
    def has_no_proof(self) -> bool:
        """Whether the client only named itself."""
        return self.secret is None and self.assertion is None


def read_credentials(params: Params, header: Sequence[str]) -> ClientCredentials:
    """The credentials in the body, or in the values of the header `Authorization`, never in both. Raises
    Refused("invalid_request"), and Refused("invalid_client") for an assertion beside anything else."""
    client_id, secret = params.get("client_id"), params.get("client_secret")
    if params.value("client_assertion") is not None or params.value("client_assertion_type") is not None:
        return _asserted(params, alone=not header and secret is None)
    if not header:
        return ClientCredentials(client_id, secret)
    scheme, _, encoded = header[0].partition(" ")
    if scheme.lower() != "basic":
        raise Refused("invalid_request", "Authenticate with HTTP Basic or with client_secret in the body.")
    if len(header) > 1 or secret is not None:
        raise Refused("invalid_request", "Client credentials were sent twice.")
    basic_id, basic_secret = _decode_basic(encoded.strip())
    if client_id is not None and client_id != basic_id:
        raise Refused("invalid_request", "client_id differs between header and body.")
    return ClientCredentials(basic_id, basic_secret or None)


def _asserted(params: Params, *, alone: bool) -> ClientCredentials:
    """RFC 7521 4.2: the assertion names the client, and client_id, if sent, the same one."""
    text, kind = params.require("client_assertion"), params.require("client_assertion_type")
    # RFC 7521 4.2.1 has one error for everything that is wrong with an assertion.
    if not alone:
        raise Refused("invalid_client", "An assertion is the only proof that a client sends.")
    if kind != ASSERTION_TYPE:
        raise Refused("invalid_client", f"client_assertion_type is {ASSERTION_TYPE}.")
    try:
        named = jws.unverified_sender(text).sub
    except JoseError as error:
        raise Refused("invalid_client", f"The assertion is refused: {WHY.get(error.reason, error.reason)}.") from None
    if params.get("client_id") not in (None, named):
        raise Refused("invalid_client", "client_id is not the one of the assertion.")
    return ClientCredentials(named, assertion=text)


def _decode_basic(encoded: str) -> tuple[str, str]:
    """Decodes both halves: they are form-encoded before they are joined (RFC 6749 2.3.1)."""
    try:
        joined = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Refused("invalid_request", "The Basic credentials are malformed.") from None
    client_id, colon, secret = joined.partition(b":")
    if not colon:
        raise Refused("invalid_request", "The Basic credentials are malformed.")
    return decode_form(client_id), decode_form(secret)
