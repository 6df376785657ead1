"""Webhooks on the operator's command line, and in the seed file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from store import keys
from store.apps.webhooks import new_webhook_secret
from store.errors import StartupError
from store.seed.seeding import seed
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.processes.operator_commands import Home, everything

URL = "https://web.example/hook"


def test_only_the_first_url_comes_with_a_secret(home: Home) -> None:
    made = home.app("web", "--webhook-url", URL)
    assert made["webhookUrl"] == URL
    secret = made["webhook_secret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 33
    shown = home.json("app", "show", "web")
    assert shown["webhookUrl"] == URL
    assert "webhook_secret" not in shown
    assert "webhook_secret" not in home.json("app", "update", "web", "--webhook-url", URL + "/2")
    assert home.json("app", "update", "web", "--webhook-url", "")["webhookUrl"] == ""
    assert home.app("other")["webhookUrl"] == ""
    later = home.words("app", "update", "other", "--webhook-url", URL)
    assert "webhook_secret" in later.out
    assert "is shown this once; it signs" in later.out
    with home.client() as client:
        assert secret.removeprefix("whsec_").encode() not in everything(client)
    assert home.with_store(lambda store: secrets_of(store, "web")) == ()


async def secrets_of(store: Store, client_id: str) -> tuple[str, ...]:
    target = await store.webhooks.target(client_id)
    return target.secrets if target else ()


def test_a_new_secret_signs_together_with_the_old_one(home: Home) -> None:
    first = home.app("web", "--webhook-url", URL)["webhook_secret"]
    rotated = home.json("app", "rotate-webhook-secret", "web")
    assert rotated["client_id"] == "web"
    assert home.with_store(lambda store: secrets_of(store, "web")) == (rotated["webhook_secret"], first)
    home.app("other")
    assert home.error("app", "rotate-webhook-secret", "other") == (
        1,
        "invalid_request",
        "This app has no webhook URL.",
    )
    assert home.error("app", "rotate-webhook-secret", "nobody")[:2] == (1, "not_found")


@pytest.mark.parametrize("action", ["create", "update"])
def test_a_forbidden_url_changes_nothing(home: Home, action: str) -> None:
    if action == "update":
        home.app("web")
    words = ("app", "update", "web") if action == "update" else ("app", "create", "--client-id", "web")
    rest: tuple[str, ...] = () if action == "update" else ("--name", "Web", "--redirect-uri", "https://web.example/cb")
    rest += () if action == "update" else ("--scopes", "profile")
    status, code, said = home.error(*words, *rest, "--webhook-url", "http://web.example/hook")
    assert (status, code) == (1, "invalid_request")
    assert "must start with https" in said
    here = ("--webhook-url", "http://localhost:9000/hook")
    assert "to itself" in home.error("--base-url", "https://id.example.org", *words, *rest, *here)[2]
    # Without a base URL the server is a developer's own.
    assert home.json(*words, *rest, *here)["webhookUrl"] == here[1]


def test_deliveries_are_listed_and_sent_again(home: Home) -> None:
    home.app("web", "--webhook-url", URL)

    async def fail(store: Store) -> str:
        for _ in range(2):
            event = WebhookEvent(
                new_event_id(), "grant.revoked", "web", "0" * 32, 1_700_000_000_000, {"reason": "because"}
            )
            await store.deliveries.enqueue(event)
        for one in await store.deliveries.claim(2, 60):
            await store.deliveries.settle(one.id, 1, delivered=False, status=500, error="The answer was 500.")
        return event.id

    event_id = home.with_store(fail)
    found = home.json("app", "deliveries", "web")["deliveries"]
    assert len(found) == 2
    assert {"type": "grant.revoked", "state": "failed", "attempts": 1, "lastStatus": 500}.items() <= found[0].items()
    assert found[0]["occurredAt"] == "2023-11-14T22:13:20.000Z"
    assert len(home.json("app", "deliveries", "web", "--limit", "1")["deliveries"]) == 1
    assert "The answer was 500." in home.words("app", "deliveries", "web").out
    again = home.json("app", "replay", "web", event_id)
    assert (again["id"], again["state"]) == (event_id, "pending")
    with home.client() as client:
        assert client.zscore(keys.DELIVERIES_DUE, event_id) is not None
    assert home.error("app", "replay", "web", "x" * 22)[:2] == (1, "not_found")
    assert home.error("app", "replay", "nobody", event_id)[:2] == (1, "not_found")
    assert home.error("app", "deliveries", "nobody")[:2] == (1, "not_found")


APP: dict[str, Any] = {"name": "Web", "redirect_uris": ["https://web.example/cb"], "scopes": "profile"}


async def planted(store: Store, folder: Path, *apps: dict[str, Any]) -> None:
    file = folder / "seed.json"
    file.write_text(json.dumps({"apps": [{**APP, **app} for app in apps]}))
    await seed(store, file)


@pytest.mark.gen_test
async def test_the_seed_file_can_set_a_webhook_and_its_secret(memory_store: Store, tmp_path: Path) -> None:
    secret = new_webhook_secret()
    given: dict[str, Any] = {"client_id": "given", "webhookUrl": URL, "webhook_secret": secret}
    made: dict[str, Any] = {"client_id": "made", "webhookUrl": URL}
    for _ in range(2):
        await planted(memory_store, tmp_path, given, made)
    assert await secrets_of(memory_store, "given") == (secret,)
    assert len(await secrets_of(memory_store, "made")) == 1


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("webhookUrl", "http://web.example/", "must start with https"),
        ("webhookUrl", 5, "must be a string"),
        ("webhook_secret", "whsec_short", "24 to 64 bytes"),
    ],
)
async def test_mistakes_in_the_seed_file_are_named(
    memory_store: Store, tmp_path: Path, field: str, value: object, words: str
) -> None:
    with pytest.raises(StartupError, match=words) as refused:
        await planted(memory_store, tmp_path, {"client_id": "web", "webhookUrl": URL, field: value})
    assert "whsec" not in str(refused.value).replace("whsec_ and the base64", "")
    assert await memory_store.apps.find("web") is None
