"""How an app proves itself, as fields of its form: by a secret, or by a key of which it registers the public half."""

from __future__ import annotations

import orjson

from store.apps.client_keys import (
    AUTH_METHODS,
    BY_KEY,
    BY_NOTHING,
    BY_SECRET,
    InvalidKeys,
    check_jwks_uri,
    registered_keys,
)
from store.phrases import Phrase

FORBIDDEN_KEY = Phrase("Only an app with its own server can keep a key.")


def shown_keys(jwks: str) -> str:
    """The registered keys as text for people."""
    return orjson.dumps(orjson.loads(jwks), option=orjson.OPT_INDENT_2).decode() if jwks else ""


def chosen_method(chosen: str, public: bool) -> str:
    """The chosen way. A public app has none. Raises ValueError for one that the app's kind doesn't allow."""
    if chosen not in AUTH_METHODS or (chosen == BY_NOTHING and not public):
        raise ValueError(Phrase("Choose one of these."))
    if public and chosen == BY_KEY:
        raise ValueError(FORBIDDEN_KEY)
    return BY_NOTHING if public else chosen


def default_method(public: bool) -> str:
    """The way of a new app."""
    return BY_NOTHING if public else BY_SECRET


def check_keys(method: str, typed: str, uri: str, *, loopback: bool) -> tuple[str, dict[str, list[str]]]:
    """The keys as a registration has them, and errors by field. `loopback`: whether `uri` may be on this machine."""
    kept, errors = "", dict[str, list[str]]()
    if typed:
        try:
            kept = registered_keys(typed.encode())
        except InvalidKeys as error:
            errors["jwks"] = [error.of_set]
    if uri:
        try:
            check_jwks_uri(uri, loopback=loopback)
        except InvalidKeys:
            errors["jwks_uri"] = [Phrase("Start with https://, and write the host in lower case.")]
    if typed and uri:
        errors["jwks"] = [Phrase("Paste the keys or enter their address, not both.")]
    if method == BY_KEY and not typed and not uri:
        errors["jwks"] = [Phrase("Paste your app’s public keys, or enter the address where it publishes them.")]
    return kept, errors
