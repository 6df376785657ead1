"""The browser that comes with a pushed request, and what it is checked against. RFC 9126 4."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.params import once
from handlers.core.site import Site
from handlers.oauth.pushed_record import PushedRecord, read_record, rules_of, write_record
from handlers.oauth.requests import Interaction, check_request
from store import keys
from store.crypto.seal import new_id
from store.oauth import pushed
from store.oauth.authorizations import AuthorizationRequest
from tests.oauth.pushed.test_pushed import address, ends_with_a_code, is_over, parameters, push
from tests.support.http.driver import Service, answer_of

pytestmark = pytest.mark.gen_test(timeout=30)


@pytest.mark.trap(53)
async def test_a_new_browser_that_gets_its_answer_at_once_gets_nothing_that_opens_it_again(service: Service) -> None:
    browser = await service.signed_in()
    await ends_with_a_code(browser, service.web, await address(service.web))
    for changes in ({}, {"prompt": "none", "acr_values": "phr", "scope": "data:read"}):
        browser.cookies.pop("latchkey_browser", None)
        url = await address(service.web, **changes)
        first, second = await asyncio.gather(browser.get(url), browser.get(url))
        assert sorted((first.code, second.code)) == [303, 400]
        answered = first if first.code == 303 else second
        assert "Set-Cookie" not in answered.headers
        browser.cookies.pop("latchkey_browser", None)
        assert await is_over(browser, url)


async def test_a_page_or_a_sign_in_gives_the_browser_its_cookie(service: Service) -> None:
    browser, url = service.browser(), await address(service.web)
    to_sign_in = await browser.get(url)
    assert to_sign_in.code == 303
    assert "latchkey_browser=lk_br_" in to_sign_in.headers["Set-Cookie"]
    cookie = browser.cookies["latchkey_browser"]
    assert (await browser.get(url)).code == 303
    assert browser.cookies["latchkey_browser"] == cookie, "the same browser, for another ten minutes"
    signed_in = await service.signed_in()
    assert (await signed_in.get(await address(service.web))).code == 200
    assert "latchkey_browser" in signed_in.cookies


async def test_rows_of_ended_requests_go_with_the_next_push(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would take the room of others for ten minutes."""
    monkeypatch.setattr(pushed, "MOST_PUSHED", 3)
    browser = await service.signed_in()
    await ends_with_a_code(browser, service.web, await address(service.web))
    for _ in range(5):
        browser.cookies.pop("latchkey_browser", None)
        assert "code" in answer_of(await browser.get(await address(service.web)))
    rows = keys.pushed(service.web.client_id, "")
    listed: Any = await service.store.client.zrange(rows["all_pushed"], 0, -1)
    assert len(listed) == 1, "the last one waits for the next push"
    assert (await push(service.web)).code == 201
    assert await service.store.client.exists(rows["pushed"] + listed[0].decode()) == 0


async def test_too_many_ends_do_not_wait(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "MOST_ENDED", 2)
    monkeypatch.setattr(pushed, "MOST_APPS", 2)
    requests = service.store.pushed
    assert [requests.end_later("one-app", new_id()) for _ in range(3)] == [True, True, False]
    assert requests.end_later("second-app", new_id())
    assert requests.end_later("third-app", new_id())
    assert list(requests._ended) == ["second-app", "third-app"]
    browser = await service.signed_in()
    await ends_with_a_code(browser, service.web, await address(service.web))
    urls = [await address(service.web) for _ in range(3)]
    for url in urls:
        browser.cookies.pop("latchkey_browser", None)
        assert "code" in answer_of(await browser.get(url))
    rows = keys.pushed(service.web.client_id, "")
    assert await service.store.client.zcard(rows["all_pushed"]) == 2
    assert [await is_over(browser, url) for url in urls] == [True] * 3


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param({"redirect_uris": ("https://app.example/other",)}, "", id="redirect URI"),
        pytest.param({"scopes": ("profile",), "hosted_storage": False}, "invalid_scope", id="scope"),
        pytest.param({"name": "Another"}, None, id="nothing that a request is checked against"),
    ],
)
async def test_a_change_of_the_app_counts_for_what_was_pushed_before(
    service: Service, change: dict[str, Any], error: str | None
) -> None:
    browser, url = await service.signed_in(), await address(service.web)
    await service.store.apps.update(service.web.client_id, **change)
    service.store.apps.forget()
    answer = await browser.get(url)
    if error is None:
        assert answer.code == 200, "the consent page"
    elif error:
        assert answer_of(answer)["error"] == error
    else:
        assert answer.code == 400
        assert "Location" not in answer.headers


