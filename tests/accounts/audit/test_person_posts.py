"""The requirements of each form, checked with two thieves: one with a cookie, one with cookie and password."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from tornado.httpclient import HTTPResponse

from handlers.account.connected_apps import HomeHandler
from handlers.account.reauth_forms import check_posts
from handlers.admin.console.routes import ROUTES as CONSOLE
from handlers.core.page import PageHandler
from handlers.core.person_posts import ACTIVITY, OWNER, PERSON, PersonPost, ReauthRule
from handlers.core.policy import OPEN, PAGE, Policy
from handlers.core.route import Route, WrongRoute
from handlers.routes import POSTS, ROUTES
from store import keys
from store.accounts.signin.totp import STEP, code_at
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.client_secrets import secret_mark
from store.lifetimes import FACTOR, OWN_PASSWORDS, SIGN_IN_ADDRESS
from tests.support.browser import email_links
from tests.support.browser.email_links import Post
from tests.support.browser.pages import ROOT
from tests.support.browser.second_factors import APP, SECURITY, Person
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock
from tests.support.store.many_documents import stock
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

OWN, WEB = "/developer/apps/mine", "/account/apps/web-app/data"
SCOPE = "profile data:read data:write credits:spend"
NEW_PASSWORD, NEW = "another horse battery", "new@example.com"
APP_FIELDS = {"name": "Mine", "redirect_uris": "https://evil.example/cb", "scope:profile": "on", "pkce_required": "on"}

API = ApiRegistration("https://mine.example", "Mine", (ApiScope("read", "Read"),), status="off")
OWN_API = f"/developer/apis/{API.client_id}"
API_FIELDS = {"name": "Taken", "token_lifetime": "3600", "scope_0_name": "read", "scope_0_title": "Nothing special"}

Fields = dict[str, str]
Form = tuple[str, Callable[["Victim"], Fields]]


class Victim:
    """Ada, with an app of her own, documents, a second step if she wants one, and what her forms carry."""

    def __init__(self, person: Person) -> None:
        self.person, self.browser, self.service = person, person.browser, person.service
        self.secret = self.mark = self.webhook_mark = self.api_mark = ""
        self.friend = ""
        self.now = 0

    @classmethod
    async def make(cls, service: Service, *, second: bool) -> Victim:
        self = cls(await Person.arrive(service))
        await service.tokens(browser=self.browser, scope=SCOPE)
        session = service.store.sessions.open((await service.signed_in()).cookies["latchkey_session"])
        assert session
        await shown(service.store, session)
        await service.store.credits.set_spend_limit(session, "web-app", 5_000_000, VISITOR)
        await stock(service.store, service.ada, "web-app", {"notes/a": b"1", "notes/b": b"2"})
        await service.add_app("mine", owner=service.ada, status="off")
        self.friend = await service.add_person("friend@example.com")
        await service.store.teams.put("mine", self.friend, "owner")
        app, _ = await service.store.apps.rotate_secret("mine")
        self.mark = secret_mark(app.secrets[1])
        await service.store.apis.create(replace(API, owner=service.ada))
        api, _ = await service.store.apis.rotate_secret(API.client_id)
        self.api_mark = secret_mark(api.secrets[1])
        await service.store.webhooks.set_url("mine", "https://mine.example/hook")
        page = await self.browser.get(f"{OWN}/webhooks")
        self.webhook_mark = fields_of(page, f"{OWN}/webhooks/rotate")["mark"]
        self.secret = service.store.factors.new_secret(service.ada)
        if second:
            await self.person.add_app()
        return self

    def code(self) -> str:
        """A correct code for the secret on her page."""
        secret = self.service.store.factors.open_secret(self.service.ada, self.secret)
        return code_at(secret, self.now // STEP)

    def thief(self) -> Browser:
        """Another browser with a copy of the cookies."""
        return Browser(self.browser.base_url, dict(self.browser.cookies))

    async def forget_windows(self) -> None:
        """Each refusal has the expected reason."""
        client = self.service.store.client
        windows = [
            key
            async for key in client.scan_iter()
            if b":limit:" in key or key.startswith(b"{window:") or key.endswith(b":guesses")
        ]
        if windows:
            await client.delete(*windows)

    async def contents(self) -> dict[str, Any]:
        """The store's content, without windows and last-seen times."""
        client = self.service.store.client
        found: dict[str, Any] = {}
        async for key in client.scan_iter():
            name = key.decode()
            if ":limit:" in name or name.startswith("{window:") or name.endswith(":guesses"):
                continue
            kind = cast(bytes, await client.type(key)).decode()
            if kind == "hash":
                row = await client.hgetall(key)
                found[name] = {field: value for field, value in row.items() if field != b"seen_at"}
            elif kind == "zset":
                found[name] = await client.zrange(key, 0, -1, withscores=True)
            elif kind == "set":
                found[name] = await client.smembers(key)
            elif kind == "stream":
                found[name] = await client.xrange(key)
            else:
                found[name] = await client.get(key)
        return found


