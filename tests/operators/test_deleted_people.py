"""Deleting somebody leaves their address and name nowhere in the store, but where the documentation says so."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys, parsed_keys
from tests.operators.conftest import Desk, refused
from tests.operators.scim.conftest import USER, Provisioner
from tests.support.http.driver import json_of
from tests.support.moving.movers import bring, line
from tests.support.store.checked_store import Furnished
from tests.support.store.second_factors import shown
from tests.support.store.world import CALLBACK, VISITOR, every_key

pytestmark = pytest.mark.gen_test(timeout=120)
NAME, ADDRESS, OLD = "Qpltmnk Qpltmnk", "qpltmnk@qpltmnk.example", "Ada Lovelace"
PART = "ltmnk"
"""A part of both: the index of people keeps texts without their beginning."""
KEPT = {"invitations"}
"""docs/security.md, "What a deleted account leaves"."""


def once(number: int) -> dict[str, str]:
    """The headers of a write that may be sent again."""
    return {"Idempotency-Key": f"write {number}"}


async def kinds_with(client: Any, *texts: str) -> dict[str, set[str]]:
    """The kinds of keys whose name or value has one of these texts, in any case, each with the texts that it has."""
    found: dict[str, set[str]] = {}
    for key in await every_key(client):
        at = parsed_keys.read(key.decode())
        stored = f"{key.decode()} {await _value(client, key)!r}".casefold()
        for text in texts:
            if text.casefold() in stored:
                found.setdefault(at.kind if at else key.decode(), set()).add(text)
    return found


async def _value(client: Any, key: bytes) -> Any:
    match (await client.type(key)).decode():
        case "string":
            return await client.get(key)
        case "hash":
            return await client.hgetall(key)
        case "set":
            return await client.smembers(key)
        case "zset":
            return await client.zrange(key, 0, -1)
        case "list":
            return await client.lrange(key, 0, -1)
        case "stream":
            return await client.xrange(key)
        case other:  # pragma: no cover  # there are no others
            raise AssertionError(other)


async def team_of_somebody(desk: Desk) -> None:
    """An owner who stays invites the address to the team of an app."""
    session = await desk.sign_in()
    await desk.do("PATCH", f"/people/{desk.ada}", {"name": "The owner"})
    await shown(desk.store, session)
    fields: dict[str, Any] = {"name": "Theirs", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}
    made = await desk.store.owned.register(session, "a nonce", VISITOR, most=9, **fields)
    await desk.store.teams.invite(session, made.registration.client_id, ADDRESS, "viewer", VISITOR)


async def test_address_and_name_of_a_deleted_person_are_nowhere(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "SHARDS", keys.SHARDS[:16])
    scim, store = Provisioner(desk), desk.store
    assert (await desk.ask("POST", "/people", {"email": ADDRESS, "invite": True}, headers=once(0))).code == 200
    furnished = await Furnished.make(store)
    user, first = furnished.world.user, furnished.world.email
    person, changes = f"/people/{user}", {"email": ADDRESS, "name": NAME}
    writes = [
        ("PATCH", person, changes),
        ("POST", f"{person}/suspend", {"reason": "Unpaid"}),
        ("POST", f"{person}/resume", None),
        ("POST", f"{person}/sign-out", None),
        ("POST", f"{person}/send-link", {"kind": "reset"}),
        ("POST", f"{person}/reset-factors", None),
    ]
    for number, (method, path, body) in enumerate(writes, 1):
        assert (await desk.ask(method, path, body, headers=once(number))).code == 200, path
    more = {"email": f"a{ADDRESS}", "name": NAME}
    made = [await desk.ask("POST", "/people", more, headers=once(8)) for _ in range(2)]
    assert [(one.code, bool(json_of(one)["password"])) for one in made] == [(201, True), (201, False)]
    again = await desk.ask("POST", "/people", {"email": ADDRESS, "invite": True}, headers=once(0))
    assert json_of(again) == {"email": ADDRESS, "invited": True, "mailed": False, "link": None}
    await scim.ask("PUT", f"/Users/{user}", {"schemas": [USER], "userName": ADDRESS, "externalId": ADDRESS})
    plan = await desk.do("POST", "/people/bulk", {"act": "sign-out", "query": ADDRESS, "dryRun": True})
    assert plan["total"] == 1
    await desk.do("POST", "/people/bulk", {"token": plan["token"], "query": ADDRESS})
    await bring(store, [line(ADDRESS, name=NAME), line("a\0" + ADDRESS)], batches=1)
    await store.limits.sign_in("192.0.2.1", ADDRESS)
    await team_of_somebody(desk)
    await store.directory_relay.repeat([user])
    assert {"user", "directory-bucket"} <= {*await kinds_with(store.client, PART)}

    await desk.do("DELETE", f"{person}/role")
    rows = [parsed_keys.read(key.decode()) for key in await every_key(store.client)]
    everybody = sorted({at.user for at in rows if at and at.kind == "user"} - {desk.ada})
    for one in everybody:
        await desk.do("DELETE", f"/people/{one}")
    await store.directory_relay.repeat([*everybody, desk.ada])
    await store.security.flush()
    assert {*await kinds_with(store.client, PART, OLD, first)} == KEPT
    refused(await desk.ask("PATCH", person, changes, headers=once(1)), 404, "not_found")
    refused(await desk.ask("POST", "/people", more, headers=once(8)), 404, "not_found")
