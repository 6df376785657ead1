"""Mailed links over HTTP: confirmation, forgotten passwords, another address, notices, and what strangers learn."""

from __future__ import annotations

import asyncio
import logging
import re
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote, unquote

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.site import Site
from outbound.mail import SmtpServer, Undelivered
from store import keys
from store.opened import Store
from store.results import Visitor
from tests.driver import EMAIL, PASSWORD, Browser, Service, answer_of, fields_of, json_of
from tests.engines import FakeClock
from tests.mailbox import Kept, Mailbox, link_in, mailer, until
from tests.pages import Page

pytestmark = pytest.mark.gen_test

NEW_PASSWORD = "another horse battery"
GRACE = "grace@example.com"
NEW = "new@example.com"
CONFIRM, RESET, CHANGE = "Confirm your e-mail address", "Set a new password", "Confirm your new e-mail address"


@pytest.fixture
def confirms() -> bool:
    """Whether a mail server is configured."""
    return True


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, mails: Kept, confirms: bool) -> Site:
    return Site(memory_store, base_url, mail=mailer(mails, confirms=confirms))


@pytest.fixture
def post(io_loop: IOLoop, service: Service, site: Site, mails: Kept) -> Post:
    return Post(service, site, mails)


class Post:
    """What a test does with mails."""

    def __init__(self, service: Service, site: Site, mails: Kept) -> None:
        self.service, self.site, self.mails = service, site, mails

    async def settled(self) -> None:
        """Everything that was to be mailed has been."""
        await until(lambda: not self.site.tasks and not self.site.mail._tasks)

    async def link(self, email: str, subject: str) -> str:
        """The path of the link in the newest mail with this subject."""
        await self.settled()
        return link_in(await self.mails.newest(email, subject))

    async def unconfirmed(self, email: str = GRACE) -> tuple[str, Browser]:
        """A person from before there was a mail server, signed in."""
        user = await self.service.store.people.create(
            email, "Grace", PASSWORD, verified=False, event="signed_up", visitor=Visitor()
        )
        browser = await self.service.signed_in(email)
        await self.settled()
        self.mails.mails.clear()
        return user, browser

    async def forgot(self, email: str = EMAIL, browser: Browser | None = None) -> HTTPResponse:
        browser = browser or self.service.browser()
        return await browser.submit(await browser.get("/forgot"), "/forgot", email=email)

    async def verified(self, email: str) -> bool:
        return (await self.service.store.operator.find(email)).email_verified


def heading(page: HTTPResponse) -> str:
    found = re.search(r"<h1>(.*?)</h1>", page.body.decode())
    assert found
    return found[1]


# Signing up


async def sign_up(browser: Browser, email: str = GRACE, query: str = "") -> HTTPResponse:
    return await browser.submit(await browser.get("/signup" + query), "/signup", email=email)


@pytest.mark.trap(34)
async def test_with_a_mail_server_whoever_reads_the_mail_makes_the_account(post: Post) -> None:
    browser = post.service.browser()
    asked = await sign_up(browser, GRACE, "?next=%2Faccount%2Fapps%3Fx")
    assert (asked.code, heading(asked)) == (200, "Look into your mailbox")
    assert "latchkey_session" not in browser.cookies
    assert await post.service.store.people.find(GRACE) is None
    link = await post.link(GRACE, "Finish creating your account")
    elsewhere = post.service.browser()  # the mail is read on another device
    page = await elsewhere.get(link)
    done = await elsewhere.submit(page, "/signup", name="Grace", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, "/account/apps?x")
    assert await post.verified(GRACE)
    await post.settled()
    assert len(post.mails.mails) == 1, "nothing else to confirm, and no notice of the first sign-in"
    again = await elsewhere.get(link)
    assert "This invitation works no longer" in again.body.decode()
    assert heading(again) == "Create your account"  # the link is used up: it is the form for anybody


