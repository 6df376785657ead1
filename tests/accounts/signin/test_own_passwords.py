"""Passwords typed by signed-in people: the tries are limited, and strangers cannot use them up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store import keys
from store.accounts.signin.passkeys import options_for_use, read_answer
from store.lifetimes import MISTYPED, OWN_PASSWORD, OWN_PASSWORDS
from store.limits import own_windows
from store.refused import Refused, SignedOut
from store.wiring import Store
from tests.support.browser.second_factors import says
from tests.support.calls.apps import OWN, own_app
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import RELYING_PARTY, add_passkey, outcome, reauth, use_passkey
from tests.support.store.world import VISITOR, World, every_key

pytestmark = pytest.mark.gen_test(timeout=60)

SECURITY = "/account/security"
NEW_PASSWORD = "another horse battery"
FORMS: dict[str, tuple[str, str, dict[str, str]]] = {
    "a change of password": (SECURITY, SECURITY, {"new_password": NEW_PASSWORD}),
    "a change of address": ("/account/email", "/account/email", {"email": "new@example.com"}),
    "to confirm": (SECURITY, f"{SECURITY}/confirm", {}),
    "the end of the account": ("/account/delete", "/account/delete", {"email": EMAIL}),
}


async def type_password(browser: Browser, form: str, password: str) -> HTTPResponse:
    page, action, fields = FORMS[form]
    known = fields_of(await browser.get(page), "/signout")
    fields = {**fields, "password": password, "current_password": password, "_xsrf": known["_xsrf"]}
    return await browser.send(action, "POST", form=fields)


@pytest.mark.parametrize("form", FORMS)
async def test_failed_sign_ins_of_strangers_do_not_block_the_form(service: Service, form: str) -> None:
    ada = await service.signed_in()
    for _ in range(25):
        await service.browser().sign_in(EMAIL, "wrong horse battery")
    assert (await service.browser().sign_in()).code == 429
    assert (await type_password(ada, form, "wrong horse battery")).code == 400
    assert (await type_password(ada, form, PASSWORD)).code in (200, 303)


async def test_guesses_in_one_session_do_not_block_another(service: Service) -> None:
    ada, thief = await service.signed_in(), await service.signed_in()
    for _ in range(OWN_PASSWORD.limit):
        assert (await type_password(thief, "to confirm", "wrong horse battery")).code == 400
    assert (await type_password(thief, "to confirm", PASSWORD)).code == 429
    assert (await type_password(ada, "to confirm", PASSWORD)).code == 303


async def test_guesses_with_a_stolen_cookie_appear_hourly_in_the_activity(service: Service, clock: FakeClock) -> None:
    ada, thief = await service.signed_in(), await service.signed_in()
    audit = keys.person(service.ada)["audit"]

    async def lines() -> int:
        kept: Any = await service.store.client.get(audit)
        return int(kept.count(b" password_mistyped "))

    for _ in range(OWN_PASSWORD.limit):
        await type_password(thief, "to confirm", "wrong horse battery")
    assert await lines() == 1
    assert says(await ada.get(SECURITY), "Wrong password entered while signed in")
    await type_password(ada, "to confirm", "wrong horse battery")
    assert await lines() == 2, "the owner's own mistake hides no thief"
    clock.advance(MISTYPED.period / 1000)
    await type_password(thief, "a change of address", "wrong horse battery")
    assert await lines() == 3


async def test_an_ended_session_leaves_no_activity_line(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await memory_store.people.delete(world.user)
    with pytest.raises(SignedOut):
        await memory_store.sessions.mistyped(world.session, VISITOR)
    assert not [key for key in await every_key(memory_store.client) if world.user.encode() in key]


async def test_a_persons_sessions_share_a_limit(memory_store: Store) -> None:
    world, admitted = await World.make(memory_store), 0
    for number in range(OWN_PASSWORDS.limit + 10):
        with suppress(Refused):
            await memory_store.limits.own_password(world.user, f"session{number % 10}")
            admitted += 1
    assert admitted == OWN_PASSWORDS.limit


async def test_all_password_forms_share_a_count(service: Service) -> None:
    ada = await service.signed_in()
    for _ in range(OWN_PASSWORD.limit // len(FORMS)):
        for form in FORMS:
            assert (await type_password(ada, form, "wrong horse battery")).code == 400
    for form in FORMS:
        refused = await type_password(ada, form, PASSWORD)
        assert (refused.code, int(refused.headers["Retry-After"]) > 0) == (429, True)
    assert (await service.browser().sign_in()).code == 303, "signing in counts apart"


async def test_the_password_pool_checks_one_form_per_person_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasher, running, most = service.store.hasher, 0, 0
    sessions = [await service.signed_in() for _ in range(2)]

    async def counted(verify: Callable[..., Awaitable[bool]], *args: Any, **known: bool) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return await verify(*args, **known)
        finally:
            running -= 1

    monkeypatch.setattr(hasher, "verify", partial(counted, hasher.verify))
    tries = [type_password(one, form, "wrong horse battery") for one in sessions for form in FORMS]
    assert {answer.code for answer in await asyncio.gather(*tries)} == {400}
    assert most == 1


@pytest.mark.parametrize("form", FORMS)
async def test_an_ended_session_does_not_count(service: Service, form: str) -> None:
    ada, thief = await service.signed_in(), await service.signed_in()
    xsrf = fields_of(await thief.get(SECURITY), "/signout")["_xsrf"]
    session = service.store.sessions.open(ada.cookies["latchkey_session"])
    assert session is not None
    await service.store.sessions.end_others(session, VISITOR)
    _, action, fields = FORMS[form]
    for _ in range(OWN_PASSWORD.limit + 1):
        fields = {**fields, "password": "x", "current_password": "x", "_xsrf": xsrf}
        assert (await thief.send(action, "POST", form=fields)).code == 303
    assert (await type_password(ada, "to confirm", PASSWORD)).code == 303


async def answer_in(world: World, device: Authenticator, place: str, app: str = "", **lies: object) -> object:
    """A passkey's answer in a form that accepts it instead of a password."""
    store, session = world.store, world.session
    options = {
        "to confirm": lambda: store.reauth.challenge(session),
        "the end of the account": lambda: store.account_deletion.challenge(session),
        "the end of an app": lambda: store.app_ending.challenge(session, app),
    }
    challenge, allowed = await options[place]()
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed), **lies))
    shown = (RELYING_PARTY, challenge, answer, VISITOR)
    if place == "the end of the account":
        return await store.account_deletion.with_passkey(session, world.email, *shown)
    if place == "the end of an app":
        return await store.app_ending.with_passkey(session, app, OWN["name"], *shown)
    return await store.reauth.with_passkey(session, *shown, moved=False)


