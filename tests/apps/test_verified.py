"""Verified apps: proven domains, the operator's verification, and how pages show both."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store import keys
from store.apps.domains import FILE_BYTES, check_domain, names_app, provable
from store.apps.registration import Registration
from store.lifetimes import VERIFY_DOMAIN
from store.refused import Refused
from store.wiring import Store
from tests.support.http.driver import App, Browser, Service, answer_of
from tests.support.http.receiver import answering
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock
from tests.support.processes.operator_commands import Home
from tests.support.processes.proven_domain import TEXT, Domain

pytestmark = pytest.mark.gen_test(timeout=60)

AT, BELOW, ELSEWHERE = "https://app.example/cb", "https://www.app.example/cb", "https://evil.test/cb"
PAGE = "/developer/apps/own"


@pytest.fixture
def domain(io_loop: IOLoop, tmp_path: Path) -> Iterator[Domain]:
    made = io_loop.run_sync(lambda: Domain.make(tmp_path))
    yield made
    io_loop.run_sync(made.receiver.close)


@pytest.fixture
def site(memory_store: Store, base_url: str, domain: Domain) -> Site:
    return Site(memory_store, base_url, fetcher=domain.fetcher)


async def own(service: Service, **fields: Any) -> tuple[App, Browser]:
    """An app of Ada's, and her browser."""
    facts = {"redirect_uris": (AT, BELOW, ELSEWHERE), "owner": service.ada, **fields}
    return await service.add_app("own", **facts), await service.confirmed()


async def prove(browser: Browser, domain: str = "app.example") -> HTTPResponse:
    """Presses the button."""
    return await browser.submit(await browser.get(f"{PAGE}/settings"), f"{PAGE}/verify", domain=domain)


async def proven(service: Service) -> str:
    """The domain of the registration."""
    app, _ = await service.store.apps.fresh("own")
    assert app is not None
    return app.domain


async def mark(app: App, browser: Browser, uri: str = AT) -> str:
    """The consent page's text about the app, for a redirect URI."""
    page = await browser.get(app.authorize_url(redirect_uri=uri, prompt="consent"))
    found = re.search(r'<span class="mark">(.*?)</span>\s*<span class="small muted">', page.body.decode(), re.S)
    assert found, page.body
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", found[1])).split())


async def test_a_proven_domain_covers_only_itself_and_its_subdomains(service: Service, domain: Domain) -> None:
    app, browser = await own(service)
    assert (await mark(app, browser)).startswith("Not verified")
    domain.says("another-app", "own")
    assert (await prove(browser, " App.Example ")).code == 303
    assert domain.receiver.posted[0].line == "GET /.well-known/latchkey-app-verification.txt HTTP/1.1"
    assert domain.receiver.posted[0].headers["host"] == "app.example"
    assert await mark(app, browser, AT) == "Verified it controls app.example"
    assert await mark(app, browser, BELOW) == "Verified it controls app.example"
    assert (await mark(app, browser, ELSEWHERE)).startswith("Not verified")
    trail = await service.store.operator.find(service.ada, 10)
    assert "app_domain_verified" in [entry.event for entry in trail.activity]


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        pytest.param(("own2", "o w n", "# own"), "No line of", id="lines that only hold the client id"),
        pytest.param((), "No line of", id="an empty file"),
        pytest.param(("x" * FILE_BYTES, "own"), "more than 16384 bytes", id="a file that is too large"),
        pytest.param(None, "The answer was 404.", id="no file"),
    ],
)
async def test_a_file_that_does_not_name_the_app_proves_nothing(
    service: Service, domain: Domain, lines: tuple[str, ...] | None, error: str
) -> None:
    _, browser = await own(service)
    if lines is not None:
        domain.says(*lines)
    refused = await prove(browser)
    assert refused.code == 400
    assert error in html.unescape(refused.body.decode())
    assert await proven(service) == ""


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"name": "PayPal"}, id="another name"),
        pytest.param({"redirect_uris": (AT, "https://new.test/cb")}, id="another redirect URI"),
        pytest.param({"redirect_uris": (AT,)}, id="one redirect URI fewer"),
    ],
)
async def test_changing_name_or_redirect_uris_ends_both_verifications(
    service: Service, domain: Domain, change: dict[str, Any]
) -> None:
    app, browser = await own(service, verified=True)
    domain.says("own")
    await prove(browser)
    await service.store.apps.update("own", service.ada, homepage="https://app.example")
    assert await proven(service) == "app.example"
    # An operator vouches for what the operator writes; the domain proved the app as it was.
    await service.store.apps.update("own", **change)
    assert await proven(service) == ""
    assert await mark(app, browser) == "Verified by the operator of this server"
    await service.store.apps.update("own", service.ada, name="Again another")
    assert (await mark(app, browser)).startswith("Not verified")


