"""Identities at other servers in the store: links, sign-ins, first sign-ins at once, deletion, undo."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from store import keys
from store.accounts.signin.sessions import SecondStepNeeded, SignedIn
from store.accounts.signin.upstream import Admission, NotLinked
from store.engine.scripts import Scripts
from store.errors import StoreUnavailable
from store.lifetimes import EMAIL_RESERVATION
from store.refused import Suspended, Unproved
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.checked_store import checked, findings
from tests.support.store.second_factors import (
    ISSUER,
    KNOWN_ONLY,
    TRUSTED,
    App,
    add_passkey,
    arrival,
    link,
    reauth,
    reauth_if_needed,
)
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

ONLY_CREATES = Admission(create=True)


async def unconfirmed(store: Store) -> World:
    """A person whose address nobody has confirmed."""
    world = await World.make(store)
    await store.client.hdel(keys.person(world.user)["user"], "verified")
    return world


async def signs_in(w: World, subject: str, admission: Admission = KNOWN_ONLY, email: str = "") -> SignedIn:
    one = arrival(subject, email)
    arrived = await w.store.upstream.admit(one, admission, VISITOR)
    return await w.store.upstream.sign_in(arrived.user, one, True, VISITOR)


async def sound(store: Store) -> None:
    store.fsck.settle = 0
    assert findings(await checked(store)) == []


async def test_a_linked_identity_signs_in_until_it_is_unlinked(store: Store) -> None:
    w = await World.make(store)
    with pytest.raises(Unproved):
        await store.upstream.link(w.session, arrival("s1"), VISITOR)
    made = await link(w, "s1", w.email)
    assert made.undo is not None
    assert made.warned.addresses == (w.email,)
    found = await signs_in(w, "s1")
    assert found.user == w.user
    session = store.sessions.open(found.cookie)
    assert session is not None
    [one] = (await store.factors.of(session)).identities
    assert (one.identity.issuer, one.identity.subject) == (ISSUER, "s1")
    assert one.linked_at is not None
    assert one.used_at is not None
    await sound(store)
    await reauth_if_needed(w)
    await store.upstream.unlink(w.session, one.identity.name, [], VISITOR)
    with pytest.raises(NotLinked):
        await signs_in(w, "s1", TRUSTED)
    assert {"identity_linked", "identity_unlinked", "signed_in_by_provider"} <= set(await w.events())
    await sound(store)


async def test_an_identity_belongs_to_one_person(store: Store) -> None:
    first, second = await World.make(store), await World.make(store)
    await link(first, "s1")
    await reauth_if_needed(second)
    refusal = await refusal_of(store.upstream.link(second.session, arrival("s1"), VISITOR))
    assert refusal == "access_denied"
    assert (await signs_in(first, "s1")).user == first.user
    again = await refusal_of(link(first, "s1"))
    assert again == "invalid_request"
    assert (await signs_in(first, "s1")).user == first.user, "to link it again changes nothing"


@pytest.mark.parametrize("lost", ["link_by_address", "keep_identity"])
@pytest.mark.parametrize("admission", [KNOWN_ONLY, ONLY_CREATES, TRUSTED])
async def test_a_lost_answer_at_the_first_sign_in_locks_nobody_out(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, lost: str, admission: Admission
) -> None:
    run, email = Scripts.run, f"lost-{lost}@elsewhere.example"

    async def loses(self: Scripts, script: str, /, *args: Any, **more: Any) -> Any:
        if script == lost == "keep_identity":
            raise StoreUnavailable("the call was lost")
        reply = await run(self, script, *args, **more)
        if script == lost:
            raise StoreUnavailable("the answer was lost")
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(Scripts, "run", loses)
        with pytest.raises(StoreUnavailable):
            await signs_in(await World.make(memory_store), "lost", ONLY_CREATES, email)
    clock.advance(EMAIL_RESERVATION + 1000)
    assert await memory_store.identities.entry(arrival("lost").identity) is None
    found = await signs_in(await World.make(memory_store), "lost", admission, email)
    assert found.user == await memory_store.people.find(email)
    await sound(memory_store)


@pytest.mark.parametrize("admission", [ONLY_CREATES, TRUSTED])
async def test_a_sign_in_finishes_the_one_before_that_made_the_account_and_was_interrupted(
    memory_store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, admission: Admission
) -> None:
    run, w, email = Scripts.run, await World.make(memory_store), "half@elsewhere.example"

    async def fails(self: Scripts, script: str, /, *args: Any, **more: Any) -> Any:
        if script == "link_by_address":
            raise StoreUnavailable("the call was lost")
        return await run(self, script, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Scripts, "run", fails)
        with pytest.raises(StoreUnavailable):
            await signs_in(w, "half", admission, email)
    user = await memory_store.people.find(email)
    with pytest.raises(NotLinked):
        await signs_in(w, "another", ONLY_CREATES, email)
    assert (await signs_in(w, "half", admission, email)).user == user
    clock.advance(EMAIL_RESERVATION + 1000)
    assert (await signs_in(w, "half", KNOWN_ONLY, email)).user == user
    await sound(memory_store)


@pytest.mark.parametrize("at_once", [2, 8])
async def test_first_sign_ins_at_once_make_one_account(store: Store, at_once: int) -> None:
    w = await World.make(store)
    email = f"first-{at_once}-{w.email}"
    found = await asyncio.gather(*(signs_in(w, f"race-{at_once}", TRUSTED, email) for _ in range(at_once)))
    [user] = {one.user for one in found}
    assert await store.people.find(email) == user
    await sound(store)


async def test_a_made_account_has_no_password_and_keeps_its_only_way_to_sign_in(store: Store) -> None:
    w = await World.make(store)
    found = await signs_in(w, f"made-{w.user}", TRUSTED, f"made-{w.email}")
    session = store.sessions.open(found.cookie)
    assert session is not None
    factors = await store.factors.of(session)
    assert (factors.has_password, factors.second) == (False, False)
    await store.client.hset(session.keys()["session"], "proved_at", await store.apps.now())
    name = factors.identities[0].identity.name
    refusal = await refusal_of(store.upstream.unlink(session, name, [name], VISITOR))
    assert refusal == "invalid_request"
    assert (await signs_in(w, f"made-{w.user}")).user == found.user
    await store.upstream.link(session, arrival(f"another-{w.user}"), VISITOR)
    others = [one.identity.name for one in (await store.factors.of(session)).identities]
    await store.upstream.unlink(session, name, others, VISITOR)
    with pytest.raises(NotLinked):
        await signs_in(w, f"made-{w.user}")


@pytest.mark.parametrize("why", ["unconfirmed", "second step", "not trusted", "suspended", "unverified there"])
async def test_an_address_links_nothing_unless_both_sides_verified_it(store: Store, why: str) -> None:
    w = await unconfirmed(store) if why == "unconfirmed" else await World.make(store)
    admission, email = TRUSTED, w.email
    if why == "second step":
        await App.add(w)
    if why == "not trusted":
        admission = TRUSTED._replace(by_address=False)
    if why == "suspended":
        await store.operator.set_status(w.email, "disabled")
    if why == "unverified there":
        email = ""
    with pytest.raises(NotLinked):
        await signs_in(w, f"by-{w.user}", admission, email)
    assert await store.identities.entry(arrival(f"by-{w.user}").identity) is None, "nothing stays reserved"


async def test_a_trusted_address_links_the_account_and_mails_the_undo(store: Store) -> None:
    w = await World.make(store)
    one = arrival(f"by-{w.user}", w.email)
    arrived = await store.upstream.admit(one, TRUSTED, VISITOR)
    assert arrived.user == w.user
    assert arrived.link is not None
    assert arrived.link.undo is not None
    assert (await store.upstream.sign_in(w.user, one, True, VISITOR)).user == w.user
    seen = await store.undoing.look(arrived.link.undo.text)
    assert (seen.identity, seen.first_factor) == (True, False)
    await store.undoing.undo(arrived.link.undo.text, VISITOR)
    with pytest.raises(NotLinked):
        await signs_in(w, f"by-{w.user}")
    events = [one.event for one in (await store.operator.find(w.user, 50)).activity]
    assert "identity_undone" in events
    assert "email_change_undone" not in events
    await sound(store)


async def test_a_second_step_here_follows_unless_the_operator_counts_the_other_one(store: Store) -> None:
    w = await World.make(store)
    await link(w, "s1")
    app = await App.add(w)
    with pytest.raises(SecondStepNeeded) as needed:
        await signs_in(w, "s1")
    half = store.second_step.open(needed.value.text)
    assert half is not None
    found = await store.second_step.with_code(half, app.codes[0], VISITOR)
    session = store.sessions.open(found.cookie)
    assert session is not None
    assert await store.client.hget(session.keys()["session"], "method") == b"up+otp"
    one = arrival("s1", method="up+mfa")
    found = await store.upstream.sign_in(w.user, one, False, VISITOR)
    session = store.sessions.open(found.cookie)
    assert session is not None
    assert await store.client.hget(session.keys()["session"], "method") == b"up+mfa"


async def test_a_suspended_person_reads_why(store: Store) -> None:
    w = await World.make(store)
    await link(w, "s1")
    await store.operator.set_status(w.email, "disabled")
    with pytest.raises(Suspended):
        await signs_in(w, "s1", TRUSTED, w.email)


async def test_a_deleted_account_frees_its_identities(store: Store) -> None:
    w = await World.make(store)
    await link(w, "s1")
    await store.people.delete(w.user)
    assert await store.identities.entry(arrival("s1").identity) is None
    await sound(store)


async def test_a_claimed_address_takes_a_strangers_identities_away(store: Store) -> None:
    w = await unconfirmed(store)
    await link(w, "s1")
    reset = await store.links.to_reset(w.user, w.email)
    assert reset is not None
    assert await store.links.reset(reset.text, "another horse battery", VISITOR)
    with pytest.raises(NotLinked):
        await signs_in(w, "s1")
    assert await store.identities.entry(arrival("s1").identity) is None
    assert not await store.client.exists(keys.person(w.user)["identities"])


async def test_a_link_needs_a_confirmation_of_its_own(clock: FakeClock, memory_store: Store) -> None:
    w = await World.make(memory_store)
    await add_passkey(w)
    await reauth(w)
    await memory_store.upstream.link(w.session, arrival("s1"), VISITOR)
    with pytest.raises(Unproved):
        await memory_store.upstream.link(w.session, arrival("s2"), VISITOR)
    assert await memory_store.identities.entry(arrival("s2").identity) is None
