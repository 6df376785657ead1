"""The documentation in the portal: the app's values in it, never a secret, and nothing that a value can break."""

from __future__ import annotations

import re

import pytest

from handlers.guides import guide_values
from handlers.guides.guide_text import DOCS, GuidePart, Showing, guide_page, page_of, shown_part
from handlers.guides.guide_values import filler
from handlers.guides.pages import PARTED, TITLES
from store.apps.registration import Registration
from tests.support.browser.own_apps import facts, own_app, site
from tests.support.browser.pages import Page
from tests.support.http.driver import Service, send, text_of

__all__ = ["facts", "site"]  # fixtures
HOSTILE = "https://app.example/cb?a='$(touch%20x)&b=;$HOME!n&c='';exit;"
MOST_BYTES = 30_000
"""The frame of a page takes some 5 KB more."""
EXAMPLES = ("BASE_URL", "CLIENT_ID", "COMMAND_ID", "REDIRECT_URI", "WEBHOOK_URL", "SCOPE", "METHOD")


def shown(part: GuidePart, app: Registration) -> str:
    same = Showing(filler(app, "https://id.test"), str, "code {}".format, "copy {}".format, "table {}".format)
    return shown_part(part, same)


def registration(public: bool = False) -> Registration:
    return Registration(
        "the-app", "The app", (HOSTILE,), ("openid", "profile", "data:read"), public=public, pkce_required=public
    )


@pytest.mark.gen_test
async def test_owners_read_the_guides_with_the_values_of_their_app(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    hook = "https://mine.example/hooks/latchkey?a=1&b=2"
    await service.store.apps.update(app.client_id, webhook_url=hook)
    assert f"{where}/guides/clients" in (await browser.get(where)).body.decode()
    assert f"{where}/guides/webhooks" in (await browser.get(f"{where}/webhooks")).body.decode()
    webhooks = text_of(await browser.get(f"{where}/guides/webhooks"))
    for expected in (
        f'"client_id":"{app.client_id}"',
        "POST /hooks/latchkey?a=1&b=2 HTTP/1.1 Host: mine.example",
        hook,
    ):
        assert expected in webhooks
    assert guide_values.WEBHOOK_URL not in webhooks
    library = await browser.get(f"{where}/guides/clients/openid-client")
    for expected in (f'issuer: "{service.base_url}"', f'clientId: "{app.client_id}"', app.redirect_uri, "process.env"):
        assert expected in text_of(library)
    for page in (library, await browser.get(f"{where}/guides/webhooks")):
        assert app.secret
        assert app.secret not in page.body.decode()
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")


@pytest.mark.gen_test
async def test_only_the_owner_reads_them_and_other_names_are_not_found(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.add_person("eve@example.com")
    other = await service.confirmed("eve@example.com")
    guide = f"/developer/apps/{app.client_id}/guides/clients"
    assert (await other.get(guide)).code == 404
    assert (await send(service.base_url + guide)).code == 303
    for name in (f"{guide}/no-such-library", f"{guide[:-7]}security", f"{guide}/..%2fsecurity", f"{guide}/"):
        assert (await browser.get(name)).code == 404


@pytest.mark.parametrize("name", TITLES)
def test_every_link_of_a_guide_leads_to_a_part_or_an_anchor(name: str) -> None:
    page = guide_page(name, parted=name in PARTED)
    slugs = [part.slug for part in page.parts]
    assert len(slugs) == len(set(slugs))
    for part in page.parts:
        assert re.fullmatch(r"|[a-z0-9-]{1,60}", part.slug)
        elements = Page(f"<main>{shown(part, registration())}</main>")
        ids = {one.get("id") for one in elements.elements if one.get("id")}
        assert len(shown(part, registration())) < MOST_BYTES
        for link in elements.all("a"):
            file, _, anchor = link.get("href").partition("#")
            if not file:
                assert page.anchors[anchor] != part.slug or anchor in ids | {part.slug}


def test_a_hostile_value_stays_text_and_is_quoted_in_commands() -> None:
    (part,) = page_of(
        "# Guide\n\nAt https://app.example.com/callback: `latchkey x https://app.example.com/callback`.\n\n"
        "```sh\nrun https://app.example.com/callback\n```\n",
        parted=False,
    ).parts
    html = shown(part, registration())
    page = Page(f"<main>{html}</main>")
    assert [one.tag for one in page.elements] == ["main", "p", "code", "pre"]
    (paragraph,), (code,) = page.all("p"), page.all("pre")
    quoted = """'https://app.example/cb?a='"'"'$(touch%20x)&b=;$HOME!n&c='"'"''"'"';exit;'"""
    assert paragraph.text == f"At {HOSTILE}: latchkey x {quoted}."
    assert code.text == f"run {quoted}\n"


def test_html_and_pictures_in_a_page_are_dropped_and_dangerous_links_are_text() -> None:
    text = (
        "# Guide\n\n<script>alert(1)</script>\n\nSome <b onclick=x>words</b> ![a](https://a.test/x.png)\n\n"
        "[go](javascript:alert(1)) & `<i>`\n\n<!-- a comment -->\n"
    )
    (part,) = page_of(text, parted=False).parts
    html = shown(part, registration())
    assert [one.tag for one in Page(f"<main>{html}</main>").elements] == ["main", "p", "p", "code"]
    assert "javascript" not in html or 'href="javascript' not in html
    assert "<code>&lt;i&gt;</code>" in html


def test_a_public_app_reads_no_line_with_a_secret() -> None:
    page = guide_page("clients", parted=True)
    for slug, secret in (
        ("openid-client", "process.env.CLIENT_SECRET"),
        ("requests-oauthlib", 'environ["CLIENT_SECRET"]'),
    ):
        part = page.part(slug)
        assert part is not None
        assert secret in shown(part, registration()).replace("&quot;", '"')
        assert secret not in shown(part, registration(public=True)).replace("&quot;", '"')
    part = page.part("authjs")
    assert part is not None
    assert "how: &quot;none&quot;" in shown(part, registration(public=True))
    assert "scope: &quot;profile data:read&quot;" in shown(part, registration())


def test_the_examples_that_values_replace_are_in_the_documentation() -> None:
    text = "".join((DOCS / f"{name}.md").read_text("utf-8") for name in TITLES)
    for name in EXAMPLES:
        assert getattr(guide_values, name) in text, name
    assert "POST /webhooks HTTP/1.1\nHost: app.example.com\n" in text
