"""The demo's inbox: which mails it shows, which links it makes, and who may open it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from handlers.core.application import Latchkey
from handlers.core.site import Site
from handlers.ops.inbox import LinkedText, add_inbox, parts_of
from handlers.routes import ROUTES, make_application
from outbound.mail.inbox import MOST, Inbox
from outbound.mail.mail import Mail
from outbound.mail.mailer import Mailer, Spool
from runtime import demo
from runtime.outbound_wiring import open_inbox
from settings.declared import Settings
from store.apps.registration import Registration
from store.wiring import Store
from tests.support.http.driver import EMAIL, Service, send

pytestmark = pytest.mark.gen_test


@pytest.fixture
def site(memory_store: Store, base_url: str, tmp_path: Path) -> Site:
    """A site whose mails go to a folder, and to the inbox of a demo."""
    mailer = Mailer(Spool(tmp_path), "noreply@localhost", confirms=False)
    return Site(memory_store, base_url, mail=mailer, inbox=Inbox(tmp_path), demo=demo.FACTS)


@pytest.fixture
def app(site: Site) -> Latchkey:
    """The application of a demo."""
    application = make_application(site)
    add_inbox(application)
    return application


async def test_a_reset_from_page_to_mail_to_page(service: Service, app: Latchkey) -> None:
    browser = service.browser()
    sent = await browser.submit(await browser.get("/forgot"), "/forgot", email=EMAIL)
    assert b'href="/inbox"' in sent.body
    assert b"data directory" not in sent.body
    await asyncio.gather(*app.site.tasks)
    await app.site.mail.close(5)
    page = (await browser.get("/inbox")).body.decode()
    assert f"To {EMAIL}" in page
    (path,) = re.findall(r'href="(/inbox/[^"]+)"', page)
    mail = (await browser.get(path)).body.decode()
    (link,) = re.findall(r'<a href="([^"]+/reset\?link=[^"]+)"', mail)
    assert "\r" not in mail, "a browser breaks the line at it"
    assert (await browser.get(link.replace("&amp;", "&"))).code == 200
    assert b'href="/inbox"' in (await browser.get("/")).body


async def test_it_lists_the_newest_and_reads_no_other_file(service: Service, tmp_path: Path) -> None:
    names = []
    for number in range(MOST + 2):
        names.append(f"{number:020d}-{number:08x}")
        (tmp_path / f"{names[-1]}.eml").write_text(f"Subject: number {number}.\nTo: a@b.example\n\ntext {number}")
    (tmp_path / "odd.eml").write_text("Subject: odd\n\n")
    (tmp_path / "half").write_text("Subject: half\n\n")
    text = (await service.browser().get("/inbox")).body.decode()
    assert re.findall(r"number (\d+)\.", text)[:2] == [str(MOST + 1), str(MOST)]
    assert "odd" not in text
    for path in ("odd", "half", "..%2Fodd", f"{names[0]}.eml", f"{names[0]}%00", "9" * 20 + "-" + "0" * 8):
        assert (await service.browser().get(f"/inbox/{path}")).code == 404
    assert b"text 0" in (await service.browser().get(f"/inbox/{names[0]}")).body


async def test_only_addresses_of_this_server_become_links() -> None:
    base = "http://localhost:8080"
    text = f"Open {base}/reset?link=a_-b. Or https://evil.example/ or {base}.evil.example/x or {base}"
    links = [part.href for part in parts_of(text, base) if part.href]
    assert links == [f"{base}/reset?link=a_-b"]
    assert "".join(part.text for part in parts_of(text, base)) == text
    assert parts_of("", base) == []
    assert parts_of("<b>", base) == [LinkedText("<b>")]


async def test_a_mail_is_shown_as_text(service: Service, app: Latchkey) -> None:
    hostile = "<script>alert(1)</script>"
    app.site.mail.post(Mail("test", EMAIL, f"About {hostile}", f'{hostile}\n{service.base_url}/x"><i>'))
    await app.site.mail.close(5)
    page = (await service.browser().get("/inbox")).body.decode()
    (path,) = re.findall(r'href="(/inbox/[^"]+)"', page)
    mail = (await service.browser().get(path)).body.decode()
    for text in (page, mail):
        assert "<script" not in text.partition("<main")[2]
        assert "<i>" not in text


async def test_it_is_for_the_person_at_this_machine(service: Service) -> None:
    url = f"{service.base_url}/inbox"
    assert (await send(url)).code == 200
    for headers in (
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"X-Forwarded-For": "192.0.2.1"},
        {"Forwarded": "for=192.0.2.1"},
        {"Via": "1.1 proxy"},
    ):
        assert (await send(url, headers=headers)).code == 403, headers


async def test_the_way_to_the_demo_app(service: Service, app: Latchkey, memory_store: Store) -> None:
    assert (await send(f"{service.base_url}/demo")).code == 404
    back = ("http://localhost:8090/callback",)
    registered = Registration(demo.CLIENT_ID, "Leaf", scopes=("profile",), redirect_uris=back)
    await memory_store.apps.create(registered, "secret")
    sent = await send(f"{service.base_url}/demo")
    assert (sent.code, sent.headers["Location"]) == (303, "http://localhost:8090/")
    front = (await service.browser().get("/")).body.decode()
    assert 'href="/demo"' in front
    assert demo.PASSWORD in front
    app.site = replace(app.site, demo=None)
    assert (await send(f"{service.base_url}/demo")).code == 404
    assert "/demo" not in (await service.browser().get("/")).body.decode()


async def test_no_other_server_has_it(service: Service, app: Latchkey) -> None:
    assert not any(route.pattern.startswith("/inbox") for route in ROUTES)
    plain = Settings(data_dir=Path("data"))
    assert open_inbox(replace(plain, demo=True)) is not None
    assert open_inbox(plain) is None
    assert open_inbox(replace(plain, smtp_url="smtp://mail.example", demo=True)) is None
    # A reload may name a mail server: from then on the folder gets no mail, and its mails are no demo's any more.
    app.site.mail.turn_into(Mailer(Spool(None), "noreply@localhost", confirms=True))
    assert (await service.browser().get("/inbox")).code == 404
    assert b"/inbox" not in (await service.browser().get("/")).body
