"""Changes of a team at the same time, on two server processes and one Valkey."""

from __future__ import annotations

import asyncio

import pytest

from store.apps.owners.members import team_of
from tests.support.http.driver import Browser, Service, fields_of
from tests.support.processes import two_servers
from tests.support.processes.processes import Pair

two, service = two_servers.two, two_servers.service

pytestmark = [pytest.mark.slow, pytest.mark.gen_test(timeout=120)]

ROUNDS = 8


async def arrive(service: Service, two: Pair, email: str, at: int) -> Browser:
    """Somebody who has just re-authenticated, in a browser that talks to one of the servers."""
    two.forget_addresses()
    browser = await service.confirmed(email)
    return Browser(two.servers[at].here, dict(browser.cookies))


async def members(service: Service, client: str) -> list[tuple[str, str]]:
    app, _ = await service.store.apps.fresh(client)
    assert app is not None
    return [(one.user, one.role) for one in team_of(app)]


async def test_two_owners_who_remove_each_other_leave_one(service: Service, two: Pair) -> None:
    bob = await service.add_person(f"bob-{two.email}")
    here, there = await arrive(service, two, two.email, 0), await arrive(service, two, f"bob-{two.email}", 1)
    xsrf = [fields_of(await one.get("/account/security"), "/signout")["_xsrf"] for one in (here, there)]
    winners = set()
    for number in range(ROUNDS):
        client = f"{service.web.client_id}-{number}"
        await service.add_app(client, owner=service.ada)
        await service.store.teams.put(client, bob, "owner")
        to = f"/developer/apps/{client}/team/remove"
        answers = await asyncio.gather(
            here.send(to, "POST", form={"_xsrf": xsrf[0], "member": bob}),
            there.send(to, "POST", form={"_xsrf": xsrf[1], "member": service.ada}),
        )
        codes = [answer.code for answer in answers]
        assert codes.count(303) == 1, codes
        assert {code for code in codes if code != 303} <= {400, 404}
        ((winner, role),) = await members(service, client)
        assert role == "owner"
        assert winner == (service.ada if codes[0] == 303 else bob)
        winners.add(winner)
    assert winners


async def test_an_invitation_accepted_on_two_servers_counts_once(service: Service, two: Pair) -> None:
    email = f"eve-{two.email}"
    eve = await service.add_person(email)
    here = await arrive(service, two, email, 0)
    xsrf = fields_of(await here.get("/account/security"), "/signout")["_xsrf"]
    there = Browser(two.servers[1].here, dict(here.cookies))
    store = service.store
    for number in range(ROUNDS):
        client = f"{service.web.client_id}-inv-{number}"
        await service.add_app(client, owner=service.ada)
        text = await store.teams._invitations.make(client, email, "viewer", service.ada)
        form = {"_xsrf": xsrf, "link": text}
        answers = await asyncio.gather(*(one.send("/developer/invitation", "POST", form=form) for one in (here, there)))
        assert [answer.code for answer in answers] == [303, 303], "both lead to the app"
        assert await members(service, client) == [(service.ada, "owner"), (eve, "viewer")]
        await store.teams.take(client, eve)
        again = await here.send("/developer/invitation", "POST", form=form)
        assert again.code == 400, "used up"
