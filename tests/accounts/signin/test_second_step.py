"""The second step of a sign-in over HTTP."""

from __future__ import annotations

import json
import logging
import re

import pytest

from store.accounts.signin.totp import in_base32
from tests.support.browser.second_factors import APP, SECURITY, Person, says
from tests.support.browser.signup import cookies_of
from tests.support.http.driver import EMAIL, Service, fields_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_signing_in_with_an_app_takes_the_password_and_a_code(service: Service) -> None:
    ada = await Person.arrive(service)
    done = await ada.add_app()
    assert done.code == 200
    assert len(set(ada.codes)) == 10
    assert says(done, "we show them only once")

    browser = service.browser()
    answer = await browser.sign_in(next="/account/apps")
    assert (answer.code, answer.headers["Location"]) == (303, "/signin/second?next=%2Faccount%2Fapps&keep=1")
    assert "latchkey_session" not in browser.cookies
    assert (await browser.get("/account")).code == 303, "half a sign-in opens nothing"
    page = await browser.get(answer.headers["Location"])
    assert says(page, "Code from your authenticator app")
    wrong = await browser.submit(page, "/signin/second", code="000000")
    assert (wrong.code, says(wrong, "That code is wrong")) == (400, True)
    answer = await browser.submit(wrong, "/signin/second", code=await ada.code())
    assert (answer.code, answer.headers["Location"]) == (303, "/account/apps")
    assert "expires" in cookies_of(answer)["latchkey_session"], "the wish to stay signed in reached the session"
    assert "latchkey_half" not in browser.cookies
    assert (await browser.get("/account")).code == 200


