"""Sample data of the pages that delete something after a re-authentication."""

from __future__ import annotations

from types import SimpleNamespace as Sample
from typing import Any

WAYS: dict[str, Any] = {
    **dict.fromkeys(("has_app", "has_passkey", "asks_code", "asks_password", "passkeys_work", "lacks_password"), True),
    **{"confirm_with": [], "link_key": "a-key", "back": "/account/delete"},
}
"""Every way to confirm."""
ELSEWHERE: dict[str, Any] = {**WAYS, "confirm_with": [Sample(name="oidc", title="Elsewhere", type="oidc")]}
"""With an account at another site, before the sign-in there."""


def deletion_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of these templates, as `pages` has them. `known`: those of a person who is signed in."""
    page: dict[str, Any] = {**known, "apps": 1, "documents": 2, "paid": 1, "typed": text, **WAYS}
    first = {**page, "apps": 0, "documents": 0, "paid": 0, "errors": {}}
    first |= dict.fromkeys(("has_app", "has_passkey", "asks_code", "lacks_password"), False)
    return {
        "account/delete.html": {**page, "errors": dict.fromkeys(("email", "password", "code", "passkey"), text)},
        "account/delete.html first": first,
        "account/delete.html elsewhere": {**first, **ELSEWHERE, "has_passkey": False, "errors": {}},
        "account/delete.html confirmed": {**first, "asks_password": False},
    }
