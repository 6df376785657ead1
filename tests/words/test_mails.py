"""Mails in the language and the time zone of the person who gets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dev.words import pseudo
from dev.words.pseudo import BACKWARDS, LONGER, backwards, longer
from handlers.core import mails
from handlers.core.brand.overrides import ours
from handlers.core.site import Site
from handlers.core.words.languages import Languages, shipped
from handlers.core.words.mail_text import mail_text
from handlers.core.words.wording import Wording
from handlers.developer.app_changes import changed_lines
from outbound.mail.mail import Mail
from outbound.mail.message import WIDTH, flowing, plain, plain_text
from outbound.mail.room import MailRoom
from runtime.http.tornado_private import ENCODER
from store.accounts.undoing import Undo
from store.apps.owners.undoing import taken_back_phrase
from store.apps.registration import Registration
from store.clock import wall
from store.phrases import Phrase
from store.results import Preferences, Profile, Visitor, Warned
from store.wiring import Store
from tests.support.browser.mailbox import Kept, link_in, mailer, until
from tests.support.http.driver import EMAIL, PASSWORD, Service, fields_of
from tests.support.lists.mail_names import mail_templates
from tests.support.lists.offenders import each
from tests.support.store.world import VISITOR

MADE = pseudo.languages()
BOTH = Languages([*shipped().all, *MADE.all])
NAMES = sorted(mail_templates())
# Values and addresses without letters, so that every letter is one of the template's.
VALUES: dict[str, Any] = dict.fromkeys(
    (
        *("address", "agent", "balance", "client", "identifier", "limit", "lines", "link", "name", "new", "old", "own"),
        *("share", "used_up", "who", "amount", "below", "news", "role", "reason", "active"),
    ),
    "1",
)


def paragraphs(what: str, wording: Wording, **values: Any) -> tuple[str, ...]:
    said = Phrase("A passkey was added to your account")
    given = {**VALUES, "at": wall.utc(), "deleted_at": wall.utc(), "said": said, "site": "9", **values}
    subject, texts = mail_text(ours(), what, wording, **given)
    return (subject, *texts)


def outside(text: str) -> str:
    """What of a text no message has: without messages, addresses, and marks for the direction."""
    while (shorter := re.sub("⟦[^⟦⟧]*⟧", "", text)) != text:
        text = shorter
    return re.sub(r"^9/\S+$", "", text, flags=re.MULTILINE)


@each("what", NAMES)
@pytest.mark.parametrize("row", [LONGER, BACKWARDS], ids=lambda row: row.code)
def test_every_text_of_a_mail_is_in_the_catalogue(what: str, row: Any) -> None:
    wording = Wording(MADE.by_code[row.code])
    for given in ("1", ""):
        choices = dict.fromkeys(
            (
                *("earlier", "last", "limit", "link", "lines", "own", "stopped", "who", "balance", "used_up", "below"),
                *("reason", "active"),
            ),
            given,
        )
        for text in paragraphs(what, wording, **choices):
            assert not re.search(r"[^\W\d_]", outside(text)), text


@each("what", NAMES)
def test_a_line_of_a_mail_is_short_and_an_address_stays_whole(what: str) -> None:
    link = f"https://id.example/reset?link={'x' * 200}"
    said = {"said": "A passkey was added to your account", "site": "https://id.example"}
    values = {**VALUES, "at": wall.utc(), "deleted_at": wall.utc(), **said}
    choices = dict.fromkeys(("earlier", "last", "stopped"), "yes") | {"link": link}
    text = mail_text(ours(), what, Wording(BOTH.default), **values | choices)
    whole = plain(text.whole)
    lines = whole.splitlines()
    assert all(len(line) <= WIDTH or line == link for line in lines)
    assert (link in lines) == (link in text.paragraphs)
    assert "\n\n\n" not in whole
    assert whole.endswith("\n")
    assert not whole.startswith("\n")
    assert flowing(whole) == text.whole


def test_mail_programs_break_the_lines_of_japanese() -> None:
    line = "https://id.example のアカウントの新しいパスワードの依頼がありました。" * 3
    assert plain(line) == line


@pytest.fixture
def box() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, box: Kept) -> Site:
    return Site(memory_store, base_url, mail=mailer(box), languages=BOTH)


async def settled(site: Site) -> None:
    await until(lambda: not site.tasks and not site.mail.queue)


async def change_password(service: Service, preferences: Preferences) -> None:
    browser = await service.signed_in()
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    await service.store.profiles.prefer(session, preferences, VISITOR)
    page = await browser.get("/account/security")
    form = {"current_password": PASSWORD, "new_password": "another horse battery"}
    done = await browser.submit(page, "/account/security", **form)
    assert done.code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize(("row", "say"), [(LONGER, longer), (BACKWARDS, backwards)], ids=["longer", "rtl"])
async def test_a_warning_is_in_the_persons_language_and_zone(
    service: Service, site: Site, box: Kept, row: Any, say: Any
) -> None:
    await change_password(service, Preferences(row.code, "Asia/Kolkata"))
    await settled(site)
    mail = await box.newest(EMAIL, say("Your password was changed"))
    text = plain_text(mail)
    assert say("Hello,") in text
    assert "UTC+5:30" in text
    assert mail["Content-Language"] == row.tag
    assert ("\N{FIRST STRONG ISOLATE}" in text) == (row is BACKWARDS), "values keep their own direction"


@pytest.mark.gen_test
async def test_a_warning_to_who_chose_nothing_is_in_the_servers_language(
    service: Service, site: Site, box: Kept
) -> None:
    """The browser that caused it may be a thief's, in a language that the person cannot read."""
    await change_password(service, Preferences("", ""))
    await settled(site)
    mail = await box.newest(EMAIL, "Your password was changed")
    assert mail["Content-Language"] == "en"
    assert " UTC\n" in plain_text(mail)