@pytest.mark.parametrize("state", ["s" * 2000, "\u00e9" * 1000, "+/=&" * 500], ids=["plain", "beyond ascii", "signs"])
async def test_the_longest_state_of_an_app_survives_the_way_over_the_mailbox(post: Post, state: str) -> None:
    target = post.service.web.authorize_url(state=state)
    mailbox = await Mailbox.open()
    await sign_up(post.service.browser(), GRACE, f"?next={quote(target, safe='')}")
    await post.settled()
    await SmtpServer(mailbox.url).send(await post.mails.newest(GRACE, "Finish creating your account"))
    browser = post.service.browser()
    page = await browser.get(await mailbox.link())
    done = await browser.submit(page, "/signup", name="Grace", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, target)
    assert answer_of(await browser.consent(target))["state"] == state
    await mailbox.close()


async def test_an_invitation_that_is_over_mails_no_other_one_unasked(post: Post) -> None:
    await sign_up(post.service.browser())
    browser = post.service.browser()
    page = await browser.get(await post.link(GRACE, "Finish creating your account"))
    await post.service.store.people.invite(GRACE)
    late = await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    assert late.code == 400
    assert "This invitation works no longer" in late.body.decode()
    await post.settled()
    assert len(post.mails.mails) == 1
    assert heading(await browser.submit(late, "/signup", email=GRACE)) == "Look into your mailbox"


async def test_sign_up_says_the_same_whether_there_is_an_account_or_not(post: Post) -> None:
    await post.service.add_person(GRACE)
    answers = []
    for email in (GRACE, "nobody@example.com"):
        answers.append(comparable(await sign_up(post.service.browser(), email), email))
    assert answers[0] == answers[1]
    await post.settled()
    assert [mail["Subject"] for mail in post.mails.to(GRACE)] == ["You have an account already"]
    assert "invite=" not in post.mails.to(GRACE)[0].get_content()
    assert [mail["Subject"] for mail in post.mails.to("nobody@example.com")] == ["Finish creating your account"]


def comparable(response: HTTPResponse, email: str) -> tuple[Any, ...]:
    """An answer without what differs by chance."""
    body = re.sub(r'name="_xsrf" value="[^"]*"', "", response.body.decode()).replace(email, "EMAIL")
    chance = ("Date", "X-Request-Id", "Set-Cookie", "Content-Length")
    headers = sorted((name, value) for name, value in response.headers.get_all() if name not in chance)
    return response.code, body, headers


@pytest.mark.parametrize("confirms", [False], ids=["no mail server"])
async def test_without_a_mail_server_an_account_is_there_at_once_and_can_be_confirmed(post: Post) -> None:
    browser = post.service.browser()
    page = await browser.get("/signup?next=%2Faccount%2Fapps")
    await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    link = await post.link(GRACE, CONFIRM)
    # Nothing is demanded: an app is connected as ever, and told that nobody confirmed the address.
    tokens = await post.service.tokens(browser=browser)
    assert json_of(await post.service.web.userinfo(tokens["access_token"]))["email_verified"] is False
    done = await browser.submit(await browser.get(link), "/confirm")
    assert (done.code, done.headers["Location"]) == (303, "/account/apps")
    assert json_of(await post.service.web.userinfo(tokens["access_token"]))["email_verified"] is True


# Confirming


@pytest.mark.trap(34)
async def test_an_app_sees_no_address_that_nobody_confirmed(post: Post) -> None:
    _, browser = await post.unconfirmed()
    url = post.service.web.authorize_url()
    page = await browser.get(url)
    assert (page.code, heading(page)) == (200, "First, confirm your e-mail address")
    assert b"request_id" not in page.body
    await browser.get(url)
    await post.settled()
    assert len(post.mails.mails) == 1, "coming back sends no second mail"
    await browser.submit(page, "/account/email/confirm")
    await post.settled()
    assert len(post.mails.mails) == 2
    old, new = (link_in(mail) for mail in post.mails.mails)
    assert (await browser.get(old)).code == 400
    done = await browser.submit(await browser.get(new), "/confirm")
    assert done.code == 303
    consent = await browser.get(done.headers["Location"])
    assert "request_id" in fields_of(consent, "/api/oauth/authorize"), "on to where the person was"
    tokens = await post.service.tokens(browser=browser)
    assert json_of(await post.service.web.userinfo(tokens["access_token"]))["email_verified"] is True


