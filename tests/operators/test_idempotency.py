"""Writes under an `Idempotency-Key`: a request that is sent again does nothing again."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any, cast

import pytest

from store import keys
from store.crypto.keyring import KeyRing
from store.crypto.seal import fingerprint
from store.operators.replies import ClaimedWrite, KeptReply
from store.refused import Refused
from tests.operators.conftest import Desk, refused
from tests.support.calls.operators import ADMIN
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


async def test_nobody_can_test_a_guessed_request_against_a_kept_one(desk: Desk) -> None:
    replies, request = desk.store.operator_replies, b'{"password": "sunshine"}'
    claimed = await replies.claim(ADMIN, "once", request)
    assert isinstance(claimed, ClaimedWrite)
    await replies.keep(claimed, 200, b"{}")
    name, bare = keys.operator_reply(claimed.name), hashlib.sha256(request).hexdigest()
    assert bare[:32] not in str(await desk.store.client.get(name))
    # The keys turn in between, and the release before kept the bare digest.
    ring = desk.store.keys.ring.render()
    desk.store.keys.replace(KeyRing.parse(f"{KeyRing.generate(9)},{ring}"))
    for _ in range(2):
        assert await replies.claim(ADMIN, "once", request) == KeptReply(200, b"{}")
        with pytest.raises(Refused, match="idempotency_mismatch"):
            await replies.claim(ADMIN, "once", b"{}")
        await desk.store.client.set(name, f"{bare[:32]} 200 {{}}")


async def test_nobody_can_test_a_guessed_query_against_a_kept_one(desk: Desk) -> None:
    query = "nobody@example.com"
    plan = await desk.do("POST", "/people/bulk", {"act": "sign-out", "query": query, "dryRun": True})
    job = str(await desk.store.client.hgetall(f"{keys.OPERATOR_JOBS}{plan['token']}"))
    assert "sign-out" in job
    assert query not in job
    assert fingerprint(query) not in job
    other = {"token": plan["token"], "query": "others@example.com"}
    refused(await desk.ask("POST", "/people/bulk", other), 400, "invalid_request")
    assert (await desk.do("POST", "/people/bulk", {"token": plan["token"], "query": query}))["total"] == 0
