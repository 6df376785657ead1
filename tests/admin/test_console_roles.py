"""The console by role: who sees which page and may press which button, row by row."""

from __future__ import annotations

import re

import pytest

from handlers.account.connected_apps import HomeHandler
from handlers.admin.console.base import ConsolePage, check_console
from handlers.admin.console.people import ConsolePeopleHandler
from handlers.admin.console.routes import ROUTES, does, shows
from handlers.core.person_posts import PersonPost
from handlers.core.policy import PAGE
from handlers.core.route import Route, WrongRoute
from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.operators.roles import PEOPLES_ROLES, OperatorActor, OperatorRole
from store.webhooks.deliveries import WebhookEvent
from tests.admin.conftest import Console
from tests.support.http.driver import EMAIL, PASSWORD, Browser, fields_of

pytestmark = pytest.mark.gen_test(timeout=60)

READERS, SUPPORT, ADMIN = "admin support auditor", "admin support", "admin"
EXPECTED: dict[str, str] = {
    "console GET": READERS,
    "console-search GET": READERS,
    "console-figures-file GET": READERS,
    "console-people GET": READERS,
    "console-bulk GET": SUPPORT,
    "console-bulk POST": SUPPORT,
    "console-bulk-progress GET": READERS,
    "console-person GET": READERS,
    "console-suspend POST": SUPPORT,
    "console-resume POST": SUPPORT,
    "console-sign-out POST": SUPPORT,
    "console-end-session POST": SUPPORT,
    "console-disconnect POST": ADMIN,
    "console-unlink POST": ADMIN,
    "console-send-link POST": SUPPORT,
    "console-email POST": ADMIN,
    "console-reset-factors POST": SUPPORT,
    "console-credits POST": ADMIN,
    "console-role POST": ADMIN,
    "console-export POST": READERS,
    "console-plan-deletion POST": ADMIN,
    "console-cancel-deletion POST": ADMIN,
    "console-delete POST": ADMIN,
    "console-audit GET": READERS,
    "console-audit-file GET": READERS,
    "console-event GET": READERS,
    "console-apps GET": READERS,
    "console-app GET": READERS,
    "console-app-status POST": ADMIN,
    "console-app-verify POST": ADMIN,
    "console-app-rules POST": ADMIN,
    "console-app-team POST": ADMIN,
    "console-app-team-remove POST": ADMIN,
    "console-apis GET": READERS,
    "console-api GET": READERS,
    "console-api-status POST": ADMIN,
    "console-api-secret POST": ADMIN,
    "console-ledger GET": READERS,
    "console-credit-days GET": READERS,
    "console-credit-report POST": ADMIN,
    "console-health GET": READERS,
    "console-settings GET": READERS,
    "console-webhooks GET": READERS,
    "console-delivery GET": READERS,
    "console-send-again POST": ADMIN,
    "console-send-failed GET": ADMIN,
    "console-send-failed POST": ADMIN,
}
"""The roles that may use each page: written down a second time, so that a changed table or a new page fails here."""
CHANGED = "changed@example.com"
"""Ada's address, after the form that changes it."""
FORMS: dict[str, dict[str, str]] = {
    "console-suspend": {"reason": "Unpaid"},
    "console-end-session": {"session": "s" * 22},
    "console-disconnect": {"client_id": "web-app"},
    "console-unlink": {"identity": "i" * 22},
    "console-send-link": {"kind": "reset"},
    "console-email": {"email": CHANGED},
    "console-credits": {"amount": "5", "reason": "Thanks", "key": "a" * 22},
    "console-role": {"role": "none"},
    "console-export": {"format": "jsonl"},
    "console-plan-deletion": {"days": "7"},
    "console-delete": {"address": CHANGED},
    "console-app-status": {"status": "disabled"},
    "console-app-verify": {"verified": "yes"},
    "console-app-rules": {"second_step": "on", "spend_per_day": ""},
    "console-app-team": {"email": "admin@example.com", "role": "owner"},
    "console-app-team-remove": {"user": "0" * 32},
    "console-api-status": {"status": "disabled"},
}
"""What the forms carry."""
UNFIT = {"console-app-team-remove": 400}
"""Forms that find nobody in this test."""
API = ApiRegistration("https://orders.example", "Orders", (ApiScope("orders:read", "See orders"),))


EVENT = WebhookEvent("e" * 22, "ping", "web-app", "", 1)


def path_of(route: Route, user: str, event: str = "1-1") -> str:
    """An address of the route; `event`: the id of an event of the log."""
    client = API.client_id if route.pattern.startswith("/admin/apis/") else "web-app"
    path = route.pattern.replace("([0-9a-f]{32})", user).replace("([A-Za-z0-9_-]{1,64})", client)
    query = f"?act=sign-out&person_{user}=yes" if route.name == "console-bulk" else ""
    return path.replace("([A-Za-z0-9_-]{22})", EVENT.id).replace("([0-9]{1,13}-[0-9]{1,15})", event) + query


