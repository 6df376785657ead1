"""Sign-up, sign-in, sign-out and the account pages over HTTP."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote, unquote

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.site import Site
from store.opened import Store
from tests.driver import EMAIL, NAME, PASSWORD, Browser, Service, fields_of, json_of
from tests.engines import FakeClock

NEW_PASSWORD = "another horse battery"
DAY = 86400


@pytest.fixture
def facts() -> dict[str, Any]:
    """What a test wants the server to be; parametrised where it matters."""
    return {}


@pytest.fixture
def site(memory_store: Store, base_url: str, facts: dict[str, Any]) -> Site:
    return Site(memory_store, **{"base_url": base_url, **facts})


@pytest.fixture
def service(io_loop: IOLoop, http_server: Any, site: Site, base_url: str) -> Service:
    """The service as reached in the test, which is not where it says it is when that is https."""
    made = Service(base_url, site.store)
    io_loop.run_sync(made.populate)
    return made


async def sign_up(browser: Browser, email: str, password: str = PASSWORD, name: str = "Grace", query: str = "") -> Any:
    """Through the sign-up page."""
    page = await browser.get("/signup" + query)
    return await browser.submit(page, "/signup", email=email, name=name, password=password)


async def signed_in_as(browser: Browser) -> str | None:
    """The e-mail address on the account page, or None where that leads to the sign-in page."""
    page = await browser.get("/account")
    if page.code == 303:
        assert page.headers["Location"] == "/signin?next=%2Faccount"
        return None
    found = re.search(r"<dt>E-mail</dt>\s*<dd>(\S+)", page.body.decode())
    assert page.code == 200
    assert found
    return found[1]


def cookies_of(response: HTTPResponse) -> dict[str, dict[str, str]]:
    """The cookies a response sets: name to attributes, with the value under the empty name."""
    found = {}
    for line in response.headers.get_list("Set-Cookie"):
        first, *rest = line.split(";")
        name, _, value = first.partition("=")
        attributes = {key.strip().lower(): text for key, _, text in (part.partition("=") for part in rest)}
        found[name] = {"": value, **attributes}
    return found


@pytest.mark.gen_test
async def test_sign_up_makes_an_account_and_signs_in(service: Service) -> None:
    browser = service.browser()
    response = await sign_up(browser, "grace@example.com")
    assert response.code == 303
    assert response.headers["Location"] == "/"
    assert await signed_in_as(browser) == "grace@example.com"
    other = service.browser()
    assert (await other.sign_in("grace@example.com")).code == 303
    assert await signed_in_as(other) == "grace@example.com"


@pytest.mark.gen_test
@pytest.mark.parametrize("typed", ["GRACE@Example.COM", "  grace@example.com ", "grace@EXAMPLE.com"])
async def test_one_address_is_one_account_however_it_is_typed(service: Service, typed: str) -> None:
    assert (await sign_up(service.browser(), "Grace@example.com")).code == 303
    taken = await sign_up(service.browser(), typed)
    assert taken.code == 400
    assert b"account with this e-mail address already" in taken.body
    browser = service.browser()
    assert (await browser.sign_in(typed)).code == 303
    assert await signed_in_as(browser) == "grace@example.com"


@pytest.mark.gen_test
@pytest.mark.trap(21)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"email": ""}, "e-mail", id="no address"),
        pytest.param({"email": "no address"}, "e-mail", id="no address at all"),
        pytest.param({"email": "a@" + "b" * 5000}, "254", id="an endless address"),
        pytest.param({"email": "a@b@c"}, "one @", id="two @"),
        pytest.param({"email": "a\u202eb@example.com"}, "e-mail", id="a character that turns the text around"),
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"name": "x" * 10_000}, "100", id="an endless name"),
        pytest.param({"name": "\u200b"}, "name", id="an invisible name"),
        pytest.param({"name": "a\u202eb"}, "direction", id="a name that turns the text around"),
        pytest.param({"password": ""}, "at least 10", id="no password"),
        pytest.param({"password": "short"}, "at least 10", id="a short password"),
        pytest.param({"password": "x" * 300}, "at most 256", id="an endless password"),
        pytest.param({"password": "password123"}, "first ones", id="a well-known password"),
        pytest.param({"password": "grace@example.com"}, "e-mail address", id="the address as password"),
    ],
)
async def test_what_cannot_be_an_account_is_said_on_the_form(
    service: Service, changes: dict[str, str], words: str
) -> None:
    browser = service.browser()
    page = await browser.get("/signup?next=%2Faccount")
    form = {"email": "grace@example.com", "name": "Grace <b>", "password": "secret horse battery", **changes}
    response = await browser.submit(page, "/signup", **form)
    text = response.body.decode()
    assert response.code == 400
    alert = re.search(r'role="alert"[^>]*>([^<]*)', text)
    assert alert
    assert words in alert[1]
    assert "secret horse battery" not in text
    assert "<b>" not in text
    assert fields_of(response, "/signup")["next"] == "/account"
    assert "latchkey_session" not in cookies_of(response)
    assert await service.store.people.find("grace@example.com") is None


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "facts", [{"signup": word} for word in ("open", "off", "invite")], ids=lambda facts: facts["signup"]
)
async def test_the_front_page_offers_an_account_to_whoever_may_make_one(
    service: Service, facts: dict[str, Any]
) -> None:
    offered = b'href="/signup">Create an account' in (await service.browser().get("/")).body
    assert offered == (facts["signup"] == "open")
    assert b"/signup" not in (await (await service.signed_in()).get("/")).body


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "off"}, {"signup": "invite"}], ids=["off", "invite"])
async def test_sign_up_may_be_closed(service: Service) -> None:
    browser = service.browser()
    for path in ("/signup", "/signup?invite=invented"):
        assert (await browser.get(path)).code == 403
    assert b"Create an account" not in (await browser.get("/signin")).body
    form = {**fields_of(await browser.get("/signin"), "/signin"), "name": "Eve", "password": PASSWORD}
    response = await browser.send("/signup", "POST", form={**form, "email": "eve@example.com", "invite": "x"})
    assert response.code == 403
    assert await service.store.people.find("eve@example.com") is None
    assert (await browser.sign_in()).code == 303  # those who have an account go on as ever


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "invite"}, {"signup": "open"}], ids=["invite", "open"])
async def test_an_invitation_makes_one_account_with_a_confirmed_address(service: Service, clock: FakeClock) -> None:
    invite = await service.store.people.invite("grace@example.com")
    browser = service.browser()
    page = await browser.get(f"/signup?invite={invite}")
    assert page.code == 200
    assert b"grace@example.com" in page.body
    # The address is the invitation's, whatever the form says; a failed try does not use it up.
    form = {"email": "eve@example.com", "name": "Grace"}
    failed = await browser.submit(page, "/signup", **form, password="short")
    assert failed.code == 400
    assert (await browser.submit(failed, "/signup", **form, password=PASSWORD)).code == 303
    assert await signed_in_as(browser) == "grace@example.com"
    assert json_of(await userinfo_of(service, browser))["email_verified"] is True
    assert await service.store.people.find("eve@example.com") is None
    assert await service.store.people.invited(invite) is None
    late = await service.store.people.invite("late@example.com")
    clock.advance(7 * DAY + 1)
    assert await service.store.people.invited(late) is None


@pytest.mark.gen_test
async def test_an_invitation_that_is_over_is_said_so_and_nothing_typed_is_lost(service: Service) -> None:
    old = await service.store.people.invite("grace@example.com")
    browser = service.browser()
    form = await browser.get(f"/signup?invite={old}")
    await service.store.people.invite("grace@example.com")
    page = await browser.get(f"/signup?invite={old}&next=%2Faccount")
    assert page.code == 400
    assert "This invitation works no longer" in page.body.decode()
    assert "invite" not in fields_of(page, "/signup")
    sent = await browser.submit(form, "/signup", name="Grace", email="grace@example.com", password=PASSWORD)
    assert sent.code == 400
    assert "This invitation works no longer" in sent.body.decode()
    assert 'value="Grace"' in sent.body.decode()
    assert await service.store.people.find("grace@example.com") is None
    done = await browser.submit(page, "/signup", name="Grace", email="grace@example.com", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, "/account")


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{"signup": "invite"}])
async def test_where_one_is_needed_an_invitation_that_is_over_is_told_from_none(service: Service) -> None:
    browser = service.browser()
    assert "You need an invitation" in (await browser.get("/signup")).body.decode()
    assert "This invitation works no longer" in (await browser.get("/signup?invite=over")).body.decode()


async def userinfo_of(service: Service, browser: Browser) -> HTTPResponse:
    tokens = await service.tokens(browser=browser)
    return await service.web.userinfo(tokens["access_token"])


@pytest.mark.gen_test
async def test_sign_in_says_the_same_of_a_wrong_password_and_of_nobody(service: Service) -> None:
    await service.add_person("gone@example.com")
    await service.store.operator.set_status("gone@example.com", "disabled")
    await service.add_person("deleted@example.com")
    await service.store.operator.delete("deleted@example.com")
    answers = []
    for email, password in (
        (EMAIL, "wrong password"),
        ("nobody@example.com", PASSWORD),
        ("gone@example.com", PASSWORD),
        ("deleted@example.com", PASSWORD),
        ("no address", PASSWORD),
        (EMAIL, ""),
        (EMAIL, "x" * 5000),
    ):
        browser = service.browser()
        page = await browser.get("/signin")
        response = await browser.submit(page, "/signin", email=email, password=password)
        shown = re.sub(r'name="_xsrf" value="[^"]*"', "", response.body.decode()).replace(email, "EMAIL")
        names = {name for name, _ in response.headers.get_all()}
        answers.append((response.code, shown, names))
    assert answers[0][0] == 400
    assert "do not fit" in answers[0][1]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "email",
    [
        "\u0130stanbul@example.com",
        "a\u0301@example.com",
        "{}:*\r\n@x",
        "x" * 60_000,
        "<script>alert(1)</script>",
        "'\"@",
    ],
)
@pytest.mark.trap(21)
async def test_hostile_user_names_sign_nobody_in_and_break_nothing(service: Service, email: str) -> None:
    response = await service.browser().sign_in(email)
    assert response.code == 400
    assert b"<script>" not in response.body


# What `next` may be; everything else leads to the front page.
NEXT = {
    "/account": True,
    "/account/apps?x=1&y=%20#f": True,
    "/oauth/authorize?client_id=web-app&state=a%26b": True,
    "/oauth/authorize?state=%E2%82%AC": True,
    "/oauth/authorize?client_id=%ff&redirect_uri=%00": True,
    "/oauth/authorize?client_id=web-app&redirect_uri=https://evil.tes/": True,
    "/%2f%2fevil.tes": True,
    "/oauth/authorize?state=\u20ac": False,
    "/oauth/authorize?state=\u00e9": False,
    "/\u00fcber": False,
    "/\u2028/evil.test": False,
    "\uff0f\uff0fevil.test": False,
    "/a//b": True,
    "": False,
    "//evil.test": False,
    "///evil.test": False,
    "////evil.test/": False,
    "/\\evil.test": False,
    "/\\/evil.test": False,
    "\\\\evil.test": False,
    "\\/evil.test": False,
    "/a\\..\\..\\evil.test": False,
    "https://evil.test": False,
    "https:evil.test": False,
    "http:/evil.test": False,
    "HTTPS://EVIL.TEST": False,
    "javascript:alert(1)": False,
    "data:text/html,x": False,
    "evil.test": False,
    "@evil.test": False,
    ".evil.test": False,
    "?next=//evil.test": False,
    "#//evil.test": False,
    "/\t/evil.test": False,
    "/\n/evil.test": False,
    "/\r\nLocation: https://evil.test": False,
    "\t//evil.test": False,
    " //evil.test": False,
    " /account": False,
    "/ /evil.test": False,
    "\x01//evil.test": False,
    "/\x7f/evil.test": False,
    "/\x1f//evil.test": False,
    "/" + "a" * 17_000: False,
}


@pytest.mark.gen_test(timeout=30)
@pytest.mark.trap(17)
async def test_next_never_leaves_the_origin(service: Service, clock: FakeClock) -> None:
    for number, (target, stays) in enumerate(NEXT.items()):
        expected = target if stays else "/"
        clock.advance(400)
        browser = service.browser()
        page = await browser.get(f"/signin?next={quote(target, safe='')}")
        assert page.code == 200, target
        assert fields_of(page, "/signin")["next"] == expected
        assert "evil.test" not in page.body.decode()
        forged = {**fields_of(page, "/signin"), "next": target}
        response = await browser.send("/signin", "POST", form={**forged, "email": EMAIL, "password": PASSWORD})
        assert_leads_to(response, expected)
        page = await browser.get("/account")
        forged = {**fields_of(page, "/signout"), "next": target}
        assert_leads_to(await browser.send("/signout", "POST", form=forged), expected)
        page = await browser.get(f"/signup?next={quote(target, safe='')}")
        assert fields_of(page, "/signup")["next"] == expected
        forged = {**fields_of(page, "/signup"), "next": target, "email": f"n{number}@example.com", "name": "N"}
        assert_leads_to(await browser.send("/signup", "POST", form={**forged, "password": PASSWORD}), expected)


def assert_leads_to(response: HTTPResponse, expected: str) -> None:
    """A 303 to this path, as a browser reads the header's bytes."""
    assert response.code == 303, (expected, response.body)
    location = response.headers["Location"].encode("latin-1").decode()
    assert unquote(location) == unquote(expected)
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


