"""Each end of a session tells the apps that people signed in to in it, in the step that ends it, and once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.registration import Registration
from store.lifetimes import DAY
from store.webhooks.deliveries import SESSION_ENDED
from store.wiring import Store
from tests.accounts.test_undo_address import undo_of
from tests.support.calls.webhooks import wanted
from tests.support.processes.engines import FakeClock
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

NEW = "another horse battery"
SCOPES = ("openid", "profile")


class Signed:
    """A person with two sessions. The one `here` knows two apps, the one `there` the first of them."""

    def __init__(self, world: World, second: Registration, there: Session) -> None:
        self.world, self.store, self.second, self.there = world, world.store, second, there
        self.here = world.session
        self.apps = {world.app.client_id: "first", second.client_id: "second"}
        self.sids: dict[str, str] = {}

    @classmethod
    async def make(cls, store: Store) -> Signed:
        world = await World.make(store, scopes=SCOPES)
        second, _ = await world.register(f"{world.app.client_id}-two", scopes=SCOPES)
        self = cls(world, second, await world.sign_in())
        for session, apps in ((self.here, (world.app, second)), (self.there, (world.app,))):
            world.session = session
            for app in apps:
                tokens = await world.exchange(await world.code(("openid",), app), app)
                assert tokens.sign_in
                self.sids[tokens.sign_in.sid] = "here" if session is self.here else "there"
        world.session = self.here
        assert len(self.sids) == 2
        return self

    async def waiting(self) -> int:
        """Ends that wait in the outbox of the person's shard."""
        entries: Any = await self.store.client.xrange(keys.outbox(self.world.user))
        return sum(entry[b"type"] == SESSION_ENDED.encode() for _, entry in entries)

    async def told(self) -> list[tuple[str, str]]:
        """Which apps were told of which session, in the order of names."""
        await self.store.outbox.relay_shards({self.world.user[:3]}, wanted)
        rows = [row for client in self.apps for row in await self.store.deliveries.list(client)]
        assert {row.sub for row in rows} <= {self.world.user}
        ends = [row for row in rows if row.type == SESSION_ENDED]
        return sorted((self.apps[row.client_id], self.sids.get(row.details["sid"], "new")) for row in ends)


HERE = [("first", "here"), ("second", "here")]
THERE = [("first", "there")]
ALL = sorted(HERE + THERE)


async def sign_out(one: Signed) -> None:
    await one.store.sessions.end(one.here, VISITOR)


async def sign_out_for_an_app(one: Signed) -> None:
    sid = next(sid for sid, session in one.sids.items() if session == "there")
    assert not await one.store.sessions.end(one.here, VISITOR, client_id="x", sid=sid)
    assert await one.waiting() == 0
    assert await one.store.sessions.end(one.there, VISITOR, client_id="x", sid=sid)


async def sign_out_another_device(one: Signed) -> None:
    await one.store.sessions.end_other(one.here, one.there.session_id, VISITOR)


async def sign_out_everywhere_else(one: Signed) -> None:
    await one.store.sessions.end_others(one.here, VISITOR)


async def change_the_password(one: Signed) -> None:
    credentials = await one.store.people.credentials(one.world.email)
    await one.store.sessions.change_password(one.here, PASSWORD, NEW, credentials, VISITOR)


async def change_the_password_and_sign_out(one: Signed) -> None:
    credentials = await one.store.people.credentials(one.world.email)
    cookie = await one.store.sessions.change_password(one.here, PASSWORD, NEW, credentials, VISITOR)
    moved = one.store.sessions.open(cookie)
    assert moved
    await one.store.sessions.end(moved, VISITOR)


async def reset_the_password(one: Signed) -> None:
    link = await one.store.links.to_reset(one.world.user, one.world.email)
    assert link
    await one.store.links.reset(link.text, NEW, VISITOR)


async def set_the_password_for_them(one: Signed) -> None:
    await one.store.operator.set_password(one.world.email, await one.store.hasher.hash(NEW))


async def disable(one: Signed) -> None:
    for status in ("disabled", "disabled", "active"):
        await one.store.operator.set_status(one.world.user, status)


async def delete(one: Signed) -> None:
    await one.store.people.delete(one.world.user)


async def take_the_account_back(one: Signed) -> None:
    await one.store.undoing.undo(await undo_of(one.world, f"thief-of-{one.world.email}"), VISITOR)


async def crowd_out(one: Signed) -> None:
    one.store.bounds.sessions = 2
    await one.store.sessions.profile(one.there)
    # Used later than the other session.
    await one.store.client.hset(one.there.keys()["session"], "seen_at", str(10**13))
    await one.world.sign_in()


