"""Sample data for the templates about APIs in the developer portal."""

from __future__ import annotations

from types import SimpleNamespace as Sample
from typing import Any

from handlers.core.lists.paging import part_of
from handlers.developer.api_form import ApiForm, ScopeRow
from store.apps.client_secrets import SecretNote
from store.apps.owners.owned_apis import AppAtApi, AppsAtApi
from tests.support.data.deletion_samples import WAYS


def api_pages(text: str, known: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The values of the templates about APIs, as in `pages`."""
    api = Sample(
        client_id=text,
        identifier=text,
        name=text,
        scopes=(text, text),
        active=True,
        status="active",
        token_format="jwt",
        signing_alg="ES256",
        token_lifetime=600,
        created_at=1_700_000_000_000,
    )
    off = Sample(**{**vars(api), "active": False, "status": "off", "token_format": "opaque", "scopes": (text,)})
    rows = [ScopeRow(text, text, text, care=True), ScopeRow(text, text), ScopeRow(new=True)]
    wrong_rows = [
        ScopeRow(text, text, text, removed=True, error=text, wrong="title"),
        ScopeRow(text, text, new=True, error=text, wrong="name"),
    ]
    errors = dict.fromkeys(("name", "scopes", "token_format", "signing_alg", "token_lifetime"), text)
    wrong_form = ApiForm(text, text, text, text, wrong_rows, errors)
    using = AppsAtApi((AppAtApi(text, text, True, (text, text)), AppAtApi(text, text, False, (text,))), 3)
    page: dict[str, Any] = {
        **known,
        **{"scopes": part_of("abc", 1, 2, "/x", "scopes", "scopes"), "apps": part_of(using.apps, 1, 1, "/x", "apps")},
        "api": api,
        "form": ApiForm(text, "jwt", "ES256", "600", rows),
        "using": using,
        "base_url": text,
        "default_lifetime": 600,
        "secret": None,
        "wrong": None,
        "notice": text,
        "notes": (SecretNote("a", "Ab-1", 1_700_000_000_000),),
        "used": None,
    }
    two = (SecretNote("a"), SecretNote("b"))
    return {
        "developer/apis.html": {**known, "apis": part_of((api, off) * 2, 2, 1, "/developer/apis"), "notice": text},
        "developer/apis.html first": {**known, "apis": part_of((), 2, 1, ""), "notice": None},
        "developer/api.html": page,
        "developer/api.html second": {**page, "secret": text, "notes": two, "notice": None},
        "developer/api.html wrong": {
            **page,
            "wrong": text,
            "form": wrong_form,
        },
        "developer/api.html off": {**page, "api": off, "notes": (), "using": AppsAtApi((), 0)},
        "developer/api.html disabled": {**page, "api": Sample(**{**vars(off), "status": "disabled"})},
        "developer/delete_api.html": {
            **known,
            "api": api,
            "typed": text,
            **WAYS,
            "errors": dict.fromkeys(("confirm", "password", "code", "passkey"), text),
        },
    }
