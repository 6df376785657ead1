"""Mails as HTML: the same sentences and links as the text, in the brand's dress, and nothing from elsewhere."""

from __future__ import annotations

import asyncio
import html
import logging
import re
from dataclasses import replace
from email.message import EmailMessage
from typing import Any

import pytest

from dev.words import pseudo
from dev.words.pseudo import BACKWARDS
from handlers.core import mails
from handlers.core.brand.brand import SVG, Asset, Brand
from handlers.core.brand.images import logo_of
from handlers.core.brand.mail_dress import MailDress, parts_of
from handlers.core.brand.overrides import Templates, ours
from handlers.core.pictures.image_upload import app_logo_of
from handlers.core.site import Site
from handlers.core.words.languages import Language, shipped
from handlers.core.words.mail_text import mail_text
from handlers.core.words.wording import Wording
from outbound.mail.mail import HtmlBody, Mail
from outbound.mail.message import compose, plain_text
from store.apps.registration import Registration
from store.clock import wall
from store.phrases import Phrase
from store.results import NO_CHOICE, Profile, Warned
from store.wiring import Store
from tests.support.browser.mailbox import MAIL, Kept, mailer, until
from tests.support.browser.pictures import RED, drawn
from tests.support.http.driver import EMAIL
from tests.support.lists.mail_names import mail_templates
from tests.support.lists.offenders import each
from tests.support.store.world import CALLBACK, VISITOR

NAMES = sorted(mail_templates())
SITE = "https://id.example"
HOSTILE = "<script>alert(1)</script>"
LINES = "\n".join(["- Redirect URI added: https://evil.example/", f"- {HOSTILE}"])
VALUES: dict[str, Any] = {
    "role": Phrase.known("Support"),
    **{"balance": "", "share": "80%", "used_up": "yes", "amount": "$5.00", "below": "yes", "news": "taken"},
    **dict.fromkeys(
        ("address", "agent", "client", "identifier", "limit", "name", "new", "old", "who", "reason"), HOSTILE
    ),
    **{"lines": LINES, "own": LINES, "site": SITE, "said": Phrase("A passkey was added to your account")},
    **dict.fromkeys(("earlier", "last", "stopped", "active"), "yes"),
    "link": f"{SITE}/reset?link={'x' * 200}&next=%2F",
}


async def no_logo(client_id: str, logo: str) -> bytes:
    """No app has one."""
    return b""


def mail_of(what: str, language: Language, **facts: Any) -> Mail:
    text = mail_text(ours(), what, Wording(language), **{**VALUES, "at": wall.utc(), "deleted_at": wall.utc()})
    return Mail(what, EMAIL, text.subject, text.whole, True, what in mails.TAKES_BACK, language=language.tag, **facts)


def body_of(mail: Mail, brand: Brand | None = None, language: Language | None = None) -> HtmlBody:
    dress = MailDress(ours(), brand or Brand(), SITE, language or shipped().default, no_logo)
    return asyncio.run(dress.body(mail))


def words(markup: str) -> list[str]:
    return html.unescape(re.sub(r"<[^>]*>", " ", markup)).split()


def card_of(body: HtmlBody) -> str:
    """What is between the heading and the foot."""
    return body.html.partition("</h1>")[2].partition('<td class="muted"')[0]


@each("what", NAMES)
def test_both_parts_have_the_same_sentences_and_links(what: str) -> None:
    mail = mail_of(what, shipped().default)
    body = body_of(mail)
    general = "Open the page"
    expected: list[str] = []
    for part in mail.text.strip("\n").split("\n\n"):
        label = mail.subject if "?link=" in part and not mail.undo else general
        expected += [*(label.split() if part.startswith(SITE) else ()), *re.sub("^- ", "", part, flags=re.M).split()]
    assert words(card_of(body)) == expected
    assert words(body.html.partition("<h1")[2].partition("</h1>")[0].partition(">")[2]) == mail.subject.split()
    addresses = re.findall(rf"^{SITE}/\S+$", mail.text, re.M)
    assert re.findall(r'href="([^"]*)"', card_of(body)) == [html.escape(one) for one in addresses for _ in range(2)]