@pytest.mark.gen_test
async def test_next_that_was_sent_twice_is_refused(service: Service) -> None:
    assert (await service.browser().get("/signin?next=%2Faccount&next=%2F%2Fevil.test")).code == 400


SECURE = {"base_url": "https://id.example"}


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("facts", "prefix", "secure"),
    [
        pytest.param({}, "latchkey_", False, id="http"),
        pytest.param(SECURE, "__Host-latchkey_", True, id="https"),
    ],
)
async def test_cookies_are_out_of_reach_of_scripts_and_other_sites(service: Service, prefix: str, secure: bool) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    signed_in = await browser.submit(page, "/signin", email=EMAIL, password=PASSWORD)
    for response, name in ((page, "xsrf"), (signed_in, "session")):
        cookie = cookies_of(response)[prefix + name]
        assert cookie["path"] == "/"
        assert cookie["samesite"] == "Lax"
        assert "httponly" in cookie
        assert "domain" not in cookie
        assert ("secure" in cookie) is secure
        assert ("Strict-Transport-Security" in response.headers) is secure
    cookie = cookies_of(signed_in)[prefix + "session"]
    assert cookie[""].startswith("lk_ss_")
    assert "expires" in cookie
    # The token of the forms does not outlive the change of who is signed in.
    assert cookies_of(signed_in)[prefix + "xsrf"][""] in ("", '""')
    account = await browser.get("/account")
    out = await browser.submit(account, "/signout")
    assert cookies_of(out)[prefix + "session"][""] in ("", '""')
    assert ("secure" in cookies_of(out)[prefix + "session"]) is secure


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [SECURE])
async def test_over_tls_a_cookie_without_the_prefix_counts_for_nothing(service: Service) -> None:
    browser = await service.signed_in()
    value = browser.cookies["__Host-latchkey_session"]
    browser.cookies = {"latchkey_session": value}
    assert await signed_in_as(browser) is None
    browser.cookies = {"__Host-latchkey_session": value}
    assert await signed_in_as(browser) == EMAIL


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [SECURE])
@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://id.example", 303), ("http://id.example", 403), ("https://id.example.evil.test", 403), ("null", 403)],
)
async def test_forms_are_taken_from_the_origin_the_server_is_known_by(
    service: Service, origin: str, status: int
) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    form = {**fields_of(page, "/signin"), "email": EMAIL, "password": PASSWORD}
    assert (await browser.send("/signin", "POST", form=form, headers={"Origin": origin})).code == status


