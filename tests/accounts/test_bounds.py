"""Limits on a person's apps, sessions and token families, on every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.registration import Registration
from store.crypto.seal import TokenKind
from store.lifetimes import ACCESS_TOKEN, MINUTE
from store.oauth.tokens import TokenResponse
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.browser.pages import Page
from tests.support.http.decision import DECIDE
from tests.support.http.driver import Browser, Service
from tests.support.store.document_app import Keeper
from tests.support.store.second_factors import App, add_passkey, half_of, is_live, reauth, use_passkey
from tests.support.store.world import PASSWORD, VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def fresh_windows(world: World) -> None:
    """Lets the person authorize any number of times."""
    await world.fresh_window()
    await world.store.client.delete(keys.limit(world.user, "authorize"))


async def apps_of(world: World, number: int) -> list[Registration]:
    """This many more apps."""
    return [(await world.register(f"{world.app.client_id}-{n}"))[0] for n in range(number)]


async def connected(world: World) -> set[str]:
    """The apps in the person's row."""
    row: Any = await world.store.client.hkeys(keys.person(world.user)["user"])
    return {field.decode()[4:] for field in row if field.startswith(b"app:")}


async def disconnect(world: World, app: Registration) -> None:
    await world.store.grants.revoke(world.session, app.client_id, VISITOR)


def allow(world: World, app: Registration, request_id: str) -> Awaitable[object]:
    return world.store.authorizations.decide(world.session, app, request_id, allow=True, scopes=None, visitor=VISITOR)


async def test_consent_beyond_the_app_limit_is_refused_and_changes_nothing(store: Store) -> None:
    store.bounds.grants = 10
    world = await World.make(store)
    apps = await apps_of(world, 11)
    for app in apps[:10]:
        await world.code(app=app)
    request_id = await world.pending(app=apps[10])
    before = await store.client.hgetall(keys.person(world.user)["user"])
    assert await refusal_of(allow(world, apps[10], request_id)) == "access_denied"
    assert await refusal_of(store.tokens.mint(world.user, apps[10], ("profile",))) == "access_denied"
    assert await store.client.hgetall(keys.person(world.user)["user"]) == before
    assert not await store.client.exists(keys.grant(world.user, apps[10].client_id))
    assert (await world.events()).count("consent_given") == 10
    # Connected apps keep their place, and the request waits until one is free.
    await world.code(app=apps[3])
    await disconnect(world, apps[3])
    await allow(world, apps[10], request_id)
    assert await connected(world) == {app.client_id for app in apps} - {apps[3].client_id}
    gone = [*keys.hosted(world.user, apps[3].client_id).values(), keys.grant(world.user, apps[3].client_id)]
    assert not any([await store.client.exists(key) for key in gone]), "nothing of the app that made way is left"


async def test_documents_in_their_grace_window_count_towards_the_app_limit(store: Store) -> None:
    store.bounds.grants = 10
    world = await World.make(store)
    apps = await apps_of(world, 11)
    for app in apps[:9]:
        await world.code(app=app)
    keeper = await Keeper.make(world, apps[9])
    await keeper.put("notes/a")
    await disconnect(world, apps[9])
    request_id = await world.pending(app=apps[10])
    assert await refusal_of(allow(world, apps[10], request_id)) == "access_denied"
    await reauth(world)
    await store.person_documents.delete_all(world.session, apps[9].client_id, VISITOR)
    await allow(world, apps[10], request_id)
    assert apps[9].client_id not in await connected(world)


async def test_names_without_a_grant_and_then_the_earliest_disconnected_app_make_way(store: Store) -> None:
    store.bounds.grants = 10
    world = await World.make(store)
    apps = await apps_of(world, 12)
    for app in apps[:10]:
        await world.code(app=app)
    for app in (apps[2], apps[5], apps[7]):
        await disconnect(world, app)
    await store.client.hincrby(keys.grant(world.user, apps[2].client_id), "revoked_at", -MINUTE)
    await store.client.delete(keys.grant(world.user, apps[7].client_id))  # as its expiry does
    await world.code(app=apps[10])
    assert {apps[5].client_id, apps[2].client_id} <= await connected(world)
    assert apps[7].client_id not in await connected(world)
    await world.code(app=apps[11])
    assert apps[2].client_id not in await connected(world)
    assert apps[5].client_id in await connected(world)


