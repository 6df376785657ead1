"""Journeys of people to an identity provider and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from outbound.identity.providers import OIDC, Provider, Providers
from outbound.identity.sign_in import SignInElsewhere
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer
from tests.support.elsewhere.double import CLIENT_ID, SECRET, ProviderDouble
from tests.support.http.driver import Browser


@pytest.fixture
def idp(io_loop: IOLoop) -> Iterator[ProviderDouble]:
    async def make() -> ProviderDouble:
        return ProviderDouble()

    made = io_loop.run_sync(make)
    yield made
    io_loop.run_sync(made.close)


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def options() -> dict[str, Any]:
    """What the operator says of the provider; a test module or a mark may override it."""
    return {}


@pytest.fixture
def site(memory_store: Store, base_url: str, idp: ProviderDouble, options: dict[str, Any], mails: Kept) -> Site:
    listed = Providers((provider_of(idp, **options),))
    elsewhere = SignInElsewhere(loopback=True)
    return Site(memory_store, base_url, providers=listed, elsewhere=elsewhere, mail=mailer(mails, confirms=True))


def provider_of(idp: ProviderDouble, name: str = "idp", **facts: Any) -> Provider:
    """The provider of a double, as an operator would configure it."""
    return Provider(**{"name": name, "title": "Elsewhere", "type": OIDC, "issuer": idp.issuer, **_CLIENT, **facts})


_CLIENT: dict[str, Any] = {"client_id": CLIENT_ID, "secret": SECRET}


async def leaves(browser: Browser, path: str = "/signin/with/idp") -> str:
    """Where the browser is sent."""
    page = await browser.get(path)
    assert page.code == 303, (page.code, page.body)
    return page.headers["Location"]


async def goes_and_comes(
    browser: Browser, idp: ProviderDouble, path: str = "/signin/with/idp", **more: str
) -> HTTPResponse:
    """To the provider and back: the answer of the callback."""
    return await browser.get(idp.allows(await leaves(browser, path), **more))
