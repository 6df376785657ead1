"""Changes of the second step over HTTP: forms, scripts of pages, and devices."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from handlers.core.devices import device_words
from store import keys
from store.accounts.signin.totp import read_typed
from tests.support.browser.pages import Page
from tests.support.browser.second_factors import APP, CONFIRM, PASSKEYS, SECURITY, Person, says
from tests.support.http.driver import EMAIL, PASSWORD, Service, fields_of, json_of, text_of
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.trap(22)
@each(
    "path",
    [
        *("/signin/second", "/signin/second/options", "/signin/passkey", "/signin/passkey/options", APP, PASSKEYS),
        *(f"{APP}/remove", f"{SECURITY}/recovery", f"{PASSKEYS}/options", f"{PASSKEYS}/remove", f"{PASSKEYS}/rename"),
        *(f"{CONFIRM}", f"{CONFIRM}/options", f"{SECURITY}/sessions/end", f"{SECURITY}/sessions/end-others"),
    ],
)
async def test_another_site_cannot_submit_the_forms(service: Service, path: str) -> None:
    ada = await Person.arrive(service)
    answer = await ada.browser.send(path, "POST", form={"code": "1"}, headers={"Sec-Fetch-Mode": "navigate"})
    assert answer.code == 403
    xsrf = fields_of(await ada.browser.get(SECURITY), SECURITY)["_xsrf"]
    form, headers = {"_xsrf": xsrf, "code": "1"}, {"Origin": "https://evil.example"}
    assert (await ada.browser.send(path, "POST", form=form, headers=headers)).code == 403


async def test_each_change_takes_the_password_and_a_code(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    page = await ada.browser.get(SECURITY)
    for password, code in (("wrong", await ada.code()), (PASSWORD, "000000"), ("", ada.codes[0]), (PASSWORD, "")):
        refused = await ada.browser.submit(page, CONFIRM, password=password, code=code)
        assert refused.code == 400
        assert says(refused, "Incorrect password.") or says(refused, "That code is wrong")
        wrong = [field.get("name") for field in Page(refused.body.decode()).all("input") if field.get("aria-invalid")]
        assert wrong == ["code" if says(refused, "That code is wrong") else "password"]
    before = ada.browser.cookies["latchkey_session"]
    assert (await ada.reauth(await ada.code())).headers["Location"] == f"{SECURITY}?confirmed"
    assert ada.browser.cookies["latchkey_session"] != before
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{APP}/remove")
    assert answer.headers["Location"] == "/account/security?app-removed"
    assert (await service.browser().sign_in()).headers["Location"] == "/account"


async def test_session_and_password_alone_cannot_remove_the_second_step(clock: FakeClock, service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    for seconds in (0, 601):  # in a session that has just begun, too
        clock.advance(seconds)
        xsrf = fields_of(await ada.browser.get(SECURITY), CONFIRM)["_xsrf"]
        known = {"_xsrf": xsrf, "password": PASSWORD, "credential": "AAAA"}
        await ada.browser.send(CONFIRM, "POST", form=known | {"credential": ""})
        for path in (f"{SECURITY}/recovery", f"{PASSKEYS}/remove", f"{PASSKEYS}/options", f"{APP}/remove"):
            refused = await ada.browser.send(path, "POST", form=known, headers={"Accept": "text/html"})
            assert (refused.code, says(refused, "Confirm it's you first")) == (403, True), path
    assert (await service.browser().sign_in()).headers["Location"].startswith("/signin/second")


async def test_recovery_codes_can_be_saved_as_a_file(service: Service) -> None:
    ada = await Person.arrive(service)
    page = await ada.add_app()
    link = next(link for link in Page(page.body.decode()).all("a") if "download" in link.attributes)
    kind, _, file = link.get("href").partition(",")
    assert kind == "data:text/plain;charset=utf-8"
    about, empty, *codes, end = unquote(file).split("\r\n")
    assert about.startswith(f"Recovery codes for {EMAIL} at Latchkey, created on ")
    assert (empty, codes, end) == ("", ada.codes, "")


async def test_sessions_of_one_device_are_listed_together_the_current_one_first(
    service: Service, clock: FakeClock
) -> None:
    ada = await Person.arrive(service)
    for agent in ("curl/8", ada.browser.agent, "curl/8"):
        clock.advance(60)
        other = service.browser()
        other.agent = agent
        await other.sign_in()
    page = await ada.browser.get(SECURITY)
    words = r"Testing/1\.0|curl|2 sessions|This session|signed in|Sign out\b(?! every)"
    listed = text_of(page).partition("Where you’re signed in")[2].partition("Recent activity")[0]
    ends = ["signed in", "Sign out"]
    here = ["Testing/1.0", "2 sessions", "This session", "signed in", *ends]
    assert re.findall(words, listed) == [*here, "curl", "2 sessions", *ends, *ends]


async def test_devices_of_one_name_are_told_apart(service: Service, clock: FakeClock) -> None:
    ada = await Person.arrive(service)
    for _ in range(2):
        clock.advance(60)
        await service.signed_in()
    page = Page((await ada.browser.get(SECURITY)).body.decode())
    names = {element.get("id"): " ".join(element.text.split()) for element in page.elements if element.get("id")}
    buttons = [button.get("aria-labelledby").split() for button in page.all("button") if button.get("aria-labelledby")]
    spoken = [" ".join(names[one] for one in ids) for ids in buttons]
    assert len(spoken) == len(set(spoken)) == 2
    assert all(name.startswith("Sign out ") and "signed in" in name for name in spoken)


async def test_after_the_last_recovery_code_the_password_is_enough(service: Service) -> None:
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
    assert (await ada.reauth()).code == 303
    answer = await ada.browser.submit(await ada.browser.get(SECURITY), f"{APP}/remove")
    assert answer.headers["Location"] == "/account/security?app-removed"


async def test_the_first_factor_needs_a_password_from_the_last_ten_minutes(clock: FakeClock, service: Service) -> None:
    ada = await Person.arrive(service)
    assert (await ada.browser.get(APP)).code == 403, "the sign-in of a moment ago is not enough"
    await ada.reauth()
    stale = await ada.browser.get(APP)
    clock.advance(601)
    page = await ada.browser.get(SECURITY)
    assert says(page, "Confirm it’s you")
    assert "confirm-code" not in page.body.decode()
    assert (await ada.browser.get(APP)).code == 403
    assert (await ada.browser.submit(stale, APP, code="000000")).code == 403, "before its code is looked at"
    wrong = await ada.browser.submit(page, CONFIRM, password="wrong")
    assert (wrong.code, says(wrong, "Incorrect password")) == (400, True)
    xsrf = fields_of(page, SECURITY)["_xsrf"]
    refused = await ada.browser.send(
        f"{PASSKEYS}/options", "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"}
    )
    assert (refused.code, json_of(refused)["error"]) == (403, "access_denied")
    answer = await ada.reauth()
    assert answer.headers["Location"] == "/account/security?confirmed"
    assert (await ada.add_app()).code == 200


async def test_a_wrong_first_code_shows_the_same_secret_again(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.reauth()
    page = await ada.browser.get(APP)
    refused = await ada.browser.submit(page, APP, code="000000")
    assert refused.code == 400
    assert fields_of(refused, APP)["secret"] == fields_of(page, APP)["secret"]
    broken = await ada.browser.submit(page, APP, secret="made up", code="000000")
    assert broken.code == 400
    assert "<svg" in page.body.decode()
    assert says(page, "Open your authenticator app on this device")


async def test_scripts_run_only_on_the_pages_that_have_one(service: Service) -> None:
    ada = await Person.arrive(service)
    for path, runs in (("/account", False), (SECURITY, True), ("/account/apps", True)):
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
    assert text_of(page).count("This session") == 1
    answer = await ada.browser.submit(page, f"{SECURITY}/sessions/end")
    assert answer.headers["Location"] == "/account/security?ended"
    assert (await phone.get("/account")).code == 303
    for session in ("", "x", "A" * 22 + "'", fields_of(page, f"{SECURITY}/sessions/end")["session"][:-1]):
        assert (await ada.browser.submit(page, f"{SECURITY}/sessions/end", session=session)).code == 404


async def test_one_click_signs_out_everywhere_else(service: Service) -> None:
    ada = await Person.arrive(service)
    others = [await service.signed_in() for _ in range(3)]
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{SECURITY}/sessions/end-others")
    assert answer.headers["Location"] == "/account/security?others-ended"
    assert [(await other.get("/account")).code for other in others] == [303] * 3
    assert (await ada.browser.get("/account")).code == 200


@each(
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
