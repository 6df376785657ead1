"""The log of an app's refused requests: counted in the process, bounded, and shown to the owner with the remedy."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from dev.words.sources import ROOT
from handlers.developer.log import TO_PROGRAMS, compare_nearest
from store import app_log
from store.app_log import KEPT_MS, LONGEST, MOST, MOST_VALUES, AppLog, Cause
from store.phrases import Phrase
from store.wiring import Store
from tests.support.browser.own_apps import URI, own_app
from tests.support.http.driver import Service, send, text_of
from tests.support.processes.engines import FakeClock
from tests.support.store.world import World

WRONG = Cause("authorize", "invalid_request", "Not registered.", "https://app.example/wrong")


async def logged(store: Store, client: str) -> list[tuple[str, str, int]]:
    """Code, value and number of times, the latest first."""
    await store.app_log.flush()
    return [(one.cause.code, one.cause.value, one.times) for one in await store.app_log.of(client)]


@pytest.mark.gen_test
async def test_refusals_add_up_over_processes(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    other = AppLog(store.scripts)  # as another process
    for log in (store.app_log, other, store.app_log):
        log.refused(client, WRONG)
    other.refused(client, WRONG._replace(value="https://app.example/other"))
    assert [one.times for one in await store.app_log.of(client)] == []
    await other.flush()
    assert sorted(await logged(store, client)) == [
        ("invalid_request", "https://app.example/other", 1),
        ("invalid_request", "https://app.example/wrong", 3),
    ]


@pytest.mark.gen_test
async def test_strangers_cannot_push_other_causes_out_of_a_log(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    store.app_log.refused(client, Cause("token", "invalid_client", "Why."))
    for batch in range(5):
        for number in range(MOST + 50):
            store.app_log.refused(client, WRONG._replace(value=f"https://evil.example/{batch}/{number}"))
        await store.app_log.flush()
    counted = Counter(code for code, _, _ in await logged(store, client))
    assert counted == {"invalid_client": 1, "invalid_request": MOST_VALUES + 1}
    total = sum(times for code, _, times in await logged(store, client) if code == "invalid_request")
    assert total == 5 * (MOST + 50)


@pytest.mark.gen_test
async def test_a_log_keeps_a_bounded_number_of_causes(store: Store) -> None:
    world = await World.make(store)
    for batch in range(3):
        for number in range(MOST + 10):
            store.app_log.refused(world.app.client_id, Cause("call", "invalid_request", f"{batch} {number}"))
        await store.app_log.flush()
    found = await store.app_log.of(world.app.client_id)
    assert len(found) == MOST
    assert all(one.cause.description.startswith("2 ") for one in found)


@pytest.mark.gen_test
async def test_many_apps_cannot_fill_the_memory_of_a_process(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_log, "MOST_APPS", 2)
    for number in range(5):
        memory_store.app_log.refused(f"app-{number}", WRONG)
    assert len(memory_store.app_log._counted) == 2


@pytest.mark.gen_test
async def test_values_are_cut_and_printable(memory_store: Store) -> None:
    world = await World.make(memory_store)
    memory_store.app_log.refused(world.app.client_id, WRONG._replace(value="a\n\x1b[31m\0" + "ü" * 300))
    ((_, value, _),) = await logged(memory_store, world.app.client_id)
    assert value.startswith("a  [31m ü")
    assert len(value.encode()) <= LONGEST


@pytest.mark.gen_test
async def test_a_description_stays_a_message_unless_it_is_long(memory_store: Store) -> None:
    world = await World.make(memory_store)
    texts = [Phrase("Nobody called %(name)s.", name="x" * size) for size in (5, 700)]
    for text in (*texts, "Kept in English by an older release."):
        memory_store.app_log.refused(world.app.client_id, WRONG._replace(description=text))
    await memory_store.app_log.flush()
    found = [one.cause.description for one in await memory_store.app_log.of(world.app.client_id)]
    assert {(type(one), one[:20]) for one in found} == {
        (Phrase, "Nobody called xxxxx."),
        (str, "Nobody called xxxxxx"),
        (str, "Kept in English by a"),
    }
    assert max(map(len, found)) == LONGEST


@pytest.mark.gen_test
async def test_refusals_end_30_days_after_the_last_one(memory_store: Store, clock: FakeClock) -> None:
    world = await World.make(memory_store)
    client = world.app.client_id
    memory_store.app_log.refused(client, WRONG)
    await memory_store.app_log.flush()
    clock.advance(KEPT_MS / 1000 - 1)
    memory_store.app_log.refused(client, Cause("token", "invalid_grant", "Why."))
    assert [code for code, _, _ in await logged(memory_store, client)] == ["invalid_grant", "invalid_request"]
    clock.advance(2)
    assert [code for code, _, _ in await logged(memory_store, client)] == ["invalid_grant"]


@pytest.mark.gen_test
async def test_deleted_apps_have_no_log(store: Store) -> None:
    world = await World.make(store)
    client = world.app.client_id
    store.app_log.refused(client, WRONG)
    await store.app_log.flush()
    await store.apps.delete(client)
    assert await logged(store, client) == []
    store.app_log.refused(client, WRONG)
    assert await logged(store, client) == []


@pytest.mark.gen_test
async def test_each_door_writes_its_refusals_and_no_secret(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    client, secret = app.client_id, "a-secret-that-is-not-the-one-of-the-app-1234"
    await service.browser().get(app.authorize_url(redirect_uri="https://somebody@app.example/wrong"))
    await service.browser().get(app.authorize_url(scope="credits:read"))
    await service.browser().get(app.authorize_url(prompt="none", scope="profile"))  # the app wanted to find out
    assert app.secret
    for known in (secret, app.secret):
        form = {"grant_type": "authorization_code", "code": "x", "redirect_uri": "y", "client_id": client}
        await send(f"{service.base_url}/api/oauth/token", "POST", form={**form, "client_secret": known})
    tokens = await service.tokens(app, browser, scope="profile")
    await send(
        f"{service.base_url}/api/v1/credits/balance", headers={"Authorization": f"Bearer {tokens['access_token']}"}
    )
    await service.store.app_log.flush()
    found = await service.store.app_log.of(client)
    told = {(one.cause.door, one.cause.code, one.cause.value) for one in found}
    assert told == {
        ("authorize", "invalid_request", "https://app.example/wrong"),
        ("authorize", "invalid_scope", "credits:read"),
        ("token", "invalid_client", ""),
        ("token", "invalid_grant", ""),
        ("call", "insufficient_scope", ""),
    }
    page = text_of(await browser.get(f"/developer/apps/{client}/log"))
    assert "Register this address, or send one that is registered." in page
    assert not [one for one in (secret, app.secret, "somebody@") if one and one in page]
    german = text_of(await browser.get(f"/developer/apps/{client}/log", **{"Accept-Language": "de"}))
    assert "Die App hat diese Scopes nicht registriert: credits:read." in german


@pytest.mark.parametrize("message", TO_PROGRAMS, ids=str)
def test_each_text_that_the_log_translates_is_one_that_programs_get(message: Phrase) -> None:
    longest = max(re.split(r"%\(\w+\)s", message.text), key=len)
    own = ROOT / "handlers" / "developer" / "log.py"
    paths = (path for folder in ("handlers", "store") for path in (ROOT / folder).rglob("*.py") if path != own)
    assert any(longest in path.read_text("utf-8") for path in paths)


@pytest.mark.gen_test
async def test_a_wrong_address_is_compared_with_the_registered_one(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.browser().get(app.authorize_url(redirect_uri=URI + "/"))
    await service.store.app_log.flush()
    page = (await browser.get(f"/developer/apps/{app.client_id}/log")).body.decode()
    assert f"{URI}<mark>/</mark></code>" in re.sub(r"\s+", " ", page)


@pytest.mark.parametrize(
    ("sent", "registered", "parts"),
    [
        ("https://a.example/cb/", ("https://a.example/cb",), ("https://a.example/cb", "/", "", "")),
        ("http://a.example/cb", ("https://a.example/cb",), ("http", "", "://a.example/cb", "s")),
        ("https://b.example/cb", ("x://y", "https://a.example/cb"), ("https://", "b", ".example/cb", "a")),
        ("same", ("same",), ("same", "", "", "")),
    ],
)
def test_the_difference_between_two_addresses_is_marked(sent: str, registered: tuple[str, ...], parts: Any) -> None:
    before, middle, after, other = parts
    here, there = compare_nearest(sent, registered)
    assert (here.before, here.middle, here.after) == (before, middle, after)
    assert (there.before, there.middle, there.after) == (before, other, after)
