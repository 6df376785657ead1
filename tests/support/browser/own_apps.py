"""Apps that a person registers on the developer pages, and what these pages show of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from store.wiring import Store
from tests.support.http.driver import App, Browser, Service, text_of

URI = "https://mine.example/callback"


@pytest.fixture
def facts() -> dict[str, Any]:
    """What a test wants the server to be; parametrised where it matters."""
    return {}


@pytest.fixture
def site(memory_store: Store, base_url: str, facts: dict[str, Any]) -> Site:
    return Site(memory_store, base_url, **facts)


async def register(browser: Browser, **fields: str | None) -> HTTPResponse:
    """Through the page."""
    page = await browser.get("/developer/register")
    assert page.code == 200
    filled: dict[str, str | None] = {"name": "My App", "redirect_uris": URI, "kind": "confidential", **fields}
    return await browser.submit(page, "/developer/register", **filled)


def client_id_of(page: HTTPResponse) -> str:
    found = re.search(r"<dt>Client ID</dt><dd[^>]*><code[^>]*>(\w+)</code>", page.body.decode())
    assert found, text_of(page)
    return found[1]


def secret_of(page: HTTPResponse) -> str:
    found = re.search(r'aria-labelledby="secret"[^>]*>(lk_cs_[\w-]{43})</pre>', page.body.decode())
    assert found, text_of(page)
    return found[1]


async def own_app(service: Service, browser: Browser, **fields: str) -> App:
    """A registered app, as its back end knows it."""
    page = await register(browser, **fields)
    return App(service.base_url, client_id_of(page), secret_of(page), URI)