@pytest.mark.parametrize("confirms", [False])
async def test_who_signed_up_just_before_there_was_a_mail_server_gets_the_link_all_the_same(post: Post) -> None:
    """The link of the sign-up went into a folder, and works; no mail came of it."""
    service, browser = post.service, post.service.browser()
    page = await browser.get("/signup")
    await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    await post.settled()
    post.mails.mails.clear()
    post.site.mail.confirms = True
    url = service.web.authorize_url()
    page = await browser.get(url)
    assert "First, confirm your e-mail address" in page.body.decode()
    link = await post.link(GRACE, CONFIRM)
    for _ in range(2):
        await browser.get(url)
    await post.settled()
    assert len(post.mails.mails) == 1, "one is enough"
    await browser.submit(page, "/account/email/confirm")
    assert await post.link(GRACE, CONFIRM) != link, "another comes when it is asked for"
    link = await post.link(GRACE, CONFIRM)
    answer = await browser.submit(await browser.get(link), "/confirm")
    assert (answer.code, answer.headers["Location"].startswith("/oauth/authorize?")) == (303, True)
    assert "code=" in (await browser.consent(answer.headers["Location"])).headers["Location"]


async def test_an_app_that_must_not_show_a_page_is_told_so(post: Post) -> None:
    _, browser = await post.unconfirmed()
    quiet = await browser.get(post.service.web.authorize_url(prompt="none"))
    assert "error=consent_required" in quiet.headers["Location"]
    await post.settled()
    assert post.mails.mails == []


async def test_what_was_allowed_before_stays_allowed(post: Post) -> None:
    _, browser = await post.unconfirmed()
    post.site.mail.confirms = False
    await post.service.tokens(browser=browser)
    post.site.mail.confirms = True
    assert "code=" in (await browser.get(post.service.web.authorize_url())).headers["Location"]
    wider = await browser.get(post.service.web.authorize_url(scope="profile data:read data:write apps:read"))
    assert heading(wider) == "First, confirm your e-mail address"


async def test_opening_a_link_changes_nothing_however_often(post: Post) -> None:
    user, browser = await post.unconfirmed()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    await post.forgot(GRACE)
    confirm, reset = await post.link(GRACE, CONFIRM), await post.link(GRACE, RESET)
    scanner = post.service.browser()
    for link in (confirm, reset):
        for method in ("GET", "HEAD"):
            for one in (scanner, browser):
                answer = await one.send(link, method)
                assert answer.code in (200, 303)
                assert answer.headers["Referrer-Policy"] == "strict-origin"
                assert "no-store" in answer.headers["Cache-Control"]
    person = await post.service.store.operator.find(user)
    assert not person.email_verified
    assert (await browser.submit(await browser.get(confirm), "/confirm")).code == 200


async def test_who_is_signed_out_signs_in_and_comes_back_to_the_link(post: Post) -> None:
    _, browser = await post.unconfirmed()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    link = await post.link(GRACE, CONFIRM)
    phone = post.service.browser()
    away = await phone.get(link)
    assert away.code == 303
    target = unquote(away.headers["Location"].removeprefix("/signin?next="))
    back = await phone.sign_in(GRACE, PASSWORD, target)
    assert back.headers["Location"] == link
    done = await phone.submit(await phone.get(link), "/confirm")
    assert heading(done) == "Your address is confirmed"
    assert heading(await phone.get(link)) == "Your address is confirmed"


