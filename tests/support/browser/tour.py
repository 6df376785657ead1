"""The tour of all pages: every template, every route with a page, and pages with errors.

A stop has a name from `tests/support/browser/pages.py`. A further word names a state that has no sample data there.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from handlers.core.brand.reading import MOST_FOOTER, MOST_NAME, load_brand
from handlers.ops.inbox import add_inbox
from outbound.mail.inbox import Inbox
from outbound.mail.mailer import Mailer, Spool
from outbound.payments.stripe_checkout import StripeAccount, StripeCheckout
from runtime import demo
from store.credits.payments import Movement
from tests.support.admin.tour_console import console
from tests.support.admin.tour_desk import desk
from tests.support.browser.furnished_account import SPENDS, TOOLS, connected_by_issuer, furnish, spend_of_budget
from tests.support.browser.security_samples import elsewhere
from tests.support.browser.tour_devices import devices
from tests.support.browser.tour_elsewhere import directory, without_password
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import GRACE, NOBODY, PASSWORD, asks, factors, mailed
from tests.support.browser.tour_portal import developer, own_apis
from tests.support.data.brands import ROOT, write_brand
from tests.support.http.driver import FRESH
from tests.support.processes.engines import valkey

WEATHER = "/account/apps/weather-diary"


def walk(tour: Tour) -> None:
    """Makes the whole tour. The stand is new."""
    tour.stand.run(furnish(tour.stand))
    legs = (strangers, demo_inbox, newcomer, connected_apps, branded, documents_and_credits, consent)
    for leg in (*legs, devices, developer, own_apis, without_password, factors, mailed, console, desk):
        tour.stand.forget_windows()
        tour.stand.change()
        leg(tour)
    demo_app(tour)
    account_deletion(tour)
    trouble(tour)


def strangers(tour: Tour) -> None:
    """Visits the pages that need no sign-in."""
    tour.open("/")
    tour.stop("base/home.html", "One sign-in")
    tour.open("/docs")
    tour.stop("base/docs.html", "Revoke a token")
    tour.open("/signin")
    tour.stop("signin/signin.html begin", "Sign in with a passkey")
    tour.submit("/signin", email=GRACE, password="not this one")
    tour.stop("signin/signin.html", "Incorrect e-mail address or password")
    tour.stand.change(signup="off")
    tour.open("/signin")
    tour.stop("signin/signin.html first", "Forgot your password?")
    tour.open("/")
    tour.stop("base/home.html closed", "One sign-in")
    tour.open("/signup")
    tour.stop("base/message.html", "Only the operator of this server can create accounts")
    tour.stand.change(providers=elsewhere())
    tour.browser.run("document.cookie = 'latchkey_provider=github; path=/'")
    tour.open("/signin")
    tour.stop("signin/signin.html elsewhere", "Last used")
    tour.open("/signup")
    tour.stop("signin/signup.html elsewhere", "Continue with Google")
    tour.open("/signin/with/oidc")
    tour.stop("signin/signin.html away", "isn't answering right now")
    directory(tour)
    tour.stand.change(signup="upstream", providers=elsewhere())
    tour.open("/signup")
    tour.stop("signin/signin.html upstream", "Accounts here are created")
    tour.stand.change()
    tour.open("/forgot")
    tour.stop("signin/forgot.html first", "Forgot your password?")
    tour.submit("/forgot", email="nobody")
    tour.stop("signin/forgot.html", "e-mail address")
    tour.submit("/forgot", email=GRACE)
    tour.stop("links/mail_sent.html", "won’t arrive")
    tour.open("/oauth/authorize?client_id=unknown")
    tour.stop("base/message.html unknown app", "not known to this server")
    tour.open(asks("weather-diary", back="https://elsewhere.example/"))
    tour.stop("base/message.html wrong address", "did not register the address")
    tour.open(asks("weather-diary").replace("prompt=consent", "prompt=none"))
    tour.stop("oauth/leaving.html signed out", "Check the address first")
    bye = "https://diary.example/bye"
    tour.stand.run(tour.stand.store.apps.update("weather-diary", post_logout_redirect_uris=(bye,)))
    tour.open(f"/oauth/logout?client_id=weather-diary&post_logout_redirect_uri={bye}")
    tour.stop("oauth/signed_out.html onward", "You’re signed out")
    tour.open("/oauth/logout")
    tour.stop("oauth/signed_out.html", "You’re signed out")
    tour.open("/nothing/here")
    tour.stop("base/message.html not found", "Not found")


def demo_inbox(tour: Tour) -> None:
    """Visits the pages of a demo's mails."""
    with tempfile.TemporaryDirectory() as folder:
        add_inbox(tour.stand.app)
        spool = Mailer(Spool(Path(folder)), "noreply@localhost", confirms=False)
        tour.stand.change(mail=spool, inbox=Inbox(Path(folder)), demo=demo.FACTS)
        tour.open("/")
        tour.stop("base/home.html demo", "This is a demo")
        tour.open("/inbox")
        tour.stop("links/inbox.html empty", "No e-mail yet")
        tour.open("/forgot")
        tour.submit("/forgot", email=demo.EMAIL)
        tour.stop("links/mail_sent.html demo", "The demo sends no e-mail")
        tour.browser.click("Open the demo inbox")
        tour.stop("links/inbox.html", demo.EMAIL)
        tour.browser.run("document.querySelector('.letters a').click()")
        tour.stop("links/inbox_mail.html", "/reset?link=")
        tour.stand.change()


