"""Signing up and signing in with a browser; a server with settings that a test chooses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from store.wiring import Store
from tests.support.http.driver import PASSWORD, Browser


@pytest.fixture
def facts() -> dict[str, Any]:
    """The server's settings for a test; parametrised where they matter."""
    return {}


@pytest.fixture
def site(memory_store: Store, base_url: str, facts: dict[str, Any]) -> Site:
    return Site(memory_store, **{"base_url": base_url, **facts})


async def sign_up(browser: Browser, email: str, password: str = PASSWORD, name: str = "Grace", query: str = "") -> Any:
    """Signs up through the page."""
    page = await browser.get("/signup" + query)
    return await browser.submit(page, "/signup", email=email, name=name, password=password, keep="1")


async def signed_in_as(browser: Browser) -> str | None:
    """The e-mail address on the account page, or None if that redirects to the sign-in page."""
    page = await browser.get("/account")
    if page.code == 303:
        assert page.headers["Location"] == "/signin?next=%2Faccount"
        return None
    found = re.search(r"<dt>E-mail</dt>\s*<dd>(\S+)", page.body.decode())
    assert page.code == 200
    assert found
    return found[1]


def cookies_of(response: HTTPResponse) -> dict[str, dict[str, str]]:
    """The cookies that a response sets: name to attributes, with the value under the empty name."""
    found = {}
    for line in response.headers.get_list("Set-Cookie"):
        first, *rest = line.split(";")
        name, _, value = first.partition("=")
        attributes = {key.strip().lower(): text for key, _, text in (part.partition("=") for part in rest)}
        found[name] = {"": value, **attributes}
    return found
