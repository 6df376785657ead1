"""Mails sent by handlers: the text of a mail about many changes, and whom each mail counts for."""

from __future__ import annotations

import pytest

from handlers.core import mails
from handlers.core.site import Site
from handlers.developer.app_changes import changed_lines
from outbound.mail.mail import Mail
from outbound.mail.room import (
    MailRoom,
)
from store.accounts.links import AddressChange, Link
from store.accounts.undoing import Undo
from store.apps.registration import MAX_REDIRECT_URIS, Registration
from store.results import Profile, Visitor, Warned
from store.wiring import Store
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)
BASE_URL, STRANGER = "https://id.example", "203.0.113.7"


class Posted:
    """A mailer that keeps its mails."""

    confirms = True

    def __init__(self) -> None:
        self.letters: list[Mail] = []
        self.room = MailRoom()

    def post(self, letter: Mail) -> None:
        """Keeps the mail."""
        self.letters.append(letter)


async def test_a_mail_about_many_changes_of_an_app_is_short_and_names_every_new_address(
    memory_store: Store,
) -> None:
    def uris(word: str) -> tuple[str, ...]:
        return tuple(f"https://{word}{number}.example/{'x' * 1900}" for number in range(MAX_REDIRECT_URIS))

    app = Registration("mine", "Mine", homepage="https://mine.example", redirect_uris=uris("old"), scopes=("profile",))
    lines = changed_lines(app, {"name": "Yours", "redirect_uris": uris("new"), "homepage": "https://you.example"})
    assert len(lines) == 2 * MAX_REDIRECT_URIS + 2
    posted = Posted()
    site = Site(memory_store, BASE_URL, mail=posted)  # type: ignore[arg-type]  # keeps mails
    owner = Profile("u1", "ada@example.com", True, "Ada", "", Warned(("ada@example.com", "old@example.com")))
    mails.app_changed(site, owner, app, lines, VISITOR)
    for letter in posted.letters:
        assert len(letter.text) < 8_000
        assert all(f"https://new{number}.example/" in letter.text for number in range(MAX_REDIRECT_URIS))
        assert f"- and {len(lines) - mails.MOST_LINES} more\n" in letter.text
        assert max(map(len, letter.text.splitlines())) <= mails.LONGEST_LINE + 2
        assert letter.payer == "u1"
    assert len(posted.letters) == 2


async def test_mails_to_earlier_addresses_count_for_the_account(memory_store: Store) -> None:
    posted = Posted()
    site = Site(memory_store, BASE_URL, mail=posted)  # type: ignore[arg-type]  # keeps mails
    warned = Warned(tuple(f"{number}@example.com" for number in range(4)))
    undo = Link("text", "1@example.com")
    mails.address_changed(site, "u1", AddressChange("1@example.com", warned.addresses[0], False, undo, warned), VISITOR)
    mails.taken_back(site, Undo("u1", warned.addresses[0], "2@example.com", False, True, warned=warned), VISITOR)
    assert len(posted.letters) == 3 + 4 + 1 + 4
    assert {letter.payer for letter in posted.letters} == {"u1"}


async def test_requested_mails_count_for_the_network_and_the_account(
    memory_store: Store,
) -> None:
    world, posted = await World.make(memory_store), Posted()
    site = Site(memory_store, BASE_URL, mail=posted)  # type: ignore[arg-type]  # keeps mails
    other = "grace@example.com"
    grace = await memory_store.people.create(
        other, "Grace", "a long password", verified=False, event="signed_up", visitor=Visitor()
    )
    asker, network = "2001:db8:1:2::/64", "2001:db8:1::/48"
    await mails.invitation(site, "new@example.com", asker, "")
    await mails.invitation(site, world.email, asker, "")
    await mails.forgotten(site, world.email, asker, "")
    await mails.forgotten(site, "nobody@example.com", asker, "")
    await mails.confirmation(site, grace, other, asker)
    await mails.change(site, world.user, Link("text", "free@example.com"), asker)
    await mails.change(site, world.user, Link("text", other), asker)
    assert [(letter.what, letter.payer, letter.network) for letter in posted.letters] == [
        ("signup", "", network),
        ("signup_again", world.user, network),
        ("reset", world.user, network),
        ("no_account", "", network),
        ("confirm", grace, network),
        ("change", world.user, network),
        ("address_taken", world.user, network),
    ]


async def test_new_passwords_after_an_undo_count_for_the_visitors_network(memory_store: Store) -> None:
    world, posted = await World.make(memory_store), Posted()
    site = Site(memory_store, BASE_URL, mail=posted)  # type: ignore[arg-type]  # keeps mails
    await mails.forgotten(site, world.email, "", "", "203.0.113.7")
    (letter,) = posted.letters
    assert (letter.network, letter.origin, letter.payer) == ("", "203.0.113.0/24", world.user)


async def test_notices_and_undo_links_count_for_the_visitors_network(memory_store: Store) -> None:
    posted = Posted()
    site = Site(memory_store, BASE_URL, mail=posted)  # type: ignore[arg-type]  # keeps mails
    warned = Warned(("ada@example.com", "old@example.com"))
    undo = Link("text", "ada@example.com")
    for address in ("203.0.113.7", "2001:db8:1:2::3", "unknown", ""):
        visitor = Visitor(address, "Testing/1.0")
        mails.password_changed(site, "u1", warned, visitor)
        change = AddressChange("ada@example.com", "new@example.com", False, undo, warned)
        mails.address_changed(site, "u1", change, visitor)
    origins = [letter.origin for letter in posted.letters]
    assert origins == [network for network in ("203.0.113.0/24", "2001:db8:1::/48", "unknown", "") for _ in range(4)]
    assert {(letter.network, letter.payer) for letter in posted.letters} == {("", "u1")}
    assert len({letter.paid_by for letter in posted.letters if not letter.origin}) == 1, "the account has its own turns"