async def expire(one: Signed) -> None:
    for session in (one.here, one.there):
        await one.store.client.delete(session.keys()["session"])
    await one.store.sessions.end(one.here, VISITOR)


CASES: list[tuple[Callable[[Signed], Awaitable[None]], list[tuple[str, str]]]] = [
    (sign_out, HERE),
    (sign_out_for_an_app, THERE),
    (sign_out_another_device, THERE),
    (sign_out_everywhere_else, THERE),
    (change_the_password, THERE),
    (change_the_password_and_sign_out, ALL),
    (reset_the_password, ALL),
    (set_the_password_for_them, ALL),
    (disable, ALL),
    (delete, ALL),
    (take_the_account_back, ALL),
    (crowd_out, HERE),
    (expire, []),
]


@pytest.mark.openid("backchannel 2.3 parties")
@pytest.mark.parametrize(("does", "expected"), [pytest.param(*case, id=case[0].__name__) for case in CASES])
async def test_each_end_tells_the_apps_of_that_session_once(
    store: Store, does: Callable[[Signed], Awaitable[None]], expected: list[tuple[str, str]]
) -> None:
    one = await Signed.make(store)
    assert await one.told() == []
    await does(one)
    assert await one.waiting() == len({session for _, session in expected}), "one event for a session"
    assert await one.told() == expected
    # Cookies of sessions that have ended tell nothing more.
    for session in (one.here, one.there):
        if await store.client.hget(session.keys()["session"], "epoch") != await store.client.hget(
            session.keys()["user"], "epoch"
        ):
            await store.sessions.end(session, VISITOR)
    assert await one.told() == expected


async def test_the_event_is_written_by_the_script_that_ends_the_session(memory_store: Store) -> None:
    one = await Signed.make(memory_store)
    ran: list[str] = []
    memory_store.observed_by(lambda name, *_: ran.append(name))
    await sign_out(one)
    assert ran == ["end_session"]
    assert await one.waiting() == 1


async def test_an_app_without_openid_or_with_another_person_hears_nothing(store: Store) -> None:
    one, other = await Signed.make(store), await Signed.make(store)
    plain, _ = await one.world.register(f"{one.world.app.client_id}-plain", scopes=SCOPES)
    await one.world.exchange(await one.world.code(("profile",), plain), plain)
    one.apps[plain.client_id] = "plain"
    await sign_out(one)
    assert await one.told() == HERE
    assert await other.told() == []


async def test_only_apps_with_a_url_are_told(store: Store) -> None:
    one = await Signed.make(store)
    await store.apps.update(one.second.client_id, backchannel_logout_uri="https://app.example/out")
    await store.apps.update(one.world.app.client_id, webhook_url="https://app.example/hook")
    await sign_out(one)
    await store.outbox.relay_shards({one.world.user[:3]}, store.webhooks.wants)
    assert await one.told() == [("second", "here")]


@pytest.mark.parametrize("does", [sign_out, sign_out_everywhere_else, reset_the_password, crowd_out, delete])
async def test_a_code_from_a_session_that_has_ended_gives_no_tokens(
    store: Store, does: Callable[[Signed], Awaitable[None]]
) -> None:
    """The logout token may come before the app has exchanged the code."""
    one = await Signed.make(store)
    one.world.session = one.there if does is sign_out_everywhere_else else one.here
    code = await one.world.code(("openid",))
    one.world.session = one.here
    await does(one)
    assert await refusal_of(one.world.exchange(code)) == "invalid_grant"


async def test_other_codes_live_on(store: Store) -> None:
    one = await Signed.make(store)
    plain, code = await one.world.code(("profile",)), await one.world.code(("openid",))
    await sign_out_everywhere_else(one)
    await one.world.exchange(code)
    await sign_out(one)
    await one.world.exchange(plain)


@pytest.mark.trap(50)
async def test_a_pairwise_app_hears_of_its_own_id_of_the_person(store: Store) -> None:
    world = await World.make(store, scopes=SCOPES, subject_type="pairwise")
    tokens = await world.exchange(await world.code(("openid",)))
    await store.sessions.end(world.session, VISITOR)
    await store.outbox.relay_shards({world.user[:3]}, wanted)
    (row,) = await store.deliveries.list(world.app.client_id)
    assert row.sub == await store.subjects.of(world.app.client_id, world.app.sector, world.user)
    assert row.sub != world.user
    assert tokens.sign_in
    assert row.details == {"sid": await store.subjects.session(world.app.sector, tokens.sign_in.sid)}


