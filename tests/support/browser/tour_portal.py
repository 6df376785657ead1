"""The tour's legs through the developer portal: apps, their webhooks, APIs."""

from __future__ import annotations

from dataclasses import replace

from runtime import demo
from store.webhooks.attempts import NO_EXCHANGE, WebhookExchange, WebhookResponse
from store.webhooks.deliveries import SESSION_ENDED, WebhookEvent, new_event_id
from store.wiring import Store
from tests.support.browser.furnished_account import ORDERS, SPENDS
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import asks
from tests.support.browser.tour_team import team

OWN, BACK = "/developer/apps/weather-diary", "https://weather-diary.example/callback"
API = f"/developer/apis/{ORDERS.client_id}"


def developer(tour: Tour) -> None:
    """Visits the developer portal as the owner of an app."""
    tour.open("/developer/register")
    tour.stop("developer/register.html", "What kind of app is it?")
    tour.submit("/developer/register", name=" ", homepage="nowhere", redirect_uris="ftp://a.example/\nhttp://b.example")
    tour.stop("developer/register.html wrong", "was not registered")
    tour.open("/developer/register")
    tour.submit("/developer/register", name="Star Atlas", redirect_uris="https://stars.example/callback")
    tour.stop("developer/overview.html new", "copy it now")
    tour.open(tab(tour, "usage"))
    tour.stop("developer/usage.html empty", "made a call yet")
    tour.open("/developer/register")
    tour.submit("/developer/register", name="Star Map", redirect_uris="https://stars.example/map", kind="public")
    tour.browser.wait_for("Your app is registered")
    tour.open(tab(tour, "credentials"))
    tour.stop("developer/credentials.html public", "No secret")
    tour.stand.clock.back(1200)
    tour.sign_in(demo.EMAIL, demo.PASSWORD, OWN)
    tour.stop("developer/overview.html", "Endpoints")
    tour.open(f"{OWN}/usage")
    tour.stop("developer/usage.html", "The last 30 days")
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html", "Require PKCE")
    tour.open(f"{OWN}/log")
    tour.stop("developer/log.html empty", "Nothing was refused")
    tour.open(asks("weather-diary", back="https://weather.example/elsewhere"))
    tour.stand.run(tour.stand.store.app_log.flush())
    tour.open(f"{OWN}/log")
    tour.stop("developer/log.html", "Refused requests")
    tour.stand.clock.advance(1200)
    tour.open(f"{OWN}/credentials")
    tour.stop("developer/credentials.html", "Create a second secret")
    tour.submit(f"{OWN}/rotate")
    tour.stop("account/confirm_yourself.html first", "You asked to create a new client secret")
    tour.submit(f"{OWN}/rotate", confirm_password="wrong")
    tour.stop("account/confirm_yourself.html", "Incorrect password")
    tour.submit(f"{OWN}/rotate", confirm_password=demo.PASSWORD)
    tour.stop("developer/credentials.html second", "copy it now")
    tour.open(f"{OWN}/delete")
    tour.stop("developer/delete.html", "Enter the app’s name")
    tour.submit(f"{OWN}/delete", confirm="weather")
    tour.stop("developer/delete.html wrong", "That’s not its name")
    tour.submit(f"{OWN}/delete", confirm="weather diary", password="wrong")
    tour.stop("developer/delete.html wrong password", "Incorrect password")
    tour.open(f"{OWN}/settings")
    tour.submit(f"{OWN}/logo", logo_url="http://logo.example/logo.png")
    tour.stop("developer/settings.html wrong logo", "Enter an https address such as https://app.example.com/logo.png")
    tour.open(f"{OWN}/settings")
    tour.submit(f"{OWN}/verify", domain="elsewhere.example")
    tour.stop("developer/settings.html wrong domain", "at this domain or a subdomain of it")
    tour.stand.run(
        tour.stand.store.apps.update("weather-diary", domain="weather-diary.example", domain_until=1_900_000_000_000)
    )
    tour.open(asks("weather-diary", SPENDS))
    tour.stop("oauth/consent.html proven", "it controls")
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html proven", "Your app controls")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", domain_misses=1))
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html file missing", "Check the file")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", name="PayPal"))
    tour.stand.run(tour.stand.store.apps.update("weather-diary", domain="weather-diary.example"))
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html brand", "its name looks like PayPal")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", name="Weather Diary"))
    tour.open(f"{OWN}/settings")
    tour.submit(OWN, name=" ", redirect_uris="nowhere")
    tour.stop("developer/settings.html wrong", "Nothing was changed")
    tour.submit(OWN, name="Weather Diary", redirect_uris=BACK, jwks="nonsense")
    tour.stop("developer/settings.html wrong keys", "isn't a valid JSON Web Key Set")
    keys_at = "https://weather-diary.example/jwks.json"
    tour.submit(OWN, name="Weather Diary", redirect_uris=BACK, auth_method="private_key_jwt", jwks="", jwks_uri=keys_at)
    tour.stop("developer/settings.html key", "Saved.")
    tour.open(OWN)
    tour.stop("developer/overview.html key", "Its own key")
    tour.open(f"{OWN}/credentials")
    tour.stop("developer/credentials.html key", "private_key_jwt")
    webhooks(tour)
    guides(tour)
    team(tour)
    tour.open(f"{OWN}/try")
    tour.stop("developer/try.html", "See what people see")
    tour.submit(f"{OWN}/try")
    tour.submit("/api/oauth/authorize", "allow")
    tour.stop("developer/try.html done", "4. The end")
    tour.open(f"{OWN}/try?state=another")
    tour.stop("developer/try.html wrong", "This test has expired")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", device_grant=True))
    tour.open(f"{OWN}/try")
    tour.submit(f"{OWN}/try", device="1")
    tour.stop("developer/try.html device", "scan the QR code")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", status="disabled"))
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html disabled", "has disabled this app")
    tour.stand.run(tour.stand.store.apps.update("weather-diary", status="off", verified=True))
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html off", "Switch on")
    tour.open(f"{OWN}/try")
    tour.stop("developer/try.html off", "Switch it on to try it")
    tour.stand.run(tour.stand.store.apps.begin_deletion("weather-diary"))
    tour.open("/developer/apps?deleted")
    tour.stop("developer/apps.html", "Finish deleting")
    tour.stand.change(apps_per_person=3)
    tour.open("/developer/apps")
    tour.stop("developer/apps.html full", "Delete one to make room")
    tour.stand.run(tour.stand.store.apps.finish_deletion("weather-diary"))
    tour.open("/developer/apps")
    tour.stop("developer/apps.html deleted", "Counts toward your limit until")