def test_every_page_and_form_has_a_row() -> None:
    assert {f"{route.name} {method}" for route in ROUTES for method, _ in route.policy.acts} == set(EXPECTED)


@pytest.mark.parametrize("role", PEOPLES_ROLES)
async def test_each_role_sees_and_does_what_the_table_says(console: Console, role: OperatorRole) -> None:
    one, ada = await console.operator(role), keys.person(console.service.ada)
    await console.service.tokens()
    await console.store.apis.create(API)
    await console.store.client.hset(ada["identities"], "i" * 22, "https://a.example subject")
    await console.store.deliveries.enqueue(EVENT)
    order = {"act": "sign-out", "people": [console.service.ada]}
    await console.store.jobs.prepare("bulk", OperatorActor("person", one.user, role), order, 1, EVENT.id)
    await console.store.security.flush()
    (event,), _ = await console.store.security_events.page(1)
    for route in ROUTES:
        for method, act in route.policy.acts:
            path, may = (
                path_of(route, console.service.ada, event.entry),
                role in EXPECTED[f"{route.name} {method}"].split(),
            )
            fields = FORMS.get(route.name, {})
            if route.name == "console-bulk":
                fields = {"act": "sign-out", f"person_{console.service.ada}": "yes"}
            answer = await (one.browser.get(path) if method == "GET" else one.confirm(path, **fields))
            if may:
                assert answer.code in (200, 303, UNFIT.get(route.name)), (route.name, answer.code, answer.body)
                if route.name == "console-delete":
                    assert await console.store.people.find(CHANGED) is None
            else:
                assert (answer.code, "Ask someone with the role" in answer.body.decode()) == (403, True), route.name
                noted = [event for event in console.events if event.event == "operator_refused"]
                assert (noted[-1].detail, noted[-1].by) == (f"{act} {route.name}", f"person {one.user}")


async def test_the_console_does_not_exist_for_people_without_a_role(console: Console) -> None:
    browser = await console.browser(EMAIL)
    unknown = await browser.get("/no/such/page")
    xsrf = fields_of(await browser.get("/account"), "/signout")["_xsrf"]

    def plain(text: bytes) -> bytes:
        return re.sub(rb'name="_xsrf" value="[^"]*"', b"", text)

    for route in ROUTES:
        path = path_of(route, console.service.ada)
        page = await browser.get(path)
        assert (page.code, plain(page.body)) == (404, plain(unknown.body)), route.name
        apart = {"X-Request-Id", "Date", "Set-Cookie", "Content-Length"}
        heads = [{name: value for name, value in one.headers.items() if name not in apart} for one in (page, unknown)]
        assert heads[0] == heads[1], route.name
        for fields in ({}, {"_xsrf": xsrf}):
            posted, other = [await browser.send(at, "POST", form=fields) for at in (path, "/no/such/page")]
            assert (posted.code, plain(posted.body)) == (other.code, plain(other.body)), (route.name, fields)
    assert not [event for event in console.events if event.event == "operator_refused"]


async def test_somebody_signed_out_signs_in_first(console: Console) -> None:
    await console.operator("support")
    browser = console.service.browser()
    asked = await browser.get("/admin/people?status=active")
    assert (asked.code, asked.headers["Location"]) == (303, "/signin?next=%2Fadmin%2Fpeople%3Fstatus%3Dactive")


@pytest.mark.parametrize("method", ["pwd", "up"])
async def test_a_role_without_a_second_step_leads_to_setting_one_up(console: Console, method: str) -> None:
    one = await console.operator("admin")
    session = console.store.sessions.open(one.browser.cookies["latchkey_session"])
    assert session
    await console.store.client.hset(session.keys()["session"], "method", method)
    for route in ROUTES:
        path = path_of(route, console.service.ada)
        answer = await (one.confirm(path) if route.post else one.browser.get(path))
        assert answer.code == 403
        assert 'href="/account/security"' in answer.body.decode()
    assert (await console.store.operator.find(EMAIL)).status == "active"


async def test_a_role_taken_away_ends_at_the_next_request(console: Console) -> None:
    one = await console.operator("admin")
    path = f"/admin/people/{console.service.ada}"
    await one.open(path)
    await console.store.role_holders.give(await console.person("other@example.com"), "admin")
    await console.store.role_holders.give(one.user, "auditor")
    assert (await one.confirm(f"{path}/suspend", reason="Unpaid")).code == 403
    assert buttons(await one.open(path)) == {"export"}
    await console.store.role_holders.give(one.user, None)
    assert (await one.confirm(f"{path}/suspend", reason="Unpaid")).code == 404
    assert (await one.browser.get(path)).code == 404
    assert (await console.store.operator.find(EMAIL)).status == "active"


