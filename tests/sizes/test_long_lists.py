"""Lists in parts: every row once, the acts on one row and on all, and forms that show only a part."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from handlers.developer.api_boxes import BOXES
from handlers.developer.apis import SCOPES
from handlers.documents.pretty import in_parts
from store.apps.api_record import ApiRegistration, ApiScope
from tests.sizes.fullest import sign_in
from tests.support.http.driver import EMAIL, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=60)

SECURITY = "/account/security"
END = re.compile(r'name="session" value="([^"]*)"')


async def walk(browser: Browser, path: str) -> list[str]:
    """The list's pages."""
    found = []
    while path:
        page = (await browser.get(path)).body.decode()
        onward = re.search(r'href="([^"#]*)[^"]*" rel="next"', page)
        found.append(page)
        path = html.unescape(onward[1]) if onward else ""
    return found


async def sessions_left(service: Service, browser: Browser) -> list[str]:
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    return [one.session_id for one in await service.store.sessions.live(session)]


async def test_every_session_is_on_one_page_by_device_and_last_use(service: Service, clock: FakeClock) -> None:
    browser, ids = await service.signed_in(), list[str]()
    for number in range(30):
        clock.advance(60)
        ids.append((await sign_in(service.store, EMAIL, number)).session_id)
    pages = await walk(browser, SECURITY)
    assert len(pages) == 3
    assert ["This session" in page for page in pages] == [True, False, False]
    listed = [one for page in pages for one in END.findall(page)]
    # Five devices, of which the last one was used last.
    assert listed == [ids[number] for device in (4, 3, 2, 1, 0) for number in range(25 + device, -1, -5)]
    assert all("This ends" in page and "30\u00a0sessions" in page for page in pages)


async def test_ending_a_session_returns_to_its_page_and_ending_all_ends_those_of_every_page(service: Service) -> None:
    browser = await service.signed_in()
    for number in range(30):
        await sign_in(service.store, EMAIL, number)
    page = await browser.get(f"{SECURITY}?sessions=2")
    ended = await browser.submit(page, f"{SECURITY}/sessions/end")
    assert ended.headers["Location"] == f"{SECURITY}?sessions=2&ended"
    after = (await browser.get(ended.headers["Location"])).body.decode()
    assert "Session ended." in after
    assert END.findall(page.body.decode())[0] not in await sessions_left(service, browser)
    page = await browser.get(f"{SECURITY}?sessions=2")
    assert (await browser.submit(page, f"{SECURITY}/sessions/end", sessions="-1")).code == 400
    assert len(await sessions_left(service, browser)) == 30
    await browser.submit(page, f"{SECURITY}/sessions/end-others")
    assert len(await sessions_left(service, browser)) == 1


async def test_no_session_of_another_person_can_be_ended(service: Service) -> None:
    browser = await service.signed_in()
    await service.add_person("grace@example.com")
    other = await sign_in(service.store, "grace@example.com", 0)
    await sign_in(service.store, EMAIL, 1)
    page = await browser.get(SECURITY)
    assert other.session_id not in page.body.decode()
    await browser.submit(page, f"{SECURITY}/sessions/end", session=other.session_id)
    assert await service.store.sessions.profile(other)


def api_of(owner: str, scopes: int) -> ApiRegistration:
    """An API with this many scopes."""
    named = tuple(ApiScope(f"part-{number:02}", f"See part {number}") for number in range(scopes))
    return ApiRegistration("https://orders.example.com/v1", "Orders", named, owner=owner)


async def test_a_page_of_an_apis_scopes_leaves_the_others_alone(service: Service) -> None:
    api, browser = api_of(service.ada, SCOPES + 3), await service.confirmed()
    await service.store.apis.create(api)
    at = f"/developer/apis/{api.client_id}"
    page = await browser.get(f"{at}?scopes=2")
    typed: dict[str, Any] = {
        "name": "Orders",
        "token_lifetime": "600",
        "token_format": "opaque",
        "signing_alg": "ES256",
    }
    rows = {f"scope_{row}_title": f"Part {row}" for row in range(3)}
    saved = await browser.submit(
        page, at, **typed, **rows, scope_1_remove="on", scope_3_name="new", scope_3_title="New"
    )
    assert saved.headers["Location"] == f"{at}?scopes=2&saved"
    found = await service.store.apis.fresh(api.client_id)
    assert found
    kept = [*api.scopes[:SCOPES], ApiScope(f"part-{SCOPES}", "Part 0"), ApiScope(f"part-{SCOPES + 2}", "Part 2")]
    assert list(found.scopes) == [*kept, ApiScope("new", "New")]


async def test_a_page_of_an_apps_boxes_leaves_the_others_alone(service: Service) -> None:
    api, browser = api_of(service.ada, BOXES + 3), await service.confirmed()
    await service.store.apis.create(api)
    names = [f"{api.client_id}/{one.name}" for one in api.scopes]
    await service.add_app("own-app", owner=service.ada, api_scopes=(*names[:2], names[BOXES], names[-1]))
    await service.store.owned.give(service.ada, "own-app")
    page = await browser.get("/developer/apps/own-app/settings?apis=2")
    typed: dict[str, Any] = {"name": "Own App", "redirect_uris": "https://app.example/callback"}
    form = {**fields_of(page, "/developer/apps/own-app"), **typed, f"scope:{names[BOXES + 1]}": "on"}
    del form[f"scope:{names[BOXES]}"]
    saved = await browser.send("/developer/apps/own-app", "POST", form=form)
    assert saved.headers["Location"] == "/developer/apps/own-app/settings?apis=2&saved"
    app = await service.store.apps.find("own-app")
    assert app
    assert app.api_scopes == (*names[:2], names[BOXES + 1], names[-1])
    form |= {"had": " ".join(names), "apis": "99"}
    await browser.send("/developer/apps/own-app", "POST", form=form)
    app = await service.store.apps.find("own-app")
    assert app
    assert app.api_scopes == (names[BOXES + 1], names[-1]), "what the form says it had, and no longer has, goes"


@pytest.mark.parametrize("text", ["", "x", "\n" * 90, "line\n" * 90, "<&\"'>ü語" * 90, "a" * 400 + "\n" + "b" * 400])
def test_parts_of_a_document_are_the_document(text: str) -> None:
    parts = in_parts(text, 100)
    assert "".join(parts) == text
    assert all(len(html.escape(part).encode()) <= 110 for part in parts)
