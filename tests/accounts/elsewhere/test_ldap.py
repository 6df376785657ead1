"""Sign-in with a real directory, OpenLDAP's slapd, over HTTP."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from outbound.identity.config import ProvidersFile, parse_providers
from outbound.identity.ldap.directory import Directories, WrongPassword
from outbound.identity.providers import Providers
from outbound.identity.sign_in import SignInElsewhere
from store import keys
from store.lifetimes import SIGN_IN_ACCOUNT
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer
from tests.support.elsewhere.slapd import BASE, PASSWORD, READER, READER_PASSWORD, UUID, Slapd, slapd
from tests.support.http.driver import EMAIL, Browser, Service

pytestmark = pytest.mark.gen_test(timeout=60)

FORM = "/signin/with/company/password"
STAFF = f'"cn=staff,ou=groups,{BASE}" = "staff", "CN=Empty,ou=groups,{BASE}" = "empty"'


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    with slapd(tmp_path_factory.mktemp("slapd")) as made:
        yield made


@pytest.fixture
def table() -> str:
    """More of the provider's table; a mark may override it."""
    return ""


def providers(directory: Slapd, table: str = "", url: str = "") -> Providers:
    text = (
        '[[provider]]\ntype = "ldap"\nname = "company"\ntitle = "Company"\n'
        f'url = "{url or f"ldaps://localhost:{directory.secure}"}"\nca_file = "ca"\n'
        f'bind_dn = "{READER}"\nbind_password_env = "READER"\nbase_dn = "{BASE}"\n'
        f"trust_email = true\ncreate = true\ngroups = {{ {STAFF} }}\n{table}"
    )
    file = ProvidersFile(text, {"ca": directory.authority.read_text()})
    return parse_providers(Path("providers.toml"), file, {"READER": READER_PASSWORD})


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, directory: Slapd, table: str, mails: Kept) -> Site:
    elsewhere = SignInElsewhere(loopback=True)
    known = providers(directory, table)
    return Site(memory_store, base_url, providers=known, elsewhere=elsewhere, mail=mailer(mails, confirms=True))


async def enters(browser: Browser, login: str, password: str = PASSWORD, more: str = "") -> HTTPResponse:
    """From the button on the sign-in page through the directory's form."""
    page = await browser.get(f"/signin/with/company{more}")
    assert (page.code, page.headers.get("Location")) == (303, FORM), page.body
    return await browser.submit(await browser.get(FORM), FORM, login=login, password=password)


def said(page: HTTPResponse) -> str:
    found = re.search(r'role="alert" id="form-error">([^<]*)<', page.body.decode())
    assert found, page.body
    return found[1]


