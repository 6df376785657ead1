"""The changes to an app, as lines for the mail to its owner."""

from __future__ import annotations

from typing import Any

from store.apps.registration import Registration

_SAID = {
    "homepage": "Home page",
    "scopes": "What it may ask people for",
    "pkce_required": "Whether PKCE is required",
    "hosted_storage": "Whether it always keeps documents here",
    "iss_in_response": "Whether iss is sent",
    "refresh_retry_seconds": "Refresh retry window, in seconds",
    "refresh_lifetime_days": "Days after which a sign-in ends",
}
_TOLD = ("name", "redirect_uris")  # in words of their own


def changed_lines(app: Registration, fields: dict[str, Any]) -> list[str]:
    """A line for each of the `fields` that differs from the registration; none if nothing changed."""
    lines = []
    if fields["name"] != app.name:
        lines.append(f"Name: {fields['name']} (until now {app.name})")
    lines += [f"Redirect URI added: {uri}" for uri in fields["redirect_uris"] if uri not in app.redirect_uris]
    lines += [f"Redirect URI removed: {uri}" for uri in app.redirect_uris if uri not in fields["redirect_uris"]]
    lines += [
        f"{_SAID.get(name, name)}: {_shown(value)}"
        for name, value in fields.items()
        if name not in _TOLD and value != getattr(app, name)
    ]
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, tuple) else str(value) or "none"
