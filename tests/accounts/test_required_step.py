"""People who must have a second step and have none set one up before their first session."""

from __future__ import annotations

import asyncio
import base64
import html
import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal
from urllib.parse import quote

import pytest
from tornado.httpclient import HTTPResponse

from store.accounts.signin.factors import Added
from store.accounts.signin.passkeys import encode, options_for_new, read_answer
from store.accounts.signin.required_step import Who
from store.accounts.signin.second_step import Half
from store.accounts.signin.sessions import SecondStepNeeded, SignedIn
from store.accounts.signin.totp import STEP, code_at
from store.lifetimes import CHALLENGE, SECOND_STEP_SETUP
from store.refused import Refused
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.second_factors import APP, Person, recovery_codes, says
from tests.support.http.driver import CALLBACK, EMAIL, PASSWORD, Browser, Service, fields_of, json_of
from tests.support.processes.engines import FakeClock
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import ORIGIN, RELYING_PARTY, arrival, link
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)
SETUP = "/signin/setup"
PASSKEY = f"{SETUP}/passkey"


async def sent_to_setup(
    service: Service, who: Who = "all", target: str = "/account/apps"
) -> tuple[Browser, HTTPResponse]:
    """A browser whose person gave the right password, and the page where they set a second step up."""
    service.store.sessions.required.who = who
    browser = service.browser()
    answer = await browser.sign_in(next=target)
    assert answer.headers["Location"].startswith(f"{SETUP}?next={quote(target, safe='')}"), answer.headers["Location"]
    return browser, await browser.get(answer.headers["Location"])


async def options_of(browser: Browser, page: HTTPResponse) -> dict[str, Any]:
    """What the script of the page asks for, to make a passkey."""
    form, headers = {"_xsrf": fields_of(page, PASSKEY)["_xsrf"]}, {"Accept": "application/json"}
    answer = await browser.send(f"{PASSKEY}/options", "POST", form=form, headers=headers)
    assert answer.code == 200, answer.body
    options: dict[str, Any] = json_of(answer)["publicKey"]
    return options