@pytest.mark.gen_test
async def test_signing_in_replaces_the_session_that_was_there(service: Service) -> None:
    await service.add_person("bob@example.com")
    browser = await service.signed_in()
    planted = browser.cookies["latchkey_session"]
    await browser.sign_in("bob@example.com")
    assert browser.cookies["latchkey_session"] != planted
    assert await signed_in_as(browser) == "bob@example.com"
    # Whoever planted, or still holds, the session of before has nothing.
    other = service.browser()
    other.cookies["latchkey_session"] = planted
    assert await signed_in_as(other) is None
    # A failed sign-in leaves things as they were.
    assert (await browser.sign_in("bob@example.com", "wrong password")).code == 400
    assert await signed_in_as(browser) == "bob@example.com"


@pytest.mark.gen_test
async def test_signing_up_ends_the_session_that_was_there(service: Service) -> None:
    browser = await service.signed_in()
    planted = browser.cookies["latchkey_session"]
    await sign_up(browser, "grace@example.com")
    other = service.browser()
    other.cookies["latchkey_session"] = planted
    assert await signed_in_as(other) is None


@pytest.mark.gen_test
async def test_signing_out_ends_this_session_and_no_other(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    kept = browser.cookies["latchkey_session"]
    response = await browser.submit(await browser.get("/account"), "/signout")
    assert response.code == 303
    assert "latchkey_session" not in browser.cookies
    browser.cookies["latchkey_session"] = kept
    assert await signed_in_as(browser) is None
    assert await signed_in_as(other) == EMAIL


@pytest.mark.gen_test
async def test_sessions_idle_out_and_end(service: Service, clock: FakeClock) -> None:
    browser, idle = await service.signed_in(), await service.signed_in()
    for _ in range(2):
        clock.advance(13 * DAY)
        assert await signed_in_as(browser) == EMAIL
    assert await signed_in_as(idle) is None
    clock.advance(4 * DAY + 60)
    assert await signed_in_as(browser) is None


@pytest.mark.gen_test
@pytest.mark.parametrize("act", ["disable", "delete"])
async def test_sessions_of_a_disabled_or_deleted_person_are_dead(service: Service, act: str) -> None:
    browser = await service.signed_in()
    if act == "delete":
        await service.store.operator.delete(EMAIL)
        assert await signed_in_as(browser) is None
        return
    await service.store.operator.set_status(EMAIL, "disabled")
    assert await signed_in_as(browser) is None
    assert (await browser.sign_in()).code == 400
    await service.store.operator.set_status(EMAIL, "active")
    assert await signed_in_as(browser) is None  # those of before stay dead
    assert (await browser.sign_in()).code == 303


@pytest.mark.gen_test
async def test_changing_the_password_ends_every_other_session(service: Service) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    before = browser.cookies["latchkey_session"]
    page = await browser.get("/account/security")
    response = await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    assert response.code == 303
    assert b"Your password was changed" in (await browser.get(response.headers["Location"])).body
    assert await signed_in_as(browser) == EMAIL
    assert await signed_in_as(other) is None
    other.cookies["latchkey_session"] = before
    assert await signed_in_as(other) is None
    assert (await service.browser().sign_in(EMAIL, PASSWORD)).code == 400
    assert (await service.browser().sign_in(EMAIL, NEW_PASSWORD)).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("current", "new", "words"),
    [
        pytest.param("wrong password", NEW_PASSWORD, "current password is not right", id="the current one is wrong"),
        pytest.param("", NEW_PASSWORD, "current password is not right", id="the current one is missing"),
        pytest.param(PASSWORD, "short", "at least 10", id="the new one is short"),
        pytest.param(PASSWORD, EMAIL, "e-mail address", id="the new one is the address"),
        pytest.param(PASSWORD, "", "at least 10", id="the new one is missing"),
    ],
)
async def test_a_password_change_that_fails_changes_nothing(
    service: Service, current: str, new: str, words: str
) -> None:
    browser, other = await service.signed_in(), await service.signed_in()
    page = await browser.get("/account/security")
    response = await browser.submit(page, "/account/security", current_password=current, new_password=new)
    assert response.code == 400
    assert words in response.body.decode()
    assert await signed_in_as(browser) == await signed_in_as(other) == EMAIL
    assert (await service.browser().sign_in()).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize("path", ["/account", "/account/apps", "/account/security"])