@pytest.mark.parametrize("how", ["ldaps", "StartTLS"])
async def test_a_person_signs_in_with_the_directory(
    service: Service, directory: Slapd, site: Site, app: Any, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    if how == "StartTLS":
        url = f"ldap://localhost:{directory.plain}"
        app.site = Site(**{**vars_of(site), "providers": providers(directory, "start_tls = true\n", url)})
    browser = service.browser()
    page = await enters(browser, "ada", more="?next=%2Faccount%2Fapps")
    assert (page.code, page.headers["Location"]) == (303, "/account/apps")
    user = await service.store.people.find("ada@elsewhere.example")
    assert user
    found = await service.store.operator.find(user, 50)
    assert (found.name, found.email_verified) == ("Ada Lovelace", True)
    row = await service.store.client.hgetall(keys.person(user)["identities"])
    assert any(UUID.encode() in value for value in row.values())
    again = service.browser()
    assert (await enters(again, "ADA")).code == 303
    assert await service.store.people.find("ada@elsewhere.example") == user
    assert PASSWORD not in caplog.text
    assert READER_PASSWORD not in caplog.text


def vars_of(site: Site) -> dict[str, Any]:
    return {name: getattr(site, name) for name in ("store", "base_url", "providers", "elsewhere", "mail")}


@pytest.mark.parametrize(
    ("login", "password"),
    [
        ("ada", "wrong"),
        ("nobody", PASSWORD),
        ("ada", ""),
        ("", PASSWORD),
        ("gone", PASSWORD),
        ("*", PASSWORD),
        ("ad*", PASSWORD),
        ("ada)(uid=*", PASSWORD),
        ("ada)(|(uid=*))", PASSWORD),
        ("x)(cn=Ada Lovelace", PASSWORD),
        ("\\61da", PASSWORD),
        ("a" * 300, PASSWORD),
        ("ada", "p" * 2000),
    ],
)
async def test_whoever_may_not_come_in_reads_the_same(
    service: Service, login: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = service.browser()
    await browser.get("/signin/with/company")
    page = await browser.submit(await browser.get(FORM), FORM, login=login or "", password=password or "")
    assert page.code == 400
    assert said(page) == "Incorrect user name or password."
    assert "latchkey_session" not in browser.cookies
    assert await service.store.people.find("ada@elsewhere.example") is None
    assert password not in page.body.decode() or not password
    assert not password or password not in caplog.text


@pytest.mark.parametrize("table", ['user_filter = "(employeeType={login})"\n'])
async def test_a_name_that_is_two_peoples_is_nobodys(service: Service, table: str) -> None:
    page = await enters(service.browser(), "twin")
    assert (page.code, said(page)) == (400, "Incorrect user name or password.")


async def test_tries_are_counted_for_the_entry_however_its_name_is_spelled(directory: Slapd) -> None:
    [one] = providers(directory)
    counted: list[str] = []

    async def count(who: str) -> None:
        counted.append(who)

    assert one.directory
    known = Directories()
    for login in ("ada", "ADA", "  ada ", "\uff41da", "nobody", "NOBODY", "", "ada\0"):
        for password in ("wrong", "", PASSWORD + "\0", "\ud800"):
            with pytest.raises(WrongPassword):
                await known.check(one.directory, login, password, "192.0.2.1", count)
    assert counted.count(UUID) == 4, "with a password that may be sent"
    assert set(counted) == {UUID, "ada", "nobody", ""}


async def test_a_person_who_tries_too_often_waits(service: Service, site: Site, directory: Slapd) -> None:
    [one] = site.providers
    for _ in range(SIGN_IN_ACCOUNT.limit):
        await service.store.limits.sign_in_elsewhere(f"{one.issuer} {UUID}")
    assert (await enters(service.browser(), "ada")).code == 429, "the right password too"


async def test_groups_follow_the_directory_at_each_sign_in(service: Service, directory: Slapd) -> None:
    await enters(service.browser(), "ada")
    user = await service.store.people.find("ada@elsewhere.example")
    assert user

    async def groups() -> tuple[str, ...]:
        return (await service.store.operator.find(user, 1)).groups

    assert await groups() == ("staff",)
    await service.store.groups.change(user, ("staff",), ("empty", "owners"), ("staff",))
    await enters(service.browser(), "ada")
    assert await groups() == ("owners", "staff"), "groups that are not in the table stay"


async def test_an_address_of_the_directory_links_an_account(
    service: Service, app: Any, site: Site, directory: Slapd, mails: Kept
) -> None:
    known = providers(directory, 'mail_attribute = "employeeNumber"\n')
    app.site = Site(**{**vars_of(site), "providers": known})
    page = await enters(service.browser(), "ada")
    assert page.code == 403, "no address, no account"
    assert EMAIL.encode() not in page.body


async def test_a_person_connects_an_entry_of_the_directory(service: Service) -> None:
    ada = await service.confirmed()
    page = (await ada.get("/account/security")).body.decode()
    link = re.search(r'href="(/account/security/accounts/add/company[^"]+)"', page)
    assert link
    assert (await ada.get(link[1])).headers["Location"] == FORM
    form = await ada.get(FORM)
    assert "Connect Company" in form.body.decode()
    done = await ada.submit(form, FORM, login="ada", password=PASSWORD)
    assert done.headers["Location"] == "/account/security?linked"
    other = service.browser()
    await enters(other, "ada")
    assert EMAIL in (await other.get("/account")).body.decode()


async def test_a_person_of_the_directory_confirms_with_the_password_there(service: Service) -> None:
    browser = service.browser()
    await enters(browser, "ada")
    page = (await browser.get("/account/security")).body.decode()
    link = re.search(r'href="(/account/security/confirm/with/company[^"]+)"', page)
    assert link
    assert (await browser.get(link[1].replace("&amp;", "&"))).headers["Location"] == FORM
    assert (await browser.submit(await browser.get(FORM), FORM, login="ada", password="wrong")).code == 400
    done = await browser.submit(await browser.get(FORM), FORM, login="ada", password=PASSWORD)
    assert done.headers["Location"] == "/account/security?confirmed"


async def test_a_dead_directory_is_said_to_be_and_holds_nobody_up(
    service: Service, site: Site, app: Any, directory: Slapd
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    known = providers(directory, "timeout = 1\n", f"ldap://127.0.0.1:{port}")
    app.site = Site(**{**vars_of(site), "providers": known})
    began = asyncio.get_running_loop().time()
    waiting = [asyncio.ensure_future(enters(service.browser(), "ada")) for _ in range(4)]
    await asyncio.sleep(0.2)
    assert (await service.browser().get("/signin")).code == 200
    assert (await service.browser().sign_in()).code == 303
    assert not all(one.done() for one in waiting)
    pages = await asyncio.gather(*waiting)
    assert {one.code for one in pages} == {503}
    assert "answering right now" in said(pages[0])
    assert asyncio.get_running_loop().time() - began < 8
    before = asyncio.get_running_loop().time()
    assert (await enters(service.browser(), "ada")).code == 503
    assert asyncio.get_running_loop().time() - before < 0.9, "it is not asked again at once"
    server.close()


@pytest.mark.parametrize("wrong", ["name", "authority", "password"])
async def test_a_directory_that_cannot_be_trusted_is_not_used(
    service: Service, site: Site, app: Any, directory: Slapd, wrong: str
) -> None:
    if wrong == "name":
        known = providers(directory, url=f"ldaps://127.0.0.1:{directory.secure}")
    elif wrong == "authority":
        [one] = providers(directory)
        assert one.directory
        object.__setattr__(one.directory, "context", ssl.create_default_context())
        known = Providers((one,))
    else:
        [one] = providers(directory)
        assert one.directory
        object.__setattr__(one.directory, "password", "wrong")
        known = Providers((one,))
    app.site = Site(**{**vars_of(site), "providers": known})
    page = await enters(service.browser(), "ada")
    assert page.code == 503
    assert "latchkey_session" not in page.headers.get("Set-Cookie", "")


async def test_the_form_belongs_to_a_request_of_this_browser(service: Service) -> None:
    browser = service.browser()
    page = await browser.get(FORM)
    assert (page.code, page.headers["Location"]) == (303, "/signin/with/company")
    assert (await browser.get("/signin/with/company/callback?code=a&state=b")).code == 404
