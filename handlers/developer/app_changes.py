"""The changes to an app, as lines for the mail to its owner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from store.apps.api_scopes import parse_qualified
from store.apps.registration import Registration
from store.phrases import Phrase

_LABELS = {
    "homepage": Phrase("Home page"),
    "scopes": Phrase("What it can ask people for"),
    "pkce_required": Phrase("PKCE required"),
    "hosted_storage": Phrase("Always stores documents here"),
    "iss_in_response": Phrase("Sends iss"),
    "refresh_retry_seconds": Phrase("Refresh retry window (seconds)"),
    "refresh_lifetime_days": Phrase("Days until people sign in again"),
    "backchannel_logout_uri": Phrase("Back-channel logout URL"),
    "jwks_uri": Phrase("Address of its public keys"),
    "require_pushed": Phrase("Pushed authorization requests (PAR) required"),
    "dpop_required": Phrase("DPoP required"),
    "owner_second_step": Phrase("Two-step verification required"),
    "device_grant": Phrase("Signs people in on devices that show a code"),
    "id_token_alg": Phrase("ID token signature"),
}
_KEYS = ("private_key_jwt", "jwks", "jwks_uri")
_HANDLED = ("name", "redirect_uris", "post_logout_redirect_uris", "api_scopes", "private_key_jwt", "jwks")
"""Fields with words of their own."""


def changed_lines(app: Registration, fields: dict[str, Any]) -> list[Phrase]:
    """A line for each of the `fields` that differs from the registration; none if nothing changed."""
    return [*_own_lines(app, {**_own_fields(app), **fields}), *_labelled(app, fields)]


def switched(status: str) -> Phrase:
    """The line for an app or an API that is switched on or off."""
    return Phrase("Switched on") if status == "active" else Phrase("Switched off")


def changes_keys(app: Registration, fields: dict[str, Any]) -> bool:
    """Whether these fields change how the app proves itself."""
    return any(fields[name] != getattr(app, name) for name in _KEYS)


def _own_lines(app: Registration, after: dict[str, Any]) -> Iterator[Phrase]:
    if after["name"] != app.name:
        yield Phrase("Name: %(name)s (was %(before)s)", name=after["name"], before=app.name)
    for uri in _more(app.redirect_uris, after["redirect_uris"]):
        yield Phrase("Redirect URI added: %(uri)s", uri=uri)
    for uri in _more(after["redirect_uris"], app.redirect_uris):
        yield Phrase("Redirect URI removed: %(uri)s", uri=uri)
    for uri in _more(app.post_logout_redirect_uris, after["post_logout_redirect_uris"]):
        yield Phrase("Sign-out redirect URI added: %(uri)s", uri=uri)
    for uri in _more(after["post_logout_redirect_uris"], app.post_logout_redirect_uris):
        yield Phrase("Sign-out redirect URI removed: %(uri)s", uri=uri)
    for scope in _more(app.api_scopes, after["api_scopes"]):
        yield Phrase("API scope added: %(scope)s", scope=parse_qualified(scope).name)
    for scope in _more(after["api_scopes"], app.api_scopes):
        yield Phrase("API scope removed: %(scope)s", scope=parse_qualified(scope).name)
    if after["private_key_jwt"] and not app.private_key_jwt:
        yield Phrase("Signs in with its own key; its client secrets no longer work")
    elif app.private_key_jwt and not after["private_key_jwt"]:
        yield Phrase("Signs in with a client secret, which you haven’t created yet")
    if after["jwks"] != app.jwks:
        yield Phrase("Public keys changed") if after["jwks"] else Phrase("Public keys removed")


def _own_fields(app: Registration) -> dict[str, Any]:
    """The fields that have words of their own."""
    return {name: getattr(app, name) for name in _HANDLED}


def _more(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [one for one in after if one not in before]


def _labelled(app: Registration, fields: dict[str, Any]) -> Iterator[Phrase]:
    for name, value in fields.items():
        if name not in _HANDLED and value != getattr(app, name):
            yield Phrase("%(field)s: %(value)s", field=_LABELS.get(name, name), value=_shown(value))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return Phrase("yes") if value else Phrase("no")
    return ", ".join(value) if isinstance(value, tuple) else str(value) or Phrase("none")
