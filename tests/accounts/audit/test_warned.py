"""Warnings after an address change also go to the old address, while a link can restore it."""

from __future__ import annotations

import pytest

from handlers.core.person_posts import OWNER, PERSON
from handlers.routes import POSTS
from outbound.mail.message import plain_text
from store.wiring import Store
from tests.accounts.audit.test_person_posts import HONEST, PASSWORDS, Victim, sends
from tests.accounts.test_undo_address import undo_of
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, RESET, Post
from tests.support.browser.mailbox import words_of
from tests.support.browser.pages import ROOT
from tests.support.browser.second_factors import SECURITY, Person
from tests.support.http.driver import EMAIL, PASSWORD, Browser, fields_of
from tests.support.lists.mail_names import mail_templates
from tests.support.processes.engines import FakeClock
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

THIEF, OTHER, A_WEEK = "thief@example.com", "thief@example.net", 7 * 86_400
LINKS = {
    *("address_taken", "change", "confirm", "no_account", "reset", "signup", "signup_again", "taken_back"),
    *("team_invitation", "credits/notice", "credits/payment", "operators/role_changed"),
    *("operators/deletion_planned", "operators/deletion_cancelled", "operators/app_suspended"),
    "operators/address_changed",
}
"""Requested mails, notices of limits and of what operators did, each for one address only."""
CHANGED = "Your e-mail address was changed"


async def moves(post: Post, browser: Browser, new: str = THIEF) -> None:
    """A person with the browser changes the account's address."""
    page = await browser.get("/account/email")
    await browser.submit(page, "/account/email", email=new, current_password=PASSWORD)
    await browser.submit(await browser.get(await post.link(new, CHANGE)), "/account/email/change")
    await post.settled()


def test_every_mail_is_a_link_to_one_address_or_a_warning_to_all() -> None:
    words = {what: path.read_text() for what, path in mail_templates().items()}
    both = ("{% if earlier %}", '{% include "parts/earlier.txt" %}')
    assert {what for what, text in words.items() if not any(part in text for part in both)} == LINKS
    sources = ("core/mails.py", "developer/team/team_mails.py", "admin/operator_mails.py")
    source = "".join((ROOT / "handlers" / path).read_text() for path in sources)
    assert all(f'"{what}"' in source for what in words), "and one of these writes it"


@pytest.mark.parametrize(
    "route",
    [route for route in (*HONEST, "developer-delete") if {PERSON, OWNER} & set(POSTS[route].tells)],
)
async def test_changes_after_an_address_change_are_mailed_to_the_old_address(post: Post, route: str) -> None:
    ada = await Victim.make(post.service, second=False)
    await moves(post, ada.browser)
    counts = {address: len(post.mails.to(address)) for address in (EMAIL, THIEF)}
    answer = await sends(ada.browser, ada, route, PASSWORDS)
    await post.settled()
    assert answer.code in (200, 303), answer.body
    for address, before in counts.items():
        new = post.mails.to(address)[before:]
        assert len(new) == 1, (address, [mail["Subject"] for mail in new])
        assert ("take your account back" in words_of(new[0])) == (address == EMAIL)


async def test_account_deletion_is_mailed_to_every_address(post: Post) -> None:
    ada = await Victim.make(post.service, second=False)
    await moves(post, ada.browser)
    xsrf = fields_of(await ada.browser.get(SECURITY), "/signout")["_xsrf"]
    form = {"email": THIEF, "password": PASSWORD, "_xsrf": xsrf}
    assert (await ada.browser.send("/account/delete", "POST", form=form)).code == 303
    for address in (EMAIL, THIEF):
        mail = await post.mails.newest(address, "Your account was deleted")
        assert ("about that change no longer works" in words_of(mail)) == (address == EMAIL)


async def test_sign_ins_factors_and_wrong_codes_are_mailed_to_every_address(post: Post, clock: FakeClock) -> None:
    thief = await Person.arrive(post.service)
    await moves(post, thief.browser)
    await thief.add_app()
    await thief.reauth(await thief.code())
    page = await thief.browser.get(SECURITY)
    await thief.browser.submit(page, f"{SECURITY}/recovery")
    page = await thief.browser.get(SECURITY)
    for _ in range(5):
        page = await thief.browser.submit(page, f"{SECURITY}/confirm", password=PASSWORD, code="000000")
    await post.settled()
    sent = [[mail["Subject"] for mail in post.mails.to(address)] for address in (EMAIL, THIEF)]
    old, new = sent[0][sent[0].index(CHANGED) + 1 :], sent[1][1:]
    assert old == new
    assert len(new) >= 3, new
    powerful = [mail for mail in post.mails.to(EMAIL) if "link=" in plain_text(mail)]
    assert [mail["Subject"] for mail in powerful] == [CHANGED], "no link of the new address goes to the old one"


async def test_after_several_changes_every_earlier_address_is_warned(post: Post) -> None:
    browser = await post.service.signed_in()
    await moves(post, browser)
    await moves(post, browser, OTHER)
    assert [mail["Subject"] for mail in post.mails.to(EMAIL)].count(CHANGED) == 2
    (first, second) = [plain_text(mail) for mail in post.mails.to(EMAIL) if mail["Subject"] == CHANGED]
    assert "link=" in first
    assert "link=" not in second, "the link that takes the second one back is for the address of then"


async def test_a_password_reset_is_mailed_to_the_old_address(post: Post) -> None:
    await moves(post, await post.service.signed_in())
    await post.forgot(THIEF)
    browser = post.service.browser()
    page = await browser.get(await post.link(THIEF, RESET))
    await browser.submit(page, "/reset", new_password="another horse battery")
    await post.mails.newest(EMAIL, "Your password was changed")


async def test_old_addresses_get_no_mail_after_a_week_or_after_the_undo_link(
    clock: FakeClock, memory_store: Store
) -> None:
    world = await World.make(memory_store)
    undo = await undo_of(world, THIEF)
    assert (await memory_store.sessions.profile(world.session)).warned.addresses == (THIEF, world.email)
    await memory_store.undoing.undo(undo, VISITOR)
    reset = await memory_store.links.to_reset(world.user, world.email)
    assert reset
    await memory_store.links.reset(reset.text, PASSWORD, VISITOR)
    world.session = await world.sign_in()
    assert (await memory_store.sessions.profile(world.session)).warned.addresses == (world.email,)
    await undo_of(world, OTHER)
    clock.advance(A_WEEK + 60)
    world.session = await world.sign_in(OTHER)
    assert (await memory_store.sessions.profile(world.session)).warned.addresses == (OTHER,)
