"""Lists in parts: every row once, and the acts on one row and on all."""

from __future__ import annotations

import html
import re

import pytest

from handlers.documents.pretty import in_parts
from tests.sizes.fullest import fill_factors, sign_in
from tests.support.http.driver import EMAIL, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import shown

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


async def test_a_mistake_at_a_passkey_of_a_later_page_is_shown_there(service: Service) -> None:
    browser, rename = await service.confirmed(), f"{SECURITY}/passkeys/rename"
    await fill_factors(service.store, service.ada)
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    await shown(service.store, session)
    page = await browser.get(f"{SECURITY}?passkeys=2")
    answer = await browser.submit(page, rename, name="x" * 300)
    assert answer.code == 400
    assert fields_of(page, rename)["credential"] in answer.body.decode()


@pytest.mark.parametrize("text", ["", "x", "\n" * 90, "line\n" * 90, "<&\"'>ü語" * 90, "a" * 400 + "\n" + "b" * 400])
def test_parts_of_a_document_are_the_document(text: str) -> None:
    parts = in_parts(text, 100)
    assert "".join(parts) == text
    assert all(len(html.escape(part).encode()) <= 110 for part in parts)
