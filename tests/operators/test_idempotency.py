"""Writes under an `Idempotency-Key`: a request that is sent again does nothing again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.operators.conftest import Desk, refused
from tests.support.http.driver import json_of
from tests.support.store.second_factors import App
from tests.support.store.world import World

pytestmark = pytest.mark.gen_test(timeout=60)
ONCE = {"Idempotency-Key": "once"}


async def test_a_repeated_reset_leaves_what_the_person_set_up_since(desk: Desk) -> None:
    path = f"/people/{desk.ada}/reset-factors"
    assert (await desk.ask("POST", path, headers=ONCE)).code == 200
    session = await desk.sign_in()
    await desk.store.client.hset(session.keys()["session"], "proved_at", 2**42)
    await App.add(cast(World, SimpleNamespace(store=desk.store, user=desk.ada, session=session, codes=[], undo=None)))
    again = await desk.ask("POST", path, headers=ONCE)
    assert (again.code, again.headers.get("Idempotent-Replayed")) == (200, "true")
    assert (await desk.store.factors.of(session)).secret


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/people/ADA/suspend", {"reason": "Unpaid"}),
        ("/people/ADA/sign-out", None),
        ("/apps/web-app/suspend", {"reason": "Copies another app"}),
        ("/webhooks/send-failed", {"client_id": "web-app"}),
        ("/credits/report", {}),
    ],
)
async def test_the_same_request_is_done_once(desk: Desk, path: str, body: dict[str, Any] | None) -> None:
    path = path.replace("ADA", desk.ada)
    answers = [await desk.ask("POST", path, body, headers=ONCE) for _ in range(2)]
    assert [(one.code, one.headers.get("Idempotent-Replayed")) for one in answers] == [(200, None), (200, "true")]
    assert answers[0].body == answers[1].body
    refused(await desk.ask("POST", f"/people/{desk.ada}/resume", headers=ONCE), 422, "idempotency_mismatch")


async def test_a_repeated_change_of_address_answers_as_before(desk: Desk) -> None:
    body = {"email": "ada@new.example.com"}
    answers = [await desk.ask("PATCH", f"/people/{desk.ada}", body, headers=ONCE) for _ in range(2)]
    assert [(one.code, json_of(one)["email"]) for one in answers] == [(200, body["email"])] * 2
    assert [event.event for event in desk.events].count("email_changed_by_operator") == 1
