"""Logos of apps in the store: kept with the registration, served by their content, ended with the app."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from handlers.core.pictures.image_upload import LOGO_SIDE, MOST_LOGO_BYTES, app_logo_of
from store import keys
from store.apps.logos import logo_id
from store.apps.registration import Registration
from store.engine.memory import Room
from store.errors import StoreFull
from store.refused import Refused
from store.wiring import Store
from tests.accounts.test_image_upload import SVG, opened
from tests.support.browser import pictures
from tests.support.browser.pictures import drawn, png_bomb
from tests.support.lists.offenders import each
from tests.support.store.world import CALLBACK, VISITOR, World

FIELDS = {"name": "My App", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}


async def own(world: World) -> Registration:
    """An app of the world's person."""
    return (await world.store.owned.register(world.session, "a nonce", VISITOR, most=20, **FIELDS)).registration


@each("form", ["PNG", "JPEG", "WEBP"])
def test_a_logo_is_a_small_square(form: str) -> None:
    made = opened(app_logo_of(drawn(form, (900, 300))))
    assert (made.format, made.size) == ("WEBP", (LOGO_SIDE, LOGO_SIDE))


def test_a_flat_logo_loses_nothing_and_noise_is_made_small() -> None:
    flat = Image.new("RGBA", (LOGO_SIDE, LOGO_SIDE), (0, 0, 0, 0))
    flat.paste((1, 2, 3, 255), (50, 50, 99, 99))
    assert opened(app_logo_of(pictures.saved(flat, "PNG"))).convert("RGBA").getpixel((60, 60)) == (1, 2, 3, 255)
    assert len(app_logo_of(pictures.saved(pictures.noise(), "PNG"))) <= MOST_LOGO_BYTES


@each(
    "file",
    [
        pytest.param(SVG, id="SVG"),
        pytest.param(drawn("GIF"), id="GIF"),
        pytest.param(png_bomb(9000, 9000), id="a bomb"),
        pytest.param(b"", id="nothing"),
        pytest.param(drawn("PNG")[:60], id="cut off"),
    ],
)
def test_what_is_no_logo_is_refused(file: bytes) -> None:
    with pytest.raises(Refused):
        app_logo_of(file)


def test_nothing_of_a_file_is_kept_but_its_pixels() -> None:
    page = b"<script>alert(1)</script>"
    out = BytesIO()
    Image.new("RGB", (50, 50)).save(out, "JPEG", comment=page)
    assert page not in app_logo_of(out.getvalue() + page + drawn("PNG"))


@pytest.mark.gen_test
async def test_a_logo_is_known_by_its_content_alone(store: Store) -> None:
    world = await World.make(store)
    app = await own(world)
    assert app.logo_path == ""
    assert await store.owned.set_logo(world.session, app.client_id, b"one", VISITOR)
    assert not await store.owned.set_logo(world.session, app.client_id, b"one", VISITOR), "nothing changes"
    one, two = logo_id(b"one"), logo_id(b"two")
    known = await store.apps.find(app.client_id)
    assert known is not None
    assert known.logo_path == known.record()["logo"] == f"/logo/{app.client_id}/{one}.webp"
    assert [await store.apps.logo(app.client_id, name) for name in (one, two)] == [b"one", b""]
    await store.apps.update(app.client_id, homepage="https://other.example")
    assert await store.apps.logo(app.client_id, one) == b"one", "another change keeps it"
    await store.owned.set_logo(world.session, app.client_id, b"two", VISITOR)
    assert [await store.apps.logo(app.client_id, name) for name in (one, two)] == [b"", b"two"]
    await store.owned.set_logo(world.session, app.client_id, b"", VISITOR)
    assert await store.apps.logo(app.client_id, two) == b""
    assert not await store.client.exists(keys.app_stats(app.client_id)["logo"])
    assert (await world.events()).count("app_changed") == 3


@pytest.mark.gen_test
async def test_registration_and_image_agree_after_simultaneous_changes(store: Store) -> None:
    world = await World.make(store)
    app = await own(world)
    images = [b"a", b"b", b"c", b"d"]
    await asyncio.gather(
        *(store.apps.change(app.client_id, lambda one: one, logo=image) for image in images),
        store.apps.update(app.client_id, homepage="https://other.example"),
    )
    known = await store.apps.stored(app.client_id)
    assert isinstance(known, Registration)
    assert await store.apps.logo(app.client_id, known.logo) in images


@pytest.mark.gen_test
async def test_a_new_logo_of_the_owner_ends_the_operators_mark(store: Store) -> None:
    world = await World.make(store)
    app = await own(world)
    await store.apps.change(app.client_id, lambda one: replace(one, verified=True), logo=b"seen by the operator")
    await store.owned.set_logo(world.session, app.client_id, b"", VISITOR)
    assert (await store.apps.update(app.client_id)).verified, "without a logo it shows nothing new"
    await store.owned.set_logo(world.session, app.client_id, b"another", VISITOR)
    assert not (await store.apps.update(app.client_id)).verified


@pytest.mark.gen_test
async def test_nobody_changes_the_logo_of_another(store: Store) -> None:
    world, other = await World.make(store), await World.make(store)
    app = await own(world)
    with pytest.raises(Refused, match="not_found"):
        await store.owned.set_logo(other.session, app.client_id, b"theirs", VISITOR)


@pytest.mark.gen_test
@pytest.mark.parametrize("connected", [False, True])
async def test_a_logo_ends_with_its_app(memory_store: Store, connected: bool) -> None:
    world = await World.make(memory_store)
    store, client = memory_store, world.app.client_id
    store.apps.settle = 0
    if connected:
        await world.tokens()
    await store.apps.change(client, lambda one: one, logo=b"a logo")
    await store.apps.begin_deletion(client)
    await store.apps.finish_deletion(client)
    assert not await store.client.exists(keys.app_stats(client)["logo"])


@pytest.mark.gen_test
async def test_a_store_that_fills_up_takes_no_more_logos_but_gives_them_up(memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = await own(world)
    await memory_store.owned.set_logo(world.session, app.client_id, b"one", VISITOR)
    memory_store.headroom.note(Room(90, 100))
    with pytest.raises(StoreFull):
        await memory_store.owned.set_logo(world.session, app.client_id, b"two", VISITOR)
    await memory_store.owned.set_logo(world.session, app.client_id, b"", VISITOR)
