"""The tour of all pages: every template, every route that has a page, and what pages look like when something is wrong.

Stops are named as in `tests/support/browser/pages.py`, with a word behind for a state that it does not tell apart.
"""

from __future__ import annotations

import base64
import re
import tempfile

from runtime import demo
from store.accounts.signin.totp import STEP, code_at
from store.webhooks.deliveries import WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.browser.furnished_account import SPENDS, furnish
from tests.support.browser.tour_kit import Tour
from tests.support.http.driver import App, challenge
from tests.support.processes.engines import valkey

PASSWORD = "correct horse battery"
GRACE, HEDY, LINUS, NOBODY = "grace@example.com", "hedy@example.com", "linus@example.com", "nobody@example.com"
WEATHER = "/account/apps/weather-diary"
OWN = "/developer/apps/weather-diary"
ALL = ("profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write")


def walk(tour: Tour) -> None:
    """The whole tour, on a stand that nobody has used."""
    tour.stand.run(furnish(tour.stand))
    for leg in (strangers, newcomer, connected_apps, documents_and_credits, consent, developer, factors, mailed):
        tour.stand.forget_windows()
        tour.stand.change()
        leg(tour)
    demo_app(tour)
    account_deletion(tour)
    trouble(tour)


def asks(client_id: str, scopes: tuple[str, ...] = ALL, back: str = "") -> str:
    """The address at which an app asks; `back` is where the person comes back to."""
    app = App("", client_id, None, back or f"https://{client_id}.example/callback")
    return app.authorize_url(scope=" ".join(scopes), prompt="consent", code_challenge=challenge())


def strangers(tour: Tour) -> None:
    """What anybody sees."""
    tour.open("/")
    tour.stop("home.html", "One sign-in")
    tour.open("/docs")
    tour.stop("docs.html", "End a token")
    tour.open("/signin")
    tour.stop("signin.html begin", "Sign in with a passkey")
    tour.submit("/signin", email=GRACE, password="not this one")
    tour.stop("signin.html", "do not fit an account")
    tour.stand.change(signup="off")
    tour.open("/signin")
    tour.stop("signin.html first", "Forgot your password?")
    tour.open("/")
    tour.stop("home.html closed", "One sign-in")
    tour.open("/signup")
    tour.stop("message.html", "Accounts are made by the operator")
    tour.stand.change()
    tour.open("/forgot")
    tour.stop("forgot.html first", "Forgot your password?")
    tour.submit("/forgot", email="nobody")
    tour.stop("forgot.html", "e-mail address")
    tour.submit("/forgot", email=GRACE)
    tour.stop("mail_sent.html", "will not arrive")
    tour.open("/oauth/authorize?client_id=unknown")
    tour.stop("message.html unknown app", "not known to this server")
    tour.open(asks("weather-diary", back="https://elsewhere.example/"))
    tour.stop("message.html wrong address", "did not register the address")
    tour.open(asks("weather-diary").replace("prompt=consent", "prompt=none"))
    tour.stop("leaving.html signed out", "Check the address first")
    tour.open("/nothing/here")
    tour.stop("message.html not found", "Not found")


def newcomer(tour: Tour) -> None:
    """Somebody signs up, and has nothing yet."""
    tour.open("/signup?next=/account")
    tour.stop("signup.html", "Create your account")
    tour.submit("/signup", name="Grace", email=GRACE, password="short")
    tour.stop("signup.html wrong", "at least")
    tour.submit("/signup", name="Grace Hopper", email=GRACE, password=PASSWORD)
    tour.stop("account.html first", "Not confirmed")
    tour.submit("/account", name=" ")
    tour.stop("account.html", "A name")
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        file.write(b"no picture")
        file.flush()
        tour.browser.type("picture", file.name)
        tour.submit("/account/picture")
    tour.stop("account.html wrong picture", "not a picture we can read")
    for path, name, words in (
        ("/account/apps", "account_apps.html empty", "No app is connected"),
        ("/account/credits", "account_credits.html empty", "Nothing yet"),
        ("/account/email", "account_email.html first", "Not confirmed"),
        ("/account/delete", "account_delete.html first", "none is connected"),
        ("/developer/apps", "developer_apps.html first", "You have no app yet"),
    ):
        tour.open(path)
        tour.stop(name, words)
    tour.open("/account/email")
    tour.submit("/account/email/confirm")
    tour.stop("mail_sent.html again", "will not arrive")
    tour.stand.change(app_registration="operator")
    tour.open("/developer/apps")
    tour.stop("developer_apps.html empty", "registered by the operator")