# For each route that demands more than the session: the form's address, and a form that would work.
FORMS: dict[str, Form] = {
    "account-email": ("/account/email", lambda v: {"email": NEW}),
    "account-security": (SECURITY, lambda v: {"new_password": NEW_PASSWORD}),
    "account-app-limit": ("/account/apps/web-app/limit", lambda v: {"dollars": "900"}),
    "account-document-delete": (f"{WEB}/notes/a/delete", lambda v: {}),
    "account-data-delete": (f"{WEB}/delete", lambda v: {}),
    "account-confirm": (f"{SECURITY}/confirm", lambda v: {}),
    "account-authenticator": (APP, lambda v: {"secret": v.secret, "code": v.code()}),
    "account-authenticator-remove": (f"{APP}/remove", lambda v: {}),
    "account-recovery": (f"{SECURITY}/recovery", lambda v: {}),
    "account-passkeys": (f"{SECURITY}/passkeys", lambda v: {"credential": "{}", "name": "Mine"}),
    "account-passkeys-options": (f"{SECURITY}/passkeys/options", lambda v: {}),
    "account-passkeys-rename": (f"{SECURITY}/passkeys/rename", lambda v: {"credential": "AAAA", "name": "x"}),
    "account-passkeys-remove": (f"{SECURITY}/passkeys/remove", lambda v: {"credential": "AAAA"}),
    "account-identity-remove": (f"{SECURITY}/accounts/remove", lambda v: {"identity": "A" * 22}),
    "account-delete": ("/account/delete", lambda v: {"email": EMAIL}),
    "developer-app": (OWN, lambda v: APP_FIELDS),
    "developer-rotate": (f"{OWN}/rotate", lambda v: {}),
    "developer-end-secret": (f"{OWN}/end-secret", lambda v: {"mark": v.mark}),
    "developer-status": (f"{OWN}/status", lambda v: {"status": "active"}),
    "developer-webhooks": (f"{OWN}/webhooks", lambda v: {"url": "https://evil.example/hook"}),
    "developer-webhook-secret": (f"{OWN}/webhooks/rotate", lambda v: {"mark": v.webhook_mark}),
    "developer-delete": (f"{OWN}/delete", lambda v: {"confirm": "Mine"}),
    "developer-team": (f"{OWN}/team", lambda v: {"email": "evil@example.com", "role": "owner"}),
    "developer-team-role": (f"{OWN}/team/role", lambda v: {"member": v.friend, "role": "viewer"}),
    "developer-team-remove": (f"{OWN}/team/remove", lambda v: {"member": v.friend}),
    "developer-team-leave": (f"{OWN}/team/leave", lambda v: {}),
    "developer-api": (OWN_API, lambda v: API_FIELDS),
    "developer-api-rotate": (f"{OWN_API}/rotate", lambda v: {}),
    "developer-api-end-secret": (f"{OWN_API}/end-secret", lambda v: {"mark": v.api_mark}),
    "developer-api-status": (f"{OWN_API}/status", lambda v: {"status": "active"}),
    "developer-api-delete": (f"{OWN_API}/delete", lambda v: {"confirm": "Mine"}),
}
HONEST = (
    *("developer-app", "developer-end-secret", "developer-status", "developer-webhooks", "developer-webhook-secret"),
    *("developer-team", "developer-team-role", "developer-team-remove", "developer-team-leave"),
    *("developer-api", "developer-api-end-secret", "developer-api-status"),
    *("account-app-limit", "account-document-delete", "account-data-delete"),
    *("account-email", "account-security"),
)
"""What Ada does in turn; codes and keys have tests of their own."""
PASSWORDS = dict.fromkeys(("current_password", "password", "confirm_password"), PASSWORD)


