"""Taking an account back ends the app consents given since the link was mailed, and keeps earlier ones."""

from __future__ import annotations

from typing import Any

import pytest

from outbound.mail.message import plain_text
from store.accounts.undoing import Undo
from store.apps.registration import Registration
from store.lifetimes import UNDO_LINK
from store.wiring import Store
from tests.accounts.test_undo_address import NEW_PASSWORD, THIEF, confirms, mails, post, site, undo_of
from tests.support.browser.email_links import Post
from tests.support.http.driver import EMAIL
from tests.support.processes.engines import FakeClock
from tests.support.store.credit_spender import DOLLAR, SPENDING
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

__all__ = ["confirms", "mails", "post", "site"]


async def take_back(world: World, undo: str) -> Undo:
    """The owner opens the link, resets the password by mail and signs in with it."""
    done = await world.store.undoing.undo(undo, VISITOR)
    reset = await world.store.links.to_reset(world.user, world.email)
    assert reset
    await world.store.links.reset(reset.text, NEW_PASSWORD, VISITOR)
    world.session = await world.sign_in(password=NEW_PASSWORD)
    return done


async def grants(world: World) -> dict[str, tuple[Any, ...]]:
    """Scopes and spending limit (micro-dollars a month) of each connected app."""
    page = await world.store.grants.list(world.session)
    return {one.client: (one.scopes, one.spend_limit) for one in page.grants if one.revoked_at is None}


async def connect(
    world: World, app: Registration | None = None, scopes: tuple[str, ...] = SPENDING, limit: int | None = None
) -> str:
    """Consents to an app and returns its refresh token."""
    tokens = await world.tokens(scopes, app)
    if limit is not None:
        await allow(world, (app or world.app).client_id, limit)
    return tokens.refresh_token


async def allow(world: World, client: str, limit: int | None) -> None:
    await shown(world.store, world.session)
    await world.store.credits.set_spend_limit(world.session, client, limit, VISITOR)


async def test_consents_since_the_change_end_and_earlier_ones_stay(store: Store) -> None:
    world = await World.make(store, scopes=SPENDING)
    raised, _ = await world.register(f"raised-{world.user}", scopes=SPENDING)
    widened, _ = await world.register(f"widened-{world.user}", scopes=SPENDING)
    again, _ = await world.register(f"again-{world.user}", scopes=SPENDING)
    narrowed, _ = await world.register(f"narrowed-{world.user}", scopes=SPENDING)
    evil, _ = await world.register(f"evil-{world.user}", scopes=SPENDING)
    kept = await connect(world, limit=3 * DOLLAR)
    await connect(world, raised, limit=2 * DOLLAR)
    await connect(world, widened, ("profile",))
    await connect(world, again, limit=DOLLAR)
    await connect(world, narrowed, limit=DOLLAR)
    before = await grants(world)
    undo = await undo_of(world, THIEF)
    await world.fresh_window()
    assert (await connect(world, evil)).startswith("lk_rt_")
    await allow(world, raised.client_id, 50 * DOLLAR)
    await allow(world, raised.client_id, None)
    await connect(world, widened)
    await connect(world, narrowed, ("profile",))
    await allow(world, evil.client_id, 900 * DOLLAR)
    thiefs = await connect(world)
    assert await refusal_of(world.refresh(kept)) is None, "until then"
    await store.grants.revoke(world.session, again.client_id, VISITOR)
    await connect(world, again)
    done = await take_back(world, undo)
    after = await grants(world)
    gone = {evil.client_id, widened.client_id, again.client_id}
    assert after == {client: facts for client, facts in before.items() if client not in gone}
    assert (set(done.ended), set(done.lowered)) == (gone, {raised.client_id})
    assert await refusal_of(world.refresh(thiefs)) == "invalid_grant", "a thief may have signed in at any app"
    events = await world.events()
    assert events.count("app_disconnected") >= 3
    await connect(world, evil)
    assert (await grants(world))[evil.client_id] == (SPENDING, None), "no limit of the thief's is proposed"


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        pytest.param([9], 5, id="raised"),
        pytest.param([9, 7], 5, id="raised and lowered, but not as far"),
        pytest.param([9, 2], 2, id="raised and lowered below it"),
        pytest.param([2, 9], 2, id="lowered, then raised"),
        pytest.param([None], 5, id="taken off"),
        pytest.param([4], 4, id="lowered"),
    ],
)
async def test_spend_limits_raised_since_the_change_are_reset(
    clock: FakeClock, memory_store: Store, steps: list[int | None], left: int
) -> None:
    world = await World.make(memory_store, scopes=SPENDING)
    await connect(world, limit=5 * DOLLAR)
    undo = await undo_of(world, THIEF)
    for step in steps:
        clock.advance(60)
        await allow(world, world.app.client_id, None if step is None else step * DOLLAR)
    await take_back(world, undo)
    assert (await grants(world))[world.app.client_id][1] == left * DOLLAR


async def test_apps_resumed_since_the_change_are_paused_again(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store, scopes=SPENDING)
    early, _ = await world.register(f"early-{world.user}", scopes=SPENDING)
    running, _ = await world.register(f"running-{world.user}", scopes=SPENDING)
    for app in (None, early, running):
        await connect(world, app)
    for app in (world.app, early):
        await memory_store.grants.pause(world.session, app.client_id, VISITOR)
    clock.advance(60)
    await memory_store.grants.resume(world.session, early.client_id, VISITOR)
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    clock.advance(60)
    await memory_store.grants.resume(world.session, world.app.client_id, VISITOR)
    assert (await take_back(world, undo)).paused == (world.app.client_id,)
    found = await memory_store.operator.show(world.user)
    assert found is not None
    assert [grant.client for grant in found.grants if grant.paused_at] == [world.app.client_id]
    assert (await world.events()).count("app_paused") == 3


async def test_limits_raised_before_the_change_stay(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store, scopes=SPENDING)
    await connect(world, limit=DOLLAR)
    clock.advance(60)
    await allow(world, world.app.client_id, 9 * DOLLAR)
    clock.advance(60)
    done = await take_back(world, await undo_of(world, THIEF))
    assert (done.ended, done.lowered) == ((), ())
    assert (await grants(world))[world.app.client_id] == (SPENDING, 9 * DOLLAR)


async def test_old_limits_are_forgotten(clock: FakeClock, memory_store: Store) -> None:
    """Otherwise a limit raised step by step over a year would fall back to the start."""
    world = await World.make(memory_store, scopes=SPENDING)
    await connect(world, limit=DOLLAR)
    await allow(world, world.app.client_id, 4 * DOLLAR)
    clock.advance(UNDO_LINK / 1000 + 1)
    world.session = await world.sign_in()
    undo = await undo_of(world, THIEF)
    await allow(world, world.app.client_id, 9 * DOLLAR)
    await take_back(world, undo)
    assert (await grants(world))[world.app.client_id][1] == 4 * DOLLAR


async def test_a_mail_lists_what_ended(post: Post) -> None:
    store, ada = post.service.store, post.service.ada
    session = store.sessions.open((await post.service.signed_in()).cookies["latchkey_session"])
    assert session
    world = World()
    world.store, world.user, world.email, world.session = store, ada, EMAIL, session
    undo = await undo_of(world, THIEF)
    thief = await post.service.signed_in(THIEF)
    await post.service.tokens(browser=thief, scope="profile")
    owner = post.service.browser()
    page = await owner.get(f"/account/email/undo?link={undo}")
    await owner.submit(page, "/account/email/undo")
    mail = plain_text(await post.mails.newest(EMAIL, "Your account was taken back"))
    assert "- web-app: disconnected" in mail
