"""The tour's leg through the console's pages about the whole server."""

from __future__ import annotations

from handlers.core.site import ServerFacts
from runtime import demo
from runtime.arguments import load
from settings.in_force import explained, in_force
from store import keys
from store.webhooks.deliveries import WebhookEvent, new_event_id
from tests.support.admin.tour_console import enter
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import PASSWORD
from tests.support.browser.tour_portal import make_deliveries

IRA, NOA = "ira@example.com", "noa@example.com"


def desk(tour: Tour) -> None:
    """Visits these pages as an admin, and some as an auditor."""
    stand, store = tour.stand, tour.stand.store
    ira = stand.run(stand.service.add_person(IRA, "Ira Admin", PASSWORD))
    noa = stand.run(stand.service.add_person(NOA, "Noa Auditor", PASSWORD))
    stand.run(store.role_holders.give(ira, "admin"))
    stand.run(store.role_holders.give(noa, "auditor"))
    enter(tour, IRA, ira)
    credits(tour)
    many_people(tour, noa)
    delivery = webhooks(tour)
    server(tour)
    enter(tour, NOA, noa)
    tour.open(delivery)
    tour.stop("admin/delivery.html auditor", "Attempts")
    tour.open("/account")
    tour.submit("/signout")


def credits(tour: Tour) -> None:
    """Visits the ledger search and the report on everybody's credits."""
    stand, store = tour.stand, tour.stand.store
    user = stand.run(store.operator.find(demo.EMAIL)).user
    stand.run(store.credits.grant(user, 2_000_000, reason="Thanks"))
    desk, report = "/admin/credits", "/admin/credits/report"

    async def add(amount: int) -> None:
        await store.client.hincrby(keys.credits(user)["balance"], "paid", amount)

    tour.open(desk)
    tour.stop("admin/credits.html none", "No report yet")
    tour.open(f"{desk}?person={demo.EMAIL}")
    tour.stop("admin/credits.html person", "Thanks")
    tour.open(f"{desk}?person={demo.EMAIL}&transaction=nothing")
    tour.stop("admin/credits.html nothing", "No transactions match")
    tour.open(f"{desk}?since=yesterday")
    tour.stop("admin/credits.html wrong", "must be a date")
    stand.run(add(1))
    tour.open(f"{desk}?kind=grant")
    tour.submit(report)
    tour.submit(report, confirm_password=PASSWORD)
    while "In progress" in tour.browser.text:
        tour.browser.run("location.reload()")
    tour.stop("admin/credits.html", "Found transactions")
    stand.run(add(-1))


def many_people(tour: Tour, noa: str) -> None:
    """Visits what one act on many people takes. `noa` has a role."""
    stand, store = tour.stand, tour.stand.store
    ben = stand.run(stand.service.add_person("ben@example.com", "Ben", PASSWORD))
    bulk = "/admin/people/bulk"
    both = f"person_{ben}=yes&person_{noa}=yes"
    tour.open(f"{bulk}?act=suspend&{both}")
    tour.stop("admin/bulk.html", "is skipped")
    tour.open(f"{bulk}?act=delete&person_{noa}=yes")
    tour.stop("admin/bulk.html nobody", "Nobody is left")
    tour.open(f"{bulk}?act=delete&{both}")
    tour.stop("admin/bulk.html delete", "Plan the deletion")
    tour.submit(bulk, days="100")
    tour.stop("admin/bulk.html delete wrong", "1 to 90 days")
    tour.submit(bulk, days="7", reason="Asked for by post")
    while "in progress" in tour.browser.text:
        tour.browser.run("location.reload()")
    tour.stop("admin/bulk_progress.html planned", "Cancel the deletion")
    stand.run(store.planned_deletions.cancel(ben))
    tour.open(f"{bulk}?act=suspend&{both}")
    tour.submit(bulk, reason="Unpaid since May", until="tomorrow")
    tour.stop("admin/bulk.html wrong", "must be a date")
    tour.submit(bulk, reason="Unpaid since May", until="")
    while "in progress" in tour.browser.text:
        tour.browser.run("location.reload()")
    tour.stop("admin/bulk_progress.html", "Skipped people")
    stand.run(store.operator.delete(ben))


def server(tour: Tour) -> None:
    """Visits the health and the settings of the server."""
    settings = load(["--workers", "3", "--signup", "invite"], {"LATCHKEY_SECRET_KEYS": "1:" + "A" * 43})
    facts = ServerFacts("1.2.3", settings.workers, in_force(settings), explained())
    tour.open("/admin/health")
    tour.stop("admin/health.html", "What fills the store")
    tour.open("/admin/settings")
    tour.stop("admin/settings.html set", "Everything is at its default")
    tour.stand.change(facts=lambda: facts)
    tour.open("/admin/settings?query=zzz")
    tour.stop("admin/settings.html nothing", "No settings found")
    tour.open("/admin/settings?show=all")
    tour.stop("admin/settings.html", "--workers")
    tour.stand.change()


def webhooks(tour: Tour) -> str:
    """Visits the deliveries of all apps. Returns the address of one."""
    stand, store = tour.stand, tour.stand.store
    hook = "https://rain-planner.example/webhooks/latchkey"
    stand.run(stand.service.add_app("rain-planner", name="Rain planner", webhook_url=hook))
    ids = stand.run(make_deliveries(store, "rain-planner"))
    stand.run(
        store.deliveries.enqueue(
            WebhookEvent(new_event_id(), "user.deleted", "curious", "0" * 32, stand.run(store.apps.now()))
        )
    )
    tour.open("/admin/webhooks")
    tour.stop("admin/webhooks.html", "No success since".lower())
    tour.open("/admin/webhooks?app=nothing")
    tour.stop("admin/webhooks.html empty", "No deliveries")
    tour.open("/admin/webhooks?app=rain-planner&state=failed")
    tour.stop("admin/webhooks.html given up", "Send given-up events again")
    delivery = f"/admin/webhooks/rain-planner/{ids['failed']}"
    tour.open(delivery)
    tour.stop("admin/delivery.html", "Send it again")
    failed = "/admin/webhooks/rain-planner/send-failed"
    tour.open(failed)
    tour.stop("admin/send_failed.html", "were given up")
    tour.submit(failed)
    tour.stop("admin/webhooks.html sent", "on their way again")
    tour.open(failed)
    tour.stop("admin/send_failed.html none", "nothing to send")
    return delivery
