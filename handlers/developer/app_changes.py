"""The changes to an app, as lines for the mail to its owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from store.apps.api_scopes import parse_qualified
from store.apps.registration import Registration

_LABELS = {
    "homepage": "Home page",
    "scopes": "What it may ask people for",
    "pkce_required": "Whether PKCE is required",
    "hosted_storage": "Whether it always keeps documents here",
    "iss_in_response": "Whether iss is sent",
    "refresh_retry_seconds": "Refresh retry window, in seconds",
    "refresh_lifetime_days": "Days after which a sign-in ends",
    "backchannel_logout_uri": "Back-channel logout URL",
    "jwks_uri": "Address of its public keys",
    "require_pushed": "Whether its requests must be pushed",
    "dpop_required": "Whether its tokens must be bound to a key",
    "id_token_alg": "Signature of its ID tokens",
}
_ADDRESSES = {"redirect_uris": "Redirect URI", "post_logout_redirect_uris": "Address after signing out"}
_METHODS = {
    True: "by a key of its own; its client secrets have ended",
    False: "by a client secret, which is yet to be made",
}
_KEYS = ("private_key_jwt", "jwks", "jwks_uri")
_HANDLED = ("name", "api_scopes", "private_key_jwt", "jwks", *_ADDRESSES)  # in words of their own


def changed_lines(app: Registration, fields: dict[str, Any]) -> list[str]:
    """A line for each of the `fields` that differs from the registration; none if nothing changed."""
    lines = []
    if fields["name"] != app.name:
        lines.append(f"Name: {fields['name']} (until now {app.name})")
    for name, label in _ADDRESSES.items():
        before = getattr(app, name)
        after = fields.get(name, before)
        lines += [f"{label} added: {uri}" for uri in after if uri not in before]
        lines += [f"{label} removed: {uri}" for uri in before if uri not in after]
    lines += [f"Scope of an API {change}" for change in _scope_changes(app, fields.get("api_scopes", app.api_scopes))]
    by_key = fields.get("private_key_jwt", app.private_key_jwt)
    if by_key != app.private_key_jwt:
        lines.append(f"How it proves itself: {_METHODS[by_key]}")
    if fields.get("jwks", app.jwks) != app.jwks:
        lines.append("Its public keys" if fields["jwks"] else "Its public keys were removed")
    lines += [
        f"{_LABELS.get(name, name)}: {_shown(value)}"
        for name, value in fields.items()
        if name not in _HANDLED and value != getattr(app, name)
    ]
    return lines


def changes_keys(app: Registration, fields: dict[str, Any]) -> bool:
    """Whether these fields change how the app proves itself."""
    return any(fields[name] != getattr(app, name) for name in _KEYS)


def _scope_changes(app: Registration, after: Sequence[str]) -> list[str]:
    changes = [f"added: {parse_qualified(scope).name}" for scope in after if scope not in app.api_scopes]
    return changes + [f"removed: {parse_qualified(scope).name}" for scope in app.api_scopes if scope not in after]


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value) or "none"
