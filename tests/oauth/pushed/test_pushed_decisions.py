"""Decisions on pushed requests: of several pages of one request, one decides. RFC 9126 7.3."""

from __future__ import annotations

import asyncio

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from tests.oauth.pushed.test_pushed import address, is_over
from tests.support.http.driver import Browser, Service, answer_of, fields_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=30)

DECIDE = "/api/oauth/authorize"


async def decided(browser: Browser, page: HTTPResponse, decision: str, **more: str) -> HTTPResponse:
    """The answer to a decision on this page."""
    form = {**fields_of(page, DECIDE), "decision": decision, **more}
    return await browser.send(DECIDE, "POST", form=form)


async def is_granted(service: Service) -> bool:
    """Whether Ada has connected the app."""
    return bool(await service.store.client.exists(keys.grant(service.ada, service.web.client_id)))


@pytest.mark.trap(53)
async def test_of_two_pages_the_first_answer_counts(service: Service) -> None:
    url, browser = await address(service.web), await service.signed_in()
    first, second = await browser.get(url), await browser.get(url)
    assert answer_of(await decided(browser, first, "deny"))["error"] == "access_denied"
    assert (await decided(browser, second, "allow")).code == 400
    assert not await is_granted(service), "the app would get no code for it"


@pytest.mark.trap(53)
async def test_of_two_people_in_one_browser_the_first_answer_counts(service: Service) -> None:
    url, browser = await address(service.web), await service.signed_in()
    ada, cookies = await browser.get(url), dict(browser.cookies)
    await service.add_person("bob@example.com")
    bob = await service.signed_in("bob@example.com")
    browser.cookies["latchkey_session"] = bob.cookies["latchkey_session"]
    assert answer_of(await decided(browser, await browser.get(url), "deny"))["error"] == "access_denied"
    browser.cookies |= cookies
    assert (await decided(browser, ada, "allow")).code == 400
    assert not await is_granted(service)


async def test_a_page_with_nothing_ticked_leaves_a_pushed_request_open(service: Service) -> None:
    url, browser = await address(service.web), await service.signed_in()
    page = await browser.get(url)
    form = {name: value for name, value in fields_of(page, DECIDE).items() if not name.startswith("scope:")}
    again = await browser.send(DECIDE, "POST", form={**form, "decision": "allow"})
    assert again.code == 400
    allowed = await decided(browser, again, "allow", **{"scope:profile": "on"})
    assert "code" in answer_of(allowed)
    assert (await decided(browser, page, "allow")).code == 400


@pytest.mark.trap(53)
async def test_of_many_answers_at_once_one_counts(service: Service) -> None:
    url, browser = await address(service.web), await service.signed_in()
    pages = [await browser.get(url) for _ in range(8)]
    sent = [decided(browser, page, ("deny", "allow")[number % 2]) for number, page in enumerate(pages)]
    answers = await asyncio.gather(*sent)
    assert sorted(answer.code for answer in answers) == [303] + [400] * 7
    (counted,) = [answer_of(answer) for answer in answers if answer.code == 303]
    assert await is_granted(service) == ("code" in counted)
    if "code" in counted:
        assert (await service.web.exchange(counted["code"])).code == 200


async def test_a_refused_answer_leaves_it_open(service: Service, clock: FakeClock) -> None:
    url, browser = await address(service.web), await service.signed_in()
    page = await browser.get(url)
    clock.advance(300)
    nothing = {name: value for name, value in fields_of(page, DECIDE).items() if not name.startswith("scope:")}
    refused = await browser.send(DECIDE, "POST", form={**nothing, "decision": "allow"})
    assert (refused.code, b"at least one" in refused.body) == (400, True)
    listed = keys.pushed(service.web.client_id, "")["all_pushed"]
    assert await service.store.client.zcard(listed) == 1, "it has its place"
    assert await service.store.client.pttl(listed) > 0
    assert (await browser.get(url)).code == 200, "the page can be loaded again"
    clock.advance(295)
    assert "code" in answer_of(await decided(browser, page, "allow"))
    assert await service.store.client.zcard(listed) == 0
    assert await is_over(browser, url)