def branded(tour: Tour) -> None:
    """Visits some pages with the brand of the examples, and with one that has only a name, at its longest."""
    tour.stand.change(brand=load_brand(ROOT / "examples" / "brand" / "brand.toml"))
    tour.open("/")
    tour.stop("base/home.html branded", "One account for every berth")
    tour.open("/account/credits")
    tour.stop("account/credits.html branded", "Terms")
    tour.open(asks(TOOLS, ("openid", "profile"), f"{TOOLS}/callback"))
    tour.stop("oauth/consent.html document", "the app says it’s from")
    tour.open(asks("weather-diary", SPENDS))
    tour.stop("oauth/consent.html branded", "your Harbo account")
    with tempfile.TemporaryDirectory() as folder:
        named = {"name": "W" * MOST_NAME, "footer": "W" * MOST_FOOTER, "color": "#747400", "terms": "/terms"}
        tour.stand.change(brand=load_brand(write_brand(Path(folder), **named)))
    tour.open("/account")
    tour.stop("account/profile.html branded", "Your account")


def newcomer(tour: Tour) -> None:
    """Signs up, and visits the pages of a new account."""
    tour.open("/signup?next=/account")
    tour.stop("signin/signup.html", "Create your account")
    tour.submit("/signup", name="Grace", email=GRACE, password="short")
    tour.stop("signin/signup.html wrong", "at least")
    tour.submit("/signup", name="Grace Hopper", email=GRACE, password=PASSWORD)
    tour.stop("account/profile.html first", "Your account is ready")
    tour.submit("/account", name=" ")
    tour.stop("account/profile.html", "A name")
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        file.write(b"no picture")
        file.flush()
        tour.browser.type("picture", file.name)
        tour.submit("/account/picture")
    tour.stop("account/profile.html wrong picture", "read that file as a picture")
    for path, name, words in (
        ("/account/apps", "account/apps.html empty", "No connected apps"),
        ("/account/credits", "account/credits.html empty", "Nothing yet"),
        ("/account/credits/usage", "account/usage.html empty", "Nothing was used"),
        ("/account/email", "account/email.html first", "Not confirmed"),
        ("/account/delete", "account/delete.html first", "none at the moment"),
        ("/developer/apps", "developer/apps.html first", "You have no apps yet"),
    ):
        tour.open(path)
        tour.stop(name, words)
    tour.open("/account/language")
    tour.stop("account/language.html", "Time zone")
    tour.submit("/account/language", zone="Europe/Berlin")
    saved = "language and time zone are" if len(tour.stand.languages.all) > 1 else "time zone is"
    tour.stop("account/profile.html preferences", f"Your {saved} saved.")
    tour.open("/account/email")
    tour.submit("/account/email/confirm")
    tour.stop("links/mail_sent.html again", "won’t arrive")
    tour.stand.change(app_registration="operator")
    tour.open("/developer/apps")
    tour.stop("developer/apps.html empty", "Only the operator of this server can register")