async def code_of(page: HTTPResponse, service: Service) -> str:
    """The code that an app shows for the key on a page."""
    found = re.search(r'<code class="key">([A-Z2-7 ]+)</code>', page.body.decode())
    assert found
    return code_at(base64.b32decode(found[1].replace(" ", "")), await service.store.apps.now() // STEP)


async def test_a_person_sets_the_second_step_up_and_goes_on(service: Service) -> None:
    browser, page = await sent_to_setup(service)
    assert says(page, "You need two-step verification")
    wrong = await browser.submit(page, SETUP, code="000000")
    assert (wrong.code, says(wrong, "That code is wrong")) == (400, True)
    done = await browser.submit(wrong, SETUP, code=await code_of(wrong, service))
    assert (done.code, says(done, "we show them only once")) == (200, True)
    assert 'href="/account/apps">I’ve saved them' in done.body.decode()
    codes = re.findall(r"<li><code>([a-z2-7-]+)</code></li>", done.body.decode())
    assert len(codes) == 10
    assert (await browser.get("/account")).code == 200
    assert "latchkey_half" not in browser.cookies
    # The session counts as one with a second step, and the next sign-in asks for it.
    security = await service.store.operator.security(service.ada)
    assert security.app_since
    again = await service.browser().sign_in()
    assert again.headers["Location"].startswith("/signin/second")
    events = [entry.event for entry in (await service.store.operator.find(service.ada)).activity]
    assert {"signed_in", "totp_enabled"} <= {*events}


@pytest.mark.parametrize(
    "path",
    [
        *("/account", "/account/security", APP, "/account/security/passkeys", "/account/apps", "/developer/apps"),
        *("/admin", "/device", "/account/credits", "/account/delete"),
    ],
)
async def test_half_a_sign_in_opens_no_page(service: Service, path: str) -> None:
    browser, _ = await sent_to_setup(service)
    assert "latchkey_session" not in browser.cookies
    stranger = await service.browser().get(path)
    answer = await browser.get(path)
    assert (answer.code, answer.headers.get("Location")) == (stranger.code, stranger.headers.get("Location"))
    # Nor does its text work as a session.
    browser.cookies["latchkey_session"] = browser.cookies["latchkey_half"]
    answer = await browser.get(path)
    assert (answer.code, answer.headers.get("Location")) == (stranger.code, stranger.headers.get("Location"))


async def test_half_a_sign_in_gives_no_app_a_code(service: Service) -> None:
    where = service.web.authorize_url()
    browser, page = await sent_to_setup(service, target=where)
    silent = await browser.get(f"{where}&prompt=none")
    assert "code=" not in silent.headers.get("Location", "")
    assert (await browser.get(where)).headers["Location"].startswith("/signin?")
    done = await browser.submit(page, SETUP, code=await code_of(page, service))
    assert f'href="{html.escape(where)}' in done.body.decode()
    assert (await browser.get(where)).code == 200, "the consent page"


@pytest.mark.parametrize("who", ["off", "owners"])
async def test_others_sign_in_as_before(service: Service, who: Literal["off", "owners"]) -> None:
    service.store.sessions.required.who = who
    assert (await service.browser().sign_in(next="/account")).headers["Location"] == "/account"


async def test_owners_of_apps_and_apis_must(service: Service) -> None:
    service.store.sessions.required.who = "owners"
    browser = service.browser()
    await browser.sign_in()
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    made = await service.store.owned.register(
        session, "a nonce", VISITOR, most=9, name="Mine", redirect_uris=(CALLBACK,), scopes=("profile",)
    )
    await sent_to_setup(service, "owners")
    assert made.registration.owner == service.ada

    async def owns(user: str) -> bool:
        return user == service.ada

    service.store.sessions.required.owns_api = owns
    assert await service.store.sessions.required.of(service.ada) == "all"
    assert await service.store.sessions.required.of("0" * 32) == "owners"


async def test_whoever_has_a_second_step_cannot_set_up_another(service: Service) -> None:
    browser, page = await sent_to_setup(service)
    code = await code_of(page, service)
    service.store.sessions.required.who = "off"
    ada = await Person.arrive(service)
    await ada.add_app()
    refused = await browser.submit(page, SETUP, code=code)
    assert (refused.code, "latchkey_session" in browser.cookies) == (400, False)
    half = await ada.half()
    assert (await half.get(SETUP)).headers["Location"].startswith("/signin?late=1")


async def test_a_late_or_forged_setup_begins_again(service: Service, clock: FakeClock) -> None:
    browser, page = await sent_to_setup(service)
    assert (await browser.submit(page, SETUP, secret="x", code="000000")).code == 400
    clock.advance(SECOND_STEP_SETUP / 1000 + 1)
    answer = await browser.submit(page, SETUP, code=await code_of(page, service))
    assert answer.headers["Location"].startswith("/signin?late=1")
    assert (await browser.get(SETUP)).headers["Location"].startswith("/signin?late=1")
    assert (await service.browser().get(SETUP)).headers["Location"].startswith("/signin?late=1")
    assert not (await service.store.operator.security(service.ada)).app_since


async def test_a_changed_password_ends_the_setup(service: Service) -> None:
    browser, page = await sent_to_setup(service)
    await service.store.operator.set_password(EMAIL, service.store.hasher.unusable())
    answer = await browser.submit(page, SETUP, code=await code_of(page, service))
    assert answer.headers["Location"].startswith("/signin?late=1")


async def test_a_person_sets_a_passkey_up_and_goes_on(service: Service) -> None:
    browser, page = await sent_to_setup(service)
    device = Authenticator(service.base_url)
    options = await options_of(browser, page)
    assert (options["user"]["name"], options["excludeCredentials"]) == (EMAIL, [])
    credential = device.create(options)
    lie = await browser.submit(page, PASSKEY, credential=device.create(options, origin="https://evil.example"))
    assert (lie.code, "latchkey_session" in browser.cookies) == (400, False)
    # The challenge was in a cookie, and a wrong answer uses it up.
    late = await browser.submit(lie, PASSKEY, credential=credential)
    assert (late.code, says(late, "That took too long")) == (400, True)
    done = await browser.submit(late, PASSKEY, credential=device.create(await options_of(browser, late)))
    assert (done.code, says(done, "Your passkey was added."), len(recovery_codes(done))) == (200, True, 10)
    assert 'href="/account/apps">I’ve saved them' in done.body.decode()
    assert (await browser.get("/account")).code == 200
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    row = await service.store.client.hget(session.keys()["session"], "method")
    assert row == b"pwd+passkey", "an app that demands a second step lets this session in"
    assert (await service.browser().sign_in()).headers["Location"].startswith("/signin/second")
    events = [entry.event for entry in (await service.store.operator.find(service.ada)).activity]
    assert {"signed_in", "passkey_added"} <= {*events}


async def test_nobody_without_half_a_sign_in_gets_options_for_a_passkey(service: Service) -> None:
    browser, page = await sent_to_setup(service)
    options = await options_of(browser, page)
    stranger = service.browser()
    form = await stranger.get("/signin")
    xsrf = fields_of(form, "/signin")["_xsrf"]
    refused = await stranger.send(
        f"{PASSKEY}/options", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
    )
    assert (refused.code, json_of(refused)["error"]) == (401, "login_required")
    # A challenge to use a passkey is none to add one, and none for a setup serves under Security.
    challenge = await service.store.second_step.challenge(None)
    browser.cookies["latchkey_challenge"] = challenge
    answer = Authenticator(service.base_url).create({**options, "challenge": encode(challenge.encode())})
    assert (await browser.submit(page, PASSKEY, credential=answer)).code == 400
    assert not (await service.store.operator.security(service.ada)).passkeys


async def test_a_new_person_sets_the_second_step_up_first(service: Service) -> None:
    service.store.sessions.required.who = "all"
    browser = service.browser()
    page = await browser.get("/signup")
    answer = await browser.submit(page, "/signup", email="new@example.com", name="New", password=PASSWORD)
    assert answer.headers["Location"].startswith(SETUP)
    assert "latchkey_session" not in browser.cookies


@pytest.mark.parametrize(
    ("own_step", "method", "who", "setup"),
    [
        pytest.param(True, "up", "all", True, id="ours"),
        pytest.param(True, "up+mfa", "all", True, id="ours, whatever the provider says"),
        pytest.param(False, "up+mfa", "all", False, id="the provider's"),
        pytest.param(False, "up", "all", True, id="the provider's, which it did not ask"),
        pytest.param(False, "up", "off", False, id="nobody's"),
        pytest.param(True, "up", "owners", False, id="owners alone"),
    ],
)
async def test_a_providers_second_step_counts_where_it_is_trusted(
    memory_store: Store, own_step: bool, method: str, who: Who, setup: bool
) -> None:
    w = await World.make(memory_store)
    await link(w)
    w.store.sessions.required.who = who
    arrived = arrival(f"sub-{w.user}")._replace(method=method)
    try:
        await w.store.upstream.sign_in(w.user, arrived, own_step, Visitor())
        needed = False
    except SecondStepNeeded as error:
        needed = error.setup
    assert needed == setup


@pytest.mark.parametrize("ways", ["app app", "passkey passkey", "passkey app"])
async def test_one_of_two_setups_at_once_counts(
    memory_store: Store, monkeypatch: pytest.MonkeyPatch, ways: str
) -> None:
    w = await World.make(memory_store)
    w.store.sessions.required.who = "all"
    second_step, calls = w.store.second_step, []
    for way in ways.split():
        with pytest.raises(SecondStepNeeded) as needed:
            await w.sign_in()
        half = second_step.open(needed.value.text)
        assert half
        calls.append(await finishing(w, half, way))

    async def now(half: Half) -> int:
        """As if both had found no second step before either set one up."""
        return await w.store.apps.now()

    monkeypatch.setattr(second_step, "_now_for_setup", now)
    found = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
    refused = [one for one in found if isinstance(one, Refused)]
    [(signed_in, added)] = [one for one in found if not isinstance(one, BaseException)]
    assert ([one.code for one in refused], len(added.codes), bool(signed_in.cookie)) == (["invalid_request"], 10, True)


Setup = Callable[[], Awaitable[tuple[SignedIn, Added]]]


async def finishing(w: World, half: Half, way: str) -> Setup:
    """The last call of a setup."""
    second_step = w.store.second_step
    if way == "passkey":
        challenge = await second_step.setup_challenge(half)
        options = options_for_new(RELYING_PARTY, "Latchkey", w.user, w.email, "Ada", challenge, [])
        answer = read_answer(Authenticator(ORIGIN).create(options))
        return lambda: second_step.set_up_passkey(half, RELYING_PARTY, challenge, answer, "My phone", VISITOR)
    sealed = await second_step.start_setup(half)
    code = code_at(second_step.open_secret(half, sealed), await w.store.apps.now() // STEP)
    return lambda: second_step.set_up(half, sealed, code, VISITOR)


async def test_a_challenge_of_the_setup_is_answered_once_and_soon(memory_store: Store, clock: FakeClock) -> None:
    w = await World.make(memory_store)
    w.store.sessions.required.who = "all"
    with pytest.raises(SecondStepNeeded) as needed:
        await w.sign_in()
    half = w.store.second_step.open(needed.value.text)
    assert half
    first, late = await finishing(w, half, "passkey"), await finishing(w, half, "passkey")
    await first()
    # An operator takes the passkey away, and somebody sends the same answer again.
    await w.store.operator.reset_factors(w.email)
    for call in (first, late):
        with pytest.raises(Refused) as refused:
            await call()
        assert refused.value.code == "access_denied"
        clock.advance(CHALLENGE / 1000 + 1)
