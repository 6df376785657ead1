"""Known browsers: strangers cannot block a person's sign-in there."""

from __future__ import annotations

import ast
import asyncio
from contextlib import suppress

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.crypto.passwords import HasherBusy, PasswordHasher
from store.crypto.seal import Token, TokenKind, new_id
from store.lifetimes import DEVICE, SIGN_IN_ACCOUNT, SIGN_IN_ADDRESS, SIGN_IN_DEVICE, SIGN_IN_DEVICES, SIGN_UP_ADDRESS
from store.refused import Refused, SignedOut
from store.wiring import Store
from tests.support.browser.pages import ROOT
from tests.support.browser.second_factors import Person
from tests.support.browser.signup import cookies_of, sign_up
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock
from tests.support.store.world import VISITOR, World, every_key

pytestmark = pytest.mark.gen_test(timeout=30)

WRONG = "wrong horse battery"
COOKIE = "latchkey_device"


async def attack(store: Store, email: str = EMAIL) -> None:
    """A stranger fills the account's window from many addresses."""
    for number in range(SIGN_IN_ACCOUNT.limit):
        with suppress(Refused):
            await store.limits.sign_in(f"198.51.{number}.1", email)


async def back_later(service: Service) -> Browser:
    """A browser that Ada signed in with and out of."""
    browser = await service.signed_in()
    page = await browser.get("/account")
    await browser.submit(page, "/signout")
    assert COOKIE in browser.cookies
    return browser


async def end_others(browser: Browser) -> HTTPResponse:
    """Signs all other devices out."""
    form = fields_of(await browser.get("/account/security"), "/signout")
    return await browser.send("/account/security/sessions/end-others", "POST", form=form)


@pytest.mark.trap(36)
async def test_strangers_do_not_block_sign_in_from_known_browsers(service: Service) -> None:
    ada = await back_later(service)
    await attack(service.store)
    assert (await service.browser().sign_in()).code == 429
    assert (await ada.sign_in(EMAIL, WRONG)).code == 400
    assert (await ada.sign_in()).code == 303


