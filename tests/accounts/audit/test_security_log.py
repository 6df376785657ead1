"""The security log: its content, what never appears in it, and that it slows no request."""

from __future__ import annotations

import contextlib
import re
from typing import Any, cast

import pytest

from handlers.ops.security_context import SecurityLine
from store import keys
from store.accounts.audit import security_log
from store.accounts.audit.logged_event import AuditEvent
from store.crypto.keyring import Keys
from store.errors import StoreUnavailable
from store.lifetimes import DAY, RENAME
from store.refused import Refused
from store.wiring import Store
from tests.runtime.test_logging import log as log  # a fixture
from tests.runtime.test_logging import walk_through
from tests.support.admin.stored_trail import logged, logs
from tests.support.http.driver import EMAIL, PASSWORD, Service, fields_of, json_of, send
from tests.support.processes.engines import Engine
from tests.support.store.lost_answers import losing
from tests.support.store.second_factors import App, add_passkey, half_of, outcome, use_passkey
from tests.support.store.world import VISITOR, World

TYPED = "my secret passphrase@nowhere.example"


# What is in it


@pytest.mark.gen_test
async def test_log_records_person_address_and_result(service: Service) -> None:
    events: list[AuditEvent] = []
    service.store.security.tell = events.append
    browser = service.browser()
    await browser.sign_in(EMAIL, "a wrong password")
    await browser.sign_in(TYPED, PASSWORD)
    await browser.sign_in()
    tokens = await service.tokens(browser=browser)
    await service.web.refresh(tokens["refresh_token"])
    assert json_of(await service.web.refresh(tokens["refresh_token"]))["error"] == "invalid_grant"
    await service.web.refresh("x", client_secret="a wrong secret, nearly right")
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password="not this one", new_password="another horse")
    page = await browser.get("/account/apps")
    await browser.submit(page, "/account/apps/web-app/revoke")
    await browser.submit(page, "/signout")
    assert [(one.event, one.result, one.detail) for one in events] == [
        ("sign_in_refused", "refused", "password"),
        ("sign_in_refused", "refused", "unknown"),
        ("signed_in", "ok", ""),
        ("consent_given", "ok", ""),
        ("refresh_replayed", "refused", ""),
        ("client_refused", "refused", ""),
        ("confirmation_refused", "refused", "password"),
        ("app_disconnected", "ok", ""),
        ("signed_out", "ok", ""),
    ]
    ada = service.ada
    assert [one.person for one in events] == [ada, "", ada, ada, ada, "", ada, ada, ada]
    assert {one.client for one in events[3:6]} == {"web-app"}
    assert {one.address for one in events} == {"127.0.0.1"}
    assert all(one.request_id for one in events)
    assert [bool(one.typed) for one in events] == [False, True, *[False] * 7]
    await service.store.security.flush()
    stored = await service.store.security_events.newest(100)
    assert [one.id for one in stored][-len(events) :] == [one.id for one in events]
    assert stored[0].at_ms <= stored[-1].at_ms


@pytest.mark.gen_test
async def test_log_records_refusals(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser, scope="profile")
    events: list[AuditEvent] = []
    service.store.security.tell = events.append
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert (await send(f"{service.base_url}/api/v1/data/notes/n1", headers=headers)).code == 403
    assert (await browser.send("/account", "POST", form={"name": "Eve"})).code == 403
    page = await browser.get("/account")
    fields = fields_of(page, "/account")
    assert (await browser.send("/account", "POST", form=fields, headers={"Origin": "https://evil.example"})).code == 403
    refused = [(one.event, one.detail, one.person, one.client) for one in events]
    assert refused == [
        ("scope_refused", "read_document", service.ada, "web-app"),
        ("form_refused", "account xsrf", "", ""),
        ("form_refused", "account origin", "", ""),
    ]


