"""Apps on the account pages: their addresses, scopes and spending."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import quote

import pytest

from handlers.core.site import Site
from store import keys
from store.oauth.grants import MOST_CONNECTED, PAGE
from store.results import Caller
from tests.conftest import OpenStore
from tests.support.http.driver import ALL_SCOPES, Browser, Service, fields_of, send
from tests.support.store.many_documents import stock

pytestmark = pytest.mark.gen_test

QUESTION = '{"model": "latchkey-echo", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}'


@pytest.fixture
def site(open_store: OpenStore, base_url: str) -> Site:
    return Site(open_store("memory"), base_url)


async def connected(service: Service, **changes: str) -> tuple[Browser, str]:
    """Ada, signed in, with an app that has every scope, and its token."""
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
    assert "<li>Store documents for you</li>" in page, "a warning about what costs nothing weakens the other"
    assert "<li>See who you are</li>" in page


async def test_each_address_of_an_app_is_shown_once(service: Service) -> None:
    addresses = ("https://b.example/cb", "https://a.example/cb", "https://a.example/other")
    app = await service.add_app("several", redirect_uris=addresses)
    browser = await service.signed_in()
    await browser.consent(app.authorize_url(redirect_uri=addresses[0]))
    assert '<p class="small muted">a.example, b.example</p>' in await text_of(browser, "/account/apps")


async def test_spending_is_shown_as_chart_table_and_file(service: Service) -> None:
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
    assert page.count('<rect class="series-first"') == 1
    assert " in 30 days, most on " in page
    assert '<th scope="col" role="columnheader"><bdi>Web App</bdi></th>' in page
    assert " in 7 days, most on " in await text_of(browser, "/account/credits?days=7")
    file = await browser.get("/account/credits/spending.csv?days=90")
    assert file.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    header, row, end = file.body.decode().split("\r\n")
    assert (header, end) == ("day,client_id,app,dollars", "")
    assert row.split(",")[1:3] == ["web-app", "Web App"]
    older = await text_of(browser, "/account/credits?before=99999999999999-0")
    assert "Spent by day" not in older


async def test_a_deleted_app_stays_in_the_chart(service: Service) -> None:
    browser, access = await connected(service)
    await service.store.credits.grant(service.ada, 1_000_000)
    headers = {"Authorization": f"Bearer {access}", "Content-Type": "application/json"}
    await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=QUESTION, headers=headers)
    await service.store.apps.delete("web-app")
    assert "<bdi>An app that no longer exists</bdi></th>" in await text_of(browser, "/account/credits")


async def connect_many(service: Service, *, live: int, ended: int) -> None:
    """Connects Ada to many apps that no longer exist, a minute apart; disconnects the last ones."""
    async with service.store.client.pipeline(transaction=False) as batch:
        for number in range(live + ended):
            row: dict[Any, Any] = {
                "epoch": "1",
                "scope": "profile",
                "connected_at": str(1_700_000_000_000 + number * 60_000),
            }
            if number >= live:
                row["revoked_at"] = str(1_800_000_000_000)
            grant = keys.grant(service.ada, f"many-{number}")
            batch.hset(grant, mapping=row)
            if number >= live:
                batch.pexpire(grant, 86_400_000)
            batch.hset(keys.person(service.ada)["user"], keys.app_field(f"many-{number}"), "1")
        await batch.execute()


def forms_of(page: str) -> list[str]:
    """The connected apps on a page, found by their disconnection forms."""
    return re.findall(r'action="/account/apps/([^"/]+)/revoke"', page)


async def test_pages_of_apps_list_every_app_once(service: Service) -> None:
    browser = await service.signed_in()
    await connect_many(service, live=97, ended=23)
    listed: list[Any] = []
    path, ended = "/account/apps", 0
    while path:
        page = await text_of(browser, path)
        found, kept = forms_of(page), page.count("Data kept until")
        assert 0 < len(found) + kept <= PAGE
        assert not (ended and found), "connected apps first"
        listed, ended = [*listed, *found], ended + kept
        onward = re.search(r'<a href="([^"]+)" rel="next">', page)
        path = onward[1] if onward else ""
    assert listed == [f"many-{number}" for number in reversed(range(97))]
    assert ended == 23


async def test_forms_return_to_their_numbered_page_of_apps(service: Service) -> None:
    browser = await service.signed_in()
    await connect_many(service, live=PAGE + 1, ended=0)
    second = await browser.get("/account/apps?page=2")
    assert forms_of(second.body.decode()) == ["many-0"]
    assert forms_of(await text_of(browser, "/account/apps?page=999999")) == ["many-0"]
    for wrong in ("0", "-1", "1000000", "one", "²"):
        assert (await browser.get(f"/account/apps?page={quote(wrong)}")).code == 400
    gone = await browser.submit(second, "/account/apps/many-0/revoke")
    assert gone.headers["Location"] == "/account/apps?page=2&disconnected"
    assert "The app was disconnected" in await text_of(browser, gone.headers["Location"])
    assert "The app was disconnected" not in await text_of(browser, gone.headers["Location"]), "said once"


async def test_the_deletion_page_counts_the_apps_of_all_pages(service: Service) -> None:
    browser = await service.signed_in()
    await connect_many(service, live=PAGE + 3, ended=2)
    await stock(service.store, service.ada, "many-0", {"notes/a": b"1", "notes/b": b"2"})
    await stock(service.store, service.ada, f"many-{PAGE + 4}", {"notes/a": b"1"})
    page = await text_of(browser, "/account/delete")
    assert f"{PAGE + 3} connected apps. They lose access to your account." in page
    assert "3 documents that apps store for you here." in page


async def test_other_apps_see_the_newest_two_hundred(service: Service) -> None:
    _, access = await connected(service)
    await connect_many(service, live=MOST_CONNECTED + 1, ended=1)
    token = service.store.tokens.open_access(access)
    assert token is not None
    shown, _ = await service.store.grants.connected(Caller.of(token, ALL_SCOPES), "apps:read")
    assert [app.client for app in shown] == [f"many-{number}" for number in range(MOST_CONNECTED, 0, -1)]


async def test_a_persons_apps_are_read_in_one_batch(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    _, access = await connected(service)
    await connect_many(service, live=30, ended=0)
    apps, read = service.store.apps, service.store.apps._read
    apps.forget()
    reads: list[str] = []
    all_read = asyncio.Event()

    async def noted(client_id: str) -> Any:
        reads.append(client_id)
        if len(reads) == 31:  # with the app that asks
            all_read.set()
        if len(reads) > 1:
            await asyncio.wait_for(all_read.wait(), 5)
        return await read(client_id)

    monkeypatch.setattr(apps, "_read", noted)
    answer = await send(f"{service.base_url}/api/v1/apps", headers={"Authorization": f"Bearer {access}"})
    assert (answer.code, len(set(reads))) == (200, 31)
