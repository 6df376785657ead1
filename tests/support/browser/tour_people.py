"""Legs of the tour: passkeys, the second step, and what mailed links open."""

from __future__ import annotations

import base64
import re

from store import keys
from store.accounts.identities import UpstreamIdentity
from store.accounts.signin.totp import STEP, code_at
from tests.support.browser.security_samples import elsewhere
from tests.support.browser.tour_kit import Stand, Tour
from tests.support.http.driver import App, challenge

PASSWORD = "correct horse battery"


GRACE, HEDY, LINUS, NOBODY = "grace@example.com", "hedy@example.com", "linus@example.com", "nobody@example.com"


ALL = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")


def asks(client_id: str, scopes: tuple[str, ...] = ALL, back: str = "") -> str:
    """The address at which an app asks; `back` is where the person comes back to."""
    app = App("", client_id, None, back or f"https://{client_id}.example/callback")
    return app.authorize_url(scope=" ".join(scopes), prompt="consent", code_challenge=challenge())


async def connected(stand: Stand, email: str) -> None:
    """Connects two accounts at other sites to a person's."""
    user = await stand.store.people.find(email)
    assert user
    for issuer, subject, used in (("https://github.com", "583231", "hedy"), ("https://gone.example", "7", "")):
        one, since = UpstreamIdentity(issuer, subject), int(stand.clock.time() * 1000) - 86_400_000
        value = f"{one.text}\n{since} {since if used else 0} {used}"
        await stand.store.client.hset(keys.person(user)["identities"], one.name, value)
        await stand.store.client.set(keys.identity(one.name), user)


async def signed_in_elsewhere(stand: Stand, email: str) -> None:
    """Signs a person in twice in Firefox on Android, and once in the browser of the tour."""
    firefox, chrome = "Mozilla/5.0 (Android 14; rv:130.0) Firefox/130.0", "Mozilla/5.0 (X11; Linux) Chrome/130.0"
    for agent in (firefox, chrome, firefox):
        browser = stand.service.browser()
        browser.agent = agent
        await browser.sign_in(email, PASSWORD)


