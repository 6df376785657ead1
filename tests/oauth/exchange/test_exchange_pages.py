"""What an app handed on, on the person's page: the tree with names, and ending a branch. RFC 8693."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from store.moving.person_export import as_lines
from tests.oauth.exchange.exchanging import handed, root_of
from tests.support.http.api_shop import called
from tests.support.http.driver import Browser, Service, fields_of
from tests.support.store.checked_store import checked, findings

APPS = "/account/apps"
pytestmark = pytest.mark.gen_test(timeout=20)


async def a_tree(service: Service) -> list[str]:
    """A planner with two helpers, one of which has a helper without a name."""
    planner = await handed(service.web, await root_of(service), name="<b>Planner</b>", authorization_details=PART)
    first = await handed(service.web, planner["access_token"], name="First", scope="profile")
    second = await handed(service.web, planner["access_token"], name="Second", expires_in="60")
    last = await handed(service.web, first["access_token"])
    return [one["access_token"] for one in (planner, first, second, last)]


PART: list[Any] = [{"type": "credits", "limit": 2_500_000}]


async def end(browser: Browser, name: str, client: str = "web-app") -> int:
    """Presses the button that ends a helper."""
    page = await browser.get(APPS)
    before = page.body.decode().partition(f"End <bdi>{name}</bdi>")[0]
    helper = before.rpartition('name="helper" value="')[2].partition('"')[0]
    return (await browser.submit(page, f"{APPS}/{client}/end", helper=helper)).code


async def live(service: Service, tokens: list[str]) -> list[bool]:
    return [(await called(service, token)).code == 200 for token in tokens]


async def test_the_person_sees_the_tree_and_ends_a_branch(service: Service) -> None:
    tokens, browser = await a_tree(service), await service.signed_in()
    page = (await browser.get(APPS)).body.decode()
    places = [page.find(name) for name in ("&lt;b&gt;Planner", "<bdi>First", "Helper without a name", "<bdi>Second")]
    assert sorted(places) == places
    assert places[0] > 0
    assert "spent $0.00 of $2.50" in page
    assert await end(browser, "First") == 303
    assert await live(service, tokens) == [True, False, True, False]
    page = (await browser.get(APPS)).body.decode()
    assert "<bdi>Second" in page
    assert "<bdi>First" not in page
    assert "Helper without a name" not in page
    assert await end(browser, "&lt;b&gt;Planner&lt;/b&gt;") == 303
    assert await live(service, tokens) == [False] * 4
    assert "Handed on" not in (await browser.get(APPS)).body.decode()
    activity = (await browser.get("/account/security/activity")).body.decode()
    assert activity.count("Access handed on by an app ended") == 2
    assert activity.count("App handed on part of its access") == 4
    assert findings(await checked(service.store, deep=True)) == []


async def test_the_page_says_what_bounds_a_helper_and_what_it_still_may_do(service: Service) -> None:
    root, browser = await root_of(service), await service.signed_in()
    free = await handed(service.web, root, name="Free")
    await handed(service.web, free["access_token"], name="Bounded", authorization_details=PART)

    async def words() -> list[str]:
        tree = html.unescape((await browser.get(APPS)).body.decode()).partition("Handed on")[2]
        return re.findall("Spend from your balance, ([^·<]*[^·<\\s])", tree)

    assert await words() == ["without a limit", "within a budget"]
    url = service.web.authorize_url(scope="profile credits:spend", prompt="consent")
    page = await browser.get(url)
    await browser.submit(page, "/api/oauth/authorize", decision="allow", spend_dollars="5")
    assert await words() == ["up to $5.00 a month", "within a budget"]
    await browser.consent(url, untick=("credits:spend",))
    assert await words() == []
    assert "spent" not in (await browser.get(APPS)).body.decode().partition("Handed on")[2].partition("</section>")[0]


async def test_many_helpers_make_no_endless_page(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.account.connected_apps.ROWS", 5)
    await a_tree(service)
    root, browser = await root_of(service), await service.signed_in()
    page = (await browser.get(APPS)).body.decode()
    assert page.count('name="helper"') == 4
    assert "helpers=" not in page
    for _ in range(3):
        await handed(service.web, root, name="One of many")
    page = (await browser.get(APPS)).body.decode()
    shown = re.findall('name="helper" value="([^"]*)"', page)
    onward = re.search(r'href="([^"#]*helpers=2)#[^"]*" rel="next"', page)
    assert onward
    page = (await browser.get(html.unescape(onward[1]))).body.decode()
    shown += re.findall('name="helper" value="([^"]*)"', page)
    assert (len(shown), len(set(shown))) == (7, 7)
    assert 'rel="next"' not in page


async def test_helpers_of_several_apps_share_a_page(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.account.connected_apps.ROWS", 4)
    other = await service.add_app("other-app")
    browser = await service.signed_in()
    for app in (service.web, other):
        root = (await service.tokens(app, browser, scope="profile credits:spend"))["access_token"]
        for number in range(3):
            await handed(app, root, name=f"{app.client_id} {number}")
    page = (await browser.get(APPS)).body.decode()
    assert page.count('name="helper"') == 4
    for client in ("web-app", "other-app"):
        alone = (await browser.get(f"{APPS}?app={client}&helpers=1")).body.decode()
        assert alone.count(f"End <bdi>{client}") == 3
        assert alone.count('name="helper"') == 4


async def test_nobody_ends_what_is_not_theirs(service: Service) -> None:
    tokens = await a_tree(service)
    await service.add_person("grace@example.com")
    mine, other = await service.signed_in(), await service.signed_in("grace@example.com")
    page = await mine.get(APPS)
    helper = page.body.decode().partition('name="helper" value="')[2].partition('"')[0]
    root = (await service.tokens(scope="profile", prompt="consent"))["access_token"]
    opened = service.store.tokens.open_access(root)
    assert opened  # the id of a sign-in is no id of a helper
    for client, one in (("native-app", helper), ("web-app", opened.id), ("web-app", "A" * 22), ("web-app", "x")):
        form = {**fields_of(page, f"{APPS}/web-app/end"), "helper": one}
        assert (await mine.send(f"{APPS}/{client}/end", "POST", form=form)).code == 404
    forged = await other.send(f"{APPS}/web-app/end", "POST", form={"helper": helper})
    assert forged.code == 403
    assert await live(service, tokens) == [True] * 4
    assert (await called(service, root)).code == 200


async def test_the_export_has_the_tree(service: Service) -> None:
    await a_tree(service)
    person = await service.store.operator.find("ada@example.com")
    lines = [json.loads(line) async for line, _ in as_lines(service.store, person)]
    [app] = [line for line in lines if line["type"] == "app"]
    planner, first, second, last = app["handedOn"]
    assert [one["name"] for one in (planner, first, second, last)] == ["<b>Planner</b>", "First", "Second", None]
    assert [one["from"] for one in (planner, first, second, last)] == [None, planner["id"], planner["id"], first["id"]]
    assert (planner["limit"], planner["spent"], planner["actor"], first["scopes"]) == (
        *(2_500_000, 0, "web-app"),
        ["profile"],
    )
    assert second["endsAt"] < planner["endsAt"]
