"""Names, pictures and their addresses, and spending by day, on every engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.accounts.profiles import Profiles, initials
from store.credits.prices import TokenCounts
from store.crypto.keyring import KeyRing, Keys, SecretKey
from store.crypto.seal import Sealer, Token, TokenKind
from store.lifetimes import RENAME
from store.refused import Refused, SignedOut
from store.wiring import Store
from tests.support.lists.offenders import each
from tests.support.store.credit_spender import DOLLAR, SPENDING, Spender
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def address(world: World) -> str:
    return world.store.profiles.address(await world.store.sessions.profile(world.session))


async def test_a_new_name_is_visible_at_once_and_logged_once(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    for _ in range(2):
        await store.profiles.rename(world.session, "Grace Hopper", VISITOR)
    profile, _, _ = await store.identity.read(world.caller(tokens.access_token), "profile")
    assert profile.name == "Grace Hopper"
    assert (await world.events()).count("name_changed") == 1


async def test_each_picture_has_its_own_address(store: Store) -> None:
    world = await World.make(store)
    generated = await address(world)
    first = await store.profiles.picture(generated)
    assert generated.endswith(".svg")
    assert first is not None
    assert (first.image, first.letters) == (b"", "AL")
    seen = [generated]
    for image in (b"one \x00\xff", b"two"):
        await store.profiles.save_picture(world.session, image, VISITOR)
        seen.append(await address(world))
        assert seen[-1].endswith(".webp")
        found = await store.profiles.picture(seen[-1])
        assert found is not None
        assert found.image == image
        assert [await store.profiles.picture(old) for old in seen[:-1]] == [None] * (len(seen) - 1)
    for _ in range(2):
        await store.profiles.save_picture(world.session, b"", VISITOR)
    assert await address(world) == generated
    assert await store.profiles.picture(generated) is not None
    assert await store.profiles.picture(seen[-1]) is None
    assert await store.client.exists(keys.person(world.user)["picture"]) == 0
    assert (await world.events())[-3:] == ["picture_changed", "picture_changed", "picture_removed"]


async def test_a_generated_pictures_address_depends_on_its_letters(store: Store) -> None:
    world = await World.make(store)
    before = await address(world)
    await store.profiles.rename(world.session, "Grace Hopper", VISITOR)
    assert await store.profiles.picture(before) is None
    assert await store.profiles.picture(await address(world)) is not None


async def test_a_new_front_key_seals_addresses_again(store: Store) -> None:
    world, old, new = await World.make(store), SecretKey(1, bytes(32)), SecretKey(2, bytes(range(32)))
    profile = await store.sessions.profile(world.session)
    secrets = Keys(KeyRing((old,)))
    profiles = Profiles(store.scripts, Sealer(secrets), 0, store.headroom)
    before = profiles.address(profile)
    secrets.replace(KeyRing((new,)))
    assert await profiles.picture(before) is None
    found = await profiles.picture(profiles.address(profile))
    assert found is not None
    assert found.user == world.user


async def test_name_changes_are_limited_per_hour(store: Store) -> None:
    world = await World.make(store)

    async def rename(name: str) -> str | None:
        return await refusal_of(store.profiles.rename(world.session, name, VISITOR))

    taken = [await rename(f"Name {number}") for number in range(RENAME.limit)]
    assert taken == [None] * RENAME.limit
    assert await rename("One More") == "rate_limited"
    assert await rename(f"Name {RENAME.limit - 1}") is None  # the name it has
    assert (await store.sessions.profile(world.session)).name == f"Name {RENAME.limit - 1}"


async def test_a_picture_address_is_unguessable_and_reveals_no_owner(store: Store) -> None:
    world = await World.make(store)
    good = await address(world)
    assert world.user not in good
    sealed = good.removesuffix(".svg")
    other = store.sealer.seal(Token(TokenKind.SESSION, world.user, "", "A" * 22, 0))
    for bad in (
        f"{sealed}.webp",
        f"{sealed}.",
        sealed,
        f"{sealed[:-1]}x.svg",
        f"{other}.svg",
        ".svg",
        "",
        "\udc80.svg",
    ):
        assert await store.profiles.picture(bad) is None


async def test_pictures_of_deleted_or_disabled_people_are_gone(store: Store) -> None:
    world = await World.make(store)
    await store.profiles.save_picture(world.session, b"one", VISITOR)
    at = await address(world)
    await store.operator.set_status(world.email, "disabled")
    assert await store.profiles.picture(at) is None
    await store.operator.set_status(world.email, "active")
    assert await store.profiles.picture(at) is not None
    await store.people.delete(world.user)
    assert await store.profiles.picture(at) is None


async def test_profile_changes_need_a_live_session(store: Store) -> None:
    world = await World.make(store)
    gone = replace(world.session, session_id="A" * 22)
    for call in (
        store.profiles.rename(gone, "Somebody", VISITOR),
        store.profiles.save_picture(gone, b"one", VISITOR),
        store.sessions.note(gone, "account_downloaded", VISITOR),
        store.credits.spending(gone, 30),
    ):
        with pytest.raises(SignedOut):
            await call
    assert (await store.sessions.profile(world.session)).name == "Ada Lovelace"
    assert await store.client.exists(keys.person(world.user)["picture"]) == 0


async def test_an_upload_during_a_deletion_leaves_nothing(store: Store) -> None:
    for _ in range(10):
        world = await World.make(store)
        await asyncio.gather(
            store.people.delete(world.user),
            *(store.profiles.save_picture(world.session, b"one", VISITOR) for _ in range(5)),
            return_exceptions=True,
        )
        assert await store.client.exists(keys.person(world.user)["picture"]) == 0


async def test_uploads_are_counted(store: Store) -> None:
    world = await World.make(store)
    for _ in range(20):
        await store.limits.picture(world.user)
    with pytest.raises(Refused) as refused:
        await store.limits.picture(world.user)
    assert refused.value.code == "rate_limited"


@each(
    ("name", "letters"),
    [
        ("Ada Lovelace", "AL"),
        ("ada", "A"),
        ("Jean-Luc van der Berg", "JB"),
        ("¡hola!", "H"),
        ("ßa", "S"),
        ("…", ""),
        ("李 白", "李白"),
    ],
)
def test_initials(name: str, letters: str) -> None:
    assert initials(name) == letters


async def test_spending_is_summed_by_day_and_app(store: Store) -> None:
    world = await World.make(store)
    await store.credits.grant(world.user, 10 * DOLLAR)
    empty = await store.credits.spending(world.session, 30)
    assert (empty.charged, empty.whole) == ((), True)
    charged: dict[Any, Any] = {}
    for number in range(2):
        app, _ = await world.register(f"spender-{number}-{world.app.client_id}", scopes=SPENDING)
        spender = await Spender.make(world, app)
        for _ in range(number + 1):
            charge = await store.calls.settle(await spender.hold(10, 10), TokenCounts(10, 5))
            assert charge is not None
            charged[app.client_id] = charged.get(app.client_id, 0) + charge.charged
    found = await store.credits.spending(world.session, 30)
    assert {client: amount for _, client, amount in found.charged} == charged
    assert {on for on, _, _ in found.charged} == {found.today}
    assert found.whole
    assert not (await store.credits.spending(world.session, 30, most=2)).whole