def connected_apps(tour: Tour) -> None:
    """Visits the profile and the list of apps of a person who has connected some."""
    tour.sign_in(demo.EMAIL, demo.PASSWORD, "/account")
    tour.stop("account/profile.html filled", "Confirmed")
    tour.submit("/account", name="Ada Lovelace")
    tour.stop("account/profile.html changed", "Your name was changed")
    tour.open("/")
    tour.stop("base/home.html signed in", "Go to your account")
    tour.open("/account/apps")
    tour.stop("account/apps.html filled", "Recently disconnected")
    tour.submit(f"{WEATHER}/limit", dollars="much")
    tour.submit(f"{WEATHER}/limit", confirm_password=demo.PASSWORD)
    tour.stop("account/apps.html", "dollars")
    tour.open("/account/apps")
    tour.submit(f"{WEATHER}/end")
    tour.stop("account/apps.html ended", "including everything handed on from it")
    tour.submit(f"{WEATHER}/pause")
    tour.stop("account/apps.html paused", "The app is paused")
    tour.open(asks("weather-diary", ("profile",)))
    tour.stop("oauth/consent.html paused", "You paused this app")
    tour.open("/account/apps")
    tour.submit(f"{WEATHER}/resume")


def documents_and_credits(tour: Tour) -> None:
    """Visits the documents that apps keep and the credits that they spend."""
    tour.open("/account/apps/archive/data")
    tour.stop("account/app_data.html", "Next page")
    tour.browser.click("Next page")
    tour.stop("account/app_data.html next", "First page")
    tour.open("/account/apps/old-reader/data")
    tour.stop("account/app_data.html ended", "This app is disconnected")
    tour.open(f"{WEATHER}/data/diary/2026-03-01")
    tour.stop("account/document.html", "Read the chapter on ferns")
    tour.open(f"{WEATHER}/data")
    tour.submit(f"{WEATHER}/data/delete")
    tour.stop("account/app_data.html empty", "This app stores no documents")
    tour.open("/account/security/activity?kind=apps&app=archive")
    tour.stop("account/activity.html", "All apps")
    tour.open("/account/security/activity")
    tour.stop("account/activity.html all", "Signed in")
    tour.open("/account/credits")
    tour.stop("account/credits.html", "Spent by day")
    tour.browser.click("Older transactions")
    tour.stop("account/credits.html older", "Newest transactions")
    tour.open("/account/credits/usage")
    tour.stop("account/usage.html", "By app")
    buying(tour)


def buying(tour: Tour) -> None:
    """Visits the credits page where credits are sold, with a wrong amount, and after a payment was reversed."""
    account = StripeAccount(
        "sk_test_none", ("whsec_none",), tour.stand.site.base_url, "http://localhost:1", "https://x"
    )
    tour.stand.change(payments=StripeCheckout(account))
    tour.open("/account/credits")
    tour.stop("account/credits.html buying", "Continue to payment")
    tour.submit("/account/credits/checkout", dollars="1")
    tour.stop("account/credits.html amount", "Enter an amount from")

    store = tour.stand.store

    async def reverse() -> None:
        user = (await store.operator.find(demo.EMAIL)).user
        payment = "pi_3Q0aLkLkdIwHu7ix0Ab1Cd2E"
        await store.payments.book(Movement(user, payment, "paid", 20_000_000, 1))
        await store.credits.grant(user, -(await store.credits.show(user)).spendable, reason="Gift card, number 1007")
        await store.payments.book(Movement(user, payment, "refunded", 20_000_000, 2))

    tour.stand.run(reverse())
    tour.open("/account/credits")
    tour.stop("account/credits.html reversed", "Your payment was refunded.")
    # The pages to come show what calls cost.
    user = tour.stand.run(store.operator.find(demo.EMAIL)).user
    tour.stand.run(store.credits.grant(user, 45_000_000, reason="Gift card, number 1007"))