async def test_account_pages_are_for_who_is_signed_in(service: Service, path: str) -> None:
    response = await service.browser().get(path)
    assert response.code == 303
    assert response.headers["Location"] == f"/signin?next={quote(path, safe='')}"
    as_json = await service.browser().get(path, Accept="application/json")
    assert as_json.code == 401
    assert json_of(as_json)["error"] == "login_required"
    page = await (await service.signed_in()).get(path)
    assert page.code == 200
    assert NAME in page.body.decode()
    assert page.headers["Cache-Control"] == "no-store"


PROXY = (ip_network("127.0.0.0/8"),)
CHAIN = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("facts", "forwarded", "address"),
    [
        pytest.param({}, "203.0.113.9", "127.0.0.1", id="nobody is trusted"),
        pytest.param({"trusted_proxies": (ip_network("10.0.0.0/8"),)}, "203.0.113.9", "127.0.0.1", id="another is"),
        pytest.param({"trusted_proxies": PROXY}, "203.0.113.9", "203.0.113.9", id="the proxy is"),
        pytest.param({"trusted_proxies": PROXY}, "", "127.0.0.1", id="the proxy said nothing"),
        pytest.param({"trusted_proxies": PROXY}, "1.1.1.1, 203.0.113.9", "203.0.113.9", id="the client made one up"),
        pytest.param({"trusted_proxies": PROXY}, "1.1.1.1, 10.0.0.2", "10.0.0.2", id="a hop that is not trusted"),
        pytest.param({"trusted_proxies": CHAIN}, "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9", id="a chain"),
        pytest.param({"trusted_proxies": CHAIN}, "203.0.113.9, fd00::1", "203.0.113.9", id="a chain over IPv6"),
        pytest.param({"trusted_proxies": PROXY}, "203.0.113.9, rubbish", "127.0.0.1", id="rubbish"),
        pytest.param({"trusted_proxies": PROXY}, "203.0.113.9:4711", "127.0.0.1", id="an address with a port"),
        pytest.param({"trusted_proxies": PROXY}, "::ffff:203.0.113.9", "203.0.113.9", id="an IPv4 address as IPv6"),
        pytest.param({"trusted_proxies": PROXY}, "2001:db8::9", "2001:db8::9", id="an IPv6 address"),
    ],
)
async def test_the_address_comes_from_the_socket_or_from_a_trusted_proxy(
    service: Service, forwarded: str, address: str
) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    form = {**fields_of(page, "/signin"), "email": EMAIL, "password": PASSWORD}
    headers = {"X-Forwarded-For": forwarded, "X-Real-Ip": "6.6.6.6", "Forwarded": "for=7.7.7.7"}
    await browser.send("/signin", "POST", form=form, headers=headers)
    person = await service.store.operator.find(EMAIL)
    assert (person.activity[0].event, person.activity[0].address) == ("signed_in", address)
    assert address in (await browser.get("/account/security")).body.decode()