def tab(tour: Tour, name: str) -> str:
    """The address of a tab of the app on the page."""
    found: str = tour.browser.run(f"return document.querySelector('.tabs a[href$=\"/{name}\"]').pathname")
    return found


def webhooks(tour: Tour) -> None:
    """Visits the webhook of an app and its deliveries, one in each state."""
    hooks, store = f"{OWN}/webhooks", tour.stand.store
    tour.open(hooks)
    tour.stop("developer/webhooks.html first", "No events yet")
    tour.submit(hooks, url="http://weather-diary.example/webhooks")
    tour.stop("developer/webhooks.html wrong", "must start with https")
    tour.submit(hooks, url="https://weather-diary.example/webhooks/latchkey")
    tour.stop("developer/webhooks.html new", "copy it now")
    tour.submit(f"{hooks}/rotate")
    tour.stop("developer/webhooks.html rotated", "Which secret stops signing now?")
    event_ids = tour.stand.run(make_deliveries(store, "weather-diary"))
    tour.submit(f"{hooks}/test")
    tour.stop("developer/webhooks.html", "A test event is on its way")
    tour.open(f"{hooks}?before={event_ids['waiting']}")
    tour.stop("developer/webhooks.html older", "Older deliveries")
    tour.open(f"{hooks}?type=ping&state=failed")
    tour.stop("developer/webhooks.html filtered", "No deliveries match")
    tour.stand.change(posts_events=False)
    tour.open(hooks)
    tour.stop("developer/webhooks.html refused", "leaves it to other servers")
    tour.stand.change()
    for state, words in (
        ("waiting", "2 of 12"),
        ("running", "in progress"),
        ("failed", "given up"),
        ("done", "delivered"),
        ("binary", "isn’t UTF-8 text"),
        ("private", "public address"),
        ("unsent", "sent nothing"),
    ):
        tour.open(f"{hooks}/{event_ids[state]}")
        tour.stop(f"developer/delivery.html {state}".removesuffix(" waiting"), words)
    ended = WebhookEvent(new_event_id(), SESSION_ENDED, "weather-diary", "0" * 32, 1_700_000_000_000, {"sid": "s" * 22})
    tour.stand.run(store.deliveries.enqueue(ended))
    tour.open(f"{hooks}/{ended.id}")
    tour.stop("developer/delivery.html logout", "Logout token")