def connected_apps(tour: Tour) -> None:
    """Somebody with apps."""
    tour.sign_in(demo.EMAIL, demo.PASSWORD, "/account")
    tour.stop("account.html filled", "Confirmed")
    tour.submit("/account", name="Ada Lovelace")
    tour.stop("account.html changed", "Your name was changed")
    tour.open("/")
    tour.stop("home.html signed in", "Go to your account")
    tour.open("/account/apps")
    tour.stop("account_apps.html filled", "Recently disconnected")
    tour.submit(f"{WEATHER}/limit", dollars="much")
    tour.submit(f"{WEATHER}/limit", confirm_password=demo.PASSWORD)
    tour.stop("account_apps.html", "dollars")


def documents_and_credits(tour: Tour) -> None:
    """What apps keep and spend."""
    tour.open("/account/apps/archive/data")
    tour.stop("account_app_data.html", "Next page")
    tour.browser.click("Next page")
    tour.stop("account_app_data.html next", "First page")
    tour.open("/account/apps/old-reader/data")
    tour.stop("account_app_data.html ended", "This app is disconnected")
    tour.open(f"{WEATHER}/data/diary/2026-03-01")
    tour.stop("account_document.html", "Read the chapter on ferns")
    tour.open(f"{WEATHER}/data")
    tour.submit(f"{WEATHER}/data/delete")
    tour.stop("account_app_data.html empty", "Nothing is stored")
    tour.open("/account/credits")
    tour.stop("account_credits.html", "Spent by day")
    tour.browser.click("Older entries")
    tour.stop("account_credits.html older", "Newest entries")


def consent(tour: Tour) -> None:
    """What an app may do."""
    tour.open(asks("curious"))
    tour.stop("consent.html first", "Take care")
    tour.submit("/api/oauth/authorize", "allow", spend_dollars="much")
    tour.stop("message.html amount", "go back and type it again")
    tour.stand.run(tour.stand.store.apps.update("curious", name="PayPal"))
    tour.stand.run(tour.stand.store.apps.update("curious", domain="curious.example"))
    tour.open(asks("curious"))
    tour.stop("consent.html brand", "looks like PayPal")
    tour.stand.run(tour.stand.store.apps.update("curious", name="Curious"))
    tour.open(asks("weather-diary", SPENDS))
    tour.stop("consent.html", "Already allowed")
    tour.open(asks("weather-diary", ("profile",)))
    tour.stop("consent.html kept", "stays allowed too")
    tour.open(asks("weather-diary").replace("prompt=consent", "prompt=none"))
    tour.stop("leaving.html", "Check the address first")