async def test_the_device_cookie_lasts_a_year_and_is_no_credential(service: Service) -> None:
    page = await service.browser().sign_in()
    cookie = cookies_of(page)[COOKIE]
    assert cookie["max-age"] == str(DEVICE // 1000)
    assert ("httponly" in cookie, cookie["samesite"]) == (True, "Lax")
    thief = service.browser()
    thief.cookies = {COOKIE: cookie[""], "latchkey_session": cookie[""]}
    assert (await thief.get("/account")).code == 303


async def test_a_stolen_device_cookie_allows_a_few_guesses_a_day(service: Service, clock: FakeClock) -> None:
    clock.stop()
    thief = await back_later(service)
    await attack(service.store)
    for _ in range(SIGN_IN_DEVICE.limit):
        assert (await thief.sign_in(EMAIL, WRONG)).code == 400
    assert (await thief.sign_in(EMAIL, WRONG)).code == 429, "it counts as a stranger's by now"
    assert (await thief.sign_in()).code == 429
    clock.advance(SIGN_IN_DEVICE.period / 1000)
    assert (await thief.sign_in()).code == 303


async def test_an_accounts_devices_share_a_limit(memory_store: Store) -> None:
    """Repeated sign-ins to one's own account give any number of devices."""
    world = await World.make(memory_store)
    tried = 0
    for _ in range(SIGN_IN_DEVICES.limit // SIGN_IN_DEVICE.limit + 1):
        device = memory_store.devices.open(await memory_store.devices.renew(None, world.user))
        assert device is not None
        while await memory_store.devices.credentials(device, world.email):
            tried += 1
    assert tried == SIGN_IN_DEVICES.limit


@pytest.mark.parametrize("how", ["password", "password after others", "disabled", "reset", "a year"])
async def test_a_new_password_forgets_all_devices_but_the_current_one(
    service: Service, clock: FakeClock, how: str
) -> None:
    store, ada, other = service.store, await service.signed_in(), await back_later(service)
    page, password = await ada.get("/account/security"), PASSWORD
    if how == "password after others":
        await end_others(ada)
    if how.startswith("password"):
        password = "another horse battery"
        await ada.submit(page, "/account/security", current_password=PASSWORD, new_password=password)
    elif how == "disabled":
        await store.operator.set_status(EMAIL, "disabled")
        await store.operator.set_status(EMAIL, "active")
    elif how == "reset":
        password = "another horse battery"
        link = await store.links.to_reset(service.ada, EMAIL)
        assert link is not None
        ada = service.browser()
        await ada.submit(await ada.get(f"/reset?link={link.text}"), "/reset", new_password=password)
    else:
        clock.advance(DEVICE / 1000 + 1)
    await attack(store)
    assert (await other.sign_in(EMAIL, password)).code == 429
    stays = how not in ("disabled", "a year")
    assert (await ada.sign_in(EMAIL, password)).code == (303 if stays else 429)


async def test_signing_others_out_neither_adds_nor_removes_known_devices(service: Service) -> None:
    victim, person = await back_later(service), await Person.arrive(service)
    await person.add_app()
    thief = Browser(service.base_url, {"latchkey_session": person.browser.cookies["latchkey_session"]})
    for _ in range(3):
        assert (await end_others(thief)).code == 303
        assert COOKIE not in thief.cookies
    await attack(service.store)
    answer = await victim.sign_in()
    assert (answer.code, answer.headers["Location"].startswith("/signin/second")) == (303, True)
    for _ in range(SIGN_IN_ADDRESS.limit):  # what others at this address do at the second step is not the victim's
        with suppress(Refused):
            await service.store.limits.passkey("127.0.0.1")
    page = await victim.get("/signin/second")
    assert (await victim.submit(page, "/signin/second", code="000000")).code == 400
    assert (await victim.submit(page, "/signin/second", code=await person.code())).code == 303


async def test_a_known_device_is_unknown_to_other_accounts(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await back_later(service)
    await attack(service.store, "grace@example.com")
    assert (await ada.sign_in("grace@example.com")).code == 429
    assert (await ada.sign_in()).code == 303
    first = service.store.devices.open(ada.cookies[COOKIE])
    await ada.sign_in()
    again = service.store.devices.open(ada.cookies[COOKIE])
    assert first is not None
    assert again is not None
    assert first.id == again.id, "a new id would be a new window"


GIVEN = {
    "SignInHandler.post": "the password, of somebody without a second step",
    "SecondStepHandler.post": "the password, and a code or a passkey",
    "PasskeySignInHandler.post": "a passkey",
    "SetUpPage.set_up": "the password, and a code of the authenticator app that is set up",
    "ArrivingPage.sign_in": "an identity at a provider, and the second step where the provider's does not count",
    "SignUpHandler.post": "an account that is new",
    "SecurityHandler.post": "the current password, and a confirmation with the second step; ends the devices of before",
    "ResetHandler.post": "a mailed link; ends the devices of before",
}
"""Handlers that make a browser known, and the proof each needs. A session is not enough."""


def test_only_a_sign_in_makes_a_browser_known() -> None:
    gives = {"keep_device", "replace_session", "signed_in"}
    found = set()
    for path in (ROOT / "handlers").rglob("*.py"):
        for kind in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)):
            for method in (node for node in kind.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
                calls = [node for node in ast.walk(method) if isinstance(node, ast.Call)]
                if any(given_by(call) & {*gives, "DEVICE_COOKIE"} for call in calls) and method.name not in gives:
                    found.add(f"{kind.name}.{method.name}")
    assert found == set(GIVEN)


def given_by(call: ast.Call) -> set[str]:
    """The handler's own method, or the name of the cookie that it writes."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr="write_cookie"):
            return {node.id for node in call.args if isinstance(node, ast.Name)}
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return {name}
    return set()


@pytest.mark.parametrize("forged", ["", "lk_dv_", "lk_dv_" + "A" * 90, "session"])
async def test_a_forged_device_cookie_is_ignored(service: Service, forged: str) -> None:
    browser = service.browser()
    seal = service.store.sealer.seal
    text = seal(Token(TokenKind.SESSION, service.ada, "1 1", new_id(), 0)) if forged == "session" else forged
    browser.cookies = {COOKIE: text}
    await attack(service.store)
    assert (await browser.sign_in()).code == 429


async def test_a_full_password_pool_gives_every_attempt_back(service: Service) -> None:
    store, ada = service.store, await service.signed_in()
    known = ada.cookies[COOKIE]
    before = set(await every_key(store.client))
    store.hasher.close()  # a pool without a free place
    for browser in (service.browser(), ada):
        assert (await browser.sign_in()).code == 503
    page = await ada.get("/account/security")
    form = {**fields_of(page, "/account/security"), "current_password": PASSWORD, "new_password": WRONG}
    assert (await ada.send("/account/security", "POST", form=form)).code == 503
    assert (await sign_up(service.browser(), "new@example.com")).code == 503
    windows = {key for key in await every_key(store.client) if b"window" in key or b":limit:" in key}
    assert windows <= before
    assert known


async def test_a_refund_never_exceeds_what_was_taken(store: Store) -> None:
    taken = await store.limits.sign_in("192.0.2.1", "somebody@example.com")
    for _ in range(SIGN_IN_ACCOUNT.limit - 1):
        await store.limits.sign_in("192.0.2.1", "somebody@example.com")
    await store.limits.give_back(taken)
    await store.limits.sign_in("192.0.2.1", "somebody@example.com")
    with pytest.raises(Refused, match="rate_limited"):
        await store.limits.sign_in("192.0.2.1", "somebody@example.com")
    for _ in range(SIGN_IN_ACCOUNT.limit + 5):
        await store.limits.give_back(taken)
    assert not await store.client.exists(keys.network(SIGN_IN_ADDRESS.name, "192.0.2.0/24", "192.0.2.1"))


async def test_strangers_leave_places_for_known_browsers() -> None:
    hasher = PasswordHasher(memory_kib=16384, iterations=4, workers=1, queue=7)
    strangers = [hasher.verify(PASSWORD, None) for _ in range(10)]
    known = [hasher.verify(PASSWORD, None, known=True) for _ in range(3)]
    found = await asyncio.gather(*strangers, *known, return_exceptions=True)
    assert [type(one) for one in found] == [bool] * 6 + [HasherBusy] * 4 + [bool] * 2 + [HasherBusy]
    hasher.close()


async def takes(store: Store, addresses: list[str]) -> int:
    """The number of these addresses that can sign up."""
    admitted = 0
    for address in addresses:
        try:
            await store.limits.sign_up(address)
        except Refused:
            continue
        admitted += 1
    return admitted


LIMIT = SIGN_UP_ADDRESS.limit


@pytest.mark.parametrize(
    ("addresses", "admitted"),
    [
        pytest.param(["2001:db8:1:2::/64"] * 30, LIMIT, id="one /64"),
        pytest.param([f"2001:db8:1:{n:x}::/64" for n in range(90)], 4 * LIMIT, id="a /56 of 90 networks"),
        pytest.param([f"2001:db8:1:{n << 8:x}::/64" for n in range(256)] * 2, 16 * LIMIT, id="a /48"),
        pytest.param([f"192.0.2.{n}" for n in range(256)] * 2, 16 * LIMIT, id="a /24 of IPv4"),
        pytest.param([f"192.0.{n}.1" for n in range(40)], 40, id="forty networks of IPv4"),
        pytest.param(["unknown"] * 30, LIMIT, id="no address at all"),
    ],
)
async def test_wider_networks_have_larger_limits(
    memory_store: Store, clock: FakeClock, addresses: list[str], admitted: int
) -> None:
    clock.stop()
    assert await takes(memory_store, addresses) == admitted


async def test_refusals_of_one_address_do_not_count_for_its_network(memory_store: Store) -> None:
    assert await takes(memory_store, ["2001:db8:1:2::/64"] * 200) == LIMIT
    neighbours = [f"2001:db8:1:{n:x}::/64" for n in range(0x10, 0x10 + 3 * LIMIT)]
    assert await takes(memory_store, neighbours) == 3 * LIMIT


async def test_beyond_the_accounts_window_no_password_is_checked(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await attack(memory_store, world.email)
    with pytest.raises(Refused, match="rate_limited"):
        await memory_store.signing_in.with_password(world.email, PASSWORD, "192.0.2.1", None, VISITOR)
    with pytest.raises(SignedOut):
        await memory_store.signing_in.with_password("nobody@example.com", PASSWORD, "192.0.2.1", None, VISITOR)
