"""Sign-in over HTTP: what strangers learn, redirects, cookies, forms, and whose address counts."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote, unquote

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store.operations import Suspension
from tests.support.browser import signup
from tests.support.browser.signup import cookies_of, signed_in_as
from tests.support.http.driver import EMAIL, PASSWORD, Service, fields_of
from tests.support.processes.engines import FakeClock

facts, site = signup.facts, signup.site


@pytest.fixture
def service(io_loop: IOLoop, http_server: Any, site: Site, base_url: str) -> Service:
    """The service at its test address, even if its base URL is https."""
    made = Service(base_url, site.store)
    io_loop.run_sync(made.populate)
    return made


@pytest.mark.gen_test
async def test_an_address_with_extra_text_matches_no_account(service: Service) -> None:
    longest = f"{'a' * 64}@{'b' * 63}.{'b' * 63}.{'b' * 61}"
    await service.add_person(longest)
    page = await service.browser().sign_in(longest + ".example")
    assert page.code == 400
    assert (await service.browser().sign_in(longest)).code == 303


@pytest.mark.gen_test
async def test_sign_in_gives_the_same_error_for_wrong_passwords_and_unknown_accounts(service: Service) -> None:
    await service.add_person("gone@example.com")
    await service.store.operator.suspend("gone@example.com", Suspension("Unpaid since May"))
    await service.add_person("deleted@example.com")
    await service.store.operator.delete("deleted@example.com")
    answers = []
    for email, password in (
        (EMAIL, "wrong password"),
        ("nobody@example.com", PASSWORD),
        ("gone@example.com", "wrong password"),
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
    assert "Incorrect e-mail address or password" in answers[0][1]
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
async def test_hostile_user_names_are_refused_without_an_error(service: Service, email: str) -> None:
    response = await service.browser().sign_in(email)
    assert response.code == 400
    assert b"<script>" not in response.body


# Allowed values of `next`; everything else redirects to the front page.
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
        landing = expected if stays else "/account"
        clock.advance(400)
        browser = service.browser()
        page = await browser.get(f"/signin?next={quote(target, safe='')}")
        assert page.code == 200, target
        assert fields_of(page, "/signin")["next"] == expected
        assert "evil.test" not in page.body.decode()
        forged = {**fields_of(page, "/signin"), "next": target}
        response = await browser.send("/signin", "POST", form={**forged, "email": EMAIL, "password": PASSWORD})
        assert_leads_to(response, landing)
        page = await browser.get("/account")
        forged = {**fields_of(page, "/signout"), "next": target}
        assert_leads_to(await browser.send("/signout", "POST", form=forged), expected)
        page = await browser.get(f"/signup?next={quote(target, safe='')}")
        assert fields_of(page, "/signup")["next"] == expected
        welcome = f"{landing}?welcome" if landing == "/account" else landing
        forged = {**fields_of(page, "/signup"), "next": target, "email": f"n{number}@example.com", "name": "N"}
        assert_leads_to(await browser.send("/signup", "POST", form={**forged, "password": PASSWORD}), welcome)


def assert_leads_to(response: HTTPResponse, expected: str) -> None:
    """A 303 to this path, as a browser reads the header's bytes."""
    assert response.code == 303, (expected, response.body)
    location = response.headers["Location"].encode("latin-1").decode()
    assert unquote(location) == unquote(expected)
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))


@pytest.mark.gen_test
async def test_a_repeated_next_is_refused(service: Service) -> None:
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
    signed_in = await browser.submit(page, "/signin", email=EMAIL, password=PASSWORD, keep="1")
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
    # The XSRF token does not survive a change of the signed-in person.
    assert cookies_of(signed_in)[prefix + "xsrf"][""] in ("", '""')
    account = await browser.get("/account")
    out = await browser.submit(account, "/signout")
    assert cookies_of(out)[prefix + "session"][""] in ("", '""')
    assert ("secure" in cookies_of(out)[prefix + "session"]) is secure


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [SECURE])
async def test_over_tls_a_cookie_without_the_prefix_is_ignored(service: Service) -> None:
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
async def test_forms_are_accepted_only_from_the_servers_origin(service: Service, origin: str, status: int) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    form = {**fields_of(page, "/signin"), "email": EMAIL, "password": PASSWORD}
    assert (await browser.send("/signin", "POST", form=form, headers={"Origin": origin})).code == status


PROXY = (ip_network("127.0.0.0/8"),)
FAR = "203.0.113.9"
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
        pytest.param({"trusted_proxies": CHAIN}, f"{FAR}{', 10.0.0.2' * 19}", FAR, id="a long chain"),
        pytest.param({"trusted_proxies": CHAIN}, f"{FAR}{', 10.0.0.2' * 20}", "10.0.0.2", id="a chain too long"),
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
async def test_forms_accept_json_too(service: Service) -> None:
    browser = service.browser()
    xsrf = fields_of(await browser.get("/signin"), "/signin")["_xsrf"]
    headers = {"Content-Type": "application/json", "X-Xsrftoken": xsrf}
    body = f'{{"email": "{EMAIL}", "password": "{PASSWORD}", "next": "/account"}}'
    response = await browser.send("/signin", "POST", headers=headers, body=body)
    assert response.code == 303
    assert response.headers["Location"] == "/account"
    assert await signed_in_as(browser) == EMAIL