@pytest.mark.trap(34)
async def test_somebody_elses_click_confirms_nothing(post: Post) -> None:
    _, browser = await post.unconfirmed()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    link = await post.link(GRACE, CONFIRM)
    ada = await post.service.signed_in()
    assert (await ada.get(link)).code == 403
    form = {**fields_of(await ada.get("/account/security"), "/account/security"), "link": link.partition("=")[2]}
    assert (await ada.send("/confirm", "POST", form=form)).code == 400
    assert not await post.verified(GRACE)


# Forgotten passwords


async def test_a_forgotten_password_is_set_anew(post: Post) -> None:
    elsewhere = await post.service.signed_in()
    asked = await post.forgot()
    assert heading(asked) == "Look into your mailbox"
    link = await post.link(EMAIL, RESET)
    browser = post.service.browser()
    page = await browser.get(link)
    for bad, words in (("short", "at least 10"), (EMAIL, "must not be your e-mail address"), ("", "at least 10")):
        refused = await browser.submit(page, "/reset", new_password=bad)
        assert refused.code == 400
        assert words in refused.body.decode()
    late = post.service.browser()
    opened = await late.get(link)
    done = await browser.submit(page, "/reset", new_password=NEW_PASSWORD)
    assert heading(done) == "Your password was changed"
    assert (await elsewhere.get("/account")).code == 303, "every session ended"
    assert (await browser.sign_in(EMAIL, PASSWORD)).code == 400
    assert (await browser.sign_in(EMAIL, NEW_PASSWORD)).code == 303
    assert (await browser.get(link)).code == 400
    assert (await late.submit(opened, "/reset", new_password=PASSWORD)).code == 400
    await post.settled()
    notice = await post.mails.newest(EMAIL, "Your password was changed")
    assert "127.0.0.1" in notice.get_content()
    assert NEW_PASSWORD not in "".join(mail.get_content() for mail in post.mails.mails)


@pytest.mark.parametrize("confirmed", [True, False])
async def test_who_sets_a_password_is_told_what_went_with_it(post: Post, confirmed: bool) -> None:
    if not confirmed:
        await post.service.store.client.hdel(keys.person(post.service.ada)["user"], "verified")
    await post.forgot()
    browser = post.service.browser()
    page = await browser.get(await post.link(EMAIL, RESET))
    done = (await browser.submit(page, "/reset", new_password=NEW_PASSWORD)).body.decode()
    assert ("It ends no passkey" in done) is confirmed
    assert ("all apps are disconnected" in done) is not confirmed
    await post.settled()
    notice = (await post.mails.newest(EMAIL, "Your password was changed")).get_content()
    assert ("all apps were disconnected" in notice) is not confirmed


async def test_a_forgotten_password_leads_back_to_where_the_person_was_going(post: Post) -> None:
    target = post.service.web.authorize_url(state="s" * 1000)
    browser = post.service.browser()
    page = await browser.get(f"/signin?next={quote(target, safe='')}")
    page = await browser.get(link_on(page, "Forgot your password?"))
    assert link_on(page, "Sign in") == f"/signin?next={quote(target, safe='')}"
    page = await browser.submit(page, "/forgot", email="no address")  # and after a slip
    assert (await browser.submit(page, "/forgot", email=EMAIL)).code == 200
    page = await browser.get(await post.link(EMAIL, RESET))
    done = await browser.submit(page, "/reset", new_password=NEW_PASSWORD)
    page = await browser.get(link_on(done, "Sign in"))
    signed_in = await browser.submit(page, "/signin", email=EMAIL, password=NEW_PASSWORD)
    assert signed_in.headers["Location"] == target


