"""Second step, passkeys and devices as a browser meets them."""

from __future__ import annotations

import html
import json
import logging
import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.agents import device_words
from handlers.site import Site
from store import keys
from store.totp import STEP, code_at, in_base32, read_typed
from tests.authenticator import Authenticator
from tests.driver import EMAIL, PASSWORD, Browser, Service, fields_of, json_of
from tests.engines import FakeClock
from tests.factoring import MARGIN

pytestmark = pytest.mark.gen_test(timeout=60)

SECURITY = "/account/security"
CONFIRM = f"{SECURITY}/confirm"
APP = f"{SECURITY}/authenticator"
PASSKEYS = f"{SECURITY}/passkeys"


def text_of(page: HTTPResponse) -> str:
    """What can be read on a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page.body.decode())).split())


def says(page: HTTPResponse, words: str) -> bool:
    return words in text_of(page)


def recovery_codes(page: HTTPResponse) -> list[str]:
    """The codes on the page that shows them."""
    return re.findall(r"<code>([a-z2-7-]{19})</code>", page.body.decode())


class Person:
    """Ada with her browser, her authenticator app and her passkey."""

    def __init__(self, service: Service, browser: Browser) -> None:
        self.service = service
        self.browser = browser
        self.secret = b""
        self.codes: list[str] = []
        self.device = Authenticator(service.base_url)

    @classmethod
    async def arrive(cls, service: Service) -> Person:
        return cls(service, await service.signed_in())

    async def add_app(self) -> HTTPResponse:
        page = await self.browser.get(APP)
        sealed = fields_of(page, APP)["secret"]
        self.secret = self.service.store.factors.open_secret(self.service.ada, sealed)
        done = await self.browser.submit(page, APP, code=await self.code(-1))
        self.codes = recovery_codes(done)
        return done

    async def code(self, beside: int = 0) -> str:
        seconds, _ = await self.service.store.client.time()
        return code_at(self.secret, (seconds * 1000 + MARGIN) // STEP + beside)

    async def confirm(self, code: str = "") -> HTTPResponse:
        """Shows again who she is."""
        page = await self.browser.get(SECURITY)
        return await self.browser.submit(page, CONFIRM, password=PASSWORD, code=code)

    async def options(self, path: str, browser: Browser | None = None, page: str = SECURITY) -> dict[str, Any]:
        """What the page's script fetches."""
        browser = browser or self.browser
        shown = await browser.get(page)
        xsrf = fields_of(shown, path.removesuffix("/options"))["_xsrf"]
        answer = await browser.send(path, "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"})
        assert answer.code == 200, answer.body
        options: dict[str, Any] = json_of(answer)["publicKey"]
        return options

    async def add_passkey(self, name: str = "My phone") -> HTTPResponse:
        if 'data-passkey="create"' not in (await self.browser.get(SECURITY)).body.decode():
            await self.confirm(self.codes.pop())
        options = await self.options(f"{PASSKEYS}/options")
        page = await self.browser.get(SECURITY)
        return await self.browser.submit(page, PASSKEYS, credential=self.device.create(options), name=name)

    async def half(self, next: str = "/account") -> Browser:
        """Another browser, in which the password was right."""
        browser = self.service.browser()
        answer = await browser.sign_in(next=next)
        assert answer.headers["Location"].startswith("/signin/second?next=")
        return browser


async def test_signing_in_with_an_app_takes_the_password_and_a_code(service: Service) -> None:
    ada = await Person.arrive(service)
    done = await ada.add_app()
    assert done.code == 200
    assert len(set(ada.codes)) == 10
    assert says(done, "they are shown only now")

    browser = service.browser()
    answer = await browser.sign_in(next="/account/apps")
    assert (answer.code, answer.headers["Location"]) == (303, "/signin/second?next=%2Faccount%2Fapps")
    assert "latchkey_session" not in browser.cookies
    assert (await browser.get("/account")).code == 303, "half a sign-in opens nothing"
    page = await browser.get(answer.headers["Location"])
    assert says(page, "Code from your authenticator app")
    wrong = await browser.submit(page, "/signin/second", code="000000")
    assert (wrong.code, says(wrong, "That code is not right")) == (400, True)
    answer = await browser.submit(wrong, "/signin/second", code=await ada.code())
    assert (answer.code, answer.headers["Location"]) == (303, "/account/apps")
    assert "latchkey_half" not in browser.cookies
    assert (await browser.get("/account")).code == 200


