"""The mails to people: when each is sent, and with which values. The texts are in `templates/mail/`.

A mail never contains text that a stranger chose. Otherwise anybody could type another person's address and have their
own words sent to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any

from handlers.core.brand.mail_dress import MailDress
from handlers.core.client_address import window_address
from handlers.core.devices import device_phrase
from handlers.core.site import Site
from handlers.core.words.mail_text import mail_text
from handlers.core.words.wording import Wording
from handlers.core.words.zones import zone_of
from outbound.mail.mail import Mail
from outbound.mail.message import BULLET
from outbound.mail.room import NoRoom
from store.accounts.links import AddressChange, Link
from store.accounts.signin.guesses import GuessNotice
from store.accounts.signin.sessions import SignedIn
from store.accounts.undoing import Undo
from store.apps.api_record import ApiRegistration
from store.apps.registration import Registration
from store.clock import wall
from store.credits.notices import Notice
from store.credits.payments import Booked
from store.limits import network_of
from store.phrases import Phrase, plural
from store.refused import Refused
from store.results import NO_CHOICE, Allowance, Preferences, Profile, Visitor, Warned

TAKES_BACK = ("address_changed", "second_step", "operators/address_changed")
"""Mails that may have a link that undoes a change."""
MAX_TARGET = 8000
"""Characters of a target that are kept with a link. A longer target is dropped. An authorization with the longest
`state`, fully escaped, is shorter."""


MOST_LINES, LONGEST_LINE = 30, 200
"""Lines of a list in a mail, and characters of a line. Enough for an app's new name and all its new redirect URIs."""


def spoken(site: Site, preferences: Preferences, request: Wording | None = None) -> Wording:
    """How a mail speaks to a person: as they chose, else like the request, else in the server's first language and UTC.
    A warning has no request: a thief's browser would choose a language that the person cannot read."""
    chosen, zone = site.languages.by_code.get(preferences.language), zone_of(preferences.zone)
    request = request or Wording(site.languages.default)
    return Wording(chosen or request.language, zone or request.zone)


def write(
    site: Site,
    what: str,
    to: str,
    payer: str,
    wording: Wording,
    asker: str = "",
    caused_from: str = "",
    logo: tuple[str, str] | None = None,
    **values: Any,
) -> None:
    """Posts the mail of `templates/mail/<what>.txt`. `payer`: the user whose account causes the mail, or empty;
    `asker`: the counted address of the client that asked for it, if strangers can ask. A mail that names the visitor's
    address counts for the visitor's network too, and one that does not, for the network of `caused_from`. `logo`: as in
    Mail."""
    text = mail_text(site.templates, what, wording, site=site.base_url, **values)
    link, network = bool(values.get("link")), network_of(asker) if asker else ""
    undo = link and what in TAKES_BACK
    origin = network_of(values.get("address", caused_from))
    dress = MailDress(site.templates, site.brand, site.base_url, wording.language, site.store.apps.logo)
    language = wording.language.tag
    site.mail.post(Mail(what, to, text.subject, text.whole, link, undo, payer, network, origin, language, dress, logo))


def warn(site: Site, what: str, user: str, warned: Warned, **values: Any) -> None:
    """Posts a security mail to the person, and to each earlier address that an open link can restore. Otherwise
    somebody who took the account by changing its address would get all the warnings."""
    wording = spoken(site, warned.preferences)
    for number, to in enumerate(warned.addresses):
        write(site, what, to, user, wording, earlier="yes" if number else "", **values)


def tell(site: Site, what: str, warned: Warned, payer: str, visitor: Visitor, **values: Any) -> None:
    """Posts a notice of what somebody else did, the user `payer`, to each address of a person. The mail does not say
    from where: that is for the other alone."""
    wording, values = spoken(site, warned.preferences), {"at": wall.utc(), **values}
    for number, to in enumerate(warned.addresses):
        write(site, what, to, payer, wording, "", visitor.address, earlier="yes" if number else "", **values)


