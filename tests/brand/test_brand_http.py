"""A server with a brand: its pages, the files that they load, mails, and every place that shows a name."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.brand.brand import Brand
from handlers.core.brand.overrides import templates_of
from handlers.core.brand.reading import load_brand
from handlers.core.site import Site
from outbound.mail.message import compose
from tests.conftest import OpenStore
from tests.support.browser.mailbox import MAIL
from tests.support.browser.own_apps import register
from tests.support.browser.pictures import drawn
from tests.support.browser.second_factors import APP
from tests.support.data.brands import LOGO, write_brand
from tests.support.http.driver import Browser, Service, fields_of, json_of

pytestmark = pytest.mark.gen_test

TABLE = {
    "name": "Acme & Sons",
    "logo": "logo.png",
    "logo_dark": "logo.svg",
    "favicon": "logo.png",
    "color": "#1f4fd8",
    "terms": "https://acme.example/terms?a=1&b=2",
    "privacy": "/privacy",
    "help": "mailto:help@acme.example",
    "footer": "A <b>foot</b> of our own.",
    "css": "own.css",
    "templates": "templates",
}


@pytest.fixture
def brand(tmp_path: Path) -> Brand:
    (tmp_path / "logo.png").write_bytes(drawn("PNG", (400, 100)))
    (tmp_path / "logo.svg").write_text(LOGO)
    (tmp_path / "own.css").write_text("body { letter-spacing: 0 }")
    (tmp_path / "templates" / "base").mkdir(parents=True)
    (tmp_path / "templates" / "base" / "home.html").write_text(
        '{% extends "layout.html" %}{% block content %}A front page of {{ product }}.{% end %}'
    )
    return load_brand(write_brand(tmp_path, **TABLE))


@pytest.fixture
def site(open_store: OpenStore, base_url: str, brand: Brand) -> Site:
    return Site(open_store("memory"), base_url, brand=brand, templates=templates_of(brand.templates))


async def text_of(browser: Browser, path: str) -> str:
    return (await browser.get(path)).body.decode()


def loaded(page: str) -> list[str]:
    """The addresses of the brand's files that a page loads."""
    return re.findall(r'(?:href|src|srcset)="(/brand/[^"]+)"', page)


async def test_a_page_has_the_brands_name_logos_links_and_foot(service: Service) -> None:
    page = await text_of(service.browser(), "/signin")
    assert "Latchkey" not in page
    assert "<title>Sign in · Acme &amp; Sons</title>" in page
    assert 'alt="Acme &amp; Sons" width="128" height="32"' in page
    assert "A &lt;b&gt;foot&lt;/b&gt; of our own." in page
    assert 'href="https://acme.example/terms?a=1&amp;b=2"' in page
    assert 'href="/privacy"' in page
    assert 'href="mailto:help@acme.example"' in page
    assert 'media="(prefers-color-scheme: dark)"' in page


async def test_a_narrow_logo_has_the_name_next_to_it(service: Service, site: Site, app: Any, tmp_path: Path) -> None:
    app.site = replace(site, brand=load_brand(write_brand(tmp_path, name="Acme")))
    page = await text_of(service.browser(), "/signin")
    assert 'alt="" width="32" height="32"' in page
    assert "<span>Acme</span>" in page


async def test_the_brands_files_are_served_for_good(service: Service) -> None:
    browser = service.browser()
    page = await browser.get("/signin")
    policy = page.headers["Content-Security-Policy"]
    assert "style-src 'self'; img-src 'self' data:" in policy
    addresses = loaded(page.body.decode())
    kinds = []
    for address in addresses:
        answer = await browser.get(address)
        assert answer.code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "Set-Cookie" not in answer.headers
        kinds.append(answer.headers["Content-Type"])
    css = "text/css; charset=UTF-8"
    assert kinds == ["image/png", css, css, "image/svg+xml", "image/webp"]


@pytest.mark.parametrize("name", ["x.css", "..%2fbrand.toml", "%2e%2e%2f", "a" * 3000, "a%00b"])
async def test_other_files_are_not_found(service: Service, name: str) -> None:
    assert (await service.browser().get(f"/brand/{name}")).code == 404