async def test_lowering_the_app_limit_disconnects_no_app(store: Store) -> None:
    world = await World.make(store)
    apps = await apps_of(world, 12)
    for app in apps[:11]:
        await world.code(app=app)
    await disconnect(world, apps[0])
    store.bounds.grants = 5
    for app in (apps[0], apps[10]):
        await world.code(app=app)
    assert await refusal_of(world.code(app=apps[11])) == "access_denied"
    assert len(await connected(world)) == 11
    assert [len((await store.grants.list(world.session, page)).grants) for page in (1, 2)] == [10, 1]


async def seen(world: World, session: Session, ago: int) -> None:
    """Sets a session's last use to this many ms before its sign-in."""
    row = keys.session(session.user, session.session_id)
    await world.store.client.hincrby(row, "seen_at", -ago)


async def test_a_sign_in_beyond_the_limit_ends_the_idlest_session(store: Store) -> None:
    store.bounds.sessions = 3
    world = await World.make(store)
    others = [await world.sign_in() for _ in range(2)]
    await seen(world, others[1], 5 * MINUTE)
    await seen(world, world.session, MINUTE)
    last = await world.sign_in()
    assert [await is_live(world, one) for one in (world.session, *others, last)] == [True, True, False, True]
    assert (await world.events())[-2:] == ["session_crowded_out", "signed_in"]
    # Sessions of an earlier epoch and idle ones end no other session.
    await store.sessions.end_others(last, VISITOR)
    assert [await is_live(world, one) for one in (last, await world.sign_in(), await world.sign_in())] == [True] * 3
    assert (await store.client.zcard(keys.person(world.user)["sessions"])) == 3


@pytest.mark.parametrize("step", ["a code", "a passkey"])
async def test_a_sign_in_with_a_second_step_ends_the_idlest_session_too(store: Store, step: str) -> None:
    world = await World.make(store)
    device = None if step == "a code" else await add_passkey(world)
    app = None if device else await App.add(world)
    store.bounds.sessions = 1
    if device:
        cookie = await use_passkey(world, device)
    else:
        assert app
        cookie = (await store.second_step.with_code(await half_of(world), app.codes[0], VISITOR)).cookie
    finished = store.sessions.open(cookie)
    assert finished
    assert (await is_live(world, world.session), await is_live(world, finished)) == (False, True)


async def test_after_lowering_the_session_limit_each_sign_in_ends_two_sessions(store: Store) -> None:
    world = await World.make(store)
    for _ in range(4):
        await world.sign_in()
    store.bounds.sessions = 3
    left = [len(await store.sessions.live(await world.sign_in())) for _ in range(3)]
    assert left == [4, 3, 3]


async def ends_in(world: World, tokens: TokenResponse, seconds: int) -> None:
    """Makes a family expire in this many seconds, unless it is used."""
    await world.store.client.expire(world.rows(tokens.refresh_token)["family"], seconds)


async def test_an_authorization_beyond_the_limit_ends_the_longest_unused_family(store: Store) -> None:
    store.bounds.families = 3
    world = await World.make(store)
    first, second, third = [await world.tokens() for _ in range(3)]
    await ends_in(world, second, 86_400)
    fourth = await world.tokens()
    assert [await world.lives(one.access_token) for one in (first, second, third, fourth)] == [True, False, True, True]
    assert (await world.events())[-1] == "tokens_crowded_out"
    row = world.rows(second.refresh_token)["family"]
    assert 0 < await store.client.pttl(row) <= ACCESS_TOKEN
    # This was no theft: only the person with this token has to sign in again.
    assert await refusal_of(world.refresh(second.refresh_token)) == "invalid_grant"
    assert [await world.lives(one.access_token) for one in (first, third, fourth)] == [True] * 3
    minted = await store.tokens.mint(world.user, world.app, ("profile",))
    assert [await world.lives(one.access_token) for one in (first, third, fourth, minted)] == [False, True, True, True]


@pytest.mark.trap(8)
async def test_dead_families_make_way_first_and_stay_replays_for_an_hour(store: Store) -> None:
    store.bounds.families = 3
    world = await World.make(store)
    first, second, third = [await world.tokens() for _ in range(3)]
    await store.tokens.revoke(world.app, third.refresh_token)
    await ends_in(world, first, 86_400)
    fourth = await world.tokens()
    assert [await world.lives(one.access_token) for one in (first, second, fourth)] == [True] * 3
    assert "tokens_crowded_out" not in await world.events()
    # SPEC 3.1: presenting a revoked token again ends the pair.
    assert await refusal_of(world.refresh(third.refresh_token)) == "invalid_grant"
    assert [await world.lives(one.access_token) for one in (first, second, fourth)] == [False] * 3


