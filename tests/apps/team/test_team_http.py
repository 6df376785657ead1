"""The team of an app in the portal: invitations by mail, roles on every page, and who hears of changes."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.page import PageHandler
from handlers.core.person_posts import PersonPost
from handlers.core.policy import PAGE
from handlers.core.route import DELIVERY, Route, WrongRoute
from handlers.developer.team.acts import APP_PAGES, check_acts
from handlers.guides.routes import NAME
from handlers.routes import ROUTES
from outbound.mail.message import plain_text
from store import keys
from store.apps.owners.roles import ROLES, Role, may
from store.lifetimes import INVITE_MEMBER, MAIL_TO
from store.moving.person_export import as_lines
from tests.support.browser import email_links
from tests.support.browser.email_links import Post
from tests.support.http.driver import EMAIL, Browser, Service, fields_of

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

OWN, BOB = "/developer/apps/mine", "bob@example.com"
TEAM = f"{OWN}/team"
INVITED, CHANGED = "You’re invited to the team of an app", "The app Mine was changed"


class Two(NamedTuple):
    """Ada, who owns an app, and Bob, each in a browser, confirmed just now; Bob's user id."""

    ada: Browser
    bob: Browser
    user: str


async def two(service: Service, role: Role | None = None) -> Two:
    await service.add_app("mine", owner=service.ada)
    user = await service.add_person(BOB, "Bob")
    if role:
        await service.store.teams.put("mine", user, role)
    return Two(await service.confirmed(), await service.confirmed(BOB), user)


async def invite(browser: Browser, email: str = BOB, role: str = "developer") -> HTTPResponse:
    return await browser.submit(await browser.get(TEAM), TEAM, email=email, role=role)


def bodies(post: Post, email: str, subject: str) -> list[str]:
    return [plain_text(mail) for mail in post.mails.to(email) if mail["Subject"] == subject]


async def test_an_invitation_leads_to_the_team(post: Post) -> None:
    people = await two(post.service)
    answer = await invite(people.ada)
    assert answer.headers["Location"] == f"{TEAM}?invited"
    path = await post.link(BOB, INVITED)
    (mail,) = bodies(post, BOB, INVITED)
    assert EMAIL in mail
    assert "Mine" not in mail, "the mail to a stranger has no name that an owner chose"
    page = await people.bob.get(path)
    assert page.headers["Referrer-Policy"] == "strict-origin"
    assert "Ada" in page.body.decode()
    joined = await people.bob.submit(page, "/developer/invitation")
    assert joined.headers["Location"] == f"{OWN}?joined"
    assert (await people.bob.get(f"{OWN}/credentials")).code == 200
    assert "Your teams’ apps" in (await people.bob.get("/developer/apps")).body.decode()
    await post.settled()
    assert any(f"{BOB} joined as Developer" in one for one in bodies(post, EMAIL, CHANGED))
    again = await people.bob.get(path)
    assert (again.code, again.headers["Location"]) == (303, OWN), "a second click leads to the app"


async def test_the_link_asks_to_sign_in_and_says_why(post: Post) -> None:
    people = await two(post.service)
    await invite(people.ada)
    path = await post.link(BOB, INVITED)
    stranger = post.service.browser()
    to_sign_in = await stranger.get(path)
    assert to_sign_in.code == 303
    page = await stranger.get(to_sign_in.headers["Location"])
    assert "to join the team of an app" in page.body.decode()
    other = await people.ada.get(path)
    assert other.code == 303, "Ada is in the team"
    await post.service.add_person("eve@example.com")
    eve = await (await post.service.signed_in("eve@example.com")).get(path)
    assert eve.code == 403
    assert BOB in eve.body.decode()


async def test_an_unconfirmed_person_confirms_first(post: Post) -> None:
    people = await two(post.service)
    await post.service.store.client.hdel(keys.person(people.user)["user"], "verified")
    await invite(people.ada)
    page = await people.bob.get(await post.link(BOB, INVITED))
    assert "Confirm your address first" in page.body.decode()
    refused = await people.bob.send(
        "/developer/invitation",
        "POST",
        form={
            "link": (await post.link(BOB, INVITED)).partition("link=")[2],
            "_xsrf": fields_of(page, "/signout")["_xsrf"],
        },
    )
    assert refused.code == 403
    await people.bob.submit(page, "/account/email/confirm")
    confirm = await people.bob.get(await post.link(BOB, email_links.CONFIRM))
    done = await people.bob.submit(confirm, "/confirm")
    assert done.headers["Location"].startswith("/developer/invitation?link=")