async def test_the_files_of_the_brand_before_are_served_to_pages_that_are_open(
    service: Service, site: Site, app: Any
) -> None:
    browser = service.browser()
    (first, *_) = loaded(await text_of(browser, "/signin"))
    app.site = replace(site, brand=Brand(), brand_before=site.brand)
    assert (await browser.get(first)).code == 200
    app.site = replace(site, brand=Brand(), brand_before=Brand())
    assert (await browser.get(first)).code == 404


async def test_a_template_of_the_brand_replaces_ours(service: Service, site: Site, app: Any) -> None:
    assert "A front page of Acme &amp; Sons." in await text_of(service.browser(), "/")
    app.site = Site(site.store, site.base_url)
    assert "One sign-in. You decide" in await text_of(service.browser(), "/")


async def test_error_pages_have_the_brand(service: Service) -> None:
    page = await text_of(service.browser(), "/nothing")
    assert "Acme &amp; Sons" in page
    assert "Latchkey" not in page


async def test_no_page_names_latchkey(service: Service) -> None:
    browser = await service.signed_in()
    paths = ("/account", "/account/apps", "/account/credits", "/account/security", "/developer/apps", "/signup")
    named = [path for path in paths if "latchkey" in visible(await browser.get(path)).lower()]
    assert named == []


def visible(page: HTTPResponse) -> str:
    return re.sub(r"<[^>]*>", " ", page.body.decode())


async def test_without_a_brand_nothing_changes(service: Service, site: Site, app: Any) -> None:
    app.site = Site(site.store, site.base_url)
    page = await text_of(service.browser(), "/signin")
    assert loaded(page) == []
    assert "<span>Latchkey</span>" in page
    assert "Apps get only what you allow." in page
    assert 'class="rules"' not in page


async def test_an_authenticator_app_and_a_passkey_show_the_brands_name(service: Service) -> None:
    browser = await service.confirmed()
    page = await text_of(browser, APP)
    assert "otpauth://totp/Acme%20%26%20Sons:" in unquote(page.replace("%", "%25"))
    shown = await browser.get("/account/security")
    options = "/account/security/passkeys/options"
    xsrf = fields_of(shown, options.removesuffix("/options"))["_xsrf"]
    answer = await browser.send(options, "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"})
    assert json_of(answer)["publicKey"]["rp"]["name"] == "Acme & Sons"


async def test_the_metadata_of_our_own_api_have_the_brands_name(service: Service) -> None:
    answer = await service.browser().get("/.well-known/oauth-protected-resource")
    assert json_of(answer)["resource_name"] == "Acme & Sons"


async def test_nobody_names_an_app_like_the_server(service: Service) -> None:
    browser = await service.signed_in()
    refused = await register(browser, name="\u0410cme & S0ns Help")
    assert refused.code == 400
    refused = await register(browser, name="Acme & S0ns Help")
    assert "can't be Acme & Sons, or look like it" in html.unescape(refused.body.decode())
    assert (await register(browser, name="Sons of Acme")).code == 200


async def test_an_older_app_with_the_servers_name_is_marked(service: Service) -> None:
    browser = await service.signed_in()
    await service.store.apps.update("web-app", name="Acme & Sons Help", owner=service.ada)
    page = await text_of(browser, service.web.authorize_url())
    assert "Its name looks like Acme &amp; Sons," in page
    await service.store.apps.update("web-app", owner="")
    page = await text_of(browser, service.web.authorize_url())
    assert "Its name looks like" not in page


def test_mails_come_from_the_brands_name() -> None:
    found = compose(MAIL, "noreply@acme.example", name='Acme "&" Sons, Ärger')
    assert found["From"].addresses[0].display_name == 'Acme "&" Sons, Ärger'
    assert found["From"].addresses[0].addr_spec == "noreply@acme.example"
    assert compose(MAIL, "noreply@acme.example")["From"].addresses[0].display_name == "Latchkey"
