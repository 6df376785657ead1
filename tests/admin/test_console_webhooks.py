"""The console's pages of webhooks, and the same in the management interface."""

from __future__ import annotations

import re

import pytest

from store import keys
from store.webhooks.attempts import WebhookExchange, WebhookResponse
from store.webhooks.deliveries import WebhookEvent, new_event_id
from tests.admin.conftest import Console
from tests.admin.test_console_people import shown
from tests.support.http.driver import PASSWORD

pytestmark = pytest.mark.gen_test(timeout=60)

HOOK = "https://shop.example.com/hook"


async def event(console: Console, app: str = "shop", type: str = "ping") -> str:
    """The id of a new event."""
    one = WebhookEvent(new_event_id(), type, app, "", 1_700_000_000_000)
    assert await console.store.deliveries.enqueue(one)
    return one.id


async def attempt(console: Console, *, delivered: bool, retry_in: float | None = None) -> None:
    """Attempts everything that is due."""
    answer = WebhookResponse((("Server", "nginx"),), b"try later")
    exchange = WebhookExchange(HOOK, (("webhook-id", "1"),), b'{"type":"ping"}', answer, 12)
    for one in await console.store.deliveries.claim(100, 30):
        error, status = ("", 204) if delivered else ("It answered 503.", 503)
        await console.store.deliveries.settle(
            one.id, one.attempts, delivered=delivered, status=status, error=error, retry_in=retry_in, exchange=exchange
        )


def ids(text: str) -> list[str]:
    """The deliveries on a page, in its order."""
    return re.findall(r'href="/admin/webhooks/[a-z-]+/([A-Za-z0-9_]{22})"', text)


async def test_deliveries_are_filtered_by_state_app_and_event(console: Console) -> None:
    await console.service.add_app("shop", webhook_url=HOOK)
    auditor = await console.operator("auditor")
    given_up = await event(console)
    await attempt(console, delivered=False)
    failing = await event(console)
    await attempt(console, delivered=False, retry_in=3600)
    delivered = await event(console, "web-app", "data.deleted")
    await attempt(console, delivered=True)
    waiting = await event(console)
    for query, found in (
        ("", [waiting, delivered, failing, given_up]),
        ("state=failing", [failing]),
        ("state=waiting", [waiting]),
        ("state=failed", [given_up]),
        ("state=delivered", [delivered]),
        ("app=shop", [waiting, failing, given_up]),
        ("type=data.deleted", [delivered]),
        ("app=nothing", []),
    ):
        assert ids(await auditor.open(f"/admin/webhooks?{query}")) == found, query
    assert (await auditor.browser.get("/admin/webhooks?cursor=x")).code == 400


async def test_pages_go_on_and_read_a_bounded_number(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.operators.delivery_pages.STEPS", 60)
    auditor = await console.operator("auditor")
    made = [await event(console, type="data.deleted"), *[await event(console) for _ in range(70)]]
    page, seen, pages = await auditor.open("/admin/webhooks"), [], 0
    while True:
        seen += ids(page)
        pages += 1
        onward = re.search(r'href="(/admin/webhooks\?[^"]*cursor=[^"]*)"', page)
        if not onward:
            break
        page = await auditor.open(onward[1].replace("&amp;", "&"))
    assert (seen, pages) == (made[::-1], 2)
    sparse = await auditor.open("/admin/webhooks?type=data.deleted")
    assert ids(sparse) == []
    assert "Go on to the next page" in sparse


async def test_an_endpoint_fails_from_its_first_failure_to_its_next_success(console: Console) -> None:
    await console.service.add_app("shop", webhook_url=HOOK)
    auditor = await console.operator("auditor")
    await event(console)
    await attempt(console, delivered=False, retry_in=0)
    first = await console.store.client.zscore(keys.ENDPOINTS_FAILING, "shop events")
    await attempt(console, delivered=False, retry_in=0)
    assert await console.store.client.zscore(keys.ENDPOINTS_FAILING, "shop events") == first
    await event(console, type="session.ended")
    await attempt(console, delivered=False, retry_in=0)
    text = shown(await auditor.open("/admin/webhooks"))
    assert "2 endpoints are failing" in text
    await attempt(console, delivered=True)
    assert "fail" not in shown(await auditor.open("/admin/webhooks?state=delivered")).partition("Deliveries")[0]
    await event(console)
    await attempt(console, delivered=False, retry_in=0)
    await console.store.deliveries.forget("shop")
    assert await console.store.client.exists(keys.ENDPOINTS_FAILING, keys.DELIVERIES_NEWEST) == 0


async def test_a_delivery_shows_what_was_sent_and_is_sent_again(console: Console) -> None:
    await console.service.add_app("shop", webhook_url=HOOK)
    admin, support = await console.operator("admin"), await console.operator("support")
    one = await event(console)
    await attempt(console, delivered=False)
    path = f"/admin/webhooks/shop/{one}"
    text = await support.open(path)
    for part in ("try later", "nginx", HOOK, "{&quot;type&quot;:&quot;ping&quot;}", ">given up<"):
        assert part in text, part
    assert "/again" not in text
    assert (await support.confirm(f"{path}/again")).code == 403
    await admin.do(f"{path}/again", confirm_password=PASSWORD)
    found = await console.store.deliveries.read("shop", one)
    assert found
    assert found.state == "pending"
    (noted,) = [event for event in console.events if event.event == "delivery_replayed_by_operator"]
    assert (noted.client, noted.by) == ("shop", f"person {admin.user}")
    assert (await admin.browser.get(f"/admin/webhooks/web-app/{one}")).code == 404
    assert (await admin.send(f"/admin/webhooks/web-app/{one}/again")).code == 404


async def test_all_given_up_events_of_an_app_are_counted_and_sent_again(console: Console) -> None:
    for client_id in ("shop", "other"):
        await console.service.add_app(client_id, webhook_url=HOOK)
    admin = await console.operator("admin")
    for _ in range(3):
        await event(console)
    other = await event(console, "other")
    await attempt(console, delivered=False)
    waits = await event(console)
    path = "/admin/webhooks/shop/send-failed"
    assert "3 events were given up" in shown(await admin.open(path))
    assert await console.store.delivery_pages.given_up("shop") == 3
    await admin.do(path, confirm_password=PASSWORD)
    page = await console.store.delivery_pages.page("pending", "shop", 50, "")
    assert len(page.deliveries) == 4
    assert {one.tries for one in page.deliveries} == {0}
    assert waits in {one.id for one in page.deliveries}
    left = await console.store.deliveries.read("other", other)
    assert left
    assert left.state == "failed"
    assert "nothing to send" in shown(await admin.open(path))
    noted = [event for event in console.events if event.event == "delivery_replayed_by_operator"]
    assert [one.detail for one in noted] == ["all 3 given up"]
    assert (await admin.browser.get("/admin/webhooks/nothing/send-failed")).code == 404