def developer(tour: Tour) -> None:
    """Somebody with an app of their own."""
    tour.open("/developer/register")
    tour.stop("developer_register.html", "What kind of app is it?")
    tour.submit("/developer/register", name=" ", homepage="nowhere", redirect_uris="ftp://a.example/\nhttp://b.example")
    tour.stop("developer_register.html wrong", "was not registered")
    tour.open("/developer/register")
    tour.submit("/developer/register", name="Star Atlas", redirect_uris="https://stars.example/callback")
    tour.stop("developer_app.html new", "this once")
    tour.stand.clock.back(1200)
    tour.sign_in(demo.EMAIL, demo.PASSWORD, OWN)
    tour.stop("developer_app.html", "The last 30 days")
    tour.stand.clock.advance(1200)
    tour.submit(f"{OWN}/rotate")
    tour.stop("confirm_yourself.html first", "You asked to make a new client secret")
    tour.submit(f"{OWN}/rotate", confirm_password="wrong")
    tour.stop("confirm_yourself.html", "The password is not right")
    tour.submit(f"{OWN}/rotate", confirm_password=demo.PASSWORD)
    tour.stop("developer_app.html second", "two are valid")
    tour.open(f"{OWN}/delete")
    tour.stop("developer_delete.html", "Type the app’s name")
    tour.submit(f"{OWN}/delete", confirm="weather")
    tour.stop("developer_delete.html wrong", "That is not the app's name")
    tour.submit(f"{OWN}/delete", confirm="weather diary", password="wrong")
    tour.stop("developer_delete.html wrong password", "The password is not right")
    tour.open(OWN)
    tour.submit(f"{OWN}/verify", domain="elsewhere.example")
    tour.stop("developer_app.html wrong domain", "is at this domain or below it")
    tour.stand.run(
        tour.stand.store.apps.update("weather-diary", domain="weather-diary.example", domain_until=1_900_000_000_000)
    )
    tour.open(asks("weather-diary", SPENDS))
    tour.stop("consent.html proven", "it controls")
    tour.open(OWN)
    tour.stop("developer_app.html proven", "Your app controls")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", domain_misses=1))
    tour.open(OWN)
    tour.stop("developer_app.html file missing", "Check the file")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", name="PayPal"))
    tour.stand.run(tour.stand.store.apps.update("weather-diary", domain="weather-diary.example"))
    tour.open(OWN)
    tour.stop("developer_app.html brand", "its name looks like PayPal")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", name="Weather Diary"))
    tour.open(OWN)
    tour.submit(OWN, name=" ", redirect_uris="nowhere")
    tour.stop("developer_app.html wrong form", "Nothing was changed")
    webhooks(tour)
    tour.open(f"{OWN}/try")
    tour.stop("developer_try.html", "See what a person sees")
    tour.submit(f"{OWN}/try")
    tour.submit("/api/oauth/authorize", "allow")
    tour.stop("developer_try.html done", "4. The end")
    tour.open(f"{OWN}/try?state=another")
    tour.stop("developer_try.html wrong", "This try is over")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", status="disabled"))
    tour.open(OWN)
    tour.stop("developer_app.html disabled", "has disabled this app")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", status="off", verified=True))
    tour.open(OWN)
    tour.stop("developer_app.html off", "Switch on")
    tour.open(f"{OWN}/try")
    tour.stop("developer_try.html off", "can be tried when it is on")
    tour.stand.run(tour.stand.store.apps.begin_deletion("weather-diary"))
    tour.open("/developer/apps?deleted")
    tour.stop("developer_apps.html", "Go on, if it takes too long")
    tour.stand.change(apps_per_person=1)
    tour.open("/developer/apps")
    tour.stop("developer_apps.html full", "Delete one to make room")
    tour.stand.run(tour.stand.store.apps.finish_deletion("weather-diary"))
    tour.open("/developer/apps")
    tour.stop("developer_apps.html deleted", "Counts until")


def webhooks(tour: Tour) -> None:
    """Where events of the app go, and what became of them."""
    hooks, store = f"{OWN}/webhooks", tour.stand.store
    tour.open(hooks)
    tour.stop("developer_webhooks.html first", "Nothing was to be told yet")
    tour.submit(hooks, url="http://weather-diary.example/webhooks")
    tour.stop("developer_webhooks.html wrong", "begins with https")
    tour.submit(hooks, url="https://weather-diary.example/webhooks/latchkey")
    tour.stop("developer_webhooks.html new", "this once")
    tour.submit(f"{hooks}/rotate")
    tour.stop("developer_webhooks.html rotated", "Which one ends?")
    told = tour.stand.run(tell(store, "weather-diary"))
    tour.submit(f"{hooks}/test")
    tour.stop("developer_webhooks.html", "A test event is on its way")
    tour.open(f"{hooks}?before={told['waiting']}")
    tour.stop("developer_webhooks.html older", "Older deliveries")
    tour.stand.change(posts_events=False)
    tour.open(hooks)
    tour.stop("developer_webhooks.html refused", "leaves it to others")
    tour.stand.change()
    for state, words in (
        ("waiting", "2 of 12"),
        ("running", "under way"),
        ("failed", "given up"),
        ("done", "delivered"),
    ):
        tour.open(f"{hooks}/{told[state]}")
        tour.stop(f"developer_delivery.html {state}".removesuffix(" waiting"), words)


async def tell(store: Store, client_id: str) -> dict[str, str]:
    """An event of each state; their ids."""
    told, now = {}, await store.apps.now()
    error = "The receiver's certificate is not valid for this host."
    for state in ("done", "failed", "running", "waiting"):
        event = WebhookEvent(
            new_event_id(), "grant.revoked", client_id, "0" * 32, now, {"reason": "disconnected_by_person"}
        )
        told[state] = event.id
        await store.deliveries.enqueue(event)
        await store.deliveries.claim(1, 600)
        if state == "done":
            await store.deliveries.settle(event.id, 1, delivered=True, status=204)
        elif state != "running":
            again = None if state == "failed" else 120.0
            await store.deliveries.settle(event.id, 1, delivered=False, error=error, retry_in=again)
    return told


