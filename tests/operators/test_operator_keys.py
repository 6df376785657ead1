"""Operator keys: made once, stored as digests, ended by time and by command, refused without a trace of their text."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest

from handlers.ops.operations import Operations
from store import keys
from store.lifetimes import ADDRESS, MINUTE
from store.operators.operator_keys import MOST_KEYS, PREFIX
from store.refused import Refused
from tests.operators.conftest import API, SETTING, Desk, refused
from tests.runtime.test_logging import LOGGERS, assert_none_of
from tests.support.http.driver import json_of, send, send_raw
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test


async def test_a_key_is_shown_once_and_stored_as_a_digest(desk: Desk) -> None:
    key, text = await desk.store.operator_keys.create("admin", name="Console of Bea")
    assert re.fullmatch(r"lk_ok_[A-Za-z0-9_-]{43}", text)
    row: Any = await desk.store.client.hgetall(keys.operator_key(key.id)["key"])
    assert text.removeprefix(PREFIX).encode() not in b"".join(row.values())
    assert (await desk.ask("GET", "/people", key=text)).code == 200
    [shown] = (await desk.get("/operator-keys"))["items"][:1]
    assert (shown["id"], shown["role"], shown["name"]) == (key.id, "admin", "Console of Bea")
    assert shown["lastUsedAt"]
    assert shown["lastUsedFrom"] == "127.0.0.1"
    assert text not in str(shown)


async def test_a_key_ends_at_its_time(desk: Desk, clock: FakeClock) -> None:
    now = await desk.store.apps.now()
    key, text = await desk.store.operator_keys.create("admin", ends_at=now + MINUTE)
    assert (await desk.ask("GET", "/people", key=text)).code == 200
    clock.advance(61)
    refused(await desk.ask("GET", "/people", key=text), 401, "invalid_token")
    assert key.id not in [one.id for one in await desk.store.operator_keys.list()]
    listed = await desk.store.client.zrange(keys.operator_key("")["all"], 0, -1)
    assert key.id.encode() not in listed


async def test_a_revoked_key_is_refused_at_once_and_never_lives_again(desk: Desk) -> None:
    key, text = await desk.store.operator_keys.create("admin")
    opened = await desk.store.operator_keys.open(text, "127.0.0.1")
    assert opened
    assert (await desk.do("DELETE", f"/operator-keys/{key.id}"))["revoked"] is True
    # A request that the key was checked for before notes its use afterwards.
    await desk.store.operator_keys.used(opened, "127.0.0.1", 2**42)
    refused(await desk.ask("GET", "/people", key=text), 401, "invalid_token")
    refused(await desk.ask("DELETE", f"/operator-keys/{key.id}"), 404, "not_found")
    with pytest.raises(Refused, match="not_found"):
        await desk.store.operator_keys.revoke(key.id)
    [event] = [one for one in desk.events if one.event == "operator_key_revoked_by_operator"]
    assert key.id in event.detail
    assert "The admin" in event.by


async def test_a_key_works_from_its_network_alone(desk: Desk) -> None:
    create = desk.store.operator_keys.create
    _, far = await create("admin", network="192.0.2.0/24")
    _, near = await create("admin", network="127.0.0.0/8")
    _, six = await create("admin", network="2001:db8::/32")
    refused(await desk.ask("GET", "/people", key=far), 401, "invalid_token")
    assert (await desk.ask("GET", "/people", key=near)).code == 200
    # A header says nothing unless a trusted proxy sends it.
    headers = {"X-Forwarded-For": "192.0.2.7"}
    refused(await desk.ask("GET", "/people", key=far, headers=headers), 401, "invalid_token")
    for wrong in ("192.0.2.7/24", "somewhere", "1.2.3.4/33"):
        with pytest.raises(ValueError, match="--address"):
            await create("admin", network=wrong)
    opened = desk.store.operator_keys.open
    assert await opened(six, "2001:db8:1::1")
    assert not await opened(six, "2001:db9::1")
    assert not await opened(six, "unknown")
    assert await opened(far, "192.0.2.255")
    assert not await opened(far, "192.0.3.0")


async def test_behind_a_trusted_proxy_the_client_counts(desk: Desk, app: Operations) -> None:
    _, far = await desk.store.operator_keys.create("admin", network="192.0.2.0/24")
    app.site = replace(app.site, trusted_proxies=(ip_network("127.0.0.1"),), peers={})
    headers = {"X-Forwarded-For": "198.51.100.1, 192.0.2.7"}
    assert (await desk.ask("GET", "/people", key=far, headers=headers)).code == 200
    headers = {"X-Forwarded-For": "192.0.2.7, 198.51.100.1"}
    refused(await desk.ask("GET", "/people", key=far, headers=headers), 401, "invalid_token")


async def test_wrong_keys_are_noted_and_limited_by_network(desk: Desk) -> None:
    good = await desk.key("auditor")
    statuses = [(await desk.ask("GET", "/people", key=f"{PREFIX}{'x' * 43}")).code for _ in range(ADDRESS.limit + 2)]
    assert set(statuses[: ADDRESS.limit]) == {401}
    assert statuses[-1] == 429
    assert (await desk.ask("GET", "/people", key=good)).code == 200  # a right key is never locked out
    desk.store.security.settle()
    noted = [event for event in desk.events if event.event == "operator_key_refused"]
    assert noted
    assert sum(event.count for event in noted) == len(statuses)


async def test_keys_of_the_settings_open_nothing_here(desk: Desk) -> None:
    for key in (SETTING, "", "x", f"{PREFIX}é", f"{PREFIX}{'é' * 43}", "a" * 5000):
        head = f"GET {API}/people HTTP/1.1\r\nAuthorization: Bearer {key}\r\n"
        assert (await send_raw(desk.url, head.encode("utf-8")))[0] == 401
    key = await desk.key("admin")
    twice = f"GET {API}/people HTTP/1.1\r\nAuthorization: Bearer {key}\r\nAuthorization: Bearer {key}\r\n"
    assert (await send_raw(desk.url, twice.encode()))[0] == 401
    for headers in ({"Authorization": f"Basic {key}"}, {"X-Api-Key": key}, {"Cookie": f"key={key}"}, {}):
        assert (await send(f"{desk.url}{API}/people", headers=headers)).code == 401
    assert (await send(f"{desk.url}{API}/people?key={key}")).code == 401


async def test_no_browser_is_let_in(desk: Desk) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    for method in ("OPTIONS", "GET"):
        response = await desk.ask(method, "/people", headers=asked)
        assert not [name for name in response.headers if name.startswith("Access-Control")]
        assert response.code == (405 if method == "OPTIONS" else 200)
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.trap(24)
async def test_no_log_contains_a_key_or_an_address(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    key = await desk.key("admin")
    await desk.ask("GET", "/people?query=ada@example.com")
    await desk.ask("POST", "/people", '{"email": "new@example.com"', key=key)
    await desk.ask("GET", "/people", key=f"{key}x")
    await send(f"{desk.url}{API}/people?key={key}")
    for head in (f"Authorization: Bearer {key}\x01", f"{key}: x", f"Host: {key}@"):
        await send_raw(desk.url, f"GET {API}/people HTTP/1.1\r\n{head}".encode("latin-1"))
    assert f"GET {API}/people 200" in caplog.text
    assert_none_of(caplog, {"key": key, "address": "ada@example.com", "new address": "new@example.com"})


async def test_there_are_only_so_many_keys(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.operators.operator_keys.MOST_KEYS", 1)
    assert MOST_KEYS == 1000
    await desk.store.operator_keys.create("auditor")
    with pytest.raises(Refused, match="invalid_request"):
        await desk.store.operator_keys.create("auditor")
    with pytest.raises(ValueError, match="name"):
        await desk.store.operator_keys.create("auditor", name="a\nb")


async def test_large_and_odd_bodies_are_refused_before_anything_happens(desk: Desk) -> None:
    for body, kind, status in (
        ('{"name": "' + "x" * 70_000 + '"}', "application/json", 413),
        ("[" * 5000, "application/json", 400),
        ('{"name": "a", "name": "b"}', "application/json", 400),
        ("name=Ada", "text/plain", 415),
        ('{"role": "admin"}', "application/json", 400),
        ("{}", "application/json", 400),
    ):
        response = await desk.ask("PATCH", f"/people/{desk.ada}", body, headers={"Content-Type": kind})
        refused(response, status, "invalid_request")
    assert json_of(await desk.ask("GET", f"/people/{desk.ada}"))["name"] == "Ada Lovelace"
