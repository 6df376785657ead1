"""Wrong codes of the second step: growing pauses, a final limit, a mail, and known devices that stay usable."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.core.site import Site
from outbound.mail.message import plain_text
from store import keys
from store.accounts.signin.devices import Device
from store.lifetimes import DAY, FACTOR, FACTOR_LONGEST, FACTOR_MOST
from store.refused import Refused
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer, until
from tests.support.browser.second_factors import SECURITY, Person, says
from tests.support.http.driver import EMAIL, Service
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import App, add_passkey, half_of, outcome, reauth, use_passkey
from tests.support.store.world import PASSWORD, VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

NEW_PASSWORD = "another horse battery"


async def guess(world: World, code: str = "000000", device: Device | None = None) -> str:
    return await outcome(world.store.second_step.with_code(await half_of(world), code, VISITOR, device))


async def guess_of(world: World, password: str, code: str) -> str:
    return await outcome(world.store.second_step.with_code(await half_of(world, password), code, VISITOR))


async def known(world: World) -> Device:
    """A browser that the person has signed in with before."""
    device = world.store.devices.open(await world.store.devices.renew(None, world.user))
    assert device is not None
    return device


async def stop(world: World, device: Device | None = None) -> None:
    """Guesses until no code is accepted, without the pauses."""
    behind = f":{device.id}" if device else ""
    guesses = keys.person(world.user)["guesses"]
    await world.store.client.hset(guesses, f"count{behind}", FACTOR_MOST)


async def test_pauses_grow_until_no_code_is_accepted(memory_store: Store, clock: FakeClock) -> None:
    clock.stop()
    world = await World.make(memory_store)
    app = await App.add(world)
    await reauth(world)
    device = await add_passkey(world)
    pauses: list[int] = []
    half = await half_of(world)
    for number in range(1, FACTOR_MOST + 1):
        assert await outcome(memory_store.second_step.with_code(half, "000000", VISITOR)) == "access_denied"
        if number % FACTOR.limit == 0 and number < FACTOR_MOST:
            with pytest.raises(Refused) as refused:
                await memory_store.second_step.with_code(half, await app.code(), VISITOR)
            assert refused.value.retry_after is not None
            pauses.append(refused.value.retry_after)
            clock.advance(pauses[-1])
            half = await half_of(world)
    assert pauses == [min(FACTOR_LONGEST, FACTOR.period * 2**number) // 1000 for number in range(9)]
    clock.advance(2 * FACTOR_LONGEST / 1000)
    assert world.store.sessions.open(await use_passkey(world, device, await half_of(world))), "a passkey is not guessed"
    for code in (await app.code(), app.codes[0]):
        with pytest.raises(Refused, match="access_denied") as stopped:
            await memory_store.second_step.with_code(await half_of(world), code, VISITOR)
        assert "codes no longer work" in stopped.value.description


@pytest.mark.parametrize("how", ["a link", "the operator", "the factors"])
async def test_a_new_password_allows_codes_again(memory_store: Store, how: str) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    await stop(world)
    assert await guess(world, app.codes[0]) == "access_denied"
    password = PASSWORD if how == "the factors" else NEW_PASSWORD
    if how == "a link":
        link = await memory_store.links.to_reset(world.user, world.email)
        assert link is not None
        await memory_store.links.reset(link.text, password, VISITOR)
    elif how == "the operator":
        await memory_store.operator.set_password(world.user, await memory_store.hasher.hash(password))
    else:
        await memory_store.operator.reset_factors(world.email)
        world.session = await world.sign_in()
        app = await App.add(world)
    half = await half_of(world, password)
    assert await outcome(memory_store.second_step.with_code(half, app.codes[1], VISITOR)) == "in"


async def test_repeated_resets_allow_ten_more_guesses_a_day(memory_store: Store, clock: FakeClock) -> None:
    clock.stop()
    world = await World.make(memory_store)
    app = await App.add(world)
    await stop(world)

    async def guesses_after_a_reset(password: str) -> int:
        link = await memory_store.links.to_reset(world.user, world.email)
        assert link is not None
        await memory_store.links.reset(link.text, password, VISITOR)
        half, device, count = await half_of(world, password), await known(world), 0
        for guesser in (device, None):
            while count < 30 and await memory_store.client.hget(keys.person(world.user)["guesses"], "count") != b"100":
                assert await outcome(memory_store.second_step.with_code(half, "000000", VISITOR, guesser)) != "in"
                count += 1
        return count

    assert [await guesses_after_a_reset(f"{NEW_PASSWORD} {n}") for n in range(2)] == [FACTOR.limit, 0]
    clock.advance(DAY / 1000)
    assert await guesses_after_a_reset(f"{NEW_PASSWORD} 3") == FACTOR.limit
    assert await guess_of(world, f"{NEW_PASSWORD} 3", app.codes[0]) == "access_denied"


@pytest.mark.trap(36)
async def test_wrong_codes_elsewhere_do_not_block_known_devices(store: Store) -> None:
    world = await World.make(store)
    app = await App.add(world)
    mine = await known(world)
    await stop(world)
    assert await guess(world, app.codes[0]) == "access_denied"
    assert await guess(world, device=mine) == "access_denied"
    assert await guess(world, app.codes[0], mine) == "in"
    assert await guess(world, app.codes[1]) == "access_denied", "the right code there forgives no stranger"
    confirmed = store.reauth.with_password(
        world.session,
        PASSWORD,
        app.codes[1],
        Visitor("192.0.2.7", "Testing/1.0", await store.devices.renew(mine, world.user)),
    )
    assert await outcome(confirmed) == "in"


async def test_a_stolen_device_has_its_own_limited_count(memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    thief = await known(world)
    for _ in range(FACTOR.limit):
        assert await guess(world, device=thief) == "access_denied"
    assert await guess(world, app.codes[0], thief) == "rate_limited"
    assert await guess(world) == "access_denied", "strangers count apart"
    await stop(world, thief)
    await stop(world)
    assert await guess(world, app.codes[0], thief) == "access_denied", "it is a stranger's by now"


async def test_all_known_devices_share_a_limit_of_a_hundred_wrong_codes(store: Store) -> None:
    """Repeated sign-ins before there was a second step give any number of devices."""
    world = await World.make(store)
    app = await App.add(world)
    guesses = keys.person(world.user)["guesses"]
    short_of_a_pause = FACTOR.limit - 1
    for _ in range(FACTOR_MOST // short_of_a_pause + 1):
        device = await known(world)
        for _ in range(short_of_a_pause):
            assert await guess(world, device=device) == "access_denied"
    row: Any = await store.client.hgetall(guesses)
    of_devices = {field: int(count) for field, count in row.items() if field.startswith(b"count:")}
    assert sum(of_devices.values()) == int(row[b"known"]) == FACTOR_MOST
    assert int(row[b"count"]) > 0, "by now each counts as a stranger's"
    await stop(world)
    assert await guess(world, app.codes[0], await known(world)) == "access_denied"


async def test_a_correct_code_resets_only_its_own_devices_count(memory_store: Store) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    mine, theirs = await known(world), await known(world)
    guesses = keys.person(world.user)["guesses"]
    for device in (theirs, theirs, mine):
        await guess(world, device=device)
    assert await guess(world, app.codes[0], mine) == "in"
    assert await memory_store.client.hgetall(guesses) == {f"count:{theirs.id}".encode(): b"2", b"known": b"2"}
    assert await guess(world, app.codes[1], theirs) == "in"
    assert await memory_store.client.hgetall(guesses) == {}


@pytest.mark.parametrize("foreign", ["another person's", "of an epoch that is over"])
async def test_another_persons_device_counts_as_unknown(memory_store: Store, foreign: str) -> None:
    world = await World.make(memory_store)
    app = await App.add(world)
    device = await known(await World.make(memory_store) if foreign == "another person's" else world)
    if foreign != "another person's":
        await memory_store.operator.set_password(world.user, await memory_store.hasher.hash(PASSWORD))
    await stop(world)
    assert await guess(world, app.codes[0], device) == "access_denied"


async def test_deletion_removes_the_counts(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await App.add(world)
    await guess(world)
    assert await memory_store.client.exists(keys.person(world.user)["guesses"])
    await memory_store.people.delete(world.user)
    assert not await memory_store.client.exists(keys.person(world.user)["guesses"])


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, mails: Kept) -> Site:
    return Site(memory_store, base_url, mail=mailer(mails))


@pytest.mark.parametrize("where", ["/signin/second", f"{SECURITY}/confirm"])
async def test_the_first_burst_and_its_end_are_mailed_once_each(
    service: Service, site: Site, mails: Kept, where: str
) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half() if where == "/signin/second" else ada.browser
    page = await browser.get("/signin/second" if where == "/signin/second" else SECURITY)
    guesses = keys.person(service.ada)["guesses"]

    async def wrong(times: int) -> list[str]:
        for _ in range(times):
            await browser.submit(page, where, code="000000", password=PASSWORD)
        await until(lambda: not site.tasks and not site.mail._tasks)
        return [plain_text(mail) for mail in mails.to(EMAIL) if "know your password" in mail["Subject"]]

    assert await wrong(FACTOR.limit // 2 - 1) == []
    (first,) = await wrong(1)
    assert "/forgot" in first
    assert "no longer work" not in first
    assert len(await wrong(FACTOR.limit // 2)) == 1
    device = service.store.devices.open(browser.cookies.get("latchkey_device"))
    behind = f":{device.id}" if device else ""
    await service.store.client.hset(guesses, mapping={f"count{behind}": FACTOR_MOST - 1, f"until{behind}": 0})
    assert "no longer work" in (await wrong(1))[1]
    assert len(await wrong(3)) == 2
    last = await browser.submit(page, where, code=await ada.code(), password=PASSWORD)
    assert says(last, "codes no longer work") or device is not None