def factors(tour: Tour) -> None:
    """Passkeys and the second step."""
    stand, browser = tour.stand, tour.browser
    stand.clock.back(3600)
    stand.run(stand.service.add_person(HEDY, "Hedy Lamarr", PASSWORD))
    device = browser.add_authenticator()
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    tour.stop("account_security.html first", "Confirm it’s you")
    tour.submit("/account/security/confirm", password=PASSWORD)
    tour.stop("account_security.html confirmed", "Set up an app")
    stand.change(base_url=f"http://127.0.0.1:{stand.site.base_url.rpartition(':')[2]}")
    tour.open("/account/security")
    tour.submit("/account/security", current_password=PASSWORD, new_password=PASSWORD)
    tour.stop("account_security.html changed", "Your password was changed")
    stand.change()
    tour.submit("/account/security", current_password="wrong", new_password="short")
    tour.stop("account_security.html wrong", "at least")
    tour.submit("/account/security/confirm", password=PASSWORD)
    tour.open("/account/security/authenticator")
    tour.stop("account_authenticator.html first", "scan this picture")
    tour.submit("/account/security/authenticator", code="1")
    tour.stop("account_authenticator.html", "code")
    tour.open("/account/security")
    stand.mailing()
    browser.click("Add a passkey")
    tour.stop("account_recovery.html", "they are shown only now")
    codes = re.findall(r"\b[a-z2-7]{4}(?:-[a-z2-7]{4}){3}\b", browser.text)
    stand.change()
    tour.open(stand.link(HEDY, "A passkey was added to your account"))
    tour.stop("link_undo.html second step", "Remove the second step")
    tour.open("/account/security")
    browser.wait_for("not used yet")
    tour.submit("/account/security/confirm", password=PASSWORD, code=codes[0])
    tour.stop("account_security.html proved", "You can now change how you sign in")
    tour.submit("/account/security/passkeys/rename", name="")
    tour.stop("account_security.html wrong name", "Type a name for the passkey")
    tour.submit("/account/security/recovery")
    tour.stop("account_recovery.html new", "no longer work")
    tour.submit("/signout")
    tour.sign_in(HEDY, PASSWORD)
    tour.stop("signin_second.html passkey", "Use your passkey")
    stand.change(base_url=f"http://127.0.0.1:{stand.site.base_url.rpartition(':')[2]}")
    tour.open("/signin/second")
    tour.stop("signin_second.html recovery", "Recovery code")
    stand.change()
    tour.open("/signin/second?next=/account/security")
    browser.click("Use your passkey")
    browser.wait_for("Where you are signed in")
    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in")
    browser.click("Set up an app")
    browser.wait_for("scan this picture")
    key = browser.run("return document.querySelector('.key').innerText").replace(" ", "")
    code = code_at(base64.b32decode(key), int(stand.clock.time() * 1000) // STEP)
    tour.submit("/account/security/authenticator", code=code)
    browser.wait_for("Your authenticator app is set up")
    tour.submit("/signout")
    tour.sign_in(HEDY, PASSWORD, "/account/security")
    tour.submit("/signin/second", code="123456")
    tour.stop("signin_second.html", "code")
    browser.click("Use your passkey")
    browser.wait_for("Where you are signed in")
    browser.click("Confirm with a passkey")
    browser.wait_for("You can now change how you sign in")
    stand.clock.advance(1200)
    tour.submit("/account/security/passkeys/remove")
    tour.stop("account_security.html unproved", "Confirm it's you first")
    tour.submit("/account/security/confirm", password="wrong")
    tour.stop("account_security.html", "password")
    stand.clock.advance(2400)
    tour.submit("/signout")
    browser.remove_authenticator(device)
    tour.open("/signin")
    tour.submit("/signin/passkey", credential="nonsense")
    tour.stop("signin.html wrong passkey", "passkey")


def mailed(tour: Tour) -> None:
    """What mailed links open, on a server that sends mail."""
    stand = tour.stand
    stand.mailing()
    tour.open("/signup?next=/account")
    tour.stop("signup_address.html first", "we send you a link")
    tour.submit("/signup", email="nobody")
    tour.stop("signup_address.html", "e-mail address")
    tour.submit("/signup", email=LINUS)
    tour.stop("mail_sent.html reaching", "on its way")
    tour.open(stand.link(LINUS, "Finish creating your account"))
    tour.stop("signup.html invited", "made for this address")
    tour.submit("/signup", name="Linus", password="short")
    tour.stop("signup.html invited wrong", "at least")
    tour.submit("/signup", name="Linus", password=PASSWORD)
    tour.sign_in(GRACE, PASSWORD, "/account/email")
    tour.submit("/account/email", email="nobody", current_password=PASSWORD)
    tour.stop("account_email.html", "e-mail address")
    tour.submit("/account/email", email="admiral@example.com", current_password="wrong")
    tour.stop("account_email.html wrong password", "not right")
    tour.open(asks("curious"))
    tour.stop("confirm_first.html", "First, confirm your e-mail address")
    tour.submit("/account/email/confirm")
    link = stand.link(GRACE, "Confirm your e-mail address")
    tour.sign_in(LINUS, PASSWORD)
    tour.open(link)
    tour.stop("message.html other", "This link is for another account")
    tour.sign_in(GRACE, PASSWORD)
    tour.open(link)
    tour.stop("link_confirm.html", "Yes, confirm it")
    tour.submit("/confirm")
    tour.browser.wait_for("Allow Curious")
    tour.open(link)
    tour.stop("done.html confirmed", "Your address is confirmed")
    tour.open("/account/email")
    tour.stop("account_email.html confirmed", "Confirmed")
    tour.submit("/account/email", email="admiral@example.com", current_password=PASSWORD)
    tour.stop("mail_sent.html signed in", "admiral@example.com")
    tour.open(stand.link("admiral@example.com", "Confirm your new e-mail address"))
    tour.stop("link_change.html", "Change my address")
    tour.submit("/account/email/change")
    tour.stop("done.html", "Your address was changed")
    tour.open(stand.link(GRACE, "Your e-mail address was changed"))
    tour.stop("link_undo.html", "Take it back")
    tour.open("/account")
    tour.submit("/signout")
    tour.open("/forgot")
    tour.submit("/forgot", email="admiral@example.com")
    link = stand.link("admiral@example.com", "Set a new password")
    tour.open(link)
    tour.stop("link_reset.html first", "Choose a new password")
    tour.submit("/reset", new_password="short")
    tour.stop("link_reset.html", "at least")
    tour.submit("/reset", new_password="another horse battery")
    tour.stop("done.html password", "Your password was changed")
    tour.open(link)
    tour.stop("message.html dead link", "Error 400")


def demo_app(tour: Tour) -> None:
    """The third party's side."""
    browser, app = tour.browser, tour.stand.demo.url
    tour.stand.change()
    tour.open(app)
    tour.stop("demo home.html", "Sign in with Latchkey")
    tour.open(f"{app}/login")
    tour.submit("/signin", email=demo.EMAIL, password=demo.PASSWORD)
    tour.stop("consent.html demo", "The Daily Leaf")
    tour.submit("/api/oauth/authorize", "allow")
    for note in ("Ferns have no flowers.", "Read on at page 112: " + "chlorophyll" * 12):
        browser.wait_for("Your notes")
        tour.submit("/notes", text=note)
    browser.type("question", "What does a fern live on?")
    browser.click("Ask")
    browser.wait_for("It cost you")
    tour.stop("demo home.html signed in", "Ferns have no flowers.")
    tour.open("/account/apps")
    tour.submit("/account/apps/demo-app/revoke")
    tour.open(app)
    tour.stop("demo home.html disconnected", "no longer connected")
    tour.open(f"{app}/callback?state=another&code=another")
    tour.stop("demo error.html", "does not belong to a sign-in")


def account_deletion(tour: Tour) -> None:
    """The end of an account."""
    tour.open("/account/delete")
    tour.submit("/account/delete", email="nobody", password="wrong")
    tour.stop("account_delete.html", "not the e-mail address of this account")
    tour.submit("/account/delete", email=demo.EMAIL, password="wrong")
    tour.stop("account_delete.html wrong password", "The password is not right")
    tour.open("/account/deleted")
    tour.stop("message.html short", "Your account was deleted")


def trouble(tour: Tour) -> None:
    """Too many requests, a form of nobody's, and a store that is away."""
    stand = tour.stand

    async def fill_window() -> None:
        for _ in range(20):
            await stand.store.limits.sign_in("192.0.2.1", NOBODY)

    stand.run(fill_window())
    tour.open("/signin")
    tour.submit("/signin", email=NOBODY, password=PASSWORD)
    tour.stop("message.html too many", "Too many requests")
    tour.open("/signin")
    tour.submit("/signin", _xsrf="another")
    tour.stop("message.html not allowed", "Not allowed")
    with valkey() as engine:
        gone = stand.run(stand.open_store(engine.url))
    stand.change(store=gone)
    tour.open("/account")
    tour.stop("message.html away", "Not available right now")
    stand.change()
    stand.run(gone.close())
