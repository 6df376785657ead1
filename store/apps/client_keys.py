"""Public keys of apps: what a registration keeps of them. RFC 7517, RFC 7591 2."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import orjson

from store.crypto.jose.jwk import PublicKey, parse_keys, read_keys
from store.crypto.jose.refusal import JoseError
from store.phrases import Phrase
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url

BY_SECRET, BY_KEY, BY_NOTHING = "client_secret", "private_key_jwt", "none"
AUTH_METHODS = (BY_SECRET, BY_KEY, BY_NOTHING)
_UNSOUND = Phrase("This isn't a valid JSON Web Key Set.")
_REASONS = {
    "private_key": Phrase("This key set has a private or a symmetric key. Publish only public keys."),
    "weak_key": Phrase("This key set has an RSA key with fewer than 2,048 or more than 4,096 bits."),
    "jwks_size": Phrase("This key set is too large. It can have at most 20 keys in 64 KiB."),
    "jwks_empty": Phrase("This key set has no usable signing key: use RSA, P-256 or Ed25519."),
}


class InvalidKeys(ValueError):
    """A set of keys, or its URL, may not register; the message says why, for people. `of_set`: the same on
    pages, where the set itself is wrong."""

    def __init__(self, message: str, of_set: str = "") -> None:
        super().__init__(message)
        self.of_set = of_set


def registered_keys(raw: bytes) -> str:
    """The text that a registration keeps of a set of keys. Keys that cannot be used here are left out. Raises
    InvalidKeys."""
    try:
        keys = read_keys(raw)
    except JoseError as error:
        reason = _REASONS.get(error.reason, _UNSOUND)
        raise InvalidKeys(f"jwks: {reason.removesuffix('.')}", of_set=reason) from None
    return orjson.dumps({"keys": [key.to_jwk(only_algorithm(key)) for key in keys]}).decode()


def authentication_of(method: str | None, public: bool | None, jwks: object, jwks_uri: str) -> dict[str, Any]:
    """The fields of a registration about how the app authenticates, from members of its record. `jwks` is the set as
    JSON has it, or None; `public` is short for the method `none`. Raises InvalidKeys."""
    if method is None:
        method = BY_NOTHING if public else BY_SECRET
    elif method not in AUTH_METHODS:
        raise InvalidKeys(f"authMethod is one of {', '.join(AUTH_METHODS)}")
    elif public not in (None, method == BY_NOTHING):
        raise InvalidKeys("authMethod and public contradict each other")
    keys = registered_keys(json.dumps(jwks).encode()) if jwks is not None else ""
    facts = {"public": method == BY_NOTHING, "private_key_jwt": method == BY_KEY}
    return {**facts, "jwks": keys, "jwks_uri": jwks_uri}


def only_algorithm(key: PublicKey) -> str | None:
    """The one algorithm that the key's owner named; None if several fit."""
    return key.algorithms[0] if len(key.algorithms) == 1 else None


@lru_cache(maxsize=1000)
def parsed_keys(text: str) -> tuple[PublicKey, ...]:
    """The keys in a text of `registered_keys`; none in an empty one. A set is parsed once."""
    return parse_keys(orjson.loads(text)) if text else ()


def check_jwks_uri(url: str, *, loopback: bool = False) -> None:
    """Raises InvalidKeys unless an app may publish its keys at this URL: the rules are those of webhooks. The host's
    addresses are checked at each fetch."""
    try:
        check_webhook_url(url, loopback=loopback)
    except InvalidWebhookUrl:
        raise InvalidKeys("jwksUri looks like https://app.example.com/jwks.json, the host in lower case") from None