def test_a_server_of_an_earlier_release_reads_a_record_that_uses_nothing_new() -> None:
    """The fields are in the order of their releases, and earlier releases refuse more fields than they know."""
    request = AuthorizationRequest("web", "https://web.example/cb", ("openid",), "s", "c", "t", "p")
    pairs = [("client_id", "web")]
    [_, _, written, *_] = json.loads(write_record(PushedRecord(pairs, "rules", (request, Interaction(frozenset())))))
    assert written == ["web", "https://web.example/cb", ["openid"], "s", "c", "t", "p", "", []]
    later = request._replace(device="d")
    [_, _, written, *_] = json.loads(write_record(PushedRecord(pairs, "rules", (later, Interaction(frozenset())))))
    assert written[-1] == "d"
    for one in (request, later):
        record = PushedRecord(pairs, "rules", (one, Interaction(frozenset())))
        assert read_record(write_record(record)) == record


@pytest.mark.parametrize("where", [2, None], ids=["a field of the request", "a part of the record"])
def test_a_record_of_a_later_release_counts_as_unchecked(where: int | None) -> None:
    request = AuthorizationRequest("web", "https://web.example/cb", ("openid",), "s", "c", "t", "p", second_step=True)
    record = json.loads(write_record(PushedRecord([("a", "b")], "rules fapi", (request, Interaction(frozenset())))))
    (record if where is None else record[where]).append("a condition that nobody knew")
    found = read_record(json.dumps(record))
    assert found == PushedRecord([("a", "b")], "rules fapi")
    assert found.profile == "fapi"


async def test_a_record_is_what_was_pushed(service: Service) -> None:
    """Every field survives, with its type: the browser's arrival does not look at the parameters again."""
    site, registered = Site(service.store, service.base_url), await service.store.apps.active(service.web.client_id)
    assert registered is not None
    app = replace(registered, scopes=("openid", "profile", "credits:spend"), hosted_storage=False)
    app = replace(app, allowed_groups=("staff",))
    claims = '{"id_token": {"sub": {"values": ["b", "a"]}, "acr": {"essential": true, "values": ["phr"]}}}'
    more = {"scope": "openid profile", "nonce": "n", "claims": claims, "max_age": "60", "prompt": "login consent"}
    more["authorization_details"] = '[{"type":"credits","limit":5,"models":["latchkey-echo"]}]'
    sent = parameters(service.web, **more, response_mode="form_post", dpop_jkt="x" * 42 + "A", id_token_hint="hint")
    found = check_request(app, service.web.redirect_uri, once([*sent.items()]), site.base_url, offered=bool)
    record = PushedRecord([*sent.items()], rules_of(app, site), found)
    assert read_record(write_record(record)) == record
    assert record.checked(app, site) == found
    unchecked = PushedRecord([*sent.items()])
    assert read_record(write_record(unchecked)) == unchecked
    assert unchecked.checked(app, site) is None
    for name, value in found[0]._asdict().items():
        # The arrival decides about a second step itself: the rules of an API are not among those of the record.
        assert value or name in ("pushed", "api", "device", "second_step"), f"{name} is not tried here"
    assert all(found[1])
    for other in (Site(site.store, site.base_url, require_pkce=True), Site(site.store, "https://other.example")):
        assert record.checked(app, other) is None
    assert record.checked(replace(app, name="Another"), site) is None