async def test_a_change_during_the_domain_check_voids_the_proof(service: Service, domain: Domain) -> None:
    _, browser = await own(service)
    honest = answering(200, TEXT, body=b"own")

    async def renamed_meanwhile(writer: asyncio.StreamWriter) -> None:
        await service.store.apps.update("own", service.ada, name="PayPal")
        await honest(writer)

    domain.answers(renamed_meanwhile)
    refused = await prove(browser)
    assert refused.code == 400
    assert b"changed while we checked its domain" in refused.body
    assert await proven(service) == ""


async def sweep(service: Service, domain: Domain, clock: FakeClock, days: float = 1) -> str:
    """Lets days pass and a server sweep; returns the domain of the registration."""
    clock.advance(days * 86400 + 1)
    service.store.app_sweep.fetch = domain.fetcher.fetch
    await service.store.client.delete(keys.APPS_SWEPT)
    await service.store.app_sweep.sweep()
    return await proven(service)


async def test_a_proof_ends_when_the_file_is_missing_twice_in_a_row(
    service: Service, domain: Domain, clock: FakeClock
) -> None:
    app, _ = await own(service)
    domain.says("own")
    await prove(await service.confirmed())
    fetches = len(domain.receiver.posted)
    assert await sweep(service, domain, clock, days=0.9) == "app.example"
    assert len(domain.receiver.posted) == fetches, "checked within the day"
    domain.says("another-app")
    assert await sweep(service, domain, clock, days=0.1) == "app.example", "once may be a mishap"
    browser = await service.confirmed()
    assert "didn’t find this app’s client ID" in (await browser.get(f"{PAGE}/settings")).body.decode()
    domain.says("own")
    assert await sweep(service, domain, clock) == "app.example"
    domain.answers(answering(404))
    assert await sweep(service, domain, clock) == "app.example"
    domain.answers(answering(302))
    assert await sweep(service, domain, clock) == ""
    assert (await mark(app, await service.signed_in())).startswith("Not verified")


async def test_an_unreachable_domain_keeps_its_proof_until_it_expires(
    service: Service, domain: Domain, clock: FakeClock
) -> None:
    await own(service)
    domain.says("own")
    await prove(await service.confirmed())
    domain.answers(answering(503))
    for _ in range(3):
        assert await sweep(service, domain, clock) == "app.example"
    page = (await (await service.confirmed()).get(f"{PAGE}/settings")).body.decode()
    assert "Keep the file: we read it every day." in page
    await domain.receiver.close()
    assert await sweep(service, domain, clock, days=86) == "app.example", "89 days after the proof"
    assert await sweep(service, domain, clock) == ""


async def test_a_sweep_keeps_a_proof_renewed_meanwhile(service: Service, domain: Domain, clock: FakeClock) -> None:
    await own(service)
    await service.store.apps.change("own", lambda app: replace(app, domain="app.example"))
    assert await sweep(service, domain, clock) == "app.example", "of a release that set no end: one miss"

    async def proven_meanwhile(writer: asyncio.StreamWriter) -> None:
        now = await service.store.apps.now()
        await service.store.apps.change("own", lambda app: app.with_domain("app.example", now))
        await answering(404)(writer)

    domain.answers(proven_meanwhile)
    assert await sweep(service, domain, clock) == "app.example"
    app, _ = await service.store.apps.fresh("own")
    assert app is not None
    assert app.domain_misses == 0


async def test_a_changed_verification_shows_the_consent_page_again(service: Service, domain: Domain) -> None:
    app, browser = await own(service)
    await browser.consent(app.authorize_url())
    assert (await browser.get(app.authorize_url())).code == 303
    domain.says("own")
    await prove(browser)
    assert (await browser.consent(app.authorize_url())).code == 303
    await service.store.apps.update("own", verified=True)
    assert (await browser.get(app.authorize_url())).code == 200