async def test_signing_in_again_in_the_same_browser_tells_nobody(store: Store) -> None:
    """A request for a new sign-in must not sign people out of other apps."""
    one = await Signed.make(store)
    after = await one.world.sign_in()
    await store.sessions.end(one.here, VISITOR, successor=after)
    assert await one.told() == []
    one.world.session = after
    tokens = await one.world.exchange(await one.world.code(("openid",)))
    assert tokens.sign_in
    assert one.sids[tokens.sign_in.sid] == "here"
    await store.sessions.end(after, VISITOR)
    assert await one.told() == HERE


async def test_a_dead_session_is_continued_by_nobody(store: Store) -> None:
    one = await Signed.make(store)
    await store.sessions.end_others(one.there, VISITOR)
    after = await one.world.sign_in()
    await store.sessions.end(one.here, VISITOR, successor=after)
    one.world.session = after
    tokens = await one.world.exchange(await one.world.code(("openid",)))
    assert tokens.sign_in
    assert tokens.sign_in.sid not in one.sids
    await store.sessions.end(after, VISITOR)
    assert await one.told() == sorted([*HERE, ("first", "new")])


async def test_a_session_knows_a_bounded_number_of_apps(memory_store: Store) -> None:
    one = await Signed.make(memory_store)
    row = one.here.keys()["session"]
    own = int(await memory_store.client.hlen(row))
    await memory_store.client.hset(row, mapping={f"rp:gone-{number}": "" for number in range(520 - own)})
    # An app that is known does not count again.
    await one.world.code(("openid",))
    assert await one.waiting() == 0
    third, _ = await one.world.register(f"{one.world.app.client_id}-three", scopes=SCOPES)
    await one.world.code(("openid",), third)
    # An app that is not connected any more goes first, and is told.
    found: Any = await memory_store.client.hkeys(row)
    fields = {field.decode() for field in found}
    assert len(fields) == 520
    assert {f"rp:{client}" for client in (*one.apps, third.client_id)} < fields
    entries: Any = await memory_store.client.xrange(keys.outbox(one.world.user))
    ((_, entry),) = entries
    assert f"rp:{entry[b'clients'].decode()}" not in fields
    assert entry[b"reason"] == b"crowded"


async def test_a_lowered_lifetime_forgets_no_session(memory_store: Store, clock: FakeClock) -> None:
    one = await Signed.make(memory_store)
    clock.advance(7 * DAY / 1000)
    memory_store.sessions.lifetime = DAY
    one.world.session = await one.world.sign_in()
    await memory_store.sessions.end_others(one.world.session, VISITOR)
    assert await one.told() == ALL


async def test_an_end_that_is_announced_twice_is_kept_once(store: Store) -> None:
    """A script that was cut off in a moving slot runs again."""
    one = await Signed.make(store)
    row = one.here.keys()["session"]
    before: Any = await store.client.hgetall(row)
    await sign_out(one)
    await store.client.hset(row, mapping=before)
    await sign_out(one)
    assert await one.waiting() == 2
    assert await one.told() == HERE


async def test_a_deleted_person_leaves_nothing_of_their_sessions(memory_store: Store) -> None:
    one = await Signed.make(memory_store)
    await delete(one)
    await one.told()
    left = await every_key(memory_store.client, f"*{one.world.user}*")
    assert [key for key in left if b":session" in key and not key.endswith(b":ended")] == []


async def test_sign_outs_of_one_person_push_out_nothing_of_others(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app's server is gone. One person signs in and out all day."""
    monkeypatch.setattr("store.webhooks.deliveries.MOST", 40)
    monkeypatch.setattr("store.webhooks.deliveries.SHOWN", 5)
    one, others = await Signed.make(memory_store), [await Signed.make(memory_store) for _ in range(3)]
    app = one.world.app
    for other in others:
        other.world.session = await other.world.sign_in()
        await other.world.exchange(await other.world.code(("openid",), app), app)
        await memory_store.sessions.end(other.world.session, VISITOR)
        await memory_store.outbox.relay_shards({other.world.user[:3]}, wanted)
    await memory_store.grants.revoke(others[0].here, app.client_id, VISITOR)
    await memory_store.outbox.relay_shards({others[0].world.user[:3]}, wanted)
    for _ in range(60):
        one.world.session = await one.world.sign_in()
        await one.world.code(("openid",))
        await memory_store.sessions.end(one.world.session, VISITOR)
        await one.world.fresh_window()
        await memory_store.client.delete(keys.limit(one.world.user, "authorize"))
        await memory_store.outbox.relay_shards({one.world.user[:3]}, wanted)
    rows = await memory_store.deliveries.list(app.client_id, most=100)
    assert 30 < len(rows) <= 40
    assert {row.sub for row in rows} == {one.world.user, *(other.world.user for other in others)}
    assert "grant.revoked" in {row.type for row in rows}
    assert rows[0].sub == one.world.user, "the newest stays"
