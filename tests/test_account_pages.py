"""What the account pages say of apps: where they are at home, what they may do, what they spent."""

from __future__ import annotations

import pytest

from handlers.site import Site
from tests.conftest import OpenStore
from tests.driver import ALL_SCOPES, Browser, Service, fields_of, send

pytestmark = pytest.mark.gen_test

QUESTION = '{"model": "latchkey-echo", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}'


@pytest.fixture
def site(open_store: OpenStore, base_url: str) -> Site:
    return Site(open_store("memory"), base_url)


async def connected(service: Service, **changes: str) -> tuple[Browser, str]:
    """Ada, signed in, with an app of every scope, and its token."""
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url(scope=" ".join(ALL_SCOPES)))
    form = {**fields_of(page, "/api/oauth/authorize"), "decision": "allow", **changes}
    sent = await browser.send("/api/oauth/authorize", "POST", form=form)
    tokens = await service.web.exchange(sent.headers["Location"].partition("code=")[2].partition("&")[0])
    return browser, tokens.body.decode().partition('"access_token":"')[2].partition('"')[0]


async def text_of(browser: Browser, path: str) -> str:
    page = await browser.get(path)
    assert page.code == 200
    return " ".join(page.body.decode().split())


@pytest.mark.parametrize(
    ("dollars", "words"),
    [("5", "Spend from your balance, up to $5.00 a month"), ("", "Spend from your balance, without a limit")],
)
async def test_an_app_is_shown_with_its_address_and_what_it_may_cost(
    service: Service, dollars: str, words: str
) -> None:
    browser, _ = await connected(service, spend_dollars=dollars)
    page = await text_of(browser, "/account/apps")
    assert '<p class="small muted">app.example</p>' in page
    assert f'<li class="strong">{words}</li>' in page
    assert '<li class="strong">Store documents for you</li>' in page
    assert "<li>See who you are</li>" in page


async def test_every_address_of_an_app_is_shown_once(service: Service) -> None:
    addresses = ("https://b.example/cb", "https://a.example/cb", "https://a.example/other")
    app = await service.add_app("several", redirect_uris=addresses)
    browser = await service.signed_in()
    await browser.consent(app.authorize_url(redirect_uri=addresses[0]))
    assert '<p class="small muted">a.example, b.example</p>' in await text_of(browser, "/account/apps")


async def test_spending_is_drawn_and_said(service: Service) -> None:
    browser, access = await connected(service)
    assert "Spent by day" not in await text_of(browser, "/account/credits")
    await service.store.credits.grant(service.ada, 1_000_000)
    headers = {"Authorization": f"Bearer {access}", "Content-Type": "application/json"}
    for _ in range(2):
        assert (
            await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=QUESTION, headers=headers)
        ).code == 200
    page = await text_of(browser, "/account/credits")
    assert "Spent by day" in page
    assert page.count('<rect class="app-first"') == 1
    assert "in the last 30 days, most of it on " in page
    assert "<td><bdi>Web App</bdi></td>" in page
    older = await text_of(browser, "/account/credits?before=99999999999999-0")
    assert "Spent by day" not in older


async def test_an_app_that_was_deleted_still_has_a_place_in_the_plot(service: Service) -> None:
    browser, access = await connected(service)
    await service.store.credits.grant(service.ada, 1_000_000)
    headers = {"Authorization": f"Bearer {access}", "Content-Type": "application/json"}
    await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=QUESTION, headers=headers)
    await service.store.apps.delete("web-app")
    assert "<td><bdi>An app that no longer exists</bdi></td>" in await text_of(browser, "/account/credits")
