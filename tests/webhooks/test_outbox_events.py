"""Events for apps, and their recipients: written together with the change that they report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from store import keys
from store.lifetimes import GRACE
from store.wiring import Store
from tests.accounts.test_undo_address import undo_of
from tests.support.store.app_events import (
    DELETED,
    REVOKED,
    Events,
    delete_all,
    delete_the_account,
    disconnect,
    due,
    give_back_by_a_stranger,
    keeping,
    posted_events,
    replay,
    replay_a_code,
)
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import PASSWORD, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def replay_a_code_of_a_grant_that_was_ended(world: World) -> None:
    code = await world.code()
    await world.exchange(code)
    await world.revoke_app()
    assert await refusal_of(world.exchange(code)) == "invalid_grant"


async def replay_a_token_of_a_grant_that_was_ended(world: World) -> None:
    first = await world.tokens()
    await world.revoke_app()
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"


async def give_back(world: World) -> None:
    tokens = await world.tokens()
    await world.store.tokens.revoke(world.app, tokens.refresh_token)


async def give_back_by_who_names_the_app_and_proves_nothing(world: World) -> None:
    tokens = await world.tokens()
    await world.store.tokens.revoke(world.app, tokens.refresh_token, authenticated=False)


async def give_back_an_access_token(world: World) -> None:
    await world.store.tokens.revoke(None, (await world.tokens()).access_token)


async def claim_the_address(world: World) -> None:
    await world.store.client.hdel(keys.person(world.user)["user"], "verified")
    link = await world.store.links.to_reset(world.user, world.email)
    assert link is not None
    assert await world.store.links.reset(link.text, "another horse battery", VISITOR)


async def take_the_account_back(world: World) -> None:
    await world.tokens()
    await world.store.undoing.undo(await undo_of(world, "thief@example.com"), VISITOR)


async def connect_and_take_the_account_back(world: World) -> None:
    await world.revoke_app()
    undo = await undo_of(world, "thief@example.com")
    await world.tokens()
    await world.store.undoing.undo(undo, VISITOR)


async def reset_the_password(world: World) -> None:
    link = await world.store.links.to_reset(world.user, world.email)
    assert link is not None
    assert not await world.store.links.reset(link.text, PASSWORD, VISITOR)


async def disconnect_and_delete_the_account(world: World) -> None:
    await world.revoke_app()
    await world.store.people.delete(world.user)


async def disconnect_and_delete_all(world: World) -> None:
    await world.revoke_app()
    await delete_all(world)


async def delete_one_of_two_and_the_other(world: World) -> None:
    await (await Keeper.make(world)).put("notes/n2")
    for one in ("n1", "n2"):
        assert await posted_events(world) == []
        await reauth_if_needed(world)
        await world.store.person_documents.delete(world.session, world.app.client_id, "notes", one, VISITOR)


async def disable_and_enable(world: World) -> None:
    for status in ("disabled", "active"):
        await world.store.operator.set_status(world.email, status)


async def consent_to_less(world: World) -> None:
    await world.tokens(("profile",))


CASES: list[tuple[Callable[[World], Awaitable[None]], Events]] = [
    (disconnect, [REVOKED]),
    (replay, [("tokens.revoked", "refresh_token_replayed")]),
    (replay_a_code, [("tokens.revoked", "code_replayed")]),
    (replay_a_code_of_a_grant_that_was_ended, [REVOKED]),
    (replay_a_token_of_a_grant_that_was_ended, [REVOKED]),
    (give_back, []),
    (give_back_by_a_stranger, [("tokens.revoked", "token_revoked")]),
    (give_back_by_who_names_the_app_and_proves_nothing, [("tokens.revoked", "token_revoked")]),
    (give_back_an_access_token, []),
    (claim_the_address, [("grant.revoked", "address_claimed")]),
    (reset_the_password, []),
    (take_the_account_back, [("tokens.revoked", "taken_back")]),
    (connect_and_take_the_account_back, [REVOKED, ("grant.revoked", "taken_back")]),
    (delete_the_account, [("user.deleted", "")]),
    (disconnect_and_delete_the_account, [REVOKED, ("user.deleted", "")]),
    (delete_all, [DELETED]),
    (disconnect_and_delete_all, [REVOKED, DELETED]),
    (delete_one_of_two_and_the_other, [DELETED]),
    (disable_and_enable, []),
    (consent_to_less, []),
]


@pytest.mark.parametrize(("does", "expected"), [pytest.param(*case, id=case[0].__name__) for case in CASES])
async def test_apps_get_events_they_cannot_know_otherwise(
    store: Store, does: Callable[[World], Awaitable[None]], expected: Events
) -> None:
    world = await keeping(store)
    await does(world)
    assert await posted_events(world) == expected
    assert await posted_events(world) == expected, "once"
    ends = {world.app.client_id} if expected and expected[-1][0] == "grant.revoked" else set()
    assert (await due(world)).keys() == ends


async def test_events_have_person_and_time(store: Store) -> None:
    world = await keeping(store)
    until = round((await store.grants.revoke(world.session, world.app.client_id, VISITOR)).timestamp() * 1000)
    assert await due(world) == {world.app.client_id: until}
    await posted_events(world)
    (row,) = await store.deliveries.list(world.app.client_id)
    assert (row.type, row.sub, row.client_id) == ("grant.revoked", world.user, world.app.client_id)
    assert row.occurred_at == until - GRACE
    assert (row.state, row.attempts, row.tries, row.last_attempt_at, row.last_status, row.last_error) == (
        *("pending", 0, 0, None, None),
        "",
    )
    assert row.next_attempt_at == row.created_at >= row.occurred_at


async def test_only_affected_apps_get_an_event(store: Store) -> None:
    world, stranger = await keeping(store), await keeping(store)
    app, _ = await world.register(f"{world.app.client_id}-two")
    await (await Keeper.make(world, app)).put("notes/n1")
    await world.revoke_app()
    assert await posted_events(world, app.client_id) == await posted_events(stranger) == []
    await store.people.delete(world.user)
    assert await posted_events(world, app.client_id) == [("user.deleted", "")]
    assert await posted_events(stranger) == []


async def test_an_app_without_a_webhook_gets_no_event(store: Store) -> None:
    world = await keeping(store)
    await world.revoke_app()
    clients = []

    async def unwanted(client: str, event: str) -> bool:
        clients.append(client)
        return False

    assert await store.outbox.relay_shards({world.user[:3]}, unwanted) == 0
    assert clients == [world.app.client_id]
    assert await posted_events(world) == []


async def test_deleting_an_app_drops_its_pending_events(store: Store) -> None:
    world, other = await keeping(store), await keeping(store)
    for one in (world, other):
        await one.revoke_app()
    await posted_events(world)
    (before,) = await store.deliveries.list(world.app.client_id)
    await store.apps.delete(world.app.client_id)
    assert await due(world) == {}
    assert await store.deliveries.list(world.app.client_id) == []
    assert await store.deliveries.read(world.app.client_id, before.id) is None
    assert [one.client_id for one in await store.deliveries.claim(100, 30)] == []
    assert (await due(other)).keys() == {other.app.client_id}
    assert await posted_events(other) == [REVOKED]