@each("what", NAMES)
def test_a_value_is_escaped_and_nothing_is_loaded(what: str) -> None:
    body = body_of(mail_of(what, shipped().default)).html
    assert "<script" not in body
    assert not re.findall(r'src="(?!cid:)|url\(|@import|<link|\bon\w+="', body)
    assert len(body.encode()) < 40_000


def test_only_addresses_of_this_server_become_buttons() -> None:
    text = f"https://evil.example/\n\n{SITE}.evil.example/\n\n{SITE}/forgot\n\n{SITE}/a and more\n\n- {SITE}/forgot\n"
    assert [part.kind for part in parts_of(text, SITE)] == ["text", "text", "address", "text", "list"]


def test_a_mail_is_in_the_language_and_direction_of_its_reader() -> None:
    language = pseudo.languages().by_code[BACKWARDS.code]
    body = body_of(mail_of("reset", language), language=language).html
    assert f'<html lang="{language.tag}" dir="rtl">' in body


def test_the_text_comes_first_and_the_logo_is_inside() -> None:
    brand = replace(Brand(), name="Acme", footer="Acme Ltd.", help="mailto:help@acme.example", terms="/terms")
    brand = replace(brand, logo=logo_of(drawn(size=(300, 60))))
    mail = mail_of("reset", shipped().default)
    message = compose(mail, "noreply@id.example", body=body_of(mail, brand))
    assert message.get_content_type() == "multipart/alternative"
    first, second = message.iter_parts()
    assert isinstance(first, EmailMessage)
    assert isinstance(second, EmailMessage)
    assert (first.get_content_type(), second.get_content_type()) == ("text/plain", "multipart/related")
    assert VALUES["link"] in plain_text(message)
    page, logo = second.iter_parts()
    assert isinstance(logo, EmailMessage)
    assert logo.get_content_type() == "image/png"
    assert f'src="cid:{logo["Content-ID"][1:-1]}"' in page.get_content()
    assert all(
        text in page.get_content() for text in ("Acme", "Acme Ltd.", "mailto:help@acme.example", f"{SITE}/terms")
    )
    assert max(map(len, message.as_bytes().split(b"\r\n"))) <= 998


def test_a_brand_without_a_picture_has_its_letter_and_colours() -> None:
    body = body_of(
        mail_of("reset", shipped().default), replace(Brand(), name="Acme", logo=Asset.of(SVG, b"<svg/>", 32, 32))
    )
    assert ">A</td>" in body.html
    assert Brand().palettes[0].accent in body.html
    assert body.images == ()


@pytest.mark.gen_test
async def test_a_mistake_in_the_brands_layout_keeps_no_mail_back(caplog: pytest.LogCaptureFixture) -> None:
    broken = MailDress(Templates({"mail/layout.html": "{{ 1 / 0 }}"}), Brand(), SITE, shipped().default, no_logo)
    box = Kept()
    sender = mailer(box)
    sender.post(replace(MAIL, dress=broken))
    await until(lambda: not sender.queue)
    (sent,) = box.mails
    assert sent.get_content_type() == "text/plain"
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [
        "mail reset is sent as text alone: ZeroDivisionError"
    ]


@pytest.mark.gen_test
async def test_a_mail_about_an_app_of_ones_own_has_its_logo(memory_store: Store) -> None:
    box = Kept()
    site = Site(memory_store, SITE, mail=mailer(box))
    app, _ = await memory_store.apps.create(
        Registration("mine", "Mine", (CALLBACK,), ("profile",)), logo=app_logo_of(drawn(colour=RED))
    )
    owner = Profile("u1", EMAIL, True, "Ada", "", Warned((EMAIL,), NO_CHOICE))
    mails.app_changed(site, owner, app, [Phrase("Logo changed")], VISITOR)
    await until(lambda: not site.mail.queue)
    mails.app_changed(site, owner, replace(app, logo="x" * 22), [Phrase("Logo changed")], VISITOR)
    await until(lambda: not site.mail.queue)
    kinds = [[part.get_content_type() for part in mail.walk()] for mail in box.mails]
    assert kinds[0] == ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]
    assert "image/png" not in kinds[1], "another one by now"
