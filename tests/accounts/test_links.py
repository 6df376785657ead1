"""E-mail links in the store: validity, lifetime, recipient and effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import keys
from store.accounts.links import Link, LinkDetails
from store.accounts.signin.sessions import Session
from store.crypto.seal import Token, TokenKind, new_id
from store.lifetimes import GRACE
from store.oauth.authorizations import Pending
from store.refused import Refused, SignedOut
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import App, add_passkey, half_of
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of, to_change

pytestmark = pytest.mark.gen_test

NEW = "new@example.com"
NEW_PASSWORD = "another horse battery"
HOUR = 3600


async def text_of(found: Awaitable[Link | None]) -> str:
    link = await found
    assert link is not None
    return link.text


class Unconfirmed:
    """A person whose address is not confirmed, signed in."""

    email = "unconfirmed@example.com"
    user: str
    session: Session

    @classmethod
    async def make(cls, world: World) -> Unconfirmed:
        self = cls()
        self.user = await world.store.people.create(
            self.email, "Grace", PASSWORD, verified=False, event="signed_up", visitor=VISITOR
        )
        self.session = await world.sign_in(self.email)
        return self


async def verified(store: Store, who: str) -> bool:
    return (await store.operator.find(who)).email_verified


async def seen(store: Store, kind: TokenKind, text: str) -> LinkDetails | None:
    try:
        return await store.links.look(kind, text)
    except Refused:
        return None


async def test_a_link_confirms_the_address_once_and_redirects(store: Store) -> None:
    person = await Unconfirmed.make(await World.make(store))
    text = await text_of(store.links.to_confirm(person.user, person.email, "/account/apps"))
    found = await store.links.look(TokenKind.CONFIRM, text)
    assert (found.user, found.mailed_to, found.target, found.used) == (
        person.user,
        person.email,
        "/account/apps",
        False,
    )
    assert not await verified(store, person.user), "looking changes nothing"
    assert await store.links.confirm(person.session, text, VISITOR) == "/account/apps"
    assert await verified(store, person.user)
    assert await store.links.confirm(person.session, text, VISITOR) == "", "a second click is no error"
    assert await store.links.to_confirm(person.user, person.email) is None
    _, entries = await store.sessions.activity(person.session)
    assert [entry.event for entry in entries].count("email_confirmed") == 1


async def test_only_the_newest_link_of_each_purpose_works(store: Store) -> None:
    world = await World.make(store)
    person = await Unconfirmed.make(world)
    old = await text_of(store.links.to_confirm(person.user, person.email))
    reset = await text_of(store.links.to_reset(person.user, person.email))
    new = await text_of(store.links.to_confirm(person.user, person.email))
    assert await seen(store, TokenKind.CONFIRM, old) is None
    assert await refusal_of(store.links.confirm(person.session, old, VISITOR)) == "invalid_request"
    assert await seen(store, TokenKind.RESET, reset)
    await store.links.confirm(person.session, new, VISITOR)
    assert await verified(store, person.user)


async def test_no_unrequested_link_is_mailed_while_one_is_valid(store: Store) -> None:
    person = await Unconfirmed.make(await World.make(store))
    text = await text_of(store.links.to_confirm(person.user, person.email, "/first"))
    assert await store.links.to_confirm(person.user, person.email, "/second", again=False) is None
    assert (await store.links.look(TokenKind.CONFIRM, text)).target == "/second"
    # A link that a password change ended no longer works.
    credentials = await store.people.credentials(person.email)
    assert credentials is not None
    await store.operator.set_password(person.user, credentials.password)
    assert await seen(store, TokenKind.CONFIRM, text) is None
    assert await store.links.to_confirm(person.user, person.email, again=False) is not None


async def test_a_link_sets_a_password_once_and_ends_every_session(store: Store) -> None:
    world = await World.make(store)
    person = await Unconfirmed.make(world)
    text = await text_of(store.links.to_reset(person.user, person.email))
    other = await text_of(to_change(store, person.session, NEW))
    await store.links.reset(text, NEW_PASSWORD, VISITOR)
    assert await store.people.verify(person.email, PASSWORD) is None
    assert await store.people.verify(person.email, NEW_PASSWORD)
    with pytest.raises(SignedOut):
        await store.sessions.profile(person.session)
    assert await verified(store, person.user), "whoever followed the link reads the mail of this address"
    assert await refusal_of(store.links.reset(text, PASSWORD, VISITOR)) == "invalid_request"
    assert await seen(store, TokenKind.CHANGE, other) is None, "every other link is dead"
    assert await store.people.verify(person.email, NEW_PASSWORD)
    assert "password_reset" in [entry.event for entry in (await store.operator.find(person.user)).activity]


@pytest.mark.parametrize("before", ["unconfirmed", "confirmed"])
async def test_confirming_by_password_reset_removes_everything_of_the_sign_up(store: Store, before: str) -> None:
    """A stranger signs up with another's address, adds a second step, a passkey and an app, and waits."""
    world = await World.make(store)
    if before == "unconfirmed":
        await store.client.hdel(keys.person(world.user)["user"], "verified")
    app = await App.add(world)
    await add_passkey(world)
    tokens, code = await world.tokens(), await world.code()
    await store.tokens.mint(world.user, (await world.register(f"{world.app.client_id}-2"))[0], ("profile",))
    store.app_stats.connected(world.app.client_id)
    hosted = keys.hosted(world.user, world.app.client_id)["docs"]
    await store.client.hset(hosted, "notes/n1", "kept")
    await store.app_stats.flush()
    text = await text_of(store.links.to_reset(world.user, world.email))
    assert await store.links.reset(text, NEW_PASSWORD, VISITOR) is (before == "unconfirmed")
    await store.app_stats.flush()
    events = [entry.event for entry in (await store.operator.find(world.user)).activity]
    people = (await store.app_stats.of(world.app.client_id)).people
    if before == "confirmed":
        assert await half_of(world, NEW_PASSWORD)
        assert app.codes
        assert await world.lives(tokens.access_token)
        assert "address_claimed" not in events
        assert people == 1
        return
    world.session = await world.sign_in(password=NEW_PASSWORD)
    factors = await store.factors.of(world.session)
    assert (factors.secret, factors.passkeys, factors.codes) == (None, (), 0)
    assert not await world.lives(tokens.access_token)
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    assert (await store.operator.find(world.user)).apps == ()
    begun = await store.authorizations.begin(world.session, world.request(), always_ask=False)
    assert isinstance(begun, Pending), "no app is let in without asking again"
    assert 0 < await store.client.pttl(hosted) <= GRACE
    assert events[:2] == ["password_reset", "address_claimed"]
    assert people == 0
    assert await verified(store, world.user)


