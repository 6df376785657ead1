"""Taking an account back voids access gained through changes to the person's own apps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from outbound.mail.message import plain_text
from store.apps.client_secrets import secret_mark
from store.apps.registration import Registration
from store.errors import StoreUnavailable
from store.wiring import Store
from tests.accounts.test_undo_address import THIEF, confirms, mails, post, site, undo_of
from tests.accounts.test_undo_apps import take_back
from tests.apps.test_owned import register
from tests.support.browser.email_links import Post
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import reauth
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

__all__ = ["confirms", "mails", "post", "site"]

EVIL, EVIL_HOOK = "https://evil.example/cb", "https://evil.example/hook"
OFF, ENDED = "switched off because it was changed", "newer client secrets no longer work"
Act = Callable[[World, Registration], Awaitable[Any]]


def changes(**fields: Any) -> Act:
    return lambda w, app: w.store.owned.update(w.session, app.client_id, "app_changed", VISITOR, **fields)


def rotate(w: World, app: Registration) -> Awaitable[Any]:
    return w.store.owned.rotate(w.session, app.client_id, VISITOR)


def hook(w: World, app: Registration) -> Awaitable[Any]:
    return w.store.owned.set_webhook(w.session, app.client_id, EVIL_HOOK, VISITOR)


async def replaces_the_secret(w: World, app: Registration) -> None:
    await rotate(w, app)
    await w.store.owned.drop_secret(w.session, app.client_id, secret_mark(app.secrets[0]), VISITOR)


def drop(w: World, app: Registration) -> Awaitable[Any]:
    return w.store.owned.drop_secret(w.session, app.client_id, secret_mark(app.secrets[0]), VISITOR)


async def fresh(world: World, app: Registration) -> Registration:
    found, _ = await world.store.apps.fresh(app.client_id)
    assert found
    return found


@pytest.mark.parametrize(
    ("act", "secrets", "status", "said"),
    [
        pytest.param(rotate, 1, "active", ENDED, id="a second secret"),
        pytest.param(replaces_the_secret, 0, "off", f"{OFF}; {ENDED}", id="another secret in place of the one"),
        pytest.param(changes(redirect_uris=("https://app.example/cb", EVIL)), 1, "off", OFF, id="a redirect URI"),
        pytest.param(changes(scopes=("profile", "credits:spend")), 1, "off", OFF, id="scopes"),
        pytest.param(hook, 1, "off", OFF, id="where events go"),
        pytest.param(changes(status="off"), 1, "off", None, id="switched off"),
        pytest.param(changes(name="My App"), 1, "active", None, id="nothing"),
    ],
)
async def test_changes_to_own_apps_since_the_change_give_no_access(
    clock: FakeClock, memory_store: Store, act: Act, secrets: int, status: str, said: str | None
) -> None:
    world = await World.make(memory_store)
    app = (await register(world)).registration
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await reauth(world)
    clock.advance(60)
    await act(world, app)
    done = await take_back(world, undo)
    found = await fresh(world, app)
    assert (len(found.secrets), found.status) == (secrets, status)
    assert set(found.secrets) <= set(app.secrets)
    assert done.own.get(app.client_id) == said


async def test_the_owners_earlier_changes_stay(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = (await register(world)).registration
    await reauth(world)
    for act in (rotate, changes(redirect_uris=("https://app.example/other",)), hook):
        await act(world, app)
    before = await fresh(world, app)
    clock.advance(60)
    done = await take_back(world, await undo_of(world, THIEF))
    assert await fresh(world, app) == before
    assert done.own == {}


async def test_the_operators_new_secret_stays(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = (await register(world)).registration
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await memory_store.apps.rotate_secret(app.client_id)
    await take_back(world, undo)
    assert len((await fresh(world, app)).secrets) == 2


async def test_an_app_registered_since_the_change_is_disabled_without_a_secret(
    clock: FakeClock, memory_store: Store
) -> None:
    world = await World.make(memory_store)
    undo = await undo_of(world, THIEF)
    app = (await register(world)).registration
    done = await take_back(world, undo)
    found = await fresh(world, app)
    assert (found.status, found.secrets, set(done.own)) == ("off", (), {app.client_id})
    await reauth(world, password="another horse battery")
    _, secret = await memory_store.owned.rotate(world.session, app.client_id, VISITOR)
    assert (await fresh(world, app)).secret_matches(secret), "the owner makes another"


async def test_an_undo_interrupted_after_the_apps_can_be_completed(
    clock: FakeClock, memory_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await World.make(memory_store)
    app = (await register(world)).registration
    clock.advance(60)
    undo = await undo_of(world, THIEF)
    await reauth(world)
    await rotate(world, app)
    whole = memory_store.scripts.run

    async def cut(name: str, *args: Any, **more: Any) -> Any:
        if name == "undo_change":
            raise StoreUnavailable("away")
        return await whole(name, *args, **more)

    with monkeypatch.context() as broken:
        broken.setattr(memory_store.undoing._scripts, "run", cut)
        with pytest.raises(StoreUnavailable):
            await memory_store.undoing.undo(undo, VISITOR)
    assert len((await fresh(world, app)).secrets) == 1
    await rotate(world, app)
    await take_back(world, undo)
    assert len((await fresh(world, app)).secrets) == 1


async def test_the_page_and_the_mail_name_the_app(post: Post) -> None:
    store, world = post.service.store, World()
    session = store.sessions.open((await post.service.signed_in()).cookies["latchkey_session"])
    assert session
    world.store, world.user, world.email, world.session = store, post.service.ada, "ada@example.com", session
    undo = await undo_of(world, THIEF)
    app = (await register(world)).registration
    owner = post.service.browser()
    done = await owner.submit(await owner.get(f"/account/email/undo?link={undo}"), "/account/email/undo")
    assert app.client_id in done.body.decode()
    mail = plain_text(await post.mails.newest("ada@example.com", "Your account was taken back"))
    assert f"- {app.client_id}: switched off" in mail
