"""The page of the activity: every event once, page by page, also while new events come; filters by kind and app."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlencode

import pytest

from handlers.account.activity import KINDS, PAGE, SIGN_INS
from store import keys
from store.security_events import EVENTS
from tests.support.browser.pages import Page
from tests.support.http.driver import Browser, Service

pytestmark = pytest.mark.gen_test
ACTIVITY = "/account/security/activity"


async def page_of(browser: Browser, path: str) -> tuple[list[str], str]:
    """The events of a page, and the address of the next one, empty without one."""
    answer = await browser.get(path)
    assert answer.code == 200
    page = Page(answer.body.decode())
    rows = next(part for part in page.all("section"))
    events = [" ".join(page.inside(row, "span")[0].text.split()) for row in page.inside(rows, "li")]
    onward = [link.get("href") for link in page.all("a") if link.get("rel") == "next"]
    assert len(answer.body) < 40_000
    return events, onward[0] if onward else ""


async def walk(browser: Browser, **filters: str) -> list[str]:
    """The events of all pages."""
    found, path = [], f"{ACTIVITY}?{urlencode(filters)}"
    while path:
        events, path = await page_of(browser, path)
        assert len(events) <= PAGE
        found += events
    return found


async def fill(service: Service, lines: list[str]) -> None:
    """Replaces the trails: lines of events, newest first."""
    ordinary = [line for line in lines if EVENTS[line.split()[1]].trail == "ordinary"]
    security = [line for line in lines if line not in ordinary]
    person = keys.person(service.ada)
    for trail, kept in ((person["audit"], security), (person["activity"], ordinary)):
        await service.store.client.set(trail, "".join(f"{line}\n" for line in kept))


async def test_pages_show_every_event_once_also_while_new_ones_come(service: Service) -> None:
    browser = await service.signed_in()
    names = [EVENTS["consent_given"].sentence, EVENTS["signed_in"].sentence, EVENTS["name_changed"].sentence]
    words = ["consent_given web-app", "signed_in ", "name_changed "]
    # Seven events at a time have the same millisecond.
    lines = [f"{1_700_000_000_000 - number // 7} {words[number % 3]}  Firefox" for number in range(180)]
    await fill(service, lines)
    assert Counter(event.partition(" ·")[0] for event in await walk(browser)) == Counter(dict.fromkeys(names, 60))
    first, onward = await page_of(browser, ACTIVITY)
    await fill(service, [f"1700000000009 {words[1]}  Firefox", *lines])
    second, _ = await page_of(browser, onward)
    await fill(service, lines)
    assert (await page_of(browser, ACTIVITY), (await page_of(browser, onward))[0]) == ((first, onward), second)
    assert len(await walk(browser, kind="signin")) == len(await walk(browser, kind="other")) == 60
    assert set(await walk(browser, app="web-app")) == {f"{names[0]} · Web App"}
    assert await walk(browser, kind="account") == await walk(browser, app="nobody") == []


async def test_every_event_is_in_exactly_one_kind(service: Service) -> None:
    assert set(EVENTS) >= SIGN_INS
    assert all(EVENTS[name].trail == "security" for name in SIGN_INS)
    browser = await service.signed_in()
    shown = [event for event in EVENTS.values() if event.trail]
    await fill(service, [f"{1_700_000_000_000 - at} {event.name}    Firefox" for at, event in enumerate(shown)])
    by_kind = [event for kind in KINDS if kind for event in await walk(browser, kind=kind)]
    assert Counter(by_kind) == Counter(event.sentence for event in shown) == Counter(await walk(browser))


@pytest.mark.parametrize(
    "query",
    ["kind=all", "before=1", "before=1-", "before=-1-1", f"before={'9' * 16}-0", "before=1-0&before=2-0", "kind=%00"],
)
async def test_an_invalid_filter_is_refused(service: Service, query: str) -> None:
    assert (await (await service.signed_in()).get(f"{ACTIVITY}?{query}")).code == 400


async def test_the_activity_needs_a_session_and_names_no_unknown_app(service: Service) -> None:
    away = await service.browser().get(f"{ACTIVITY}?kind=apps")
    assert (away.code, away.headers["Location"]) == (303, "/signin?next=%2Faccount%2Fsecurity%2Factivity%3Fkind%3Dapps")
    page = await (await service.signed_in()).get(f"{ACTIVITY}?app=web-app")
    assert not re.search("Web App", page.body.decode()), "a name is shown for events of one's own alone"
