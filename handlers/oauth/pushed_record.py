"""A pushed request as the store keeps it: its parameters, and what came of checking them. RFC 9126 2.1."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from handlers.account.authorize_address import Pairs
from handlers.core.site import Site
from handlers.oauth.requests import Interaction
from store.apps.registration import Registration
from store.oauth.authorizations import AuthorizationRequest

_CHECKS = 1
"""Increase it when checks of requests change: what waits meanwhile is checked again."""


Checked = tuple[AuthorizationRequest, Interaction]


class PushedRecord(NamedTuple):
    """The parameters of a pushed request, and what came of their check, if they were checked. `rules`: what they were
    checked against, as `rules_of` says it."""

    pairs: Pairs
    rules: str = ""
    found: Checked | None = None

    def checked(self, app: Registration, site: Site) -> Checked | None:
        """The request that passed the checks; None if the rules have changed since."""
        return self.found if self.rules == rules_of(app, site) else None


def rules_of(app: Registration, site: Site) -> str:
    """A digest of all that a request of the app is checked against, but for its API."""
    return _digest(app, site.base_url, site.require_pkce)


@lru_cache(maxsize=1024)
def _digest(app: Registration, base_url: str, require_pkce: bool) -> str:
    return sha256(repr((_CHECKS, app.pack(), base_url, require_pkce)).encode()).hexdigest()[:32]


def write_record(record: PushedRecord) -> str:
    """The record as JSON. Sets have an order, so equal records are equal texts."""
    if record.found is None:
        return orjson.dumps([record.pairs]).decode()
    request, (prompts, max_age, subjects, hint) = record.found
    named = None if subjects is None else sorted(subjects)
    return orjson.dumps([record.pairs, record.rules, tuple(request), sorted(prompts), max_age, named, hint]).decode()


def read_record(text: str) -> PushedRecord:
    """The inverse of `write_record`."""
    written, *check = orjson.loads(text)
    pairs = [(name, value) for name, value in written]
    if not check:
        return PushedRecord(pairs)
    rules, request, prompts, max_age, subjects, hint = check
    named = None if subjects is None else frozenset(subjects)
    return PushedRecord(pairs, rules, (_request_of(*request), Interaction(frozenset(prompts), max_age, named, hint)))


def _request_of(client: str, redirect_uri: str, scopes: list[str], *more: Any) -> AuthorizationRequest:
    state, challenge, terms, place, nonce, acr, *others = more
    return AuthorizationRequest(
        client, redirect_uri, tuple(scopes), state, challenge, terms, place, nonce, tuple(acr), *others
    )
