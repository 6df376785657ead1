"""The changes to an app, as lines for the mail to its owner."""

from __future__ import annotations

from typing import Any

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
}
_ADDRESSES = {"redirect_uris": "Redirect URI", "post_logout_redirect_uris": "Address after signing out"}
_HANDLED = ("name", *_ADDRESSES)  # in words of their own


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
    lines += [
        f"{_LABELS.get(name, name)}: {_shown(value)}"
        for name, value in fields.items()
        if name not in _HANDLED and value != getattr(app, name)
    ]
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value) or "none"
