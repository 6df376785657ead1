"""Accounts, sessions and the audit trail, on every engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from store import keys
from store.accounts.people import Invited
from store.accounts.signin.sessions import Session
from store.lifetimes import INVITE, SAME_INVITE
from store.refused import Refused, SignedOut
from store.results import Visitor
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

NEW_PASSWORD = "another horse battery"
DAY = 86_400


async def is_live(world: World) -> bool:
    try:
        await world.store.sessions.profile(world.session)
    except SignedOut:
        return False
    return True


async def test_an_address_has_one_account(store: Store) -> None:
    world = await World.make(store)
    assert await refusal_of(world.person(world.email)) == "invalid_request"
    assert await store.people.find(world.email) == world.user
    assert [person.user async for person in store.operator.people()] == [world.user]


async def test_unknown_addresses_fail_like_wrong_passwords(store: Store) -> None:
    world = await World.make(store)
    assert await store.people.verify(world.email, PASSWORD) is not None
    assert await store.people.verify(world.email, "wrong horse battery") is None
    assert await store.people.verify("nobody@example.com", PASSWORD) is None


@pytest.mark.trap(34)
async def test_an_index_entry_is_valid_only_if_the_person_has_the_address(store: Store) -> None:
    world = await World.make(store)
    await store.client.set(keys.email("other@example.com"), world.user)
    assert await store.people.verify("other@example.com", PASSWORD) is None
    assert await refusal_of(store.operator.find("other@example.com")) == "not_found"


async def test_each_sign_in_is_a_session_of_its_own(store: Store) -> None:
    world = await World.make(store)
    second = await world.sign_in()
    assert second.session_id != world.session.session_id
    await store.sessions.end(second, VISITOR)
    with pytest.raises(SignedOut):
        await store.sessions.profile(second)
    assert await is_live(world)


async def test_session_fixation_is_impossible(store: Store) -> None:
    """RFC 9700 4.7, session fixation: the store chooses the session, not the cookie."""
    world = await World.make(store)
    fixed = replace(world.session, session_id="A" * 22)
    with pytest.raises(SignedOut):
        await store.sessions.profile(fixed)
    await world.sign_in()
    with pytest.raises(SignedOut):
        await store.sessions.profile(fixed)
    assert store.sessions.open("lk_ss_" + "A" * 80) is None


async def test_a_changed_password_ends_every_other_session_and_replaces_this_one(store: Store) -> None:
    world = await World.make(store)
    before, other = world.session, await world.sign_in()
    stale = await store.people.verify(world.email, PASSWORD)
    credentials = await store.people.credentials(world.email)
    cookie = await store.sessions.change_password(before, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    for session in (before, other):
        with pytest.raises(SignedOut):
            await store.sessions.profile(session)
    fresh = store.sessions.open(cookie)
    assert fresh is not None
    assert (await store.sessions.profile(fresh)).user == world.user
    assert await store.people.verify(world.email, PASSWORD) is None
    assert stale is not None
    with pytest.raises(SignedOut):  # verified before the change, started after it
        await store.sessions.start(stale, VISITOR)
    await world.sign_in(password=NEW_PASSWORD)


async def test_a_password_changes_only_against_the_present_one(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    credentials, foreign = await store.people.credentials(world.email), await store.people.credentials(stranger.email)
    change = store.sessions.change_password
    assert await refusal_of(change(world.session, "wrong", NEW_PASSWORD, credentials, VISITOR)) == "access_denied"
    assert await refusal_of(change(world.session, PASSWORD, NEW_PASSWORD, foreign, VISITOR)) == "access_denied"
    assert await refusal_of(change(world.session, PASSWORD, NEW_PASSWORD, None, VISITOR)) == "access_denied"
    world.session = await first_change(world)
    assert await refusal_of(change(world.session, PASSWORD, "third horse battery", credentials, VISITOR)) == (
        "access_denied"
    ), "credentials read before another change"
    await world.sign_in(password=NEW_PASSWORD)


async def first_change(world: World) -> Session:
    credentials = await world.store.people.credentials(world.email)
    cookie = await world.store.sessions.change_password(world.session, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    session = world.store.sessions.open(cookie)
    assert session is not None
    return session


async def test_a_session_idles_out_after_14_days(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    clock.advance(14 * DAY - 60)
    assert await is_live(world)
    clock.advance(14 * DAY - 60)
    assert await is_live(world)
    clock.advance(14 * DAY + 1)
    assert not await is_live(world)


async def test_a_session_ends_after_30_days_even_if_active(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    for _ in range(29):
        clock.advance(DAY)
        assert await is_live(world)
    clock.advance(DAY + 1)
    assert not await is_live(world)


async def test_ended_sessions_leave_the_list(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    for _ in range(3):
        await world.sign_in()
    clock.advance(31 * DAY)
    await world.sign_in()
    assert await memory_store.client.zcard(keys.person(world.user)["sessions"]) == 1


async def test_the_audit_trail_records_events_and_their_origin(store: Store) -> None:
    world = await World.make(store)
    await world.sign_in()
    tokens = await world.tokens()
    await world.refresh(tokens.refresh_token)
    await refusal_of(world.refresh(tokens.refresh_token))
    denied = await world.pending()
    await store.authorizations.decide(world.session, world.app, denied, allow=False, scopes=None, visitor=VISITOR)
    await world.revoke_app()
    await store.tokens.mint(world.user, world.app, ("profile",))
    minted = await world.tokens()
    await store.tokens.revoke(None, minted.refresh_token)
    other = await world.sign_in()
    await store.sessions.end(other, Visitor("2001:db8::1", "x" * 5000))
    await store.sessions.end(other, VISITOR)
    assert await world.events() == [
        *("signed_up", "signed_in", "signed_in", "consent_given", "refresh_replayed", "consent_denied"),
        *("app_disconnected", "token_minted", "consent_given", "tokens_revoked", "signed_in", "signed_out"),
    ]
    _, entries = await store.sessions.activity(world.session)
    out, consent = entries[0], next(entry for entry in entries if entry.event == "consent_given")
    assert (out.address, out.agent, out.client) == ("2001:db8::1", "x" * 200, "")
    assert (consent.address, consent.agent, consent.client) == (VISITOR.address, VISITOR.agent, world.app.client_id)
    assert abs(datetime.now(UTC) - out.at) < timedelta(minutes=1)


async def test_user_agents_cannot_forge_audit_entries(store: Store) -> None:
    world = await World.make(store)
    other = await world.sign_in()
    await store.sessions.end(other, Visitor("192.0.2.7", "x\n1790000000000 signed_in  192.0.2.8 y\x00"))
    _, entries = await store.sessions.activity(world.session)
    assert await world.events() == ["signed_up", "signed_in", "signed_in", "signed_out"]
    assert (entries[0].address, entries[0].agent) == ("192.0.2.7", "x 1790000000000 signed_in  192.0.2.8 y ")
    assert [entry for entry in entries if entry.address == "192.0.2.8"] == []


async def test_the_audit_trail_keeps_the_newest_200_events(store: Store) -> None:
    world = await World.make(store)
    for _ in range(101):
        await store.operator.set_status(world.email, "disabled")
        await store.operator.set_status(world.email, "disabled")  # a second time changes and records nothing
        await store.operator.set_status(world.email, "active")
    kept: Any = await store.client.get(keys.person(world.user)["audit"])
    assert len(kept.splitlines()) == 200
    person = await store.operator.find(world.email)
    assert len(person.activity) == 50
    assert [entry.event for entry in person.activity[:2]] == ["enabled_by_operator", "disabled_by_operator"]


async def test_the_address_of_an_orphaned_index_entry_is_free(store: Store) -> None:
    """Leftovers of an interrupted deletion or address change."""
    world = await World.make(store)
    for stale in (world.user, "f" * 32):
        await store.client.set(keys.email("free@example.com"), stale)
        assert await refusal_of(store.operator.delete("free@example.com")) == "not_found"
        assert await is_live(world)
        user = await world.person("free@example.com")
        assert await store.people.find("free@example.com") == user
        assert await store.client.pttl(keys.email("free@example.com")) == -1
        await store.people.delete(user)


async def test_an_address_is_reserved_during_sign_up(store: Store) -> None:
    world = await World.make(store)
    await store.client.set(keys.email("soon@example.com"), "f" * 32, px=5000)
    assert await refusal_of(world.person("soon@example.com")) == "invalid_request"
    assert await store.people.find("soon@example.com") == "f" * 32


async def test_an_invitation_is_for_one_address_until_it_is_used_or_replaced(
    clock: FakeClock, memory_store: Store
) -> None:
    people = memory_store.people
    first = await people.invite("guest@example.com")
    assert await people.invited(first) == Invited("guest@example.com", "")
    second = await people.invite("guest@example.com", "/onward?x=1")
    assert await people.invited(first) is None
    assert await people.invited(second) == Invited("guest@example.com", "/onward?x=1")
    guest = await people.create(
        "guest@example.com", "Guest", "correct horse battery", verified=True, event="signed_up", visitor=Visitor()
    )
    assert await people.invited(second) is None
    await people.delete(guest)
    assert await people.invited(second) is None
    third = await people.invite("guest@example.com")
    clock.advance(INVITE / 1000 - 1)
    assert await people.invited(third) == Invited("guest@example.com", "")
    clock.advance(2)
    assert await people.invited(third) is None


async def test_asking_again_within_an_hour_gives_the_same_invitation(clock: FakeClock, memory_store: Store) -> None:
    people, guest = memory_store.people, "guest@example.com"
    first = await people.invite_again(guest)
    clock.advance(SAME_INVITE / 1000 - 1)
    second = await people.invite_again(guest, "/onward")
    assert await people.invited(first) == await people.invited(second) == Invited(guest, "/onward")
    clock.advance(2)
    third = await people.invite_again(guest)
    assert await people.invited(first) is None, "a stolen link does not live as long as somebody asks"
    assert await people.invited(third) == Invited(guest, "")


async def test_sign_in_attempts_count_for_the_account_and_the_address(store: Store) -> None:
    for number in range(20):
        await store.limits.sign_in(f"192.0.2.{number}", "victim@example.com")
    with pytest.raises(Refused, match="rate_limited"):
        await store.limits.sign_in("192.0.2.99", "victim@example.com")
    for number in range(20):
        await store.limits.sign_in("198.51.100.1", f"person{number}@example.com")
    with pytest.raises(Refused, match="rate_limited"):
        await store.limits.sign_in("198.51.100.1", "one-more@example.com")


async def test_window_keys_do_not_contain_the_e_mail_address(store: Store) -> None:
    await store.limits.sign_in("192.0.2.1", "victim@example.com")
    assert not [key for key in await every_key(store.client) if b"victim" in key]