@pytest.mark.parametrize("role", [*ROLES, None])
async def test_every_page_of_an_app_checks_the_role_of_its_route(service: Service, role: Role | None) -> None:
    people = await two(service, role)
    xsrf = fields_of(await people.bob.get("/account/security"), "/signout")["_xsrf"]
    wrong = []
    for route in ROUTES:
        if not route.pattern.startswith(APP_PAGES):
            continue
        path = route.pattern.replace(APP_PAGES, OWN).replace(DELIVERY, "d" * 22).replace(r"\.", ".")
        path = path.replace(f"{NAME}/{NAME}", "clients/authlib").replace(NAME, "webhooks")
        denied = 403 if role else 404
        if route.act:
            code = (await people.bob.get(path)).code
            if (code == denied) == may(role, route.act) and not (
                code == 404 and ("d" * 22 in path or "authlib" in path)
            ):
                wrong.append(("GET", path, code))
        if route.post and (role is None or not may(role, route.post.act or "delete")):
            code = (await people.bob.send(path, "POST", form={"_xsrf": xsrf})).code
            if code != denied:
                wrong.append(("POST", path, code))
    assert wrong == []
    app, _ = await service.store.apps.fresh("mine")
    assert app is not None
    assert app.status == "active"


async def test_a_viewer_sees_no_form_and_no_secret(service: Service) -> None:
    people = await two(service, "viewer")
    for tab in ("", "/settings", "/usage", "/log", "/team"):
        page = (await people.bob.get(OWN + tab)).body.decode()
        forms = set(re.findall(r'action="([^"]*)"', page)) - {"/signout", "/language"}
        assert forms <= {f"{TEAM}/leave"}, tab
        assert "/credentials" not in page
        assert "/webhooks" not in page


async def test_guides_show_the_webhook_s_url_to_those_who_may_see_it(service: Service) -> None:
    """A URL may carry a secret of the receiver."""
    people = await two(service, "viewer")
    await service.store.apps.update("mine", webhook_url="https://mine.example/hook?key=hidden")
    guide = f"{OWN}/guides/webhooks"
    assert "key=hidden" in (await people.ada.get(guide)).body.decode()
    page = await people.bob.get(guide)
    assert page.code == 200
    assert "mine.example" not in page.body.decode()


async def test_a_removed_member_is_out_at_once_and_is_told(post: Post) -> None:
    people = await two(post.service, "developer")
    page = await people.ada.get(TEAM)
    assert (await people.bob.get(OWN)).code == 200
    assert (await people.ada.submit(page, f"{TEAM}/remove", member=people.user)).code == 303
    assert (await people.bob.get(OWN)).code == 404
    await post.settled()
    (told,) = bodies(post, BOB, CHANGED)
    assert f"{BOB} removed" in told
    assert "From:" not in told, "nobody learns an owner's address"


async def test_all_owners_hear_what_a_developer_changes(post: Post) -> None:
    people = await two(post.service, "owner")
    dev = await post.service.add_person("dev@example.com", "Dev")
    await post.service.store.teams.put("mine", dev, "developer")
    browser = await post.service.confirmed("dev@example.com")
    await browser.submit(await browser.get(f"{OWN}/credentials"), f"{OWN}/rotate")
    await post.settled()
    for email in (EMAIL, BOB):
        (mail,) = bodies(post, email, CHANGED)
        assert "dev@example.com changed" in mail
        assert "second client secret" in mail
    (own,) = bodies(post, "dev@example.com", "Your app Mine was changed")
    assert "second client secret" in own
    assert people.user