async def sends(browser: Browser, victim: Victim, route: str, more: Fields) -> HTTPResponse:
    action, fields = FORMS[route]
    victim.now = await victim.service.store.apps.now()
    xsrf = fields_of(await browser.get(SECURITY), "/signout")["_xsrf"]
    return await browser.send(action, "POST", form={**fields(victim), **more, "_xsrf": xsrf})


def test_walk_covers_every_form_that_needs_more_than_a_session() -> None:
    more = {name for name, post in POSTS.items() if post.reauth is not ReauthRule.NONE}
    # Those of operators have a walk of their own, in tests/admin/test_console_roles.py.
    assert set(FORMS) == more - {route.name for route in CONSOLE}


@pytest.mark.parametrize(
    ("second", "known"),
    [
        pytest.param(False, [{}], id="a cookie"),
        pytest.param(True, [{}], id="a cookie, of somebody with a second step"),
        pytest.param(
            True,
            [PASSWORDS, {**PASSWORDS, "code": "000000", "confirm_code": "000000"}],
            id="cookie and password, of somebody with a second step",
        ),
    ],
)
@pytest.mark.parametrize("seconds", [pytest.param(0, id="just signed in"), pytest.param(601, id="ten minutes later")])
async def test_a_stolen_cookie_submits_no_form_that_needs_more(
    clock: FakeClock, service: Service, seconds: int, second: bool, known: list[Fields]
) -> None:
    victim = await Victim.make(service, second=second)
    clock.advance(seconds)
    thief = victim.thief()
    await thief.get(SECURITY)
    before, done = await victim.contents(), []
    for route in FORMS:
        for more in known:
            await victim.forget_windows()
            answer = await sends(thief, victim, route, more)
            if answer.code not in (400, 403):
                done.append((route, answer.code))
    assert not done
    assert without_trail(await victim.contents()) == without_trail(before)