@pytest.mark.gen_test
async def test_log_records_factors_reauthentications_and_operator_acts(memory_store: Store) -> None:
    world, store = await World.make(memory_store), memory_store
    events: list[AuditEvent] = []
    store.security.tell = events.append
    app = await App.add(world)
    half = await half_of(world)
    assert await outcome(store.second_step.with_code(half, "000000", VISITOR)) == "access_denied"
    await store.second_step.with_code(half, await app.code(), VISITOR)
    assert await outcome(store.reauth.with_password(world.session, "not this one", "", VISITOR)) == "password"
    assert await outcome(store.reauth.with_password(world.session, PASSWORD, "000000", VISITOR)) == "code"
    assert await outcome(store.factors.disable_totp(world.session, VISITOR)) == "unproved"
    device = await add_passkey(world)
    for lie in ({"signature": b"0"}, {"credential": "AAAA"}):
        assert await outcome(use_passkey(world, device, None, **lie)) == "access_denied"
    await use_passkey(world, device)
    await store.operator.reset_factors(world.email)
    await store.operator.credit(world.email, 5)
    await store.people.delete(world.user)
    assert [(one.event, one.detail, one.actor) for one in events] == [
        ("confirmed", "password", "person"),
        ("totp_enabled", "", "person"),
        ("second_step_asked", "", "person"),
        ("second_step_refused", "code", "person"),
        ("signed_in", "", "person"),
        ("confirmation_refused", "password", "person"),
        ("confirmation_refused", "code", "person"),
        ("change_refused", "disable_totp", "person"),
        ("confirmed", "password", "person"),
        ("passkey_added", "", "person"),
        ("passkey_refused", "answer", "person"),
        ("passkey_refused", "unknown", "person"),
        ("signed_in_by_passkey", "", "person"),
        ("factors_reset_by_operator", "", "operator"),
        ("credit_added", "0.000005 USD", "operator"),
        ("account_deleted", "", "person"),
    ]
    assert {one.person for one in events} == {world.user}


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_the_whole_flow_leaves_no_secret_in_the_stored_log(service: Service) -> None:
    secrets = await walk_through(service)
    await service.store.security.flush()
    stored = repr(await logged(service.store.client))
    assert "refresh_replayed" in stored
    assert not [name for name, secret in secrets.items() if secret in stored]
    assert not re.findall(r"lk_(?:at|rt|ac|ss|rq|in|cf|pr|ce|cs)_", stored)
    assert EMAIL not in stored


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_typed_addresses_are_never_logged_in_clear(service: Service, log: pytest.LogCaptureFixture) -> None:
    await service.browser().sign_in(TYPED, PASSWORD)
    await service.browser().sign_in("hunter2 hunter2", PASSWORD)
    await service.browser().sign_in(EMAIL, "a wrong password")
    await service.store.security.flush()
    entries = await logged(service.store.client)
    for secret in ("passphrase", "hunter2", EMAIL, PASSWORD, "a wrong password"):
        assert secret not in log.text
        assert secret not in repr(entries)
    assert "sign_in_refused" in log.text
    typed = [one.typed for one in await service.store.security_events.newest(3)]
    assert service.store.security.fingerprints.fits(typed[0], TYPED)
    assert typed[0] != typed[1]
    assert typed[2] == ""