def guides(tour: Tour) -> None:
    """Visits the documentation of an app."""
    tour.open(f"{OWN}/guides/webhooks")
    tour.stop("guides/guide.html webhooks", "https://weather-diary.example/webhooks/latchkey")
    tour.open(OWN)
    tour.browser.click("Client libraries, with your app’s values")
    tour.stop("guides/guide.html", "What every client needs to know")
    tour.open(f"{OWN}/guides/clients/authjs")
    tour.stop("guides/guide.html part", 'clientId: "weather-diary"')


async def make_deliveries(store: Store, client_id: str) -> dict[str, str]:
    """Makes one delivery in each state, and with each kind of answer. Returns the ids of their events, by state."""
    event_ids, now = {}, await store.apps.now()
    error = "The receiver's certificate is not valid for this host."
    sent = (
        ("user-agent", "Latchkey-Webhooks"),
        ("webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="),
    )
    body = b'{"type":"grant.revoked","timestamp":"2026-03-05T14:07:09.250Z","data":{"reason":"disconnected_by_person"}}'
    answer = WebhookResponse(
        (("Server", "nginx"), ("Content-Type", "text/plain")), b"No room for this event.\nTry again later.\n"
    )
    tried = WebhookExchange("https://weather-diary.example/webhooks/latchkey", sent, body, answer, 84)
    exchanges = {"binary": replace(tried, answer=replace(answer, body=b"\x1f\x8b\x08")), "unsent": NO_EXCHANGE}
    exchanges |= {"private": replace(tried, answer=None)}
    for state in ("private", "unsent", "binary", "done", "failed", "running", "waiting"):
        event = WebhookEvent(
            new_event_id(), "grant.revoked", client_id, "0" * 32, now, {"reason": "disconnected_by_person"}
        )
        event_ids[state] = event.id
        await store.deliveries.enqueue(event)
        await store.deliveries.claim(100, 600)  # others may be due before it
        if state == "done":
            await store.deliveries.settle(event.id, 1, delivered=True, status=204)
        elif state in exchanges:
            status = None if state == "unsent" else 500
            await store.deliveries.settle(
                event.id, 1, delivered=False, status=status, error=error, exchange=exchanges[state]
            )
        elif state != "running":
            again = None if state == "failed" else 120.0
            await store.deliveries.settle(
                event.id, 1, delivered=False, status=500, error=error, retry_in=again, exchange=tried
            )
    return event_ids


def own_apis(tour: Tour) -> None:
    """Visits the portal as the owner of an API."""
    tour.sign_in(demo.EMAIL, demo.PASSWORD, "/developer/apps")
    tour.stop("developer/apps.html api", "You manage 1 API")
    tour.open("/developer/apis")
    tour.stop("developer/apis.html", "Orders")
    tour.open(API)
    tour.stop("developer/api.html", "Apps that use it")
    tour.submit(API, name=" ", token_lifetime="never", scope_2_name="a b", scope_2_title="Cancel orders")
    tour.submit(API, confirm_password=demo.PASSWORD)
    tour.stop("developer/api.html wrong", "Nothing was changed")
    tour.open(API)
    tour.submit(API, token_format="jwt", scope_2_name="orders:cancel", scope_2_title="Cancel orders", scope_2_care="on")
    tour.stop("developer/api.html changed", "Saved. Every server process")
    tour.submit(f"{API}/rotate")
    tour.stop("developer/api.html second", "copy it now")
    tour.submit(f"{API}/status")
    tour.stop("developer/api.html off", "The API is switched off")
    tour.stand.run(tour.stand.store.apis.update(ORDERS.client_id, status="disabled"))
    tour.open(API)
    tour.stop("developer/api.html disabled", "has disabled this API")
    tour.open(f"{API}/delete")
    tour.stop("developer/delete_api.html first", "Enter the API’s name")
    tour.submit(f"{API}/delete", confirm="order", password="wrong")
    tour.stop("developer/delete_api.html", "That’s not its name")
    tour.submit(f"{API}/delete", confirm="orders", password=demo.PASSWORD)
    tour.stop("developer/apis.html first", "You have no APIs")