async def test_expired_families_leave_no_names(store: Store) -> None:
    world = await World.make(store)
    grant = keys.grant(world.user, world.app.client_id)
    for _ in range(7):
        tokens = await world.tokens()
        await store.client.delete(world.rows(tokens.refresh_token)["family"])
    await world.tokens()
    fields: list[Any] = await store.client.hkeys(grant)
    assert len([field for field in fields if field.startswith(b"f:")]) == 1


async def test_families_of_an_earlier_release_keep_working(store: Store) -> None:
    store.bounds.families = 1
    world = await World.make(store)
    before = await world.tokens()
    token = world.rows(before.refresh_token)["family"].rpartition(":")[2]
    await store.client.hdel(keys.grant(world.user, world.app.client_id), f"f:{token}")
    await world.tokens()
    assert await world.lives((await world.refresh(before.refresh_token)).access_token)


async def test_a_person_with_too_many_apps_is_sent_to_the_apps_page_and_back(service: Service) -> None:
    service.store.bounds.grants = 1
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    page = await browser.get(service.native.authorize_url())
    refused = await browser.submit(page, DECIDE, decision="allow")
    assert refused.code == 403
    assert "Location" not in refused.headers
    assert "as many apps as one account can have" in refused.body.decode()
    assert [link.get("href") for link in Page(refused.body.decode()).all("a")].count("/account/apps") == 1
    await service.store.grants.revoke(session_of(service, browser), service.web.client_id, VISITOR)
    assert (await browser.submit(page, DECIDE, decision="allow")).code == 303


def session_of(service: Service, browser: Browser) -> Session:
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session is not None
    return session


@pytest.fixture
def two_stores(open_store: OpenStore, engine_url: str) -> tuple[Store, Store]:
    """Two servers' views of one store."""
    one = open_store(engine_url)
    return one, one if engine_url == "memory" else open_store(engine_url)


@pytest.mark.trap(1)
async def test_limits_hold_across_two_servers(two_stores: tuple[Store, Store]) -> None:
    one, _ = two_stores
    for store in two_stores:
        store.bounds.grants, store.bounds.sessions, store.bounds.families = 12, 4, 5
    world = await World.make(one)
    client = one.client

    async def at_once(number: int, act: Callable[[Store, int], Awaitable[object]]) -> list[str | None]:
        await fresh_windows(world)
        return await asyncio.gather(*(refusal_of(act(two_stores[n % 2], n)) for n in range(number)))

    apps = await apps_of(world, 30)
    requests = [await world.pending(app=app) for app in apps]

    async def consent(store: Store, n: int) -> None:
        await store.authorizations.decide(world.session, apps[n], requests[n], allow=True, scopes=None, visitor=VISITOR)

    answers = await at_once(30, consent)
    assert (answers.count(None), answers.count("access_denied"), len(await connected(world))) == (12, 18, 12)

    let_in = await connected(world)
    app = next(app for app in apps if app.client_id in let_in)
    await fresh_windows(world)
    codes = [await world.code(app=app) for _ in range(30)]

    async def exchange(store: Store, n: int) -> None:
        world_of = World()
        world_of.store, world_of.app = store, app
        await world_of.exchange(codes[n])

    assert await at_once(30, exchange) == [None] * 30
    ids = [world.opened(TokenKind.CODE, code).id for code in codes]
    rows = [keys.token(world.user, app.client_id, one_id, 0)["family"] for one_id in ids]
    assert [await client.exists(row) for row in rows] == [1] * 30
    assert [await client.hexists(row, "revoked") for row in rows].count(False) == 5

    credentials = await one.people.verify(world.email, PASSWORD)
    assert credentials is not None

    cookies = []

    async def sign_in(store: Store, n: int) -> None:
        cookies.append((await store.sessions.start(credentials, VISITOR)).cookie)

    assert await at_once(30, sign_in) == [None] * 30
    sessions = [world.session, *(session for cookie in cookies if (session := one.sessions.open(cookie)))]
    assert [await is_live(world, session) for session in sessions].count(True) == 4