def factors(tour: Tour) -> None:
    """Passkeys and the second step."""
    stand, browser = tour.stand, tour.browser
    stand.clock.back(3600)
    stand.run(stand.service.add_person(HEDY, "Hedy Lamarr", PASSWORD))
    device = browser.add_authenticator()
    browser.offer_no_passkeys()
    stand.store.sessions.required.who = "all"
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    tour.stop("signin/setup.html first", "You need two-step verification")
    tour.submit("/signin/setup", code="000000")
    tour.stop("signin/setup.html", "That code is wrong")
    tour.submit("/signin/setup/passkey", credential="{}")
    tour.stop("signin/setup.html passkey", "be used here. Try again")
    stand.change(base_url=f"http://127.0.0.1:{stand.site.base_url.rpartition(':')[2]}")
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    tour.stop("signin/setup.html app alone", "Scan this QR code")
    stand.change()
    stand.store.sessions.required.who = "off"
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    stand.run(signed_in_elsewhere(stand, HEDY))
    tour.open("/account/security")
    tour.stop("account/security.html first", "listed together")
    tour.submit("/account/security/confirm", password=PASSWORD)
    tour.stop("account/security.html confirmed", "Set up an app")
    stand.change(base_url=f"http://127.0.0.1:{stand.site.base_url.rpartition(':')[2]}")
    tour.open("/account/security")
    tour.submit("/account/security", current_password=PASSWORD, new_password=PASSWORD)
    tour.stop("account/security.html changed", "Your password was changed")
    stand.change()
    tour.submit("/account/security", current_password="wrong", new_password="short")
    tour.stop("account/security.html wrong", "at least")
    tour.submit("/account/security/confirm", password=PASSWORD)
    tour.open("/account/security/authenticator")
    tour.stop("account/authenticator.html first", "Scan this QR code")
    tour.submit("/account/security/authenticator", code="1")
    tour.stop("account/authenticator.html", "code")
    tour.open("/account/security")
    stand.mailing()
    browser.click("Add a passkey")
    tour.stop("account/recovery.html", "we show them only once")
    codes = re.findall(r"\b[a-z2-7]{4}(?:-[a-z2-7]{4}){3}\b", browser.text)
    stand.change()
    tour.open(stand.link(HEDY, "A passkey was added to your account"))
    tour.stop("links/undo.html second step", "Remove this sign-in method")
    tour.open("/account/security")
    browser.wait_for("not used yet")
    tour.submit("/account/security/confirm", password=PASSWORD, code=codes[0])
    tour.stop("account/security.html proved", "You can now change how you sign in")
    stand.change(providers=elsewhere())
    stand.run(connected(stand, HEDY))
    tour.open("/account/security")
    tour.stop("account/security.html connected", "Connect Microsoft")
    browser.click("Our company")
    tour.stop("signin/directory.html connect", "Use your")
    tour.open("/account/security")
    stand.change()
    tour.submit("/account/security/passkeys/rename", name="")
    tour.stop("account/security.html wrong name", "Enter a name for the passkey")
    tour.submit("/account/security/recovery")
    tour.stop("account/recovery.html new", "no longer work")
    tour.submit("/signout")
    tour.open("/signin/choose")
    tour.stop("signin/choose.html nobody", "Remove from this list")
    tour.sign_in(HEDY, PASSWORD)
    tour.stop("signin/second_step.html passkey", "Use your passkey")
    stand.change(base_url=f"http://127.0.0.1:{stand.site.base_url.rpartition(':')[2]}")
    tour.open("/signin/second")
    tour.stop("signin/second_step.html recovery", "Recovery code")
    stand.change()
    tour.open("/signin/second?next=/account/security")
    browser.click("Use your passkey")
    browser.wait_for("Where you’re signed in")
    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in")
    browser.click("Set up an app")
    browser.wait_for("Scan this QR code")
    key = browser.run("return document.querySelector('.key').innerText").replace(" ", "")
    code = code_at(base64.b32decode(key), int(stand.clock.time() * 1000) // STEP)
    tour.submit("/account/security/authenticator", code=code)
    browser.wait_for("Your authenticator app is set up")
    tour.submit("/signout")
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    tour.submit("/signin/second", code="123456")
    tour.stop("signin/second_step.html", "code")
    browser.click("Use your passkey")
    browser.wait_for("Where you’re signed in")
    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in")
    stand.clock.advance(1200)
    tour.submit("/account/security/passkeys/remove")
    tour.stop("account/security.html unproved", "Confirm it's you first")
    tour.submit("/account/security/confirm", password="wrong")
    tour.stop("account/security.html", "password")
    stand.clock.advance(2400)
    tour.submit("/signout")
    browser.remove_authenticator(device)
    tour.open("/signin")
    tour.submit("/signin/passkey", credential="nonsense")
    tour.stop("signin/signin.html wrong passkey", "passkey")


def mailed(tour: Tour) -> None:
    """What mailed links open, on a server that sends mail."""
    stand = tour.stand
    stand.mailing()
    tour.open("/signup?next=/account")
    tour.stop("signin/signup_address.html first", "we’ll send you a link")
    tour.submit("/signup", email="nobody")
    tour.stop("signin/signup_address.html", "e-mail address")
    tour.submit("/signup", email=LINUS)
    tour.stop("links/mail_sent.html reaching", "We sent an e-mail")
    tour.open(stand.link(LINUS, "Finish creating your account"))
    tour.stop("signin/signup.html invited", "is for this address")
    tour.submit("/signup", name="Linus", password="short")
    tour.stop("signin/signup.html invited wrong", "at least")
    tour.submit("/signup", name="Linus", password=PASSWORD)
    tour.sign_in(GRACE, PASSWORD, "/account/email")
    tour.submit("/account/email", email="nobody", current_password=PASSWORD)
    tour.stop("account/email.html", "e-mail address")
    tour.submit("/account/email", email="admiral@example.com", current_password="wrong")
    tour.stop("account/email.html wrong password", "incorrect")
    tour.open(asks("curious"))
    tour.stop("oauth/confirm_first.html", "First, confirm your e-mail address")
    tour.submit("/account/email/confirm")
    link = stand.link(GRACE, "Confirm your e-mail address")
    tour.sign_in(LINUS, PASSWORD)
    tour.open(link)
    tour.stop("base/message.html other", "This link is for a different account")
    tour.sign_in(GRACE, PASSWORD)
    tour.open(link)
    tour.stop("links/confirm.html", "Yes, confirm it")
    tour.submit("/confirm")
    tour.browser.wait_for("Allow Curious")
    tour.open(link)
    tour.stop("links/done.html confirmed", "Your address is confirmed")
    tour.open("/account/email")
    tour.stop("account/email.html confirmed", "Confirmed")
    tour.submit("/account/email", email="admiral@example.com", current_password=PASSWORD)
    tour.stop("links/mail_sent.html signed in", "admiral@example.com")
    tour.open(stand.link("admiral@example.com", "Confirm your new e-mail address"))
    tour.stop("links/change.html", "Change my address")
    tour.submit("/account/email/change")
    tour.stop("links/done.html", "Your address was changed")
    tour.open("/account/credits")
    tour.browser.wait_for("Limits and low credits")
    tour.submit("/account/credits/mails")
    tour.stop("account/credits.html mails", "Saved.")
    tour.open(stand.link(GRACE, "Your e-mail address was changed"))
    tour.stop("links/undo.html", "Take it back")
    tour.open("/account")
    tour.submit("/signout")
    tour.open("/forgot")
    tour.submit("/forgot", email="admiral@example.com")
    link = stand.link("admiral@example.com", "Set a new password")
    tour.open(link)
    tour.stop("links/reset.html first", "Choose a new password")
    tour.submit("/reset", new_password="short")
    tour.stop("links/reset.html", "at least")
    tour.submit("/reset", new_password="another horse battery")
    tour.stop("links/done.html password", "Your password was changed")
    tour.open(link)
    tour.stop("base/message.html dead link", "Error 400")