async def test_domain_checks_need_the_owner_and_are_limited(service: Service, domain: Domain) -> None:
    await own(service)
    await service.add_person("bob@example.com")
    bob = await service.signed_in("bob@example.com")
    form = {"domain": "app.example", "_xsrf": ""}
    assert (await bob.send(f"{PAGE}/verify", "POST", form=form)).code == 403
    page = await bob.get("/developer/register")
    token = re.search(r'name="_xsrf" value="([^"]+)"', page.body.decode())
    assert token
    assert (await bob.send(f"{PAGE}/verify", "POST", form={**form, "_xsrf": token[1]})).code == 404
    assert domain.receiver.posted == []
    ada = await service.signed_in()
    for _ in range(VERIFY_DOMAIN.limit):
        await service.store.limits.verify_domain(service.ada)
    assert (await prove(ada)).code == 429
    assert domain.receiver.posted == []


async def test_proving_a_domain_needs_no_recent_reauthentication(
    clock: FakeClock, service: Service, domain: Domain
) -> None:
    """The mark follows the file at the domain, which a session thief cannot write."""
    _, browser = await own(service)
    clock.advance(601)
    domain.says("own")
    answer = await prove(browser)
    assert (answer.code, answer.headers.get("Location")) == (303, f"{PAGE}/settings?verified")
    assert await proven(service) == "app.example"


async def test_a_brand_like_name_is_flagged_until_the_operator_verifies_the_app(
    service: Service, domain: Domain
) -> None:
    app, browser = await own(service, name="PayPa1 Login")
    warning = "Its name looks like PayPal, but nobody has checked that they made this app."
    unverified = f"Not verified {warning}"
    assert await mark(app, browser) == unverified
    domain.says("own")
    await prove(browser)
    assert await mark(app, browser) == unverified
    assert "Your app controls" not in (page := (await browser.get(f"{PAGE}/settings")).body.decode())
    assert "because its name looks like PayPal" in " ".join(page.split())
    await service.store.apps.update("own", verified=True)
    assert await mark(app, browser) == "Verified by the operator of this server"


async def test_an_operator_verified_app_gets_errors_at_once(service: Service) -> None:
    app, _ = await own(service)
    url = app.authorize_url(scope="everything")
    assert (await service.browser().get(url)).headers["Location"].startswith("/signin?")
    await service.store.apps.update("own", verified=True)
    assert answer_of(await service.browser().get(url))["error"] == "invalid_scope"
    assert answer_of(await service.browser().get(app.authorize_url(prompt="none")))["error"] == "login_required"


APP = Registration(
    "own",
    "Own",
    ("https://a.b.example/cb", "https://c.example:8443/cb", "http://127.0.0.1/cb", "https://192.0.2.1/cb"),
    ("profile",),
)


@each(
    ("typed", "good"),
    [
        pytest.param("a.b.example", True, id="the host of a redirect URI"),
        pytest.param("b.example", True, id="a domain above it"),
        pytest.param("example", False, id="a name without a dot"),
        pytest.param("c.example", False, id="the host of a redirect URI at another port, which others may run"),
        pytest.param("x.a.b.example", False, id="a domain below it"),
        pytest.param("evil.test", False, id="another domain"),
        pytest.param("192.0.2.1", False, id="an address"),
        pytest.param("a.b.example/x", False, id="with a path"),
        pytest.param("a.b.example:444", False, id="with a port"),
        pytest.param("x@a.b.example", False, id="with a user name"),
        pytest.param("a.b.example.", False, id="with a dot at the end"),
        pytest.param("", False, id="nothing"),
        pytest.param("ä.b.example", False, id="not in ASCII"),
        pytest.param("a" * 300 + ".example", False, id="too long"),
    ],
)
def test_an_app_proves_the_domain_of_an_https_redirect_uri(typed: str, good: bool) -> None:
    assert provable(APP) == ("a.b.example",)
    if good:
        assert check_domain(APP, typed) == typed
    else:
        with pytest.raises(Refused):
            check_domain(APP, typed)


def test_a_line_of_the_file_is_the_client_id() -> None:
    assert names_app(b"\xff\nown \r\nother", "own")
    assert not names_app(b"owner\nown other", "own")


def test_a_registration_of_the_previous_release_is_unverified() -> None:
    app = replace(APP, verified=True).with_domain("b.example", 5)
    row = msgpack.unpackb(app.pack())
    assert Registration.unpack(msgpack.packb(row)) == app
    del row["verified"], row["verifiedDomain"]
    old = Registration.unpack(msgpack.packb(row))
    assert (old.verified, old.domain) == (False, "")


def test_the_operator_can_verify_apps_and_revoke_that(home: Home) -> None:
    assert home.app("web", "--verified")["verified"] is True
    assert home.json("app", "update", "web", "--name", "Renamed")["verified"] is True
    taken = home.json("app", "update", "web", "--not-verified")
    assert (taken["verified"], taken["verifiedDomain"]) == (False, "")