async def test_nothing_of_where_a_person_was_going_stands_in_the_mail_or_leads_elsewhere(post: Post) -> None:
    browser = post.service.browser()
    page = await browser.get("/forgot?next=%2FCONGRATULATIONS")
    await browser.submit(page, "/forgot", email=EMAIL)
    await post.settled()
    assert "CONGRATULATIONS" not in (await post.mails.newest(EMAIL, RESET)).get_content()
    page = await browser.get("/forgot")
    await browser.send("/forgot", "POST", form={**fields_of(page, "/forgot"), "email": EMAIL, "next": "//evil.example"})
    page = await browser.get(await post.link(EMAIL, RESET))
    done = await browser.submit(page, "/reset", new_password=NEW_PASSWORD)
    assert link_on(done, "Sign in") == "/signin"


def link_on(page: HTTPResponse, words: str) -> str:
    """Where a link leads."""
    (link,) = [link for link in Page(page.body.decode()).all("a") if link.text.strip() == words]
    return link.get("href")


async def test_forgot_says_the_same_of_everybody(post: Post) -> None:
    await post.service.add_person("gone@example.com")
    await post.service.store.operator.set_status("gone@example.com", "disabled")
    answers = []
    for email in (EMAIL, "nobody@example.com", "gone@example.com"):
        answers.append(comparable(await post.forgot(email), email))
    assert answers[0][0] == 200
    assert all(answer == answers[0] for answer in answers)
    await post.settled()
    assert [mail["To"] for mail in post.mails.mails] == [EMAIL]


