"""The tour's leg through the operators' console."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from runtime import demo
from store import keys
from store.accounts.identities import UpstreamIdentity
from store.operators.roles import OperatorRole
from store.results import Visitor
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import PASSWORD

EVA, SAM, ANA = "eva@example.com", "sam@example.com", "ana@example.com"
OPERATORS: tuple[tuple[OperatorRole, str, str], ...] = (
    ("admin", EVA, "Eva Admin"),
    ("support", SAM, "Sam Support"),
    ("auditor", ANA, "Ana Auditor"),
)


def enter(tour: Tour, email: str, user: str) -> None:
    """Signs an operator in, as with a second step."""
    store = tour.stand.store

    async def with_second_step() -> None:
        async for name in store.client.scan_iter(match=f"{keys.session_prefix(user)}*"):
            await store.client.hset(name, "method", "otp")

    tour.sign_in(email, PASSWORD, "/account")
    tour.browser.wait_for("Your account")
    tour.stand.run(with_second_step())


def many(tour: Tour) -> None:
    """Visits pages of the list of people beyond the first, and one on which nobody has the status."""

    async def add() -> str:
        store = tour.stand.store
        facts: dict[str, Any] = {"verified": True, "event": "created_by_operator", "visitor": Visitor()}
        users = [
            await store.people.create(f"guest{one}@example.org", f"Guest {one}", None, **facts) for one in range(120)
        ]
        await store.directory_relay.repeat(users)
        identities, one = keys.person(users[0])["identities"], UpstreamIdentity("https://elsewhere.example", "7")
        await store.client.hset(identities, one.name, f"{one.text}\n0 0 guest@elsewhere.example")
        await store.client.set(keys.identity(one.name), users[0])
        return users[0]

    guest = f"/admin/people/{tour.stand.run(add())}"
    tour.open(guest)
    tour.submit(f"{guest}/unlink")
    tour.stop("admin/person.html wrong unlink", "only this way")
    tour.open("/admin/people")
    tour.open(tour.browser.run("return document.querySelector('.pager a').href"))
    tour.stop("admin/people.html", "Next page")


def overview(tour: Tour) -> None:
    """Visits the overview of a server that is nearly full and where nobody has signed in yet, and of a usual one."""
    store = tour.stand.store
    with patch.object(type(store.headroom), "low", True):
        tour.open("/admin")
    tour.stop("admin/overview.html full", "Nearly full")
    tour.stand.run(store.security.flush())
    tour.open("/admin")
    tour.stop("admin/overview.html", "as a table")


def console(tour: Tour) -> None:
    """Visits the console as each role: lists, a person, forms, and what is refused."""
    stand, store = tour.stand, tour.stand.store
    ids = {}
    for role, email, name in OPERATORS:
        ids[role] = stand.run(stand.service.add_person(email, name, PASSWORD))
        stand.run(store.role_holders.give(ids[role], role))
    demo_user = stand.run(store.operator.find(demo.EMAIL)).user
    person = f"/admin/people/{demo_user}"
    tour.sign_in(EVA, PASSWORD, "/admin")
    tour.stop("base/message.html second step", "Set up two-step verification")
    enter(tour, EVA, ids["admin"])
    overview(tour)
    stand.run(store.directory_relay.sweep())
    tour.open("/admin/people")
    tour.stop("admin/people.html first", "Last sign-in")
    tour.open("/admin/people?query=nobody%40example.com")
    tour.stop("admin/people.html nobody", "Nobody found")
    tour.open("/admin/people?status=suspended")
    tour.stop("admin/people.html empty", "Nobody has this status")
    tour.open(f"/admin/search?q={demo.EMAIL}")
    tour.stop("admin/person.html", "Delete the account")
    tour.submit(f"{person}/suspend", reason="Unpaid since May")
    tour.stop("account/confirm_yourself.html operator", "suspend a person")
    tour.submit(f"{person}/suspend", confirm_password=PASSWORD, until="tomorrow")
    tour.submit(f"{person}/suspend", until="tomorrow")
    tour.stop("admin/person.html wrong suspend", "must be a date")
    tour.submit(f"{person}/credits", amount="much")
    tour.stop("admin/person.html wrong credits", "amount in dollars")
    tour.submit(f"{person}/email", email="not an address")
    tour.stop("admin/person.html wrong email", "e-mail address")
    tour.submit(f"{person}/role", role="owner")
    tour.stop("admin/person.html wrong role", "Part of the form is missing")
    tour.submit(f"{person}/send-link", kind="confirm")
    tour.stop("admin/person.html wrong send-link", "Part of the form is missing")
    tour.submit(f"{person}/plan-deletion", days="400")
    tour.stop("admin/person.html wrong plan-deletion", "1 to 90 days")
    tour.submit(f"{person}/delete", address="nobody@example.com")
    tour.stop("admin/person.html wrong delete", "Nothing was deleted")
    stand.run(store.security.flush())
    tour.open("/admin/audit")
    tour.stop("admin/audit.html", "Download as JSON lines")
    tour.browser.run("document.querySelector('.events tr:has(a[title]) th a').click()")
    tour.stop("admin/event.html", "All events of this person")
    tour.open("/admin/audit?since=yesterday")
    tour.stop("admin/audit.html wrong", "must be a date")
    tour.open("/admin/audit?app=nothing&event=signed_in,signed_up&operator=ana@example.com")
    tour.stop("admin/audit.html empty", "Clear all")
    log = "store.accounts.audit.security_reading"
    with patch(f"{log}.PAGE", 1), patch(f"{log}.MOST_READS", 1):
        tour.open("/admin/audit?app=nothing")
    tour.stop("admin/audit.html next", "Go on to the next page")
    tour.open("/admin/apps")
    tour.stop("admin/apps.html", "Old Reader")
    tour.open("/admin/apps?query=nothing")
    tour.stop("admin/apps.html empty", "No apps found")
    tour.open("/admin/apps/curious")
    tour.stop("admin/app.html", "Disable the app")
    tour.submit("/admin/apps/curious/status")
    tour.stop("admin/app.html off", "Enable the app")
    tour.submit("/admin/apps/curious/status")
    tour.submit("/admin/apps/curious/verify")
    tour.stop("admin/app.html verified", "shown as verified")
    tour.submit("/admin/apps/curious/verify")
    tour.open("/admin/apis")
    tour.stop("admin/apis.html", "Timetable")
    [timetable] = [one.client_id for one in stand.run(store.apis.every()) if one.name == "Timetable"]
    api = f"/admin/apis/{timetable}"
    tour.open(api)
    tour.stop("admin/api.html", "Disable the API")
    tour.submit(f"{api}/status")
    tour.stop("admin/api.html off", "Enable the API")
    tour.submit(f"{api}/status")
    tour.submit(f"{api}/secret")
    tour.stop("admin/api.html secret", "copy it now")
    tour.open("/admin/apis?query=nothing")
    tour.stop("admin/apis.html empty", "No APIs found")
    tour.open(f"/admin/people/{ids['admin']}")
    tour.stop("admin/person.html own acts", "This is you")
    other = f"/admin/people/{ids['support']}"
    tour.open(other)
    tour.submit(f"{other}/suspend", reason="On leave", note="Back in January", until="2099-01-31")
    tour.stop("admin/person.html suspended", "The account is suspended")
    stand.run(store.role_holders.give(ids["support"], None))
    stand.run(store.planned_deletions.plan(ids["support"], 7))
    tour.submit(f"{other}/resume")
    tour.stop("admin/person.html wrong resume", "Cancel the deletion first")
    tour.open(other)
    tour.stop("admin/person.html to be deleted", "Delete the account now")
    tour.submit(f"{other}/cancel-deletion")
    tour.submit(f"{other}/resume")
    stand.run(store.role_holders.give(ids["support"], "support"))
    many(tour)
    enter(tour, SAM, ids["support"])
    tour.open(f"/admin/people/{ids['admin']}")
    tour.stop("admin/person.html apart", "only an administrator can do more")
    enter(tour, ANA, ids["auditor"])
    tour.open(person)
    tour.stop("admin/person.html plain", "Recent activity")
    tour.open("/admin/apps/curious")
    tour.stop("admin/app.html auditor", "Refused requests")
    tour.open(api)
    tour.stop("admin/api.html auditor", "Apps with its scopes")
    tour.open("/account")
    tour.submit("/signout")
