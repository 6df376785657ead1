"""Chosen events: an app gets only the types that it wants; logout tokens and test events are not a matter of choice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from store import keys
from store.apps.registration import Registration
from store.apps.tombstones import Remains
from store.seed.fields import Invalid
from store.seed.reading import read_seed
from store.webhooks.deliveries import SESSION_ENDED, WebhookEvent, new_event_id
from store.webhooks.event_types import EVENT_TYPES, EVERY
from store.wiring import Store
from tests.support.http.driver import Browser, Service, fields_of
from tests.support.processes.operator_commands import Home
from tests.support.store.document_app import Keeper
from tests.support.store.webhook_app import USER, Hooked, engine_on
from tests.support.store.world import World

HOOKS = "/developer/apps/own/webhooks"
URL = "https://own.example/hook"


async def wanted(store: Store, client_id: str = "own") -> list[str]:
    return [type for type in (*EVENT_TYPES, SESSION_ENDED, "ping") if await store.webhooks.wants(client_id, type)]


async def owner(service: Service) -> Browser:
    """Ada, signed in, who owns an app with a webhook."""
    await service.add_app("own", owner=service.ada)
    browser = await service.confirmed()
    await browser.submit(await browser.get(HOOKS), HOOKS, url=URL)
    return browser


async def choose(browser: Browser, *ticked: str, drop: tuple[str, ...] = ()) -> int:
    """Sends the form with these boxes ticked, without the fields `drop`. Returns the status."""
    fields = fields_of(await browser.get(HOOKS), HOOKS)
    others = {name: value for name, value in fields.items() if not name.startswith("event_") and name not in drop}
    form = {**others, "url": URL, **{f"event_{name}": "yes" for name in ticked}}
    return (await browser.send(HOOKS, "POST", form=form)).code


def boxes(page: str) -> list[str]:
    return re.findall(r'name="event_([a-z.]+)" value="yes" checked', page)


@pytest.mark.gen_test
async def test_the_form_chooses_events(service: Service) -> None:
    browser = await owner(service)
    assert await wanted(service.store) == [*EVENT_TYPES, "ping"]
    assert boxes((await browser.get(HOOKS)).body.decode()) == [*EVENT_TYPES]
    assert await choose(browser, "user.deleted", "grant.revoked") == 303
    assert await wanted(service.store) == ["grant.revoked", "user.deleted", "ping"]
    assert boxes((await browser.get(HOOKS)).body.decode()) == ["grant.revoked", "user.deleted"]
    assert await choose(browser, drop=("chosen",)) == 303
    assert await wanted(service.store) == ["grant.revoked", "user.deleted", "ping"], "a form without boxes keeps them"
    assert await choose(browser) == 303
    assert await wanted(service.store) == ["ping"]
    assert await choose(browser, *EVENT_TYPES, "made.up") == 303
    app, _ = await service.store.apps.fresh("own")
    assert app is not None
    assert app.webhook_events == EVERY, "all of them are those of later releases too"


@pytest.mark.gen_test
async def test_a_refused_form_keeps_its_ticks(service: Service) -> None:
    browser = await owner(service)
    fields = fields_of(await browser.get(HOOKS), HOOKS)
    kept = {name: value for name, value in fields.items() if not name.startswith("event_")}
    page = await browser.send(HOOKS, "POST", form={**kept, "url": "nowhere", "event_app.deleted": "yes"})
    assert page.code == 400
    assert boxes(page.body.decode()) == ["app.deleted"]
    assert len(await wanted(service.store)) == 6


@pytest.mark.gen_test
async def test_an_event_that_is_not_chosen_is_not_delivered(memory_store: Store) -> None:
    hooked, engine = await Hooked.make(memory_store), engine_on(memory_store)
    await hooked.tell(type="data.deleted")
    await memory_store.apps.update("web", webhook_events=("grant.revoked",), backchannel_logout_uri=hooked.receiver.url)
    await hooked.tell(type="grant.revoked")
    ended = WebhookEvent(new_event_id(), SESSION_ENDED, "web", USER, await memory_store.apps.now(), {"sid": "s" * 22})
    await memory_store.deliveries.enqueue(ended)
    await engine.bring_out(5)
    bodies = [one.body for one in hooked.receiver.posted]
    assert sorted(json.loads(body)["type"] for body in bodies if body.startswith(b"{")) == ["grant.revoked"]
    assert sum(body.startswith(b"logout_token=") for body in bodies) == 1
    by_type = {one.type: one for one in await memory_store.deliveries.list("web")}
    assert by_type["data.deleted"].state == "failed"
    assert "does not want" in by_type["data.deleted"].last_error
    await engine.close(1)
    await hooked.receiver.close()


@pytest.mark.gen_test
@pytest.mark.parametrize("chosen", [("grant.revoked",), ("data.deleted", "app.deleted"), EVERY])
async def test_a_deleted_app_keeps_its_choice(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...]
) -> None:
    world = await World.make(memory_store)
    monkeypatch.setattr(keys, "SHARDS", (world.user[:3],))  # to ask all of them takes fakeredis its time
    client = world.app.client_id
    await memory_store.webhooks.set_url(client, URL, events=chosen)
    await (await Keeper.make(world)).put("notes/n1", b'"kept"')
    await memory_store.apps.begin_deletion(client)
    await memory_store.apps.finish_deletion(client)
    await memory_store.outbox.relay_shards({world.user[:3]}, memory_store.webhooks.wants)
    told = {one.type for one in await memory_store.deliveries.list(client)}
    assert told == {"app.deleted", "grant.revoked"} & {*(EVENT_TYPES if chosen == EVERY else chosen)}
    assert await memory_store.webhooks.wants(client, "data.deleted") is (chosen != ("grant.revoked",))


def registration(**fields: Any) -> Registration:
    return Registration("web", "Web", ("https://web.example/cb",), ("profile",), **fields)


@pytest.mark.parametrize("wrong", [("made.up",), ("user.deleted", "grant.revoked"), ("all", "ping"), ("ping",)])
def test_an_unknown_or_disorderly_choice_is_refused(wrong: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="webhookEvents"):
        registration(webhook_events=wrong)


def test_rows_of_earlier_releases_want_every_event() -> None:
    for chosen in ((), ("app.deleted",), EVERY):
        app = registration(webhook_events=chosen, webhook_url=URL)
        assert Registration.unpack(app.pack()) == app
        remains = Remains.of(app)
        assert Remains.of_row(remains.row(), "") == remains
    assert "webhookEvents" not in Remains.of(registration(webhook_url=URL)).row(), "as earlier releases wrote it"


def test_operators_choose_events_by_flags(home: Home) -> None:
    made = home.app("web", "--webhook-event", "user.deleted", "--webhook-event", "grant.revoked")
    assert made["webhookEvents"] == ["grant.revoked", "user.deleted"]
    assert home.json("app", "update", "web", "--name", "Other")["webhookEvents"] == ["grant.revoked", "user.deleted"]
    assert home.json("app", "update", "web", "--webhook-event", "")["webhookEvents"] == []
    assert home.json("app", "update", "web", "--webhook-event", "all", "--webhook-url", URL)["webhookEvents"] == ["all"]
    assert home.app("usual")["webhookEvents"] == ["all"]
    status, _, words = home.error("app", "update", "web", "--webhook-event", "ping")
    assert status == 1
    assert "webhookEvents are" in words


def test_a_seed_file_chooses_events(tmp_path: Path) -> None:
    app: dict[str, Any] = {
        "client_id": "web",
        "name": "Web",
        "redirect_uris": ["https://web.example/cb"],
        "scopes": ["profile"],
    }
    app |= {"public": True}

    def read(events: list[str]) -> tuple[str, ...]:
        file = tmp_path / "seed.json"
        file.write_text(json.dumps({"apps": [{**app, "webhookEvents": events}]}))
        return read_seed(file).apps[0].registration.webhook_events

    assert read(["user.deleted"]) == ("user.deleted",)
    assert read([]) == ()
    with pytest.raises(Invalid, match="webhookEvents"):
        read(["made.up"])
