"""A pushed request as the store keeps it: its parameters, and what came of checking them. RFC 9126 2.1."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from handlers.account.authorize_address import Pairs
from handlers.core.site import Site
from handlers.oauth.requests import Interaction
from store.apps.profiles import NONE
from store.apps.registration import Registration
from store.oauth.authorizations import AuthorizationRequest

_CHECKS = 2
"""Increase it when checks of requests change: what waits meanwhile is checked again."""
_MOST_APPS = 1000
_PARTS = 6
"""Of a checked record, after the parameters."""
_OLDEST_LAST = "acr"
"""The last field that every reader of these records expects."""
_latest: OrderedDict[str, tuple[tuple[Registration, str, bool, tuple[str, ...]], str]] = OrderedDict()
"""The rules of each app, with what they are of."""


Checked = tuple[AuthorizationRequest, Interaction]


class PushedRecord(NamedTuple):
    """The parameters of a pushed request, and what came of their check, if they were checked. `rules`: what they were
    checked against, as `rules_of` says it."""

    pairs: Pairs
    rules: str = ""
    found: Checked | None = None

    @property
    def profile(self) -> str:
        """The profile of the app when it pushed the request."""
        return self.rules.partition(" ")[2] or NONE

    def checked(self, app: Registration, site: Site) -> Checked | None:
        """The request that passed the checks; None if the rules have changed since."""
        return self.found if self.rules == rules_of(app, site) else None


def rules_of(app: Registration, site: Site) -> str:
    """A digest of all that a request of the app is checked against, but for its API; after it the app's profile."""
    asked = app, site.base_url, site.require_pkce, site.mcp_scopes
    kept = _latest.get(app.client_id)
    # Comparing registrations, or finding their hash, takes longer than the rest.
    if kept is not None and kept[0][0] is app and kept[0][1:] == asked[1:]:
        return kept[1]
    # A metadata document that says the same again is no change.
    packed = replace(app, fresh_until=0).pack() if app.fresh_until else app.pack()
    digest = sha256(repr((_CHECKS, packed, *asked[1:])).encode()).hexdigest()[:32]
    rules = digest if app.profile == NONE else f"{digest} {app.profile}"
    _latest[app.client_id] = asked, rules
    _latest.move_to_end(app.client_id)
    while len(_latest) > _MOST_APPS:
        _latest.popitem(last=False)
    return rules


def write_record(record: PushedRecord) -> str:
    """The record as JSON. Sets have an order, so equal records are equal texts. A server of an earlier release, which
    an upgrade has not replaced yet, can read a record that uses none of the newer fields."""
    if record.found is None:
        return orjson.dumps([record.pairs, record.rules]).decode()
    request, (prompts, max_age, subjects, hint) = record.found
    named = None if subjects is None else sorted(subjects)
    return orjson.dumps([record.pairs, record.rules, _used(request), sorted(prompts), max_age, named, hint]).decode()


def read_record(text: str) -> PushedRecord:
    """The inverse of `write_record`. A record of a later release with more fields counts as unchecked, so that no
    condition of it is overlooked."""
    written, *check = orjson.loads(text)
    pairs = [(name, value) for name, value in written]
    if len(check) < 2:
        return PushedRecord(pairs, *check)
    if len(check) > _PARTS or len(check[1]) > len(AuthorizationRequest._fields):
        return PushedRecord(pairs, check[0])
    rules, request, prompts, max_age, subjects, hint = check
    named = None if subjects is None else frozenset(subjects)
    return PushedRecord(pairs, rules, (_request_of(*request), Interaction(frozenset(prompts), max_age, named, hint)))


def _used(request: AuthorizationRequest) -> list[Any]:
    """The fields of a request, without the last ones that have their defaults."""
    fields = list(request)
    for name in reversed(request._field_defaults):
        if fields[-1] != request._field_defaults[name] or name == _OLDEST_LAST:
            break
        fields.pop()
    return fields


def _request_of(client: str, redirect_uri: str, scopes: list[str], *more: Any) -> AuthorizationRequest:
    state, challenge, terms, place, nonce, acr, *others = more
    return AuthorizationRequest(
        client, redirect_uri, tuple(scopes), state, challenge, terms, place, nonce, tuple(acr), *others
    )