@pytest.mark.gen_test
async def test_log_lines_escape_control_characters_and_have_their_fields(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    memory_store.security.note("sign_in_refused", address="192.0.2.1\n", agent='A "browser" \x1b[2J', detail="unknown")
    (event,) = events
    assert str(SecurityLine(event)) == (
        'sign_in_refused refused actor=person address=192.0.2.1? agent="A \\"browser\\" ?[2J" detail=unknown'
    )
    line: dict[str, object] = {}
    SecurityLine(event).put_fields(line)
    assert line == {
        "event": "sign_in_refused",
        "result": "refused",
        "actor": "person",
        "address": "192.0.2.1?",
        "agent": 'A "browser" ?[2J',
        "detail": "unknown",
    }


# A person's activity


@pytest.mark.gen_test
async def test_206_renames_push_no_sign_in_out_of_the_trail(store: Store) -> None:
    world = await World.make(store)
    for number in range(206):
        await store.profiles.rename(world.session, f"Ada {number}", VISITOR)
        await store.client.delete(keys.limit(world.user, RENAME.name))  # as if they took hours
    _, shown = await store.sessions.activity(world.session)
    security = [entry.event for entry in shown if not entry.ordinary]
    assert security == ["signed_in", "signed_up"]
    assert [entry.event for entry in shown if entry.ordinary] == ["name_changed"] * 200
    assert "signed_in" in {entry.event for entry in (await store.operator.find(world.email)).activity}


@pytest.mark.gen_test
async def test_connecting_and_disconnecting_repeatedly_hides_no_sign_in(store: Store) -> None:
    world = await World.make(store)
    trail = keys.audit(world.user)
    lines = [f"{1000 + n} {('consent_given', 'app_disconnected')[n % 2]} web  " for n in range(199)]
    stored: Any = await store.client.get(trail)
    present = stored.decode()
    await store.client.set(trail, "\n".join(reversed(lines)) + "\n" + present.splitlines()[-1] + "\n")
    for _ in range(5):
        await store.sessions.note(world.session, "account_downloaded", VISITOR)
    stored = await store.client.get(trail)
    kept = stored.decode().splitlines()
    assert len(kept) == 200
    assert "signed_up" in kept[-1]
    assert [line.split()[1] for line in kept[:6]] == [*["account_downloaded"] * 5, "consent_given"]


@pytest.mark.gen_test
async def test_the_previous_releases_trail_is_shown_and_kept_separately(store: Store) -> None:
    world = await World.make(store)
    trail = keys.audit(world.user)
    before = cast(bytes, await store.client.get(trail)).decode()
    renames = "".join(f"{2000 + n} name_changed  192.0.2.1 Firefox\n" for n in reversed(range(150)))
    await store.client.set(trail, renames + before)
    await store.profiles.rename(world.session, "Ada the newest", VISITOR)
    _, shown = await store.sessions.activity(world.session)
    assert [entry.event for entry in shown if not entry.ordinary] == ["signed_in", "signed_up"]
    assert len([entry for entry in shown if entry.event == "name_changed"]) == 151
    assert [entry.at for entry in shown] == sorted((entry.at for entry in shown), reverse=True)


# Floods, lost answers, bounds


@pytest.mark.gen_test
async def test_a_flood_of_refusals_is_two_events(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    for _ in range(30):
        for address in ("192.0.2.1", "192.0.2.2"):
            window = {"window": keys.window("signin-address", address)}
            await memory_store.scripts.run("take_window", window, limit=1, period=60_000)
    memory_store.security.settle()
    refused = [(one.event, one.detail, one.count) for one in events]
    assert refused == [("limited", "signin-address", 1), ("limited", "signin-address", 57)]


@pytest.mark.gen_test
async def test_repeated_acts_become_four_events_and_hide_nothing(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    apart = ("signed_up", "sign_in_refused", "code_replayed", "factors_reset_by_operator")
    for number in range(5):
        for person in ("one", "other"):
            memory_store.security.note("consent_denied", person=person, client=f"app-{number}")
            for name in apart:
                memory_store.security.note(name, person=person)
    memory_store.security.settle()
    denied = [(one.person, one.client, one.count) for one in events if one.event == "consent_denied"]
    singles = [(person, f"app-{number}", 1) for number in range(3) for person in ("one", "other")]
    assert denied == [*singles, ("one", "", 2), ("other", "", 2)]
    assert {name: sum(one.event == name for one in events) for name in apart} == dict.fromkeys(apart, 10)


@pytest.mark.gen_test
async def test_full_network_windows_and_code_pauses_are_logged(memory_store: Store) -> None:
    events: list[AuditEvent] = []
    memory_store.security.tell = events.append
    with contextlib.suppress(Refused):
        while True:
            await memory_store.limits.sign_up("2001:db8::/64")
    world = await World.make(memory_store)
    await App.add(world)
    half = await half_of(world)
    await memory_store.client.hset(keys.person(world.user)["guesses"], "until", 10**14)
    assert await outcome(memory_store.second_step.with_code(half, "000000", VISITOR)) == "rate_limited"
    memory_store.security.settle()
    limited = [(one.detail, bool(one.person)) for one in events if one.event == "limited"]
    assert limited == [("signup-address", False), ("factor", True)]


@pytest.mark.gen_test
async def test_no_request_waits_for_the_log(service: Service) -> None:
    await service.browser().sign_in()
    assert service.store.security.waiting
    assert not await logged(service.store.client)


@pytest.mark.gen_test
async def test_a_batch_with_a_lost_answer_is_resent_and_read_once(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        security = world.store.security
        await security.flush()
        before = len(await world.store.security_events.newest(None))
        security.note("signed_in", person=world.user)
        armed.arm("append_trail", times=2)  # twice, since the script may be resent
        with pytest.raises(StoreUnavailable):
            await security.flush()
        security.note("signed_out", person=world.user)
        await security.flush()
        found = await world.store.security_events.newest(None)
        assert [one.event for one in found[before:]] == ["signed_in", "signed_out"]
        assert len(await logged(world.store.client)) > len(found)


@pytest.mark.gen_test
async def test_events_dropped_by_a_full_buffer_are_counted(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(security_log.QUEUED, "people", 3)
    for _ in range(10):
        memory_store.security.note("signed_out")
    await memory_store.security.flush()
    found = await memory_store.security_events.newest(None)
    assert [(one.event, one.count) for one in found] == [*[("signed_out", 1)] * 3, ("events_lost", 7)]
    assert (found[-1].detail, found[-1].stream) == ("people", "people")


@pytest.mark.gen_test
async def test_an_event_takes_a_bounded_place_in_a_log_that_expires(store: Store) -> None:
    store.security.note("signed_in", agent="x" * 1000, detail="y" * 1000)
    await store.security.flush()
    ((_, row),) = await logged(store.client)
    assert len(row[b"event"]) < 800
    (log,) = await logs(store.client)
    assert 90 * DAY < await store.client.pttl(log) <= 91 * DAY
