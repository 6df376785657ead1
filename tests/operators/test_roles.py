"""The table of roles, row by row: every route of the management interface with a key of every role."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.admin.interface_operations import ADMIN_OPERATIONS
from handlers.admin.routes import ROUTES
from handlers.core.site import Site
from handlers.ops.credits import OPS_ROUTES
from handlers.ops.security_context import tell_security
from handlers.routes import ROUTES as MAIN
from handlers.routes import make_application
from store.operations import Suspension
from store.operators.people_acts import Changes
from store.operators.roles import ACTS, ALLOWED, ROLES, OperatorActor, OperatorRole
from store.refused import Refused
from store.results import Visitor
from tests.credits.test_ops import served
from tests.operators.conftest import API, Desk, refused
from tests.support.http.driver import EMAIL, json_of, send

pytestmark = pytest.mark.gen_test

READERS, SUPPORT, ADMIN = "admin support auditor", "admin support", "admin"
EXPECTED: dict[str, str] = {
    "admin-people GET": READERS,
    "admin-people POST": ADMIN,
    "admin-bulk POST": SUPPORT,
    "admin-bulk-progress GET": READERS,
    "admin-person GET": READERS,
    "admin-person PATCH": ADMIN,
    "admin-person DELETE": ADMIN,
    "admin-suspend POST": SUPPORT,
    "admin-resume POST": SUPPORT,
    "admin-sign-out POST": SUPPORT,
    "admin-reset-factors POST": SUPPORT,
    "admin-send-link POST": SUPPORT,
    "admin-sessions GET": READERS,
    "admin-session DELETE": SUPPORT,
    "admin-grant DELETE": ADMIN,
    "admin-identities GET": READERS,
    "admin-identity DELETE": ADMIN,
    "admin-cancel-deletion POST": ADMIN,
    "admin-export GET": READERS,
    "admin-credits GET": "admin support auditor credits",
    "admin-credits POST": "admin credits",
    "admin-ledger GET": "admin support auditor credits",
    "admin-credit-report GET": "admin support auditor credits",
    "admin-credit-report POST": "admin credits",
    "admin-role PUT": ADMIN,
    "admin-role DELETE": ADMIN,
    "admin-roles GET": READERS,
    "admin-apps GET": READERS,
    "admin-apps POST": ADMIN,
    "admin-app GET": READERS,
    "admin-app PATCH": ADMIN,
    "admin-app DELETE": ADMIN,
    "admin-app-status POST": ADMIN,
    "admin-app-secret POST": ADMIN,
    "admin-app-webhook-secret POST": ADMIN,
    "admin-app-logo PUT": ADMIN,
    "admin-app-logo DELETE": ADMIN,
    "admin-team GET": READERS,
    "admin-teammate PUT": ADMIN,
    "admin-teammate DELETE": ADMIN,
    "admin-app-log GET": READERS,
    "admin-apis GET": READERS,
    "admin-apis POST": ADMIN,
    "admin-api GET": READERS,
    "admin-api PATCH": ADMIN,
    "admin-api DELETE": ADMIN,
    "admin-api-status POST": ADMIN,
    "admin-api-secret POST": ADMIN,
    "admin-grants GET": READERS,
    "admin-audit GET": READERS,
    "admin-audit-export GET": READERS,
    "admin-deliveries GET": READERS,
    "admin-delivery GET": READERS,
    "admin-failing GET": READERS,
    "admin-send-delivery POST": ADMIN,
    "admin-send-failed POST": ADMIN,
    "admin-keys GET": READERS,
    "admin-settings GET": READERS,
    "admin-health GET": READERS,
    "admin-operator-keys GET": READERS,
    "admin-operator-key DELETE": ADMIN,
}
"""The roles that may use each route: written down a second time, so that a changed table or a new route fails here."""


def path_of(pattern: str, user: str) -> str:
    """An address that the pattern matches."""
    path = pattern.removeprefix(API).replace("([0-9a-f]{32})", user)
    return (
        path.replace("([A-Za-z0-9_-]{22})", "k" * 22)
        .replace("([A-Za-z0-9_-]{1,64})", "web-app")
        .replace("(suspend|resume)", "resume")
    )


def test_every_route_and_method_has_a_row() -> None:
    known = {f"{route.name} {method}" for route in ROUTES for method, _ in route.policy.acts}
    assert known == set(EXPECTED)
    assert set(ALLOWED) == set(ACTS)
    assert set(ADMIN_OPERATIONS) == known
    for route in ROUTES:
        answered = {name for name in ("GET", "POST", "PUT", "PATCH", "DELETE") if name.lower() in vars(route.handler)}
        assert answered == {method for method, _ in route.policy.acts}, route.name


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("role", ROLES)
async def test_each_role_may_do_what_the_table_says(desk: Desk, role: OperatorRole) -> None:
    for route in ROUTES:
        for method, act in route.policy.acts:
            body = None if method in ("GET", "DELETE") else "{}"
            response = await desk.ask(method, path_of(route.pattern, desk.ada), body, role=role)
            may = role in EXPECTED[f"{route.name} {method}"].split()
            if may:
                assert json_of(response).get("error") != "insufficient_role" if response.code >= 400 else True
                assert response.code not in (401, 403), (route.name, method, response.body)
                if (route.name, method) == ("admin-person", "DELETE"):
                    desk.ada = await desk.person(f"next-{role}@example.com")
            else:
                assert role in refused(response, 403, "insufficient_role"), (route.name, method)
                noted = [event for event in desk.events if event.event == "operator_refused"]
                assert noted[-1].detail == f"{act} {route.name}"
                assert f"The {role}" in noted[-1].by


async def test_credits_on_the_old_address_need_a_role_too(desk: Desk) -> None:
    for role in ROLES:
        headers = {"Authorization": f"Bearer {await desk.key(role)}", "Content-Type": "application/json"}
        body = json.dumps({"user": EMAIL, "amount": 5, "key": role})
        response = await send(f"{desk.url}/ops/credits", "POST", body=body, headers=headers)
        if role in ("admin", "credits"):
            assert response.code == 200
        else:
            refused(response, 403, "insufficient_role")
    assert (await desk.store.credits.show(desk.ada)).paid == 10


async def test_the_main_port_has_no_management_interface(desk: Desk, site: Site) -> None:
    assert not [route.name for route in MAIN if route.pattern.startswith(API)]
    headers = {"Authorization": f"Bearer {await desk.key('admin')}"}
    main = make_application(site)
    tell_security(main)
    async with served(main) as theirs:
        for route in ROUTES:
            for method, _ in route.policy.acts:
                path = API + path_of(route.pattern, desk.ada)
                response = await send(f"{theirs}{path}", method, headers=headers, described=False)
                assert response.code in (403, 404), (route.name, method, response.code)
                assert desk.ada.encode() not in response.body
    assert {route.name for route in ROUTES} <= {route.name for route in OPS_ROUTES}


async def _acts(desk: Desk, path: str, role: OperatorRole) -> list[HTTPResponse]:
    asked: tuple[tuple[str, Any], ...] = (
        ("suspend", {"reason": "Unpaid"}),
        ("sign-out", None),
        ("reset-factors", None),
        ("send-link", {"kind": "reset"}),
        ("resume", None),
    )
    return [await desk.ask("POST", f"{path}/{act}", body or {}, role=role) for act, body in asked]


async def test_support_does_nothing_to_people_with_a_role(desk: Desk) -> None:
    path = f"/people/{desk.ada}"
    assert [response.code for response in await _acts(desk, path, "support")] == [200, 200, 200, 400, 200]
    await desk.do("PUT", f"{path}/role", {"role": "auditor"})
    for response in await _acts(desk, path, "support"):
        assert "role auditor" in refused(response, 403, "insufficient_role")
    assert (await desk.get(path))["status"] == "active"
    assert [response.code for response in await _acts(desk, path, "admin")] == [200, 200, 200, 400, 200]


async def test_the_last_admin_stays(desk: Desk) -> None:
    path = f"/people/{desk.ada}"
    await desk.do("PUT", f"{path}/role", {"role": "admin"})
    for method, at, body in (
        ("DELETE", f"{path}/role", None),
        ("PUT", f"{path}/role", {"role": "support"}),
        ("POST", f"{path}/suspend", {"reason": "Gone"}),
        ("DELETE", path, None),
    ):
        refused(await desk.ask(method, at, body), 403, "access_denied")
    other = await desk.person("bea@example.com")
    await desk.do("PUT", f"/people/{other}/role", {"role": "admin"})
    assert (await desk.do("PUT", f"{path}/role", {"role": "support"}))["before"] == "admin"
    refused(await desk.ask("DELETE", f"/people/{other}/role"), 403, "access_denied")
    refused(await desk.ask("DELETE", path), 403, "access_denied")  # the role comes first
    assert [one["role"] for one in (await desk.get("/roles"))["items"]] == ["admin", "support"]
    await desk.do("DELETE", f"{path}/role")
    assert (await desk.do("DELETE", path))["deleted"] is True


async def test_a_suspended_admin_is_no_other_admin(desk: Desk) -> None:
    store, bea, key = desk.store, await desk.person("bea@example.com"), OperatorActor("key", "k", "admin")
    for user in (desk.ada, bea):
        await store.role_holders.give(user, "admin")
    await store.people_acts.suspend(key, bea, Suspension("Away"))
    for attempt in (
        store.people_acts.suspend(key, desk.ada, Suspension("Away")),
        store.people_acts.give_role(key, desk.ada, None),
        store.people_acts.give_role(key, desk.ada, "support"),
    ):
        with pytest.raises(Refused, match="access_denied"):
            await attempt
    assert await store.role_holders.is_last_admin(desk.ada)
    assert await store.role_holders.admins() == (desk.ada,)
    await store.people_acts.give_role(key, bea, None)
    assert [one.user for one in await store.role_holders.list()] == [desk.ada]


@pytest.mark.parametrize("other", ["suspend", "give_role"])
async def test_two_admins_who_go_at_the_same_moment_leave_one(
    desk: Desk, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, bea, key = desk.store, await desk.person("bea@example.com"), OperatorActor("key", "k", "admin")
    acts, holders = store.people_acts, store.role_holders
    for user in (desk.ada, bea):
        await holders.give(user, "admin")
    both, arrived, is_last = asyncio.Event(), list[str](), holders.is_last_admin

    async def together(user: str) -> bool:
        """Both look before either goes."""
        found = await is_last(user)
        arrived.append(user)
        if len(arrived) == 2:
            both.set()
        await both.wait()
        return found

    monkeypatch.setattr(holders, "is_last_admin", together)
    second = acts.suspend(key, bea, Suspension("Away")) if other == "suspend" else acts.give_role(key, bea, None)
    done = await asyncio.gather(acts.suspend(key, desk.ada, Suspension("Away")), second, return_exceptions=True)
    assert any(isinstance(one, Refused) for one in done), done
    assert await holders.admins()


async def test_nobody_changes_their_own_role_or_acts_on_themselves(desk: Desk) -> None:
    store, ada = desk.store, desk.ada
    await store.role_holders.give(ada, "admin")
    await store.role_holders.give(await desk.person("bea@example.com"), "admin")
    herself = OperatorActor("person", ada, "admin")
    for attempt in (
        store.people_acts.give_role(herself, ada, "support"),
        store.people_acts.give_role(herself, ada, None),
        store.people_acts.suspend(herself, ada, Suspension("Why")),
        store.people_acts.reset_factors(herself, ada),
        store.people_acts.change(herself, ada, Changes("Another")),
        store.people_acts.delete(herself, ada),
    ):
        with pytest.raises(Refused, match="access_denied"):
            await attempt
    with pytest.raises(Refused, match="insufficient_role"):
        await store.people_acts.give_role(OperatorActor("person", ada, "support"), ada, "admin")
    assert await store.role_holders.of(ada) == "admin"


async def test_a_role_works_only_after_a_second_step(desk: Desk) -> None:
    store = desk.store
    credentials = await store.people.credentials(EMAIL)
    assert credentials
    signed_in = await store.sessions.start(credentials, Visitor())
    session = store.sessions.open(signed_in.cookie)
    assert session
    assert await store.role_holders.in_session(session) is None
    await store.role_holders.give(desk.ada, "support")
    assert await store.role_holders.in_session(session) == ("support", False)
    for method, works in (("pwd", False), ("otp", True), ("passkey", True), ("pwd+passkey", True)):
        await store.client.hset(session.keys()["session"], "method", method)
        assert await store.role_holders.in_session(session) == ("support", works)


async def test_people_have_roles_of_people_only(desk: Desk) -> None:
    for role in ("credits", "scim", "owner", ""):
        response = await desk.ask("PUT", f"/people/{desk.ada}/role", {"role": role})
        refused(response, 400, "invalid_request")
    refused(await desk.ask("PUT", f"/people/{'0' * 32}/role", {"role": "support"}), 404, "not_found")
    assert (await desk.get("/roles"))["items"] == []