def consent(tour: Tour) -> None:
    """Visits the pages between an app and its answer: consent, other accounts, more proof, signing out."""
    tour.open(asks("curious"))
    tour.stop("oauth/consent.html first", "Take care")
    tour.submit("/api/oauth/authorize", "allow", spend_dollars="much")
    tour.stop("base/message.html amount", "Go back and enter the amount again")
    tour.open(asks("curious"))
    tour.browser.run("for (const one of document.querySelectorAll('[type=checkbox]')) one.checked = false")
    tour.submit("/api/oauth/authorize", "allow")
    tour.stop("oauth/consent.html again", "Choose at least one of the things")
    tour.stand.run(tour.stand.store.apps.update("curious", name="PayPal"))
    tour.stand.run(tour.stand.store.apps.update("curious", domain="curious.example"))
    tour.open(asks("curious"))
    tour.stop("oauth/consent.html brand", "looks like PayPal")
    tour.stand.run(tour.stand.store.apps.update("curious", name="Curious"))
    tour.open(asks("pocket-notes", ("openid", "profile", "email")))
    tour.stop("oauth/consent.html itself", "this app registered itself")
    tour.open(asks("weather-diary", SPENDS))
    tour.stop("oauth/consent.html", "Already allowed")
    budgets = [{"type": "credits", "limit": 3_000_000, "period": "month", "models": ["latchkey-echo"]}]
    budgets.append({"type": "llm-inference", "budget": 250_000})
    asked = f"{asks('curious', ('profile',))}&{urlencode({'authorization_details': json.dumps(budgets)})}"
    tour.open(asked)
    tour.stop("oauth/consent.html budget", "You can lower it")
    tour.submit("/api/oauth/authorize", "allow", **{"budget_llm-inference": "0.1"})
    tour.stand.run(spend_of_budget(tour.stand, "curious", 40_000))
    tour.open("/account/apps")
    tour.stop("account/apps.html budget", "used this month")
    tour.open(asks("curious", ("credits:spend",)))
    tour.stop("oauth/consent.html budgeted", "that you allowed before")
    tour.stand.change(issuers=tour.stand.run(connected_by_issuer(tour.stand, "curious")))
    tour.open("/account/apps")
    tour.stop("account/apps.html issuer", "connected it for you")
    tour.open(asks("weather-diary", ("profile",)))
    tour.stop("oauth/consent.html kept", "keeps what you allowed before")
    tour.open(asks("weather-diary").replace("prompt=consent", "prompt=none"))
    tour.stop("oauth/leaving.html", "Check the address first")
    tour.open(asks("weather-diary").replace("prompt=consent", "prompt=none") + "&response_mode=form_post")
    tour.stop("oauth/leaving.html form_post", "Check the address first")
    tour.open(asks("weather-diary", ("profile",)).replace("prompt=consent", "prompt=select_account"))
    tour.stop("signin/choose.html", "to continue to")
    tour.open(asks("weather-diary", ("profile",)) + "&acr_values=phr")
    tour.stop("oauth/step_up.html", "Sign in with a passkey")
    tour.open(asks("weather-diary", ("profile",)) + "&acr_values=phr&response_mode=form_post")
    tour.stop("oauth/step_up.html form_post", "Sign in with a passkey")
    tour.open(asks("weather-diary", ("profile",)) + "&acr_values=2")
    tour.stop("oauth/step_up.html second step", "Sign in with two-step verification")
    tour.stand.run(tour.stand.store.apps.update("curious", allowed_groups=("Meteorologists",)))
    tour.open(asks("curious", ("profile",)))
    tour.stop("oauth/keep_out.html", "only for members of certain groups")
    tour.open(asks("curious", ("profile",)) + "&response_mode=form_post")
    tour.stop("oauth/keep_out.html form_post", "only for members of certain groups")
    tour.stand.run(tour.stand.store.apps.update("curious", allowed_groups=()))
    tour.open("/oauth/logout?client_id=weather-diary&post_logout_redirect_uri=https://diary.example/bye")
    tour.stop("oauth/logout.html", "is asking to sign you out")
    tour.open("/oauth/logout")
    tour.stop("oauth/logout.html nobody", "Stay signed in")