@pytest.mark.gen_test
async def test_a_mail_that_somebody_asked_for_is_in_the_language_of_the_request(
    service: Service, site: Site, box: Kept
) -> None:
    browser = service.browser()
    page = await browser.get("/forgot")
    form = {**fields_of(page, "/forgot"), "email": EMAIL}
    done = await browser.send("/forgot", "POST", form=form, headers={"Accept-Language": LONGER.tag})
    assert done.code == 200
    await settled(site)
    mail = await box.newest(EMAIL, longer("Set a new password"))
    assert link_in(mail).startswith("/reset?link=")
    assert mail["Content-Language"] == LONGER.tag


class Posted:
    """A mailer that keeps its mails."""

    confirms = True

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        self.room = MailRoom()

    def post(self, mail: Mail) -> None:
        """Keeps the mail."""
        self.mails.append(mail)


def lists_of(posted: Posted) -> Iterator[str]:
    for mail in posted.mails:
        yield from (line.removeprefix("- ") for line in mail.text.splitlines() if line.startswith("- "))


@pytest.mark.gen_test
async def test_lists_in_mails_are_in_the_persons_language(memory_store: Store) -> None:
    posted = Posted()
    site = Site(memory_store, "https://id.example", mail=posted, languages=BOTH)  # type: ignore[arg-type]  # keeps mails
    warned = Warned((EMAIL,), Preferences(LONGER.code, ""))
    app = Registration("mine", "Mine", ("https://a.example",), ("profile",), homepage="https://mine.example")
    fields = {"name": "Yours", "redirect_uris": tuple(f"https://{number}.example" for number in range(40))}
    owner = Profile("u1", EMAIL, True, "Ada", "", warned)
    mails.app_changed(site, owner, app, changed_lines(app, {**fields, "require_pushed": True}), VISITOR)
    own = {"mine": taken_back_phrase(off=True, ended=True)}
    apps: dict[str, Any] = {"ended": ("one",), "lowered": ("two",), "paused": ("three",)}
    undo = Undo("u1", EMAIL, EMAIL, False, False, own=own, warned=warned, **apps)
    mails.taken_back(site, undo, Visitor())
    lines = list(lists_of(posted))
    assert len(lines) == mails.MOST_LINES + 1 + 4
    assert [line for line in lines if not line.startswith("⟦")] == []


@pytest.mark.parametrize("code", ["de", "ja"])
def test_a_message_among_the_values_of_a_mail_has_no_signs_of_a_page(code: str) -> None:
    message = Phrase("E-mail address changed") if code == "de" else Phrase("Your password was changed.")
    wording = Wording(shipped().by_code[code])
    assert wording.plain_names()[ENCODER](message).decode() == wording.say(message)