async def test_a_wrong_code_on_any_form_is_reported_to_the_person(post: Post) -> None:
    victim = await Victim.make(post.service, second=True)
    thief, client, guesses = victim.thief(), post.service.store.client, keys.person(post.service.ada)["guesses"]
    del thief.cookies["latchkey_device"]
    silent, took = set(), set()
    for route in FORMS:
        await victim.forget_windows()
        await client.hset(guesses, "count", FACTOR.limit // 2 - 1)
        mails = len(post.mails.to(EMAIL))
        await sends(thief, victim, route, {**PASSWORDS, "code": "000000", "confirm_code": "000000"})
        await post.settled()
        if await client.hget(guesses, "count") == str(FACTOR.limit // 2).encode():
            took.add(route)
            subjects = [mail["Subject"] for mail in post.mails.to(EMAIL)[mails:]]
            if len(subjects) != 1 or "know your password" not in subjects[0]:
                silent.add(route)
    assert not silent
    assert took >= {
        "account-email",
        "developer-app",
        *(route for route in FORMS if POSTS[route].reauth is ReauthRule.THERE),
    }


async def test_a_wrong_password_on_any_form_appears_in_the_activity(service: Service) -> None:
    victim = await Victim.make(service, second=False)
    thief, person = victim.thief(), keys.person(service.ada)
    window = keys.limit(service.ada, OWN_PASSWORDS.name)
    silent, took = set(), set()
    for route in FORMS:
        await victim.forget_windows()
        before = (await victim.contents())[person["audit"]].count(b" password_mistyped ")
        await sends(thief, victim, route, dict.fromkeys(PASSWORDS, "wrong horse battery"))
        if await service.store.client.exists(window):
            took.add(route)
            if (await victim.contents())[person["audit"]].count(b" password_mistyped ") != before + 1:
                silent.add(route)
    assert not silent
    assert took >= {"account-email", "account-security", "account-confirm", "account-delete", "developer-delete"}
    assert took >= {"developer-app", "account-data-delete"}, "what asks for a confirmation before it runs"


def without_trail(found: dict[str, Any]) -> dict[str, Any]:
    """Everything but the activity, which records wrong codes, and what waits for the security log."""
    return {name: value for name, value in found.items() if not name.endswith((":audit", ":activity", ":recorded"))}


@pytest.mark.parametrize("route", [*HONEST, "account-delete", "developer-delete", "developer-api-delete"])
async def test_each_form_works_for_the_person_and_notifies_as_the_table_says(post: Post, route: str) -> None:
    """Otherwise a form that is invalid anyway would prove nothing about the thief."""
    ada = await Victim.make(post.service, second=False)
    await post.settled()
    before, mails = await ada.contents(), len(post.mails.to(EMAIL))
    answer = await sends(ada.browser, ada, route, PASSWORDS)
    after = await ada.contents()
    await post.settled()
    assert answer.code in (200, 303), answer.body
    assert without_trail(after) != without_trail(before)
    person = keys.person(post.service.ada)
    grew = [len(after.get(person[trail], b"")) > len(before.get(person[trail], b"")) for trail in ("audit", "activity")]
    assert any(grew) == (ACTIVITY in POSTS[route].tells)
    assert len(post.mails.to(EMAIL)) - mails == len({PERSON, OWNER} & set(POSTS[route].tells))


@pytest.mark.parametrize(
    ("handler", "policy", "post", "why"),
    [
        pytest.param(PageHandler, PAGE, None, "without its rules", id="a form without rules"),
        pytest.param(HomeHandler, PAGE, PersonPost("do nothing"), "without a form", id="rules without a form"),
        pytest.param(PageHandler, OPEN, PersonPost("do it"), "without a form", id="rules of what is no page"),
        pytest.param(
            PageHandler,
            PAGE,
            PersonPost("make a secret", ReauthRule.RECENT),
            "asks for none",
            id="a handler that asks for no confirmation",
        ),
        pytest.param(
            PageHandler,
            PAGE,
            PersonPost("sign in", windows=(SIGN_IN_ADDRESS,)),
            "without mails",
            id="a window without mails",
        ),
    ],
)
def test_an_unlisted_form_prevents_the_start(
    handler: type[PageHandler], policy: Policy, post: PersonPost | None, why: str
) -> None:
    class Form(handler):  # type: ignore[valid-type, misc]  # mypy knows no base that is an argument
        async def post(self) -> None:
            """Does something."""

    chosen = handler if handler is HomeHandler else Form
    with pytest.raises(WrongRoute, match=rf"account-new.*{why}"):
        check_posts([*ROUTES, Route("/x", chosen, "account-new", policy, post)])


def test_reauthentication_keeps_every_field_of_an_app_form() -> None:
    names = re.findall(r' name="([^"{]*)', (ROOT / "templates/developer/form.html").read_text())
    assert len(names) > 5
    assert [name for name in names if name != "kind" and not POSTS["developer-app"].kept(name)] == []


def test_reauthentication_keeps_no_secret() -> None:
    for post in POSTS.values():
        for name in ("password", "current_password", "new_password", "confirm_password", "code", "credential", "_xsrf"):
            assert not post.kept(name)
        assert post.reauth is ReauthRule.RECENT or not post.excused
