"""Sample data of the consent page."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace as Sample
from typing import Any

from handlers.core.scopes import SCOPE_WORDS, ScopeWords
from handlers.oauth.answers import Mark
from handlers.oauth.consent_budgets import LENGTHS, budget_fields
from outbound.ai.models import Models
from store.apps.registration import DOCUMENT, DYNAMIC
from store.oauth.budgets import Budget


def handed_on_samples(text: str) -> list[Sample]:
    """What an app handed on: a helper with a helper of its own, without a name or a part."""
    first = Sample(
        **{"id": text, "depth": 1, "name": text, "api": "", "scopes": [SCOPE_WORDS["credits:spend"]], "spends": True},
        **{"spent": 20_000, "limit": 50_000, "ends_at": datetime(2026, 3, 4, 5, 6, tzinfo=UTC), "heads": True},
    )
    second = {"depth": 2, "name": "", "api": text, "limit": None, "heads": False}
    third = {"depth": 3, "spends": False, "scopes": [SCOPE_WORDS["profile"]], "heads": False}
    return [first, Sample(**{**vars(first), **second}), Sample(**{**vars(first), **third})]


def budgets_of(text: str) -> list[Sample]:
    """An app's budgets, on the page of connected apps."""
    first = Sample(
        name="budget_credits",
        limit=3_000_000,
        used=1_110_000,
        share=37,
        monthly=True,
        models=["Latchkey Echo"],
        ends_at=datetime(2026, 1, 1, tzinfo=UTC),
        text=text,
        error=text,
    )
    return [
        first,
        Sample(
            **{
                **vars(first),
                "name": "budget_llm-inference",
                "monthly": False,
                "models": [],
                "ends_at": None,
                "error": "",
            }
        ),
    ]


def consent_pages(text: str, known: dict[str, Any], app: Sample) -> dict[str, dict[str, Any]]:
    """The values of the template, as in `pages`."""
    scopes = [Sample(name=n, words=w, before=n == "profile") for n, w in SCOPE_WORDS.items() if n != "openid"]
    of_an_api = [
        Sample(name="orders:write", words=ScopeWords(text, text, True, text), before=True),
        Sample(name="orders:read", words=ScopeWords(text, "", False, text), before=False),
    ]
    first = {
        **known,
        "request_id": text,
        "app": app,
        "app_domain": text,
        "mark": Mark(False, text, text),
        "asked": [(None, scopes), (Sample(name=text, host=text), of_an_api)],
        "kept": [SCOPE_WORDS["credits:read"].title, text],
        "next": text,
        "amount": "5.00",
        "error": "",
        "signs_in": True,
        "paused": False,
        "budgeted": False,
        "device": None,
        "budgets": [],
        "lengths": LENGTHS,
        "chosen_length": "0",
    }
    asked = [Budget("credits", 3_000_000, "month", ("latchkey-echo",)), Budget("llm-inference", 100_000)]
    budgets = budget_fields(asked, Models(()), {"budget_credits": text})
    device = Sample(code=text, name=text, address=text, near=False, asked=text)
    form = {**known, "code": "", "example": text, "next": text, "error": ""}
    by_document = {**first, "mark": Mark(False, "", text, DOCUMENT, text)}
    return {
        "oauth/consent.html document": by_document,
        "oauth/consent.html paused": {**first, "paused": True},
        "oauth/consent.html budgeted": {**first, "budgeted": True},
        "oauth/consent.html itself": {**first, "mark": Mark(False, "", "", DYNAMIC)},
        "oauth/consent.html": first,
        "oauth/consent.html budget": {**first, "budgets": budgets, "chosen_length": "86400"},
        "oauth/consent.html again": {**first, "error": text, "amount": text},
        "oauth/consent.html device": {**first, "device": device},
        "oauth/device.html": form,
        "oauth/device.html wrong": {**form, "error": text},
        "oauth/device.html matching": {**form, "code": text},
        "oauth/device_done.html": {**known, "connected": True},
        "oauth/device_done.html denied": {**known, "connected": False},
    }