def demo_app(tour: Tour) -> None:
    """Visits the pages of the demo app."""
    browser, app = tour.browser, tour.stand.demo.url
    tour.stand.change()
    tour.open(app)
    tour.stop("demo home.html", "Sign in with Latchkey")
    browser.click("Connect with a limit")
    browser.wait_for("Forgot your password?")
    tour.submit("/signin", email=demo.EMAIL, password=demo.PASSWORD)
    tour.stop("oauth/consent.html demo", "The Daily Leaf")
    tour.submit("/api/oauth/authorize", "allow")
    tour.stop("demo home.html minute", "Keep a note")
    for note in ("Ferns have no flowers.", "Read on at page 112: " + "chlorophyll" * 12):
        browser.wait_for("Your notes")
        tour.submit("/notes", text=note)
    browser.type("question", "What does a fern live on?")
    browser.click("Ask")
    browser.wait_for("It cost you")
    for action, words in (("note", "is in your account"), ("helper", "the helper asked"), ("spend", "This site asked")):
        tour.submit(f"/minute/{action}")
        browser.wait_for(words)
    tour.stop("demo home.html signed in", "Ferns have no flowers.")
    tour.open("/account/apps")
    tour.submit("/account/apps/demo-app/revoke")
    tour.open(app)
    tour.stop("demo home.html disconnected", "no longer connected")
    tour.open(f"{app}/callback?state=another&code=another")
    tour.stop("demo error.html", "does not belong to a sign-in")


def account_deletion(tour: Tour) -> None:
    """Visits the page that deletes an account, and the page after it."""
    tour.open("/account/delete")
    tour.submit("/account/delete", email="nobody", password="wrong")
    tour.stop("account/delete.html", "isn't the e-mail address of this account")
    tour.submit("/account/delete", email=demo.EMAIL, password="wrong")
    tour.stop("account/delete.html wrong password", "Incorrect password")
    tour.open("/account/deleted")
    tour.stop("base/message.html short", "Your account was deleted")


def trouble(tour: Tour) -> None:
    """Visits the error pages: too many requests, a wrong XSRF token, an unavailable store."""
    stand = tour.stand

    async def fill_window() -> None:
        for _ in range(20):
            await stand.store.limits.sign_in("192.0.2.1", NOBODY)

    stand.run(fill_window())
    tour.open(f"/signin?next={FRESH}")
    tour.submit("/signin", email=NOBODY, password=PASSWORD)
    tour.stop("base/message.html too many", "Too many requests")
    tour.open(f"/signin?next={FRESH}")
    tour.submit("/signin", _xsrf="another")
    tour.stop("base/message.html not allowed", "Not allowed")
    with valkey() as engine:
        gone = stand.run(stand.open_store(engine.url))
    stand.change(store=gone)
    tour.open("/account")
    tour.stop("base/message.html away", "Not available right now")
    stand.change()
    stand.run(gone.close())