async def test_the_answer_comes_before_anything_is_looked_up(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the time it takes tells nothing either."""
    people, answered = post.service.store.people, asyncio.Event()
    find = people.find

    async def waits(email: str) -> str | None:
        await answered.wait()
        return await find(email)

    monkeypatch.setattr(people, "find", waits)
    browser = post.service.browser()
    for email in (EMAIL, "nobody@example.com"):
        assert (await post.forgot(email)).code == 200
        assert (await sign_up(browser, email)).code == 200
    assert post.mails.mails == []
    answered.set()
    await post.settled()
    assert sorted(mail["Subject"] for mail in post.mails.mails) == [
        "Finish creating your account",
        "Set a new password",
        "You have an account already",
    ]


async def test_forgot_is_limited_for_the_account_existing_or_not_and_for_the_address(
    post: Post, clock: FakeClock
) -> None:
    clock.stop()
    for email in (EMAIL, "nobody@example.com"):
        assert [(await post.forgot(email)).code for _ in range(6)] == [200] * 5 + [429]
    for number in range(8):
        await post.forgot(f"nobody{number}@example.com")
    assert (await post.forgot("another@example.com")).code == 429
    await post.settled()
    assert len(post.mails.mails) == 5


@pytest.mark.trap(21)
@pytest.mark.parametrize("typed", ["", "no address", "a@" + "b" * 5000, "a@b@c", "a\r\nBcc: eve@example.com"])
async def test_what_is_no_address_is_said_on_the_form(post: Post, typed: str) -> None:
    answer = await post.forgot(typed)
    assert answer.code == 400
    assert b'role="alert"' in answer.body
    assert post.mails.mails == []


@pytest.mark.trap(22)
@pytest.mark.parametrize("path", ["/confirm", "/forgot", "/reset", "/account/email", "/account/email/change"])
async def test_the_forms_need_their_token_and_their_own_origin(post: Post, path: str) -> None:
    browser = await post.service.signed_in()
    assert (await browser.send(path, "POST", form={"email": EMAIL, "link": "x"})).code == 403
    form = fields_of(await browser.get("/account/security"), "/account/security")
    foreign = {"Origin": "https://evil.example"}
    assert (await browser.send(path, "POST", form={**form, "email": EMAIL}, headers=foreign)).code == 403


@pytest.mark.trap(21)
@pytest.mark.parametrize("path", ["/confirm", "/reset", "/account/email/change"])
@pytest.mark.parametrize("link", ["", "x", "%00", "%ff", "lk_cf_" + "A" * 5000, "a&link=b"])
async def test_what_is_no_link_is_a_page_that_says_so(post: Post, path: str, link: str) -> None:
    browser = await post.service.signed_in()
    assert (await browser.get(f"{path}?link={link}")).code == 400
    form = fields_of(await browser.get("/account/security"), "/account/security")
    answer = await browser.send(path, "POST", form={**form, "link": unquote(link, errors="replace")})
    assert answer.code == 400


@pytest.mark.trap(24)
async def test_no_link_and_no_address_stands_in_any_log(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "tornado", "asyncio", "latchkey"):
        caplog.set_level(logging.DEBUG, logger=name)
    _, browser = await post.unconfirmed()
    post.mails.failures = [Undelivered("SMTPDataError 550", temporary=False)]
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    await post.settled()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    await post.forgot(GRACE)
    await sign_up(browser, "nobody@example.com")
    links = [await post.link(GRACE, CONFIRM), await post.link(GRACE, RESET)]
    links.append(await post.link("nobody@example.com", "Finish creating your account"))
    for link in links:
        await browser.get(link)
        await browser.get(link + "x")
        await post.service.browser().get(link)
    text = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert "mail confirm not sent: SMTPDataError 550" in text
    assert "GET /confirm 200" in text
    assert not re.search(r"lk_(cf|pr|in)_[\w-]{8}", text)
    assert GRACE not in text
    assert "nobody@example.com" not in text


# Another address


async def ask_for(browser: Browser, email: str, password: str = PASSWORD) -> HTTPResponse:
    page = await browser.get("/account/email")
    return await browser.submit(page, "/account/email", email=email, current_password=password)


async def test_the_address_is_changed_from_the_new_one_and_the_old_one_is_told(post: Post) -> None:
    browser = await post.service.signed_in()
    assert heading(await ask_for(browser, NEW)) == "Look into your mailbox"
    link = await post.link(NEW, CHANGE)
    assert (await post.service.browser().sign_in(EMAIL)).code == 303, "until then all stays as it is"
    page = await browser.get(link)
    done = await browser.submit(page, "/account/email/change")
    assert heading(done) == "Your address was changed"
    assert heading(await browser.submit(page, "/account/email/change")) == "Your address was changed"
    assert heading(await browser.get(link)) == "Your address was changed"
    await post.settled()
    told = [mail for mail in post.mails.to(EMAIL) if mail["Subject"] == "Your e-mail address was changed"]
    assert len(told) == 1
    assert NEW in told[0].get_content()
    assert (await post.service.browser().sign_in(EMAIL)).code == 400
    assert (await post.service.browser().sign_in(NEW)).code == 303
    tokens = await post.service.tokens(browser=browser)
    found = json_of(await post.service.web.userinfo(tokens["access_token"]))
    assert (found["email"], found["email_verified"], found["sub"]) == (NEW, True, post.service.ada)


@pytest.mark.parametrize(
    ("email", "password", "words"),
    [
        (NEW, "wrong password", "current password is not right"),
        ("no address", PASSWORD, "one @"),
        (EMAIL.upper(), PASSWORD, "your address already"),
    ],
)
async def test_what_stands_against_a_change_is_said_on_the_form(
    post: Post, email: str, password: str, words: str
) -> None:
    browser = await post.service.signed_in()
    refused = await ask_for(browser, email, password)
    assert refused.code == 400
    assert words in refused.body.decode()
    await post.settled()
    assert post.mails.to(NEW) == []


async def test_a_change_tells_nobody_who_has_an_account(post: Post) -> None:
    await post.service.add_person(GRACE)
    browser = await post.service.signed_in()
    answers = [comparable(await ask_for(browser, email), email) for email in (GRACE, NEW)]
    assert answers[0] == answers[1]
    await post.settled()
    assert [mail["Subject"] for mail in post.mails.to(GRACE)] == ["Your address is in use already"]
    assert "link=" not in post.mails.to(GRACE)[0].get_content()


async def test_an_address_that_was_taken_meanwhile_is_said_kindly(post: Post) -> None:
    browser = await post.service.signed_in()
    await ask_for(browser, NEW)
    link = await post.link(NEW, CHANGE)
    await post.service.add_person(NEW)
    refused = await browser.submit(await browser.get(link), "/account/email/change")
    assert refused.code == 400
    assert b"account with this e-mail address already" in refused.body
    assert (await post.service.browser().sign_in(EMAIL)).code == 303


async def test_a_new_address_gets_so_many_mails_whoever_asks(post: Post) -> None:
    emails = [f"person{number}@example.com" for number in range(6)]
    for email in emails:
        await post.service.add_person(email)
    browsers = [await post.service.signed_in(email) for email in emails]
    answers = await asyncio.gather(*(ask_for(browser, NEW) for browser in browsers))
    assert sorted(answer.code for answer in answers) == [200] * 5 + [429]
    await post.settled()
    assert len(post.mails.to(NEW)) == 5


async def test_a_wrong_password_uses_up_no_mail_of_the_new_address(post: Post) -> None:
    browser = await post.service.signed_in()
    for _ in range(6):
        assert (await ask_for(browser, NEW, "wrong password")).code == 400
    assert (await ask_for(browser, NEW)).code == 200


async def test_passwords_are_not_guessed_through_the_change_of_an_address(post: Post) -> None:
    browser = await post.service.signed_in()
    codes = [(await ask_for(browser, NEW, f"wrong password {number}")).code for number in range(21)]
    assert codes == [400] * 20 + [429]


# Notices


def notices(post: Post, email: str = EMAIL) -> list[EmailMessage]:
    return [mail for mail in post.mails.to(email) if mail["Subject"] == "New sign-in to your account"]


async def signs_in(post: Post, agent: str) -> int:
    """How many notices there are after a sign-in with a browser."""
    browser = post.service.browser()
    browser.agent = agent
    assert (await browser.sign_in()).code == 303
    await post.settled()
    return len(notices(post))


async def test_a_sign_in_with_another_browser_or_from_elsewhere_is_told(post: Post) -> None:
    assert await signs_in(post, "Mozilla/5.0 Firefox/140.0") == 1
    assert await signs_in(post, "Mozilla/5.0 Firefox/140.0") == 1
    assert await signs_in(post, "Mozilla/5.0 Firefox/141.0.2") == 1, "a newer version is the same browser"
    assert await signs_in(post, "Mozilla/5.0 Chrome/150.0") == 2
    text = notices(post)[-1].get_content()
    assert "Browser:  Chrome\n" in text
    assert "127.0.0.1" in text
    assert "/account/security" in text


async def test_the_browser_of_the_sign_up_is_known(post: Post) -> None:
    post.site.mail.confirms = False
    browser = post.service.browser()
    page = await browser.get("/signup")
    await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    again = post.service.browser()
    await again.sign_in(GRACE)
    await post.settled()
    assert notices(post, GRACE) == []


async def test_a_change_of_password_is_told(post: Post) -> None:
    browser = await post.service.signed_in()
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password="wrong", new_password=NEW_PASSWORD)
    await post.settled()
    assert "Your password was changed" not in [mail["Subject"] for mail in post.mails.mails]
    await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    await post.mails.newest(EMAIL, "Your password was changed")


async def test_nothing_a_stranger_types_is_mailed_to_somebody_else(post: Post) -> None:
    """Else the server would carry advertisements, in its own name."""
    browser = post.service.browser()
    browser.agent = "Visit https://evil.example"
    await sign_up(browser, GRACE, "?next=%2FCONGRATULATIONS-you-won%3Aevil.example")
    await post.forgot(EMAIL, browser)
    await post.settled()
    assert len(post.mails.mails) == 2
    for mail in post.mails.mails:
        assert "Visit" not in mail.get_content()
        assert "CONGRATULATIONS" not in mail.get_content()
