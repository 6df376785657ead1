"""Legs of the tour: a directory's form, and a person who has no password here."""

from __future__ import annotations

from store import keys
from store.accounts.identities import UpstreamIdentity
from tests.support.browser.security_samples import elsewhere
from tests.support.browser.tour_kit import Stand, Tour

MARY, PASSWORD = "mary@example.com", "correct horse battery"


def directory(tour: Tour) -> None:
    """The form of a directory, for a guest. The directory does not answer."""
    tour.open("/signin/with/company")
    tour.stop("signin/directory.html first", "Use your")
    tour.submit("/signin/with/company/password", login="grace", password="not this one")
    tour.stop("signin/directory.html", "isn't answering right now")


async def from_elsewhere(stand: Stand, email: str) -> None:
    """Turns a person into one whom the directory brought: a connected account, and no password."""
    user = await stand.store.people.find(email)
    assert user
    one, known = UpstreamIdentity("ldap://127.0.0.1:1", "mary"), keys.person(user)
    now = int(stand.clock.time() * 1000)
    await stand.store.client.hset(known["identities"], one.name, f"{one.text}\n{now} {now} mary")
    await stand.store.client.set(keys.identity(one.name), user)
    password = await stand.store.client.hget(known["user"], "password")
    assert isinstance(password, bytes)
    await stand.store.client.hset(known["user"], "password", password[:-32] + bytes(32))


async def confirmed(stand: Stand, email: str) -> None:
    """Notes in a person's sessions that they have just signed in elsewhere to confirm who they are."""
    client, user = stand.store.client, await stand.store.people.find(email)
    assert user
    seconds, _ = await client.time()
    async for name in client.scan_iter(match=f"{keys.session_prefix(user)}*"):
        await client.hset(name, "proved_at", str(1000 * int(seconds)))


def without_password(tour: Tour) -> None:
    """Confirms who a person is who has no password."""
    stand, browser = tour.stand, tour.browser
    stand.run(stand.service.add_person(MARY, "Mary Shelley", PASSWORD))
    tour.sign_in(MARY, PASSWORD, "/account/security")
    stand.change(providers=elsewhere())
    stand.run(from_elsewhere(stand, MARY))
    tour.open("/account/security")
    tour.stop("account/security.html elsewhere", "Confirm with")
    tour.open("/account/email")
    tour.stop("account/email.html elsewhere", "We’ll ask you to confirm it’s you")
    tour.submit("/account/email", email="shelley@example.com")
    tour.stop("account/confirm_yourself.html elsewhere", "Sign in again with a connected account")
    browser.click("Confirm with")
    tour.stop("signin/directory.html confirm", "Use your")
    tour.open("/account/delete")
    tour.stop("account/delete.html elsewhere", "Sign in again with a connected account")
    stand.run(confirmed(stand, MARY))
    tour.open("/account/delete")
    tour.stop("account/delete.html confirmed", "Delete my account for good")
    stand.change()
    tour.open("/account")
    tour.submit("/signout")