async def test_a_recovery_code_takes_the_place_of_the_app(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    page = await browser.get("/signin/second")
    answer = await browser.submit(page, "/signin/second", code=f" {ada.codes[0].upper()} ")
    assert (answer.code, answer.headers["Location"]) == (303, "/account")
    again = await ada.half()
    assert (await again.submit(await again.get("/signin/second"), "/signin/second", code=ada.codes[0])).code == 400


async def test_another_person_can_sign_in_to_the_same_target(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = service.browser()
    await browser.sign_in(next="/account/apps?x=1")
    page = await browser.get("/signin/second?next=%2Faccount%2Fapps%3Fx%3D1")
    assert 'href="/signin?next=%2Faccount%2Fapps%3Fx%3D1">Sign in with another account' in page.body.decode()


async def test_the_second_step_is_not_revealed_before_a_correct_password(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await Person.arrive(service)
    await ada.add_app()
    pages = [await service.browser().sign_in(email, "wrong horse battery") for email in (EMAIL, "grace@example.com")]
    same = [re.sub(r'(value|name)="[^"]*"', "", page.body.decode()) for page in pages]
    assert same[0] == same[1]
    assert [page.code for page in pages] == [400, 400]
    assert not any("half" in line for page in pages for line in page.headers.get_list("Set-Cookie"))


async def test_the_second_step_alone_redirects_to_the_password(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    for half in (None, "made up", ada.browser.cookies["latchkey_session"]):
        browser = service.browser()
        if half:
            browser.cookies["latchkey_half"] = half
        answer = await browser.get("/signin/second?next=/account")
        assert (answer.code, answer.headers["Location"]) == (303, "/signin?late=1&next=%2Faccount")
        xsrf = fields_of(await browser.get("/signin"), "/signin")["_xsrf"]
        answer = await browser.send("/signin/second", "POST", form={"_xsrf": xsrf, "code": await ada.code()})
        assert (answer.code, answer.headers["Location"]) == (303, "/signin?late=1&next=%2F")
        answer = await browser.send("/signin/second/options", "POST", form={"_xsrf": xsrf})
        assert answer.code == 303


async def test_an_unfinished_sign_in_is_bound_to_the_browser_for_five_minutes(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = service.browser()
    answer = await browser.sign_in()
    xsrf = fields_of(await browser.get("/signin"), "/signin")["_xsrf"]
    options = await browser.send("/signin/passkey/options", "POST", form={"_xsrf": xsrf})
    for response, name in ((answer, "half"), (options, "challenge")):
        (cookie,) = (line for line in response.headers.get_list("Set-Cookie") if line.startswith(f"latchkey_{name}="))
        flags = {flag.strip() for flag in cookie.split(";")[1:]}
        assert flags == {"HttpOnly", "Max-Age=300", "Path=/", "SameSite=Lax"}


async def test_a_sign_in_ends_another_persons_session(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await service.signed_in("grace@example.com")
    graces = browser.cookies["latchkey_session"]
    await browser.sign_in()
    assert b"grace@example.com" in (await browser.get("/account")).body, "half a sign-in changes nothing"
    await browser.submit(await browser.get("/signin/second"), "/signin/second", code=await ada.code())
    assert EMAIL.encode() in (await browser.get("/account")).body
    other = service.browser()
    other.cookies["latchkey_session"] = graces
    assert (await other.get("/account")).code == 303


async def test_another_persons_code_is_refused(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await Person.arrive(service)
    await ada.add_app()
    grace = Person(service, await service.confirmed("grace@example.com"))
    page = await grace.browser.get(APP)
    refused = await grace.browser.submit(page, APP, secret=service.store.factors.new_secret(service.ada), code="000000")
    assert refused.code == 400
    browser = await ada.half()
    page = await browser.get("/signin/second")
    assert (await browser.submit(page, "/signin/second", code=await ada.code(-3))).code == 400


async def test_a_late_second_step_is_refused(clock: FakeClock, service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    page = await browser.get("/signin/second")
    clock.advance(301)
    answer = await browser.submit(page, "/signin/second", code=await ada.code())
    assert answer.headers["Location"] == "/signin?late=1&next=%2F"
    assert says(await browser.get(answer.headers["Location"]), "That took too long")


@pytest.mark.trap(17)
@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example"])
async def test_the_second_step_redirects_only_within_the_site(service: Service, target: str) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half(next=target)
    page = await browser.get("/signin/second")
    answer = await browser.submit(page, "/signin/second", next=target, code=await ada.code())
    assert answer.headers["Location"] == "/account"


async def test_authorization_goes_through_sign_in_and_second_step_to_consent(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = service.browser()
    url = service.web.authorize_url(prompt="login")
    page = await browser.get(url)
    target = fields_of(await browser.get(page.headers["Location"]), "/signin")["next"]
    answer = await browser.sign_in(next=target)
    page = await browser.get(answer.headers["Location"])
    assert "form-action" not in page.headers["Content-Security-Policy"], "the redirect to the app follows the form"
    answer = await browser.submit(page, "/signin/second", code=await ada.code())
    marked = answer.headers["Location"]
    assert marked.startswith(f"{target}&progress=")
    assert (await browser.get(marked)).code == 200


async def test_the_second_step_starts_a_new_session(service: Service) -> None:
    """RFC 9700 4.7: the browser's earlier session ends."""
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    first = await browser.submit(await browser.get("/signin/second"), "/signin/second", code=ada.codes[0])
    assert first.code == 303
    before = browser.cookies["latchkey_session"]
    await browser.sign_in()
    await browser.submit(await browser.get("/signin/second"), "/signin/second", code=ada.codes[1])
    assert browser.cookies["latchkey_session"] != before
    old = service.browser()
    old.cookies["latchkey_session"] = before
    assert (await old.get("/account")).code == 303


async def test_a_passkey_is_the_second_step(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    browser = await ada.half()
    page = await browser.get("/signin/second?next=/account")
    assert says(page, "Use your passkey")
    options = await ada.options("/signin/second/options", browser, "/signin/second?next=/account")
    assert [one["id"] for one in options["allowCredentials"]] == [ada.device.credential]
    wrong = await browser.submit(
        page, "/signin/second", credential=ada.device.get(options, origin="https://evil.example")
    )
    assert wrong.code == 400
    options = await ada.options("/signin/second/options", browser, "/signin/second?next=/account")
    answer = await browser.submit(page, "/signin/second", credential=ada.device.get(options))
    assert (answer.code, answer.headers["Location"]) == (303, "/account")


@pytest.mark.trap(24)
async def test_no_code_secret_or_cookie_is_logged(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ada = await Person.arrive(service)
    await ada.add_app()
    await ada.add_passkey()
    browser = await ada.half()
    half = browser.cookies["latchkey_half"]
    page = await browser.get("/signin/second")
    options = await ada.options("/signin/second/options", browser, "/signin/second")
    lie = ada.device.get(options, origin="https://evil.example")
    await browser.submit(page, "/signin/second", credential=lie)
    await browser.submit(page, "/signin/second", code="314159")
    code = await ada.code()
    assert (await browser.submit(page, "/signin/second", code=code)).code == 303
    said = caplog.text
    for secret in (
        half,
        options["challenge"],
        "314159",
        code,
        in_base32(ada.secret),
        *ada.codes,
        json_of_signature(lie),
    ):
        assert secret not in said


def json_of_signature(answer: str) -> str:
    """The signature in a passkey's answer."""
    found: str = json.loads(answer)["response"]["signature"]
    return found


async def test_wrong_codes_block_the_second_step_for_a_while(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    page = await browser.get("/signin/second")
    for _ in range(10):
        assert (await browser.submit(page, "/signin/second", code="000000")).code == 400
    refused = await browser.submit(page, "/signin/second", code=await ada.code())
    assert refused.code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert says(await ada.browser.get(SECURITY), "Several wrong codes after the correct password")