async def test_roles_change_and_people_leave_on_the_page(post: Post) -> None:
    people = await two(post.service, "viewer")
    await people.ada.submit(await people.ada.get(TEAM), f"{TEAM}/role", member=people.user, role="owner")
    page = await people.ada.get(TEAM)
    refused = await people.ada.submit(page, f"{TEAM}/leave")
    assert refused.code == 400
    assert "an owner who has been one for at least 7\u00a0days" in refused.body.decode()
    left = await people.bob.submit(await people.bob.get(TEAM), f"{TEAM}/leave")
    assert left.headers["Location"] == "/developer/apps?left"
    await post.settled()
    assert any(f"{BOB} left" in one for one in bodies(post, EMAIL, CHANGED))


async def test_invitations_are_limited_by_person_and_by_mailbox(post: Post) -> None:
    people = await two(post.service)
    for _ in range(MAIL_TO.limit):
        assert (await invite(people.ada)).code == 303
    assert (await invite(people.ada)).code == 429, "one mailbox"
    for number in range(INVITE_MEMBER.limit - MAIL_TO.limit - 1):
        tagged = await invite(people.ada, f"friend{number}@invited.example")
        assert tagged.code in (303, 400)
    assert (await invite(people.ada, "last@invited.example")).code == 429, "one inviter"


async def test_a_withdrawn_invitation_ends(post: Post) -> None:
    people = await two(post.service)
    await invite(people.ada)
    path = await post.link(BOB, INVITED)
    page = await people.ada.get(TEAM)
    assert (await people.ada.submit(page, f"{TEAM}/withdraw")).headers["Location"] == f"{TEAM}?withdrawn"
    assert (await people.ada.submit(page, f"{TEAM}/withdraw")).code == 400
    assert (await people.bob.get(path)).code == 400


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"email": "nobody", "role": "viewer"}, 400, id="no address"),
        pytest.param({"email": EMAIL, "role": "viewer"}, 400, id="a member"),
        pytest.param({"email": BOB, "role": "root"}, 400, id="no role"),
        pytest.param({"email": "a" * 5000 + "@example.com", "role": "viewer"}, 400, id="too long"),
    ],
)
async def test_bad_input_invites_nobody(post: Post, fields: dict[str, str], code: int) -> None:
    people = await two(post.service)
    assert (await people.ada.submit(await people.ada.get(TEAM), TEAM, **fields)).code == code
    await post.settled()
    assert bodies(post, BOB, INVITED) == []
    assert await post.service.store.client.exists(keys.app_stats("mine")["invitations"]) == 0


async def test_a_developer_tries_the_app_and_a_viewer_cannot(service: Service) -> None:
    people = await two(service, "viewer")
    assert (await people.bob.get(f"{OWN}/try")).code == 403
    await service.store.teams.put("mine", people.user, "developer")
    started = await people.bob.submit(await people.bob.get(f"{OWN}/try"), f"{OWN}/try")
    consent = await people.bob.get(started.headers["Location"])
    assert consent.code == 200
    await service.store.teams.put("mine", people.user, "viewer")
    service.store.apps.forget()
    assert (await people.bob.get(started.headers["Location"])).code == 400, "no redirect URI for a viewer"


async def test_the_export_lists_memberships(service: Service) -> None:
    people = await two(service, "developer")
    person = await service.store.operator.find(people.user)
    lines = [json.loads(line) async for line, _ in as_lines(service.store, person)]
    (member,) = lines[0]["teams"]
    assert (member["client_id"], member["name"], member["role"]) == ("mine", "Mine", "developer")
    assert lines[0]["registeredApps"] == []


def test_a_page_of_an_app_without_an_act_prevents_the_start() -> None:
    class Page(PageHandler):
        async def get(self) -> None:
            """Shows something."""

        async def post(self) -> None:
            """Does something."""

    for route, why in (
        (Route(f"{APP_PAGES}/new", Page, "developer-new", PAGE), "a page of an app names"),
        (Route(f"{APP_PAGES}/new", Page, "developer-new", PAGE, act="see"), "checks no role"),
        (Route(f"{APP_PAGES}/new", Page, "developer-new", PAGE, PersonPost("do it"), act="see"), "a form of an app"),
        (Route("/developer/apps/([^/]+)/new", Page, "developer-new", PAGE), "a page of an app names"),
        (Route("/new", Page, "developer-new", PAGE, act="see"), "no other page does"),
    ):
        with pytest.raises(WrongRoute, match=rf"developer-new: .*{why}"):
            check_acts([*ROUTES, route])
