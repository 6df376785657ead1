"""Apps, APIs, deliveries, the trail and the server itself in the management interface."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import ServerFacts, Site
from handlers.ops.operations import Operations
from runtime.arguments import load
from settings.in_force import in_force
from store.accounts.audit import security_reading
from store.accounts.audit.security_log import Origin
from store.app_log import Cause
from store.webhooks.deliveries import WebhookEvent, new_event_id
from tests.operators.conftest import API, Desk, refused
from tests.support.browser.mailbox import posted
from tests.support.browser.pictures import drawn
from tests.support.http.driver import EMAIL, json_of, send

HIDDEN = "a-password"
pytestmark = pytest.mark.gen_test
NEW = {"name": "Shop", "redirect_uris": ["https://shop.example/cb"], "scopes": "profile data:read"}


async def test_an_app_is_made_changed_suspended_and_deleted(desk: Desk, site: Site) -> None:
    sent = posted(site.mail)
    made = await desk.do("POST", "/apps", {**NEW, "client_id": "shop", "owner": EMAIL, "verified": True})
    assert (made["client_id"], made["name"], made["owner"], made["verified"]) == ("shop", "Shop", desk.ada, True)
    assert made["client_secret"]
    changed = await desk.do("PATCH", "/apps/shop", {"name": "The shop", "scopes": ["profile"], "verified": False})
    assert (changed["name"], changed["scopes"], changed["verified"]) == ("The shop", ["profile"], False)
    assert "client_secret" not in changed
    assert (await desk.do("POST", "/apps/shop/suspend", {}))["status"] == "disabled"
    assert (await desk.do("POST", "/apps/shop/suspend", {"reason": "Phishing"}))["suspendedReason"] == "Phishing"
    assert await desk.store.apps.active("shop") is None
    resumed = await desk.do("POST", "/apps/shop/resume", {})
    assert (resumed["status"], resumed["suspendedReason"]) == ("active", "")
    rules = {"secondStep": True, "callsPerMinute": 5, "introspectionsPerMinute": 6, "spendPerDay": 7_000_000}
    ruled = await desk.do("PATCH", "/apps/shop", rules)
    assert {name: ruled[name] for name in rules} == rules
    assert (await desk.get("/apps/shop"))["people"] == 0
    tried = await desk.do("DELETE", "/apps/shop?dry_run=true")
    assert (tried["deleted"], tried["dryRun"]) == (False, True)
    # Its owner was mailed, the second time with the reason.
    assert [mail.what for mail in sent] == ["operators/app_suspended"] * 2
    assert [("Reason: Phishing" in mail.text) for mail in sent] == [False, True]
    assert (await desk.do("DELETE", "/apps/shop"))["deleted"] is True
    refused(await desk.ask("GET", "/apps/shop"), 404, "not_found")
    noted = [event for event in desk.events if event.client == "shop"]
    assert [event.event for event in noted if event.by]
    assert {event.by.split()[0] for event in noted if event.by} == {"key"}
    assert {"app_created_by_operator", "app_changed_by_operator", "app_deleted_by_operator"} <= {
        event.event for event in noted
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({**NEW, "redirect_uris": ["javascript:alert(1)"]}, id="a script as redirect URI"),
        pytest.param({**NEW, "scopes": "everything"}, id="unknown scope"),
        pytest.param({**NEW, "name": "Latchkey"}, id="our own name"),
        pytest.param({**NEW, "webhookUrl": "http://10.0.0.1/x"}, id="webhook without TLS"),
        pytest.param({**NEW, "owner": "nobody@example.com"}, id="no such owner"),
        pytest.param({**NEW, "public": "yes"}, id="flag as text"),
        pytest.param({**NEW, "callsPerMinute": 10_000_001}, id="too many calls"),
        pytest.param({**NEW, "spendPerDay": 10**12 + 1}, id="too much to spend"),
        pytest.param({**NEW, "client_id": "a b"}, id="client id with a space"),
        pytest.param({**NEW, "client_id": "web-app"}, id="client id that is taken"),
        pytest.param({**NEW, "secrets": ["x"]}, id="a secret of one's own"),
        pytest.param({"name": "Shop"}, id="nothing else"),
        pytest.param({**NEW, "authMethod": "password"}, id="unknown method"),
        pytest.param({**NEW, "jwks": [1]}, id="keys that are none"),
    ],
)
async def test_what_makes_no_app_is_refused(desk: Desk, body: Any) -> None:
    response = await desk.ask("POST", "/apps", body)
    assert response.code in (400, 404), response.body
    assert [app["client_id"] for app in (await desk.get("/apps"))["items"]] == ["native-app", "web-app"]


async def test_apps_come_page_by_page_and_by_words(desk: Desk) -> None:
    for number in range(3):
        await desk.do("POST", "/apps", {**NEW, "client_id": f"shop-{number}", "name": f"Shop {number}"})
    first = await desk.get("/apps?limit=4")
    assert [app["client_id"] for app in first["items"]] == ["native-app", "shop-0", "shop-1", "shop-2"]
    rest = await desk.get(f"/apps?limit=4&cursor={first['nextCursor']}")
    assert ([app["client_id"] for app in rest["items"]], rest["nextCursor"]) == (["web-app"], None)
    assert [app["client_id"] for app in (await desk.get("/apps?query=SHOP%201"))["items"]] == ["shop-1"]
    refused(await desk.ask("GET", f"/apps?query=shop&cursor={first['nextCursor']}"), 400, "invalid_request")


async def test_a_secret_is_rotated_once_for_a_key(desk: Desk) -> None:
    key = {"Idempotency-Key": "rotate"}
    first = json_of(await desk.ask("POST", "/apps/web-app/rotate-secret", {"dropOld": True}, headers=key))
    again = json_of(await desk.ask("POST", "/apps/web-app/rotate-secret", {"dropOld": True}, headers=key))
    assert first["client_secret"]
    assert again == {**first, "client_secret": None}
    refused(await desk.ask("POST", "/apps/nothing/rotate-secret", {}), 404, "not_found")


async def test_the_team_of_an_app_changes(desk: Desk) -> None:
    bea = await desk.person("bea@example.com")
    path = "/apps/web-app/team"
    assert [one["role"] for one in (await desk.do("PUT", f"{path}/{desk.ada}", {"role": "owner"}))["items"]] == [
        "owner"
    ]
    team = (await desk.do("PUT", f"{path}/{bea}", {"role": "viewer"}))["items"]
    assert [(one["sub"], one["role"]) for one in team] == [(desk.ada, "owner"), (bea, "viewer")]
    assert len((await desk.do("DELETE", f"{path}/{bea}"))["items"]) == 1
    refused(await desk.ask("PUT", f"{path}/{bea}", {"role": "admin"}), 400, "invalid_request")


async def test_the_log_of_an_app_is_shown(desk: Desk) -> None:
    desk.store.app_log.refused("web-app", Cause("token", "invalid_grant", "The code is used.", ""))
    await desk.store.app_log.flush()
    [one] = (await desk.get("/apps/web-app/log"))["items"]
    assert (one["door"], one["error"], one["times"]) == ("token", "invalid_grant", 1)


async def test_an_api_is_made_changed_and_deleted(desk: Desk) -> None:
    body = {
        "identifier": "https://orders.example",
        "name": "Orders",
        "scopes": [{"name": "orders:read", "title": "See your orders", "care": True}],
        "owner": EMAIL,
    }
    made = await desk.do("POST", "/apis", body)
    path = f"/apis/{made['client_id']}"
    assert made["client_secret"]
    assert made["owner"] == desk.ada
    changed = await desk.do("PATCH", path, {"tokenFormat": "jwt", "tokenLifetime": 60})
    assert (changed["tokenFormat"], changed["tokenLifetime"], changed["scopes"]) == ("jwt", 60, made["scopes"])
    assert (await desk.do("POST", f"{path}/suspend", {}))["status"] == "disabled"
    assert (await desk.do("POST", f"{path}/resume", {}))["status"] == "active"
    assert (await desk.do("POST", f"{path}/rotate-secret", {}))["client_secret"]
    assert [one["client_id"] for one in (await desk.get("/apis"))["items"]] == [made["client_id"]]
    for wrong in ({}, {"scopes": "orders"}, {"scopes": [{"name": 1}]}, {"scopes": [{"name": "a", "x": 1}]}):
        refused(await desk.ask("PATCH", path, wrong), 400, "invalid_request")
    assert (await desk.do("DELETE", f"{path}?dry_run=true"))["deleted"] is False
    assert (await desk.do("DELETE", path))["deleted"] is True
    refused(await desk.ask("GET", path), 404, "not_found")


async def test_grants_of_a_person_are_listed(desk: Desk) -> None:
    app = await desk.store.apps.find("web-app")
    assert app
    await desk.store.tokens.mint(desk.ada, app, ("profile",))
    for who in (EMAIL, desk.ada):
        [grant] = (await desk.get(f"/grants?person={who}"))["items"]
        assert (grant["person"], grant["client_id"], grant["scopes"]) == (desk.ada, "web-app", ["profile"])
    refused(await desk.ask("GET", "/grants"), 400, "invalid_request")
    refused(await desk.ask("GET", "/grants?person=nobody@example.com"), 404, "not_found")


async def test_the_trail_says_who_did_what_to_whom_and_from_where(desk: Desk) -> None:
    for act in ("suspend", "resume", "suspend"):
        await desk.do("POST", f"/people/{desk.ada}/{act}", {"reason": act} if act == "suspend" else {}, role="support")
    await desk.store.security.flush()
    page = await desk.get(f"/audit?person={EMAIL}&limit=2")
    assert [one["event"] for one in page["items"]] == ["suspended_by_operator", "enabled_by_operator"]
    one = page["items"][0]
    assert (one["actor"], one["person"], one["address"]) == ("operator", desk.ada, "127.0.0.1")
    assert one["by"].endswith("The support")
    assert one["request_id"]
    rest = await desk.get(f"/audit?person={EMAIL}&limit=2&cursor={page['nextCursor']}")
    assert rest["items"][0]["event"] == "suspended_by_operator"
    assert (await desk.get("/audit?event=enabled_by_operator&since=2020-01-01"))["items"]
    assert (await desk.get("/audit?app=nothing"))["items"] == []
    assert (await desk.get("/audit?since=2099-01-01"))["items"] == []
    refused(await desk.ask("GET", "/audit?since=soon"), 400, "invalid_request")
    came = await desk.get("/audit?follow=true&since=1970-01-01&event=suspended_by_operator")
    assert len(came["items"]) == 2, "everything since the beginning, and not only what comes now"
    assert (await desk.get("/audit?follow=true"))["items"] == []
    refused(await desk.ask("GET", "/audit?follow=true&limit=5"), 400, "invalid_request")
    refused(await desk.ask("GET", f"/audit?cursor={page['nextCursor']}"), 400, "invalid_request")


async def test_the_trail_is_filtered_by_who_acted(desk: Desk) -> None:
    """By operator key, and by the address or the user id of a person with a role."""
    made, _ = await desk.store.operator_keys.create("support", name="Helpdesk")
    key = made.id
    for number, by in enumerate((f"person {desk.ada}", f"key {key} Helpdesk", "", f"key {'0' * 16}")):
        origin = Origin(actor="operator", by=by)
        with patch.object(desk.store.security, "origin", lambda origin=origin: origin):
            desk.store.security.note("exported_by_operator", person="f" * 32, detail=str(number))
    await desk.store.security.flush()
    for operator, acts in (
        (EMAIL, ["0"]),
        (desk.ada, ["0"]),
        (key, ["1"]),
        ("", ["0", "1", "2", "3"]),
    ):
        query = urlencode({"event": "exported_by_operator", "operator": operator})
        listed = (await desk.get(f"/audit?{query}"))["items"]
        assert [one["detail"] for one in reversed(listed)] == acts, operator
        came = (await desk.get(f"/audit?{query}&follow=true&since=1970-01-01"))["items"]
        assert [one["detail"] for one in came] == acts, operator
        lines = (await desk.ask("GET", f"/audit/export?{query}")).body.splitlines()
        assert [json.loads(line)["detail"] for line in lines] == acts, operator
    for path in ("/audit", "/audit/export"):
        for wrong in ("no@address@example.com", "nobody@example.com"):
            refused(await desk.ask("GET", f"{path}?operator={wrong}"), 400, "invalid_request")
    cursor = (await desk.get(f"/audit?operator={key}&follow=true"))["nextCursor"]
    refused(await desk.ask("GET", f"/audit?operator={desk.ada}&follow=true&cursor={cursor}"), 400, "invalid_request")


async def test_a_follower_learns_that_there_is_more_behind_an_answer_without_a_match(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security_reading, "CAME", 1)
    monkeypatch.setattr(security_reading, "MOST_READS", 1)
    for number in range(9):
        desk.store.security.note("created_by_operator" if number < 8 else "signed_in", person=desk.ada)
    await desk.store.security.flush()
    cursor, answers = "", list[Any]()
    while not answers or answers[-1]["more"]:
        answers.append(await desk.get(f"/audit?follow=true&since=2020-01-01&event=signed_in&cursor={cursor}"))
        cursor = answers[-1]["nextCursor"]
        assert len(answers) < 20
    assert (answers[0]["items"], answers[0]["more"]) == ([], True)
    assert [one["event"] for answer in answers for one in answer["items"]] == ["signed_in"]
    assert "more" not in await desk.get("/audit")


async def test_deliveries_of_all_apps_are_listed_and_sent_again(desk: Desk) -> None:
    made = []
    for number in range(2):
        app = await desk.do(
            "POST", "/apps", {**NEW, "client_id": f"shop-{number}", "webhookUrl": "http://localhost:9/x"}
        )
        assert app["webhook_secret"]
        for _ in range(2):
            event = WebhookEvent(new_event_id(), "account.deleted", app["client_id"], desk.ada, 1)
            await desk.store.deliveries.enqueue(event)
            made.append(event.id)
    first = await desk.get("/webhooks/deliveries?state=pending&limit=3")
    assert len(first["items"]) == 3, first
    rest = await desk.get(f"/webhooks/deliveries?state=pending&limit=3&cursor={first['nextCursor']}")
    found = [*first["items"], *rest["items"]]
    assert {one["id"] for one in found} == {*made}
    assert rest["nextCursor"] is None
    assert len((await desk.get("/webhooks/deliveries?app=shop-1"))["items"]) == 2
    assert (await desk.get("/webhooks/deliveries?state=failed"))["items"] == []
    refused(await desk.ask("GET", "/webhooks/deliveries?state=lost"), 400, "invalid_request")
    path = f"/webhooks/deliveries/{made[0]}/send"
    assert (await desk.do("POST", path, {"client_id": "shop-0"}))["state"] == "pending"
    refused(await desk.ask("POST", path, {"client_id": "shop-1"}), 404, "not_found")


async def test_keys_settings_and_health_are_shown_without_secrets(desk: Desk, app: Operations) -> None:
    environ = {
        "LATCHKEY_REDIS_URL": "redis://user:" + HIDDEN + "@store.example:6379/1",
        "LATCHKEY_SECRET_KEYS": "1:" + "A" * 43,
        "LATCHKEY_OPERATOR_KEYS": "k" * 32,
        "LATCHKEY_SMTP_URL": "smtps://me:" + HIDDEN + "@mail.example",
    }
    settings = load(["--workers", "3"], environ)
    app.site = replace(app.site, facts=lambda: ServerFacts("1.2.3", settings.workers, in_force(settings)))
    response = await desk.ask("GET", "/settings")
    items = {item["name"]: item for item in json_of(response)["items"]}
    assert HIDDEN.encode() not in response.body
    assert b"kkkk" not in response.body
    assert b"AAAA" not in response.body
    assert items["workers"] == {"name": "workers", "value": 3, "source": "--workers", "secret": False}
    assert items["signup"]["source"] == "default"
    assert items["redis_url"]["value"] == "redis://store.example:6379/1"
    assert items["redis_url"]["source"] == "LATCHKEY_REDIS_URL"
    assert (items["secret_keys"]["value"], items["secret_keys"]["secret"]) == (None, True)
    health = await desk.get("/health")
    assert (health["status"], health["version"], health["workers"]) == ("ok", "1.2.3", 3)
    assert health["queues"]["webhooks"] == 0
    keys = (await desk.get("/keys"))["items"]
    assert [key["kind"] for key in keys if key.get("front")] == ["secret"]
    assert "private" not in str(keys)


async def test_a_logo_is_the_file_itself(desk: Desk) -> None:
    path, key = "/apps/web-app/logo", {"Authorization": f"Bearer {await desk.key('admin')}"}

    async def put(file: bytes, kind: str = "image/png", to: str = path) -> HTTPResponse:
        headers = {**key, "Content-Type": kind}
        return await send(f"{desk.url}{API}{to}", "PUT", body=file, headers=headers, described=False)

    changed = json_of(await put(drawn("PNG", (64, 64), (1, 2, 3))))
    assert changed["logo"]
    app = await desk.store.apps.find("web-app")
    assert app
    assert (await desk.store.apps.logo("web-app", app.logo) or b"")[8:12] == b"WEBP"
    for wrong, kind, code in (
        (b"no picture", "image/png", 400),
        (b"", "image/png", 400),
        (b"{}", "application/json", 415),
        (b"x" * (4 * 65_536 + 1), "image/png", 413),
    ):
        assert (await put(wrong, kind)).code == code, (wrong[:9], kind)
    assert (await put(drawn("PNG", (8, 8), (1, 2, 3)), to="/apps/nothing/logo")).code == 404
    assert (await desk.get("/apps/web-app"))["logo"] == changed["logo"]
    assert not (await desk.do("DELETE", path))["logo"]