async def test_a_recovery_code_takes_the_place_of_the_app(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    page = await browser.get("/signin/second")
    answer = await browser.submit(page, "/signin/second", code=f" {ada.codes[0].upper()} ")
    assert (answer.code, answer.headers["Location"]) == (303, "/")
    again = await ada.half()
    assert (await again.submit(await again.get("/signin/second"), "/signin/second", code=ada.codes[0])).code == 400


async def test_whoever_is_somebody_else_goes_on_to_the_same_place(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = service.browser()
    await browser.sign_in(next="/account/apps?x=1")
    page = await browser.get("/signin/second?next=%2Faccount%2Fapps%3Fx%3D1")
    assert 'href="/signin?next=%2Faccount%2Fapps%3Fx%3D1">Sign in as somebody else' in page.body.decode()


async def test_nothing_tells_of_a_second_step_before_the_password_was_right(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await Person.arrive(service)
    await ada.add_app()
    pages = [await service.browser().sign_in(email, "wrong horse battery") for email in (EMAIL, "grace@example.com")]
    same = [re.sub(r'(value|name)="[^"]*"', "", page.body.decode()) for page in pages]
    assert same[0] == same[1]
    assert [page.code for page in pages] == [400, 400]
    assert not any("half" in line for page in pages for line in page.headers.get_list("Set-Cookie"))


async def test_the_second_step_without_a_first_leads_to_the_password(service: Service) -> None:
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


async def test_half_a_sign_in_and_challenges_stay_with_the_browser_for_five_minutes(service: Service) -> None:
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


async def test_a_sign_in_over_another_persons_session_ends_that(service: Service) -> None:
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


async def test_one_persons_code_is_not_anothers(service: Service) -> None:
    await service.add_person("grace@example.com")
    ada = await Person.arrive(service)
    await ada.add_app()
    grace = Person(service, await service.signed_in("grace@example.com"))
    page = await grace.browser.get(APP)
    refused = await grace.browser.submit(page, APP, secret=service.store.factors.new_secret(service.ada), code="000000")
    assert refused.code == 400
    browser = await ada.half()
    page = await browser.get("/signin/second")
    assert (await browser.submit(page, "/signin/second", code=await ada.code(-3))).code == 400


async def test_too_late_for_the_second_step(clock: FakeClock, service: Service) -> None:
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
async def test_the_second_step_leads_nowhere_else(service: Service, target: str) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half(next=target)
    page = await browser.get("/signin/second")
    answer = await browser.submit(page, "/signin/second", next=target, code=await ada.code())
    assert answer.headers["Location"] == "/"


@pytest.mark.trap(22)
@pytest.mark.parametrize(
    "path",
    [
        *("/signin/second", "/signin/second/options", "/signin/passkey", "/signin/passkey/options", APP, PASSKEYS),
        *(f"{APP}/remove", f"{SECURITY}/recovery", f"{PASSKEYS}/options", f"{PASSKEYS}/remove", f"{PASSKEYS}/rename"),
        *(f"{CONFIRM}", f"{CONFIRM}/options", f"{SECURITY}/sessions/end", f"{SECURITY}/sessions/end-others"),
    ],
)
async def test_another_site_can_send_none_of_the_forms(service: Service, path: str) -> None:
    ada = await Person.arrive(service)
    answer = await ada.browser.send(path, "POST", form={"code": "1"}, headers={"Sec-Fetch-Mode": "navigate"})
    assert answer.code == 403
    xsrf = fields_of(await ada.browser.get(SECURITY), SECURITY)["_xsrf"]
    form, headers = {"_xsrf": xsrf, "code": "1"}, {"Origin": "https://evil.example"}
    assert (await ada.browser.send(path, "POST", form=form, headers=headers)).code == 403


async def test_the_app_goes_through_sign_in_and_second_step_to_its_consent(service: Service) -> None:
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
    assert answer.headers["Location"] == target
    assert (await browser.get(target)).code == 200


async def test_a_session_is_a_new_one_after_the_second_step(service: Service) -> None:
    """RFC 9700 4.7: what the browser had before ends."""
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


async def test_each_change_takes_the_password_and_a_code(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    page = await ada.browser.get(SECURITY)
    for password, code in (("wrong", await ada.code()), (PASSWORD, "000000"), ("", ada.codes[0]), (PASSWORD, "")):
        refused = await ada.browser.submit(page, CONFIRM, password=password, code=code)
        assert (refused.code, says(refused, "not right")) == (400, True)
    before = ada.browser.cookies["latchkey_session"]
    assert (await ada.confirm(await ada.code())).headers["Location"] == f"{SECURITY}?confirmed"
    assert ada.browser.cookies["latchkey_session"] != before
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{APP}/remove")
    assert answer.headers["Location"] == "/account/security?app-removed"
    assert (await service.browser().sign_in()).headers["Location"] == "/"


async def test_whoever_has_the_session_and_the_password_takes_no_second_step_away(
    clock: FakeClock, service: Service
) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    for seconds in (0, 601):  # in a session that has just begun, too
        clock.advance(seconds)
        xsrf = fields_of(await ada.browser.get(SECURITY), SECURITY)["_xsrf"]
        known = {"_xsrf": xsrf, "password": PASSWORD, "credential": "AAAA"}
        await ada.browser.send(CONFIRM, "POST", form=known | {"credential": ""})
        for path in (f"{SECURITY}/recovery", f"{PASSKEYS}/remove", f"{PASSKEYS}/options", f"{APP}/remove"):
            refused = await ada.browser.send(path, "POST", form=known, headers={"Accept": "text/html"})
            assert (refused.code, says(refused, "Confirm first that it is you")) == (403, True), path
    assert (await service.browser().sign_in()).headers["Location"].startswith("/signin/second")


async def test_a_passkey_confirms_each_change(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    options = await ada.options(f"{CONFIRM}/options")
    page = await ada.browser.get(SECURITY)
    lie = await ada.browser.submit(page, CONFIRM, credential=ada.device.get(options, signature=b"0" * 70))
    assert (lie.code, says(lie, "That passkey could not be used here")) == (400, True)
    broken = await ada.browser.submit(page, CONFIRM, credential="{}")
    assert (broken.code, says(broken, "That passkey could not be used here")) == (400, True)
    options = await ada.options(f"{CONFIRM}/options")
    answer = await ada.browser.submit(page, CONFIRM, credential=ada.device.get(options))
    assert answer.headers["Location"] == f"{SECURITY}?confirmed"
    page = await ada.browser.get(SECURITY)
    renewed = await ada.browser.submit(page, f"{SECURITY}/recovery")
    assert says(renewed, "they are shown only now")
    assert (await ada.browser.submit(page, f"{SECURITY}/recovery")).code == 403, "it is good for one change"


async def test_whoever_signed_in_with_the_last_recovery_code_needs_the_password_alone(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    digests = keys.person(service.ada)["recovery"]
    for code in ada.codes[1:]:
        await service.store.client.srem(digests, read_typed(code, None, 0).digest)
    ada.browser = await ada.half()
    page = await ada.browser.get("/signin/second")
    assert (await ada.browser.submit(page, "/signin/second", code=ada.codes[0])).code == 303
    page = await ada.browser.get(SECURITY)
    assert says(page, "You signed in with your last recovery code.")
    assert "confirm-code" not in page.body.decode()
    assert (await ada.confirm()).code == 303
    answer = await ada.browser.submit(await ada.browser.get(SECURITY), f"{APP}/remove")
    assert answer.headers["Location"] == "/account/security?app-removed"


async def test_ten_minutes_after_the_sign_in_the_password_is_asked_again(clock: FakeClock, service: Service) -> None:
    ada = await Person.arrive(service)
    stale = await ada.browser.get(APP)
    clock.advance(601)
    page = await ada.browser.get(SECURITY)
    assert says(page, "Confirm that it is you")
    assert "confirm-code" not in page.body.decode()
    assert (await ada.browser.get(APP)).code == 403
    assert (await ada.browser.submit(stale, APP, code="000000")).code == 400
    wrong = await ada.browser.submit(page, CONFIRM, password="wrong")
    assert (wrong.code, says(wrong, "The password is not right")) == (400, True)
    xsrf = fields_of(page, SECURITY)["_xsrf"]
    refused = await ada.browser.send(
        f"{PASSKEYS}/options", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
    )
    assert (refused.code, json_of(refused)["error"]) == (403, "access_denied")
    answer = await ada.confirm()
    assert answer.headers["Location"] == "/account/security?confirmed"
    assert (await ada.add_app()).code == 200


async def test_a_wrong_first_code_shows_the_same_secret_again(service: Service) -> None:
    ada = await Person.arrive(service)
    page = await ada.browser.get(APP)
    refused = await ada.browser.submit(page, APP, code="000000")
    assert refused.code == 400
    assert fields_of(refused, APP)["secret"] == fields_of(page, APP)["secret"]
    broken = await ada.browser.submit(page, APP, secret="made up", code="000000")
    assert broken.code == 400
    assert "<svg" in page.body.decode()
    assert says(page, "Open your app on this device")


async def test_a_passkey_is_added_and_signs_in_alone(service: Service) -> None:
    ada = await Person.arrive(service)
    done = await ada.add_passkey("Phone <b>")
    assert (done.code, says(done, "Your passkey was added.")) == (200, True)
    page = await ada.browser.get(SECURITY)
    assert "Phone &lt;b&gt;" in page.body.decode()

    browser = service.browser()
    options = await ada.options("/signin/passkey/options", browser, "/signin?next=/account")
    assert options["allowCredentials"] == []
    form = await browser.get("/signin?next=/account")
    answer = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert (answer.code, answer.headers["Location"]) == (303, "/account")
    assert (await browser.get("/account")).code == 200
    again = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert again.code == 403, "the XSRF token of before is gone"
    form = await browser.get("/signin")
    again = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert (again.code, says(again, "Try again")) == (400, True)


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


@pytest.mark.parametrize("credential", ["", "null", "{}", "[" * 5_000, '{"id":"AAAA","response":{}}'])
async def test_broken_answers_are_refused_on_the_page(service: Service, credential: str) -> None:
    ada = await Person.arrive(service)
    page = await service.browser().get("/signin")
    assert 'data-passkey="get"' in page.body.decode()
    browser = service.browser()
    page = await browser.get("/signin")
    assert (await browser.submit(page, "/signin/passkey", credential=credential)).code == 400
    page = await ada.browser.get(SECURITY)
    assert (await ada.browser.submit(page, PASSKEYS, credential=credential)).code == 400


async def test_a_passkey_is_renamed_and_signs_in_as_before(service: Service, clock: FakeClock) -> None:
    ada = await Person.arrive(service)
    ada.codes = recovery_codes(await ada.add_passkey("My phone"))
    await ada.confirm(ada.codes.pop())
    rename = f"{PASSKEYS}/rename"

    async def send(name: str) -> HTTPResponse:
        return await ada.browser.submit(await ada.browser.get(SECURITY), rename, name=name)

    answer = await send(f"  Old   phone {'x' * 80}")
    assert answer.headers["Location"] == "/account/security?passkey-renamed"
    page = await ada.browser.get("/account/security?passkey-renamed")
    assert says(page, "That passkey has another name now.")
    assert says(page, f"Old phone {'x' * 50} ")
    assert not says(page, "My phone")
    assert says(page, "Passkey renamed")
    empty = await send(" ")
    assert (empty.code, says(empty, "Type a name for the passkey.")) == (400, True)
    fields = {**fields_of(page, rename), "credential": "AAAA", "name": "x"}
    assert (await ada.browser.send(rename, "POST", form=fields)).code == 404

    half = await ada.half()
    options = await ada.options("/signin/second/options", half, "/signin/second")
    signed = ada.device.get(options)
    done = await half.submit(await half.get("/signin/second"), "/signin/second", credential=signed)
    assert done.code == 303
    clock.advance(11 * 60)
    fields["credential"] = ada.device.credential
    assert (await ada.browser.send(rename, "POST", form=fields)).code == 403, "only who proved it is them a moment ago"


async def test_a_passkey_is_removed(service: Service) -> None:
    ada = await Person.arrive(service)
    ada.codes = recovery_codes(await ada.add_passkey())
    await ada.confirm(ada.codes.pop())
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{PASSKEYS}/remove")
    assert answer.headers["Location"] == "/account/security?passkey-removed"
    assert says(await ada.browser.get(answer.headers["Location"]), "That passkey was removed.")
    assert (await ada.browser.submit(page, f"{PASSKEYS}/remove")).code == 404


async def test_scripts_run_only_on_the_pages_that_have_one(service: Service) -> None:
    ada = await Person.arrive(service)
    for path, runs in (("/account", False), (SECURITY, True), ("/account/apps", False)):
        policy = (await ada.browser.get(path)).headers["Content-Security-Policy"]
        assert ("script-src 'self'" in policy) is runs
        assert "unsafe" not in policy
    for path, runs in (("/signin", True), ("/signup", False), ("/", False)):
        policy = (await service.browser().get(path)).headers["Content-Security-Policy"]
        assert ("script-src 'self'" in policy) is runs


async def test_devices_are_listed_in_words_and_signed_out(service: Service) -> None:
    ada = await Person.arrive(service)
    phone = service.browser()
    phone.agent = "Mozilla/5.0 (Android 14; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0"
    await phone.sign_in()
    page = await ada.browser.get(SECURITY)
    assert says(page, "Firefox on Android")
    assert text_of(page).count("This one") == 1
    answer = await ada.browser.submit(page, f"{SECURITY}/sessions/end")
    assert answer.headers["Location"] == "/account/security?ended"
    assert (await phone.get("/account")).code == 303
    for session in ("", "x", "A" * 22 + "'", fields_of(page, f"{SECURITY}/sessions/end")["session"][:-1]):
        assert (await ada.browser.submit(page, f"{SECURITY}/sessions/end", session=session)).code == 404


async def test_everywhere_else_is_signed_out_in_one_click(service: Service) -> None:
    ada = await Person.arrive(service)
    others = [await service.signed_in() for _ in range(3)]
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{SECURITY}/sessions/end-others")
    assert answer.headers["Location"] == "/account/security?others-ended"
    assert [(await other.get("/account")).code for other in others] == [303] * 3
    assert (await ada.browser.get("/account")).code == 200


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36",
            "Chrome on Windows",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36 Edg/130.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605 (KHTML, like Gecko) Version/17.5 "
            "Mobile/15E148 Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605 Version/17 Safari/605", "Safari on a Mac"),
        ("curl/8.5.0", "curl"),
        ("Mozilla/5.0 (X11; Linux)", "A browser on Linux"),
        ("python-httpx/0.27.0", "python-httpx/0.27.0"),
        ("\x1b[31mred " + "x" * 100, "[31mred " + "x" * 51),
        ("", "An unknown device"),
        ("\u202e" * 200, "An unknown device"),
    ],
)
async def test_a_device_in_words(agent: str, words: str) -> None:
    assert device_words(agent) == words


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


async def test_wrong_codes_end_in_a_refusal_for_a_while(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    browser = await ada.half()
    page = await browser.get("/signin/second")
    for _ in range(10):
        assert (await browser.submit(page, "/signin/second", code="000000")).code == 400
    refused = await browser.submit(page, "/signin/second", code=await ada.code())
    assert refused.code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert says(await ada.browser.get(SECURITY), "Several wrong codes, with the right password")


class TestWithoutAName:
    """Where the server is reached at an address that is no name."""

    @pytest.fixture
    def site(self, memory_store: Any) -> Site:
        return Site(memory_store, "http://127.0.0.1:8080")

    async def test_passkeys_are_not_offered_and_the_page_says_why(self, service: Service, base_url: str) -> None:
        service.base_url = base_url
        ada = Person(service, Browser(base_url))
        await ada.browser.sign_in()
        page = await ada.browser.get(SECURITY)
        assert says(page, "Passkeys do not work here")
        xsrf = fields_of(page, SECURITY)["_xsrf"]
        for path in ("/signin/passkey", "/signin/passkey/options", PASSKEYS, f"{PASSKEYS}/options"):
            assert (await ada.browser.send(path, "POST", form={"_xsrf": xsrf})).code == 400
        assert "passkey" not in (await Browser(base_url).get("/signin")).body.decode()
        assert (await ada.add_app()).code == 200
