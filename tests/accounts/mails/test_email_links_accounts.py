"""E-mail links of new accounts over HTTP: sign-up with a mail server, and confirmation of addresses."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest

from outbound.mail.mailer import SmtpServer
from outbound.mail.message import plain_text
from tests.support.browser import email_links
from tests.support.browser.email_links import CONFIRM, GRACE, RESET, Post, comparable, heading, sign_up
from tests.support.browser.mailbox import Mailbox, link_in
from tests.support.http.driver import PASSWORD, answer_of, fields_of, json_of

pytestmark = pytest.mark.gen_test

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post


# Signing up


@pytest.mark.trap(34)
async def test_with_mail_the_mailbox_owner_creates_the_account(post: Post) -> None:
    browser = post.service.browser()
    answer = await sign_up(browser, GRACE, "?next=%2Faccount%2Fapps%3Fx")
    assert (answer.code, heading(answer)) == (200, "Check your e-mail")
    assert "latchkey_session" not in browser.cookies
    assert await post.service.store.people.find(GRACE) is None
    link = await post.link(GRACE, "Finish creating your account")
    elsewhere = post.service.browser()  # the mail is read on another device
    page = await elsewhere.get(link)
    done = await elsewhere.submit(page, "/signup", name="Grace", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, "/account?ready"), "that device did not ask for the mail"
    assert await post.verified(GRACE)
    await post.settled()
    assert len(post.mails.mails) == 1, "nothing else to confirm, and no notice of the first sign-in"
    assert (await elsewhere.get(link)).headers["Location"] == "/account"
    again = await browser.get(link)
    assert "This link has expired or was already used" in again.body.decode()
    assert "invitation" not in again.body.decode().lower(), "nobody invited this person"
    assert heading(again) == "Create your account"  # the link is used up: it is the form for anybody


@pytest.mark.parametrize("state", ["s" * 2000, "\u00e9" * 1000, "+/=&" * 500], ids=["plain", "beyond ascii", "signs"])
async def test_the_longest_state_survives_a_sign_up_by_mail(post: Post, state: str) -> None:
    target = post.service.web.authorize_url(state=state)
    mailbox = await Mailbox.open()
    browser = post.service.browser()
    await sign_up(browser, GRACE, f"?next={quote(target, safe='')}")
    await post.settled()
    await SmtpServer(mailbox.url).send(await post.mails.newest(GRACE, "Finish creating your account"))
    page = await browser.get(await mailbox.link())
    done = await browser.submit(page, "/signup", name="Grace", password=PASSWORD)
    assert (done.code, done.headers["Location"]) == (303, target)
    assert answer_of(await browser.consent(target))["state"] == state
    await mailbox.close()


async def test_a_stranger_who_asks_again_ends_no_invitation(post: Post) -> None:
    await sign_up(post.service.browser(), GRACE)
    browser = post.service.browser()
    page = await browser.get(await post.link(GRACE, "Finish creating your account"))
    await sign_up(post.service.browser(), GRACE)
    await post.settled()
    assert len(post.mails.to(GRACE)) == 2
    assert (await browser.submit(page, "/signup", name="Grace", password=PASSWORD)).code == 303


async def test_an_expired_invitation_does_not_send_a_new_one(post: Post) -> None:
    await sign_up(post.service.browser())
    browser = post.service.browser()
    page = await browser.get(await post.link(GRACE, "Finish creating your account"))
    await post.service.store.people.invite(GRACE)
    late = await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    assert late.code == 400
    assert "This link has expired or was already used" in late.body.decode()
    await post.settled()
    assert len(post.mails.mails) == 1
    assert heading(await browser.submit(late, "/signup", email=GRACE)) == "Check your e-mail"


async def test_sign_up_says_the_same_whether_there_is_an_account_or_not(post: Post) -> None:
    await post.service.add_person(GRACE)
    answers = []
    for email in (GRACE, "nobody@example.com"):
        answers.append(comparable(await sign_up(post.service.browser(), email), email))
    assert answers[0] == answers[1]
    await post.settled()
    assert [mail["Subject"] for mail in post.mails.to(GRACE)] == ["You already have an account"]
    assert "invite=" not in plain_text(post.mails.to(GRACE)[0])
    assert [mail["Subject"] for mail in post.mails.to("nobody@example.com")] == ["Finish creating your account"]


@pytest.mark.parametrize("confirms", [False], ids=["no mail server"])
async def test_without_mail_an_account_works_at_once_and_can_be_confirmed(post: Post) -> None:
    browser = post.service.browser()
    page = await browser.get("/signup?next=%2Faccount%2Fapps")
    await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    link = await post.link(GRACE, CONFIRM)
    # Nothing is required: an app connects as usual and sees that the address is unconfirmed.
    tokens = await post.service.tokens(browser=browser)
    assert json_of(await post.service.web.userinfo(tokens["access_token"]))["email_verified"] is False
    done = await browser.submit(await browser.get(link), "/confirm")
    assert (done.code, done.headers["Location"]) == (303, "/account/apps")
    assert json_of(await post.service.web.userinfo(tokens["access_token"]))["email_verified"] is True


# Confirming


@pytest.mark.trap(34)
async def test_apps_do_not_see_an_unconfirmed_address(post: Post) -> None:
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
async def test_an_account_from_just_before_mail_was_set_up_gets_its_link(post: Post) -> None:
    """The sign-up link went to a folder and works; no mail was sent."""
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


async def test_prompt_none_returns_an_error_for_an_unconfirmed_address(post: Post) -> None:
    _, browser = await post.unconfirmed()
    quiet = await browser.get(post.service.web.authorize_url(prompt="none"))
    assert "error=consent_required" in quiet.headers["Location"]
    await post.settled()
    assert post.mails.mails == []


async def test_earlier_consent_still_holds(post: Post) -> None:
    _, browser = await post.unconfirmed()
    post.site.mail.confirms = False
    await post.service.tokens(browser=browser)
    post.site.mail.confirms = True
    assert "code=" in (await browser.get(post.service.web.authorize_url())).headers["Location"]
    wider = await browser.get(post.service.web.authorize_url(scope="profile data:read data:write apps:read"))
    assert heading(wider) == "First, confirm your e-mail address"


async def test_opening_a_link_repeatedly_changes_nothing(post: Post) -> None:
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


async def test_a_signed_out_person_returns_to_the_link_after_sign_in(post: Post) -> None:
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
async def test_another_persons_click_confirms_nothing(post: Post) -> None:
    _, browser = await post.unconfirmed()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    link = await post.link(GRACE, CONFIRM)
    ada = await post.service.signed_in()
    assert (await ada.get(link)).code == 403
    form = {**fields_of(await ada.get("/account/security"), "/account/security"), "link": link.partition("=")[2]}
    assert (await ada.send("/confirm", "POST", form=form)).code == 400
    assert not await post.verified(GRACE)