WRONG: dict[str, dict[str, object]] = {
    "a bad signature": {"signature": b"\x30\x00"},
    "an unknown credential": {"credential": "AAAA"},
    "another challenge": {"challenge": "AAAA"},
}


@pytest.mark.parametrize("place", ["to confirm", "the end of the account", "the end of an app"])
@pytest.mark.parametrize("wrong", WRONG)
async def test_wrong_passkeys_count_like_wrong_passwords(memory_store: Store, place: str, wrong: str) -> None:
    world = await World.make(memory_store)
    device, app = await add_passkey(world), await own_app(world)
    for _ in range(OWN_PASSWORD.limit):
        assert await outcome(answer_in(world, device, place, app, **WRONG[wrong])) == "passkey"
    assert await outcome(answer_in(world, device, place, app)) == "rate_limited"
    assert await outcome(reauth(world)) == "rate_limited"
    other = memory_store.sessions.open(await use_passkey(world, device))
    assert other is not None
    world.session = other
    assert await outcome(answer_in(world, device, place, app)) == "in"


async def test_a_correct_passkey_does_not_count(store: Store) -> None:
    world = await World.make(store)
    device = await add_passkey(world)
    window = set(own_windows(world.user, world.session.session_id).values())
    await store.client.delete(*window)
    for _ in range(OWN_PASSWORD.limit + 1):
        assert await outcome(answer_in(world, device, "to confirm")) == "in"
    assert not [key for key in await every_key(store.client) if key.decode() in window]


async def test_an_unchecked_passkey_does_not_count(memory_store: Store) -> None:
    world = await World.make(memory_store)
    device = await add_passkey(world)
    memory_store.checks.close()
    for _ in range(OWN_PASSWORD.limit + 1):
        assert await outcome(answer_in(world, device, "to confirm")) == "temporarily_unavailable"


async def test_concurrent_passwords_each_count(store: Store) -> None:
    world = await World.make(store)
    tries = [store.limits.own_password(world.user, "a session") for _ in range(OWN_PASSWORD.limit + 10)]
    found = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, Refused) for one in found) == 10