def listed(wording: Wording, lines: Sequence[str]) -> str:
    """A list of lines, cut to the size of a mail, because a thousand mails may wait in memory."""
    said = [wording.say(line) for line in lines[:MOST_LINES]]
    shown = [line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…" for line in said]
    if more := len(lines) - len(shown):
        shown.append(wording.say(plural("and %(count)s more", "and %(count)s more", more)))
    return "\n".join(f"{BULLET}{line}" for line in shown)


def _kept(target: str) -> str:
    return target if len(target) <= MAX_TARGET else ""


def _address(site: Site, path: str, link: Link) -> str:
    return f"{site.base_url}{path}?link={link.text}"


@contextmanager
def asking(site: Site, asker: str, what: str) -> Iterator[ExitStack]:
    """Reserves room for a requested mail before windows count the request for its recipient. Otherwise requests without
    room would use up the windows, and the recipient would get neither this mail nor the next. Yields the room, for the
    caller that posts the mail later. Raises Refused("rate_limited")."""
    with _place_for(site.mail.room.reserve(network_of(asker), what)) as room:
        yield room


@contextmanager
def undoable(site: Site, user: str, what: str, visitor: Visitor) -> Iterator[None]:
    """Reserves room for the mail with an undo link before the change is made. Otherwise a thief with many accounts of
    their own would leave no place for the mail, and take the person's account for good. Raises
    Refused("rate_limited")."""
    with _place_for(site.mail.room.reserve_undo(user, what, network_of(visitor.address))):
        yield


@contextmanager
def _place_for(place: AbstractContextManager[None]) -> Iterator[ExitStack]:
    with ExitStack() as room:
        try:
            room.enter_context(place)
        except NoRoom:
            description = Phrase("Too many e-mails are waiting to be sent. Try again in a minute.")
            raise Refused("rate_limited", description, retry_after=60) from None
        yield room


async def confirmation(
    site: Site,
    user: str,
    email: str,
    asker: str,
    target: str = "",
    *,
    again: bool = True,
    wording: Wording | None = None,
) -> None:
    """Mails the link that confirms an address and leads on to `target`. With `again` off, no mail is sent while an
    earlier link works, and a rate limit is no error; otherwise raises Refused("rate_limited")."""
    try:
        with asking(site, asker, "confirm"):
            link = await site.store.links.to_confirm(user, email, _kept(target), again=again, mailed=site.mail.confirms)
            if link:
                wording = spoken(site, link.preferences, wording)
                write(site, "confirm", email, user, wording, asker, link=_address(site, "/confirm", link))
    except Refused:
        if again:
            raise


async def invitation(site: Site, email: str, asker: str, target: str, wording: Wording | None = None) -> None:
    """Mails the link to sign up, which leads on to `target`. If the address has an account, the mail says so
    instead."""
    if known := await site.store.people.credentials(email):
        return write(site, "signup_again", email, known.user, spoken(site, known.preferences, wording), asker)
    invite = await site.store.people.invite_again(email, _kept(target))
    link = f"{site.base_url}/signup?invite={invite}"
    write(site, "signup", email, "", spoken(site, NO_CHOICE, wording), asker, link=link)


async def forgotten(
    site: Site, email: str, asker: str, target: str, undone_from: str = "", wording: Wording | None = None
) -> None:
    """Mails the link that sets a new password and leads on to `target`. Without an active account with this address,
    the mail says so instead: whether a mail is sent, and how long it takes, would reveal accounts. After a link that
    took the account back, `asker` is empty, because there is an account and only its person has that link;
    `undone_from` is then the visitor's address."""
    known = await site.store.people.credentials(email)  # ends a suspension whose time has come
    user, link = known and known.user, None
    if user:
        with suppress(Refused):
            link = await site.store.links.to_reset(user, email, _kept(target))
    if user and link:
        spoke = spoken(site, link.preferences, wording)
        write(site, "reset", email, user, spoke, asker, undone_from, link=_address(site, "/reset", link))
    elif asker:
        write(site, "no_account", email, "", spoken(site, NO_CHOICE, wording), asker)


async def change(site: Site, user: str, link: Link, asker: str, wording: Wording | None = None) -> None:
    """Mails the link that changes the user's address. If the new address has an account, its owner learns of the
    attempt, as they chose to read."""
    if known := await site.store.people.credentials(link.email):
        return write(site, "address_taken", link.email, user, spoken(site, known.preferences), asker)
    spoke = spoken(site, link.preferences, wording)
    write(site, "change", link.email, user, spoke, asker, link=_address(site, "/account/email/change", link))


def address_changed(site: Site, user: str, change: AddressChange, visitor: Visitor) -> None:
    """Tells the old address, with an undo link if there is one, and the addresses before it."""
    link = _address(site, "/account/email/undo", change.undo) if change.undo else ""
    wording, values = spoken(site, change.warned.preferences), {"new": change.new, **_circumstances(visitor)}
    write(site, "address_changed", change.old, user, wording, link=link, earlier="", **values)
    for email in change.warned.addresses[1:]:
        if email != change.old:
            write(site, "address_changed", email, user, wording, link="", earlier="yes", **values)


def taken_back(site: Site, undo: Undo, visitor: Visitor) -> None:
    """Tells all addresses of the person that a link took the account back: the restored one, the one that it replaced,
    and earlier ones. Lists the affected apps by id, because owners choose the names."""
    user, wording = undo.user, spoken(site, undo.warned.preferences)
    values = {"old": undo.old, "new": undo.new, **_circumstances(visitor)}
    if undo.new != undo.old:
        write(site, "address_restored", undo.new, user, wording, earlier="", **values)
        for email in undo.warned.addresses[1:]:
            write(site, "address_restored", email, user, wording, earlier="yes", **values)
    lines = [Phrase("%(app)s: disconnected", app=client) for client in undo.ended]
    lines += [Phrase("%(app)s: spending limit restored", app=client) for client in undo.lowered]
    lines += [Phrase("%(app)s: paused again", app=client) for client in undo.paused]
    own = [Phrase("%(app)s: %(what)s", app=client, what=what) for client, what in undo.own.items()]
    texts = {"own": listed(wording, own), "lines": listed(wording, lines)}
    write(site, "taken_back", undo.old, user, wording, **{**texts, **values})
    if undo.first_factor:  # a link to another site is in the mail above
        warn(site, "second_step_undone", user, undo.warned, **values)


def factors_changed(
    site: Site, user: str, warned: Warned, what: str, visitor: Visitor, undo: Link | None = None
) -> None:
    """Tells the person that a way to sign in changed. `what` is the subject of the mail, and `warned` is from before
    the change. An undo link goes only to the address that it is for."""
    link = _address(site, "/account/email/undo", undo) if undo else ""
    wording, (first, *others) = spoken(site, warned.preferences), warned.addresses
    values = {"said": what, **_circumstances(visitor)}
    write(site, "second_step", undo.email if undo else first, user, wording, link=link, earlier="", **values)
    for email in others:
        write(site, "second_step", email, user, wording, link="", earlier="yes", **values)


def app_changed(site: Site, owner: Profile, app: Registration, lines: Sequence[str], visitor: Visitor) -> None:
    """Tells the owner what changed in an app, in lines. Without lines, sends nothing."""
    if lines:
        values = {"who": "", "name": app.name, "client": app.client_id, **_circumstances(visitor)}
        listing = listed(spoken(site, owner.warned.preferences), lines)
        logo = (app.client_id, app.logo) if app.logo else None
        warn(site, "app_changed", owner.user, owner.warned, lines=listing, logo=logo, **values)


def app_deleted(site: Site, user: str, warned: Warned, name: str, client: str, visitor: Visitor) -> None:
    """Tells the owner that the app is deleted. The name is safe to show: the owner chose it."""
    warn(site, "app_deleted", user, warned, name=name, client=client, **_circumstances(visitor))


def api_changed(site: Site, owner: Profile, api: ApiRegistration, lines: Sequence[str], visitor: Visitor) -> None:
    """Tells the owner what changed in an API, in lines. Without lines, sends nothing."""
    if lines:
        values = {"name": api.name, "client": api.client_id, **_circumstances(visitor)}
        listing = listed(spoken(site, owner.warned.preferences), lines)
        warn(site, "api_changed", owner.user, owner.warned, lines=listing, **values)


def api_deleted(site: Site, user: str, warned: Warned, api: ApiRegistration, visitor: Visitor) -> None:
    """Tells the owner that the API is deleted."""
    values = {"name": api.name, "identifier": api.identifier, **_circumstances(visitor)}
    warn(site, "api_deleted", user, warned, **values)


def account_deleted(site: Site, user: str, warned: Warned, visitor: Visitor) -> None:
    """Tells the person that the account is deleted."""
    warn(site, "account_deleted", user, warned, **_circumstances(visitor))


def allowance_grew(site: Site, user: str, client: str, allowance: Allowance | None, visitor: Visitor) -> None:
    """Tells the person that an app may spend more than before, if it must be told. Names the app by its id, because its
    owner chooses its name, home page and domains."""
    if allowance:
        what = "app_spends" if allowance.growth == "connected" else "limit_raised"
        wording = spoken(site, allowance.warned.preferences)
        limit = "" if allowance.limit is None else wording.money(allowance.limit)
        last = "yes" if allowance.last else ""
        warn(site, what, user, allowance.warned, client=client, limit=limit, last=last, **_circumstances(visitor))


def credits_noticed(site: Site, notice: Notice) -> None:
    """Tells the person of a limit that is used in part or up, or of a low balance."""
    wording = spoken(site, notice.warned.preferences)
    values: dict[str, Any] = {
        "balance": "yes" if notice.about == "balance" else "",
        "share": wording.percent(notice.share),
        "used_up": "yes" if notice.share == 100 else "",
    }
    values |= {"limit": wording.money(notice.limit), "client": notice.client if notice.about == "app" else ""}
    for to in notice.warned.addresses:
        write(site, "credits/notice", to, notice.user, wording, **values)


def payment_booked(site: Site, user: str, booked: Booked) -> None:
    """Tells the person of credits that were bought, taken back, or given back."""
    wording = spoken(site, booked.warned.preferences)
    for news, amount in (("bought", booked.bought), ("taken", booked.taken), ("returned", -booked.taken)):
        if amount > 0:
            values: dict[str, Any] = {"news": news, "amount": wording.money(amount)}
            values |= {"balance": wording.total(booked.paid), "below": "yes" if booked.paid < 0 else ""}
            for to in booked.warned.addresses:
                write(site, "credits/payment", to, user, wording, **values)


def send_notices(site: Site) -> None:
    """Sends the notices of the store about credits, while mails reach people."""
    notices = site.store.calls.notices
    notices.reach, notices.tell = lambda: site.mail.confirms, partial(credits_noticed, site)


def password_changed(site: Site, user: str, warned: Warned, visitor: Visitor, *, claimed: bool = False) -> None:
    """Tells the person that the password changed. `claimed`: all other ways to sign in ended too."""
    warn(site, "password_claimed" if claimed else "password_changed", user, warned, **_circumstances(visitor))


def codes_guessed(site: Site, user: str, notice: GuessNotice | None, visitor: Visitor) -> None:
    """Tells the person that somebody with the right password enters wrong codes, if a notice is due."""
    if notice:
        stopped = "yes" if notice.stopped else ""
        warn(site, "codes_guessed", user, notice.warned, stopped=stopped, **_circumstances(visitor))


def new_sign_in(site: Site, found: SignedIn, visitor: Visitor) -> None:
    """Tells the person of a sign-in, unless the activity has an earlier sign-in or sign-up from this address with this
    browser, in any version."""
    here = _place(visitor)
    if all(_place(Visitor(entry.address, entry.agent)) != here for entry in found.before):
        warn(site, "new_sign_in", found.user, found.warned, **_circumstances(visitor))


def _place(visitor: Visitor) -> tuple[str, str]:
    return window_address(visitor.address), re.sub(r"[\d.]+", "", visitor.agent)


def _circumstances(visitor: Visitor) -> dict[str, Any]:
    return {"at": wall.utc(), "address": visitor.address, "agent": device_phrase(visitor.agent)}