@pytest.mark.gen_test(timeout=20)
@pytest.mark.parametrize("facts", [{"trusted_proxies": PROXY}])
async def test_an_ipv6_network_of_one_person_counts_as_one_address(service: Service, clock: FakeClock) -> None:
    clock.stop()
    browser = service.browser()
    page = await browser.get("/signin")
    form = {**fields_of(page, "/signin"), "password": "wrong password"}

    async def attempt(address: str, number: int) -> int:
        sent = {**form, "email": f"nobody{number}@example.com"}
        headers = {"X-Forwarded-For": address}
        return (await browser.send("/signin", "POST", form=sent, headers=headers)).code

    codes = [await attempt(f"2001:db8:1:2::{number:x}", number) for number in range(21)]
    assert codes == [400] * 20 + [429]
    assert await attempt("2001:db8:1:2:ffff:ffff:ffff:ffff", 30) == 429
    assert await attempt("2001:db8:1:3::1", 31) == 400
    assert await attempt("203.0.113.1", 32) == 400


@pytest.mark.gen_test
async def test_the_audit_trail_shows_what_happened_and_from_where(service: Service) -> None:
    browser = service.browser()
    browser.agent = "Evil/1.0 <script>alert(1)</script> " + "x" * 5000
    await browser.sign_in()
    denied = await browser.get(service.web.authorize_url())
    await browser.submit(denied, "/api/oauth/authorize", decision="deny")
    tokens = await service.tokens(browser=browser)
    await service.web.refresh(tokens["refresh_token"])
    await service.web.refresh(tokens["refresh_token"])
    code = await service.code(browser=browser)
    await service.web.exchange(code)
    await service.web.exchange(code)
    given_back = await service.tokens(browser=browser)
    await service.web.revoke(given_back["refresh_token"])
    await browser.submit(await browser.get("/account/apps"), "/account/apps/web-app/revoke")
    other = await service.signed_in()
    await other.submit(await other.get("/account"), "/signout")
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    text = (await browser.get("/account/security")).body.decode()
    for words in (
        "Account created by the operator",
        "Signed in",
        "Signed out",
        "App refused",
        "App connected",
        "A used token was presented again",
        "A used code was presented again",
        "App gave back its access",
        "App disconnected",
        "Password changed; other sessions ended",
    ):
        assert words in text, words
    assert "Web App" in text
    assert "127.0.0.1" in text
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "x" * 61 not in text


@pytest.mark.gen_test
async def test_forms_work_as_json_too(service: Service) -> None:
    browser = service.browser()
    xsrf = fields_of(await browser.get("/signin"), "/signin")["_xsrf"]
    headers = {"Content-Type": "application/json", "X-Xsrftoken": xsrf}
    body = f'{{"email": "{EMAIL}", "password": "{PASSWORD}", "next": "/account"}}'
    response = await browser.send("/signin", "POST", headers=headers, body=body)
    assert response.code == 303
    assert response.headers["Location"] == "/account"
    assert await signed_in_as(browser) == EMAIL