async def test_concurrent_resets_with_one_link_succeed_once(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(store.links.to_reset(world.user, world.email))
    answers = await asyncio.gather(
        *(refusal_of(store.links.reset(text, f"{NEW_PASSWORD} {n}", VISITOR)) for n in range(10))
    )
    assert sorted(answers, key=str) == [None, *["invalid_request"] * 9] or answers.count(None) == 1


async def test_a_password_change_invalidates_reset_links(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(store.links.to_reset(world.user, world.email))
    credentials = await store.people.credentials(world.email)
    await store.sessions.change_password(world.session, PASSWORD, NEW_PASSWORD, credentials, VISITOR)
    assert await seen(store, TokenKind.RESET, text) is None
    assert await refusal_of(store.links.reset(text, PASSWORD, VISITOR)) == "invalid_request"
    assert await store.people.verify(world.email, NEW_PASSWORD)


async def test_a_disabled_or_deleted_person_has_no_links(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(store.links.to_reset(world.user, world.email))
    await store.operator.set_status(world.user, "disabled")
    assert await seen(store, TokenKind.RESET, text) is None
    assert await store.links.to_reset(world.user, world.email) is None
    await store.operator.delete(world.user)
    assert await refusal_of(store.links.reset(text, NEW_PASSWORD, VISITOR)) == "invalid_request"
    assert await store.links.to_reset(world.user, world.email) is None
    assert not await every_key(store.client, f"*{world.user}:link:*")


@pytest.mark.trap(5)
@pytest.mark.parametrize("kind", [TokenKind.CONFIRM, TokenKind.RESET, TokenKind.CHANGE])
async def test_links_of_other_kinds_are_refused(memory_store: Store, kind: TokenKind) -> None:
    store, world = memory_store, await World.make(memory_store)
    sealed = {one: store.sealer.seal(Token(one, world.user, world.email, new_id(), 0)) for one in TokenKind}
    own: dict[TokenKind, Callable[[str], Awaitable[object]]] = {
        TokenKind.CONFIRM: lambda text: store.links.confirm(world.session, text, VISITOR),
        TokenKind.RESET: lambda text: store.links.reset(text, NEW_PASSWORD, VISITOR),
        TokenKind.CHANGE: lambda text: store.links.change(world.session, text, VISITOR),
    }
    real = await text_of(store.links.to_reset(world.user, world.email))
    forged = [text for one, text in sealed.items() if one is not kind]
    if kind is not TokenKind.RESET:
        forged += [real, kind.prefix + real[6:]]
    if kind is not TokenKind.CONFIRM:  # which would be answered kindly: the address is confirmed
        forged += [sealed[kind]]
    for text in (*forged, "", "x", "\0", "é" * 50, real[:-1], real + "A"):
        assert await seen(store, kind, text) is None
        assert await refusal_of(own[kind](text)) == "invalid_request"
    assert await store.people.verify(world.email, PASSWORD)


@pytest.mark.parametrize(
    ("kind", "hours"),
    [(TokenKind.CONFIRM, 24), (TokenKind.RESET, 1), (TokenKind.CHANGE, 1)],
    ids=["confirm", "reset", "change"],
)
async def test_links_expire(memory_store: Store, clock: FakeClock, kind: TokenKind, hours: int) -> None:
    store, world = memory_store, await World.make(memory_store)
    person = await Unconfirmed.make(world)
    issue: dict[TokenKind, Any] = {
        TokenKind.CONFIRM: lambda: store.links.to_confirm(person.user, person.email),
        TokenKind.RESET: lambda: store.links.to_reset(person.user, person.email),
        TokenKind.CHANGE: lambda: to_change(store, person.session, NEW),
    }
    text = await text_of(issue[kind]())
    clock.advance(hours * HOUR - 5)
    assert await seen(store, kind, text)
    clock.advance(6)
    assert await seen(store, kind, text) is None
    assert not await every_key(store.client, "*:link:*")


@pytest.mark.trap(34)
async def test_only_the_signed_in_person_can_use_a_link(store: Store) -> None:
    """Creating an account with another's address gains nothing from that person's click."""
    world = await World.make(store)
    person = await Unconfirmed.make(world)
    confirm = await text_of(store.links.to_confirm(person.user, person.email))
    change = await text_of(to_change(store, person.session, NEW))
    assert await refusal_of(store.links.confirm(world.session, confirm, VISITOR)) == "invalid_request"
    assert await refusal_of(store.links.change(world.session, change, VISITOR)) == "invalid_request"
    await store.sessions.end(person.session, VISITOR)
    for call in (store.links.confirm(person.session, confirm, VISITOR),):
        with pytest.raises(SignedOut):
            await call
    assert not await verified(store, person.user)
    assert await store.people.find(NEW) is None


@pytest.mark.parametrize("purpose", ["confirm", "change"])
async def test_links_are_limited_to_five_an_hour(memory_store: Store, clock: FakeClock, purpose: str) -> None:
    store, world = memory_store, await World.make(memory_store)
    person = await Unconfirmed.make(world)
    issue: dict[str, Any] = {
        "confirm": lambda: store.links.to_confirm(person.user, person.email),
        "change": lambda: to_change(store, person.session, NEW),
    }
    texts = [await text_of(issue[purpose]()) for _ in range(5)]
    assert await refusal_of(issue[purpose]()) == "rate_limited"
    kind = {"confirm": TokenKind.CONFIRM, "change": TokenKind.CHANGE}[purpose]
    assert await seen(store, kind, texts[-1]), "one that was refused leaves the last one working"
    clock.advance(HOUR)
    assert await issue[purpose]()


async def test_repeated_requests_mail_the_same_link_for_an_hour(memory_store: Store, clock: FakeClock) -> None:
    """A stranger's request neither ends the owner's link nor keeps an old one alive."""
    store, world = memory_store, await World.make(memory_store)
    clock.stop()
    first = await text_of(store.links.to_reset(world.user, world.email))
    clock.advance(HOUR - 1)
    assert await text_of(store.links.to_reset(world.user, world.email)) == first
    clock.advance(HOUR - 1)
    assert await seen(store, TokenKind.RESET, first), "it works for an hour from the last mail"
    second = await text_of(store.links.to_reset(world.user, world.email))
    assert second != first
    assert await seen(store, TokenKind.RESET, first) is None
    await store.links.reset(second, NEW_PASSWORD, VISITOR)
    third = await text_of(store.links.to_reset(world.user, world.email))
    assert third != second, "one that was used is not mailed again"
    for status in ("disabled", "active"):
        await store.operator.set_status(world.user, status)
    assert await text_of(store.links.to_reset(world.user, world.email)) != third, "nor one that ended with its epoch"


async def test_the_store_contains_no_link(store: Store) -> None:
    world = await World.make(store)
    text = await text_of(store.links.to_reset(world.user, world.email))
    row: Any = await store.client.hgetall(keys.link(world.user, "reset"))
    assert text.encode() not in b"".join((*row, *row.values()))
    assert set(row) == {b"id", b"email", b"epoch", b"target", b"mailed", b"born"}