async def test_a_suspended_operator_is_signed_out(console: Console) -> None:
    admin, support = await console.operator("admin"), await console.operator("support")
    await admin.do(f"/admin/people/{support.user}/suspend", reason="Left us", confirm_password=PASSWORD)
    assert (await support.browser.get("/admin")).headers["Location"].startswith("/signin")


def buttons(text: str) -> set[str]:
    """The last parts of the addresses of the forms on a person's page."""
    return {action.rpartition("/")[2] for action in re.findall(r'method="post" action="(/admin/[^"]*)"', text)}


async def test_each_role_sees_only_the_buttons_that_it_may_press(console: Console) -> None:
    admin, support, auditor = [await console.operator(role) for role in ("admin", "support", "auditor")]
    ada = f"/admin/people/{console.service.ada}"
    helping = {"suspend", "sign-out", "send-link", "export"}
    assert buttons(await auditor.open(ada)) == {"export"}
    assert buttons(await support.open(ada)) == helping
    assert buttons(await admin.open(ada)) == helping | {"credits", "email", "role", "plan-deletion", "delete"}
    # On people with a role, and on oneself.
    for one, user, seen in (
        (support, auditor.user, {"export"}),
        (support, support.user, {"export"}),
        (admin, auditor.user, helping | {"credits", "email", "role", "end-session"}),
        (admin, admin.user, {"export", "credits"}),
        (auditor, auditor.user, {"export"}),
    ):
        page = f"/admin/people/{user}"
        assert buttons(await one.open(page)) == seen, (one.role, user)
        for act in ("suspend", "sign-out", "send-link", "reset-factors", "role", "email", "plan-deletion", "delete"):
            if act not in seen and not (act == "reset-factors" and one is admin and user != admin.user):
                sent = await one.confirm(f"{page}/{act}", **FORMS.get(f"console-{act}", {}))
                assert sent.code in (400, 403), (one.role, act)
    assert {one.user: one.role for one in await console.store.role_holders.list()} == {
        admin.user: "admin",
        support.user: "support",
        auditor.user: "auditor",
    }


async def test_a_stolen_cookie_of_an_admin_does_nothing(console: Console) -> None:
    admin = await console.operator("admin")
    thief = Browser(admin.browser.base_url, dict(admin.browser.cookies))
    xsrf = fields_of(await thief.get("/account"), "/signout")["_xsrf"]
    before = await console.store.people_acts.view(console.service.ada)
    for route in ROUTES:
        if route.post:
            form = {"_xsrf": xsrf, **FORMS.get(route.name, {})}
            path = path_of(route, console.service.ada)
            for more, headers in (
                ({}, {}),
                ({"confirm_password": "not this one"}, {}),
                ({"confirm_password": PASSWORD}, {"Origin": "https://evil.example"}),
            ):
                answer = await thief.send(path, "POST", form={**form, **more}, headers=headers)
                assert answer.code in (400, 403), (route.name, more, headers)
            for token in ({}, {"_xsrf": "2|00000000|00|1"}):
                fields = {name: value for name, value in form.items() if name != "_xsrf"}
                sent = await thief.send(path, "POST", form={**fields, **token, "confirm_password": PASSWORD})
                assert sent.code == 403, route.name
            await console.store.client.delete(*[key async for key in console.store.client.scan_iter("*limit*")], "x")
    assert await console.store.people_acts.view(console.service.ada) == before


async def test_pages_are_kept_in_no_cache_and_no_frame_and_may_load_their_scripts(console: Console) -> None:
    admin = await console.operator("admin")
    await console.store.apis.create(API)
    for route in ROUTES:
        if not route.post:
            page = await admin.browser.get(path_of(route, console.service.ada))
            assert page.headers["Cache-Control"] == "no-store", route.name
            policy = page.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert ("script-src" in policy) == (b"<script" in page.body), route.name


class Unasked(HomeHandler):
    """A page that asks for no role."""


class Form(ConsolePage):
    """A form."""

    async def post(self) -> None:
        """Does something."""


Form.__module__ = ConsolePeopleHandler.__module__


@pytest.mark.parametrize(
    ("route", "why"),
    [
        pytest.param(Route("/admin/x", Unasked, "x", PAGE), "asks for no role", id="a page that asks for no role"),
        pytest.param(Route("/admin/x", ConsolePeopleHandler, "x", PAGE), "names the act", id="a page without an act"),
        pytest.param(
            Route("/admin/x", ConsolePeopleHandler, "x", does("people.read")),
            "names the act",
            id="another method's act",
        ),
        pytest.param(
            Route("/admin/x", Form, "x", does("people.suspend"), PersonPost("do it")),
            "recent re-authentication",
            id="a form that is not confirmed",
        ),
        pytest.param(Route("/admin/x", Form, "x", shows("people.read")), "names the act", id="a form without an act"),
    ],
)
def test_a_page_without_its_rules_prevents_the_start(route: Route, why: str) -> None:
    check_console(ROUTES)
    with pytest.raises(WrongRoute, match=why):
        check_console([*ROUTES, route])
