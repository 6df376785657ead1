"""The tour's leg through the team of an app: invitations, roles, and what each role sees."""

from __future__ import annotations

from runtime import demo
from store import keys
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.tour_kit import Tour
from tests.support.browser.tour_people import PASSWORD

OWN, ELSA = "/developer/apps/weather-diary", "elsa@example.com"
TEAM = f"{OWN}/team"


async def confirm(store: Store, user: str) -> None:
    """Confirms the address of a person."""
    await store.client.hset(keys.person(user)["user"], "verified", "1")


def team(tour: Tour) -> None:
    """Visits the team as an owner who re-authenticated a moment ago, and as somebody who joins it."""
    stand, store = tour.stand, tour.stand.store
    user = stand.run(
        store.people.create(
            ELSA, "Elsa Herschel", PASSWORD, verified=False, event="signed_up", visitor=Visitor("192.0.2.7", "")
        )
    )
    stand.mailing()
    tour.open(TEAM)
    tour.stop("developer/team.html first", "Invite someone")
    tour.submit(TEAM, email="nobody", role="viewer")
    tour.stop("developer/team.html wrong", "e-mail address")
    tour.submit(TEAM, email=ELSA, role="developer")
    tour.stop("developer/team.html invited", "Invitation sent")
    link = stand.link(ELSA, "You’re invited to the team of an app")
    tour.sign_in(ELSA, PASSWORD)
    tour.open(link)
    tour.stop("links/team.html first", "Confirm your address first")
    stand.run(confirm(store, user))
    tour.open(link)
    tour.stop("links/team.html", "Join the team")
    tour.submit("/developer/invitation")
    tour.stop("developer/overview.html joined", "You joined the team")
    tour.open("/developer/apps")
    tour.stop("developer/apps.html team", "Your teams’ apps")
    stand.run(store.teams.put("weather-diary", user, "viewer"))
    tour.open(f"{OWN}/settings")
    tour.stop("developer/settings.html viewer", "You can read these settings")
    tour.open(TEAM)
    tour.stop("developer/team.html viewer", "Leave…")
    tour.open(f"{OWN}/credentials")
    tour.stop("base/message.html role", "Your role in this app")
    tour.sign_in(demo.EMAIL, demo.PASSWORD, TEAM)
    tour.submit(f"{TEAM}/leave")
    tour.submit(f"{TEAM}/leave", confirm_password=demo.PASSWORD)
    tour.stop("developer/team.html refused", "who has been one for at least 7 days")
    tour.submit(f"{TEAM}/role", role="owner")
    tour.stop("developer/team.html role", "Role changed")
    tour.submit(TEAM, email="karl@example.com", role="viewer")
    tour.stop("developer/team.html", "Role of")
    tour.submit(f"{TEAM}/withdraw")
    tour.stop("developer/team.html withdrawn", "Invitation withdrawn")
    tour.submit(f"{TEAM}/remove")
    tour.stop("developer/team.html removed", "Removed from the team")
    stand.change()
