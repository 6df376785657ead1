"""Webhooks in the developer portal: the URL, the secret, test events, deliveries and resending."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from handlers.developer.webhooks import PAGE
from outbound.webhooks.poster import WebhookSender
from store.crypto.seal import new_id
from store.lifetimes import WEBHOOK_SENT
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.http.driver import Browser, Service, fields_of
from tests.support.http.receiver import Receiver, answering
from tests.support.store.webhook_app import USER, engine_on, until

OWN = "/developer/apps/own"
HOOKS = f"{OWN}/webhooks"
URL = "https://own.example/hook"


@pytest.fixture
def engine(io_loop: IOLoop, memory_store: Store) -> Iterator[WebhookSender]:
    made = engine_on(memory_store)
    yield made
    io_loop.run_sync(lambda: made.close(1))


@pytest.fixture
def site(memory_store: Store, base_url: str, engine: WebhookSender) -> Site:
    return Site(memory_store, base_url, wake_webhooks=engine.wake)


@pytest.fixture
def receiver(io_loop: IOLoop) -> Iterator[Receiver]:
    made = Receiver()
    io_loop.run_sync(made.start)
    yield made
    io_loop.run_sync(made.close)


async def owner(service: Service, **fields: Any) -> Browser:
    """Ada, signed in, who owns an app."""
    await service.add_app("own", owner=service.ada, **fields)
    return await service.confirmed()


def text_of(page: HTTPResponse) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.body.decode())).split())


def secrets_on(page: HTTPResponse) -> list[str]:
    return re.findall(r"whsec_[A-Za-z0-9]{44}", page.body.decode())


async def signing(service: Service) -> tuple[str, ...]:
    """The signing secrets, newest first."""
    target = await service.store.webhooks.target("own")
    assert target is not None
    return target.secrets


async def name_url(browser: Browser, url: str) -> HTTPResponse:
    return await browser.submit(await browser.get(HOOKS), HOOKS, url=url)


@pytest.mark.gen_test
async def test_the_first_url_shows_its_secret_once(service: Service) -> None:
    browser = await owner(service)
    assert f'href="{HOOKS}"' in (await browser.get(OWN)).body.decode()
    page = await browser.get(HOOKS)
    assert "Send a test event" not in text_of(page)
    made = await name_url(browser, URL)
    assert made.code == 200
    assert made.headers["Cache-Control"] == "no-store"
    [secret] = secrets_on(made)
    target = await service.store.webhooks.target("own")
    assert target is not None
    assert (target.url, target.secrets) == (URL, (secret,))
    other = await browser.get(HOOKS)
    assert secrets_on(other) == []
    assert URL in other.body.decode()
    # Another URL, or the same form sent again, makes no other secret.
    for url, words in ((URL, "Saved"), (URL + "/2", "Saved"), ("", "We no longer post events")):
        changed = await name_url(browser, url)
        assert changed.code == 303
        shown = await browser.get(changed.headers["Location"])
        assert words in text_of(shown)
        assert secrets_on(shown) == []
    await name_url(browser, URL)
    again = await service.store.webhooks.target("own")
    assert again is not None
    assert again.secrets == (secret,)
    trail = await service.store.operator.find(service.ada, 10)
    assert "app_webhook_changed" in [entry.event for entry in trail.activity]


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://own.example/hook", "must start with https"),
        ("https://ada@own.example/", "can't have a user name"),
        ("https://own.example/#x", "can't have a fragment"),
        ("nowhere", "must look like"),
        ('"><script>alert(1)</script>', "ASCII"),
        ("https://own.example/" + "x" * 3000, "at most 2000"),
    ],
)
async def test_a_urls_error_is_shown_at_its_field(service: Service, url: str, words: str) -> None:
    browser = await owner(service)
    page = await name_url(browser, url)
    assert page.code == 400
    assert words in text_of(page)
    assert "<script>alert" not in page.body.decode()
    assert html.escape(url[:2000]) in page.body.decode() or html.escape(url[:2000], quote=True) in page.body.decode()
    registration, _ = await service.store.apps.fresh("own")
    assert registration is not None
    assert registration.webhook_url == ""


@pytest.mark.gen_test
async def test_only_a_developers_server_may_post_to_itself(service: Service, site: Site, app: Any) -> None:
    browser = await owner(service)
    assert (await name_url(browser, "http://localhost:9000/hook")).code == 200
    app.site = replace(site, base_url="http://id.example")
    for url in ("http://localhost:9000/other", "https://127.0.0.1/hook"):
        page = await name_url(browser, url)
        assert page.code == 400
        assert "can't post to itself" in text_of(page)


@pytest.mark.gen_test
async def test_a_new_secret_is_shown_once_and_both_sign(service: Service) -> None:
    browser = await owner(service)
    [first] = secrets_on(await name_url(browser, URL))
    rotated = await browser.submit(await browser.get(HOOKS), f"{HOOKS}/rotate")
    [second] = secrets_on(rotated)
    assert "Two secrets sign" in text_of(rotated)
    assert await signing(service) == (second, first)
    assert secrets_on(await browser.get(HOOKS)) == []


@pytest.mark.gen_test
async def test_a_repeated_form_makes_one_secret_and_the_old_one_keeps_signing(service: Service) -> None:
    browser = await owner(service)
    [first] = secrets_on(await name_url(browser, URL))
    page = await browser.get(HOOKS)
    [second] = secrets_on(await browser.submit(page, f"{HOOKS}/rotate"))
    for ends in ({}, {"ends": "older"}):  # the answer's page, reloaded; the second click of two
        again = await browser.submit(page, f"{HOOKS}/rotate", **ends)
        assert again.code == 400
        assert "Another secret was created" in text_of(again)
        assert secrets_on(again) == []
    page = await browser.get(HOOKS)
    assert await signing(service) == (second, first)
    for wrong in ({}, {"ends": "both"}):
        refused = await browser.submit(page, f"{HOOKS}/rotate", **wrong)
        assert refused.code == 400
        assert "choose which of them stops" in text_of(refused)
    assert await signing(service) == (second, first)
    without = {name: value for name, value in fields_of(page, f"{HOOKS}/rotate").items() if name != "mark"}
    refused = await browser.send(f"{HOOKS}/rotate", "POST", form={**without, "ends": "older"})
    assert refused.code == 400
    assert "Part of the form is missing" in text_of(refused), "no names that the page doesn't show"
    [third] = secrets_on(await browser.submit(page, f"{HOOKS}/rotate", ends="newer"))
    assert await signing(service) == (third, first), "as when nobody kept the second"
    [fourth] = secrets_on(await browser.submit(await browser.get(HOOKS), f"{HOOKS}/rotate", ends="older"))
    assert await signing(service) == (fourth, third)


@pytest.mark.gen_test
async def test_without_a_url_secrets_and_test_events_are_unavailable(service: Service) -> None:
    browser = await owner(service)
    page = await browser.get(HOOKS)
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.body.decode())
    assert xsrf
    for action, words in (("rotate", "has no webhook URL"), ("test", "Enter a URL first")):
        answer = await browser.send(f"{HOOKS}/{action}", "POST", form={"_xsrf": xsrf[1], "mark": "00000000"})
        assert answer.code == 400
        assert words in text_of(answer)
    assert await service.store.deliveries.list("own") == []


@pytest.mark.gen_test
async def test_a_test_event_is_delivered_and_shown(service: Service, receiver: Receiver, engine: WebhookSender) -> None:
    engine.start()
    browser = await owner(service)
    [secret] = secrets_on(await name_url(browser, receiver.url))
    receiver.script = [answering(500)]
    sent = await browser.submit(await browser.get(HOOKS), f"{HOOKS}/test")
    assert sent.code == 303
    [posted] = await receiver.count(1)
    assert posted.verified(secret)["type"] == "ping"
    assert posted.verified(secret)["data"] == {"client_id": "own"}

    async def shown() -> HTTPResponse | None:
        page = await browser.get(HOOKS)
        return page if "The answer was 500" in text_of(page) else None

    page = await until(shown)
    assert "ping failing" in text_of(page)
    details = await browser.get(f"{HOOKS}/{posted.id}")
    assert posted.body.decode() in html.unescape(details.body.decode())
    assert "The answer was 500" in text_of(details)
    assert "2 of 12" in text_of(details)
    again = await browser.submit(details, f"{HOOKS}/{posted.id}/again")
    assert again.code == 303
    assert (await receiver.count(2))[1].id == posted.id

    async def delivered() -> HTTPResponse | None:
        page = await browser.get(again.headers["Location"])
        return page if "delivered" in text_of(page) else None

    page = await until(delivered)
    assert "<dt>Error</dt>" not in page.body.decode()
    assert "2, last" in text_of(page)


@pytest.mark.gen_test
async def test_resending_by_hand_is_limited(service: Service) -> None:
    browser = await owner(service)
    await name_url(browser, URL)
    page = await browser.get(HOOKS)
    for _ in range(WEBHOOK_SENT.limit):
        assert (await browser.submit(page, f"{HOOKS}/test")).code == 303
    refused = await browser.submit(page, f"{HOOKS}/test")
    assert refused.code == 429
    assert "Retry-After" in refused.headers


@pytest.mark.gen_test
async def test_the_page_shows_the_newest_deliveries_and_links_to_older_ones(service: Service) -> None:
    browser = await owner(service)
    await name_url(browser, URL)
    now = await service.store.apps.now()
    ids = [new_id() for _ in range(PAGE + 3)]
    for number, one in enumerate(ids):
        await service.store.deliveries.enqueue(WebhookEvent(one, "user.deleted", "own", USER, now - 1000 * number))
    seen: list[str] = []
    path: str | None = HOOKS
    while path:
        page = await browser.get(path)
        assert page.code == 200
        seen += re.findall(rf'href="{HOOKS}/([\w-]{{22}})"', page.body.decode())
        onward = re.search(r'href="([^"]+)" rel="next"', page.body.decode())
        path = html.unescape(onward[1]) if onward else None
    assert sorted(seen) == sorted(ids)
    assert (await browser.get(f"{HOOKS}?before=nothing%20here")).code == 200


@pytest.mark.gen_test
async def test_others_can_neither_see_nor_change_a_webhook(service: Service) -> None:
    browser = await owner(service)
    await name_url(browser, URL)
    event = WebhookEvent(new_event_id(), "user.deleted", "own", USER, await service.store.apps.now())
    await service.store.deliveries.enqueue(event)
    await service.add_person("eve@example.com")
    await service.add_app("hers", owner=(await service.store.operator.find("eve@example.com")).user)
    eve = await service.confirmed("eve@example.com")
    hers = await eve.get("/developer/apps/hers/webhooks")
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', hers.body.decode())
    assert xsrf
    for path in (HOOKS, f"{HOOKS}/{event.id}"):
        assert (await eve.get(path)).code == 404
    for path in (HOOKS, f"{HOOKS}/rotate", f"{HOOKS}/test", f"{HOOKS}/{event.id}/again"):
        form = {"_xsrf": xsrf[1], "url": "https://eve.example/"}
        assert (await eve.send(path, "POST", form=form)).code == 404
    # Nor through an app of her own.
    for method in ("GET", "POST"):
        suffix = "/again" if method == "POST" else ""
        sent = {"_xsrf": xsrf[1]} if method == "POST" else None
        path = f"/developer/apps/hers/webhooks/{event.id}{suffix}"
        assert (await eve.send(path, method, form=sent)).code == 404
    target = await service.store.webhooks.target("own")
    assert target is not None
    assert target.url == URL
    found = await service.store.deliveries.read("own", event.id)
    assert found is not None
    assert found.attempts == 0


@pytest.mark.gen_test
async def test_each_form_needs_its_xsrf_token_and_origin(service: Service) -> None:
    browser = await owner(service)
    await name_url(browser, URL)
    event = WebhookEvent(new_event_id(), "user.deleted", "own", USER, await service.store.apps.now())
    await service.store.deliveries.enqueue(event)
    page = await browser.get(HOOKS)
    xsrf = re.search(r'name="_xsrf" value="([^"]+)"', page.body.decode())
    assert xsrf
    for path in (HOOKS, f"{HOOKS}/rotate", f"{HOOKS}/test", f"{HOOKS}/{event.id}/again"):
        assert (await browser.send(path, "POST", form={"url": ""})).code == 403
        form, elsewhere = {"_xsrf": xsrf[1], "url": ""}, {"Origin": "https://evil.example"}
        assert (await browser.send(path, "POST", form=form, headers=elsewhere)).code == 403
        signed_out = await service.browser().send(path, "POST", form=form)
        assert signed_out.code in (303, 403)
    assert len(await service.store.deliveries.list("own")) == 1
    assert (await service.store.webhooks.target("own")) is not None
