"""Address changes by e-mail link, and notices of sign-ins and changes."""

from __future__ import annotations

import asyncio
from email.message import EmailMessage

import pytest
from tornado.httpclient import HTTPResponse

from outbound.mail.message import plain_text
from tests.support.browser import email_links
from tests.support.browser.email_links import CHANGE, GRACE, Post, comparable, heading, sign_up
from tests.support.http.driver import EMAIL, PASSWORD, Browser, json_of

pytestmark = pytest.mark.gen_test

NEW_PASSWORD = "another horse battery"
NEW = "new@example.com"
confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post


# Another address


async def ask_for(browser: Browser, email: str, password: str = PASSWORD) -> HTTPResponse:
    page = await browser.get("/account/email")
    return await browser.submit(page, "/account/email", email=email, current_password=password)


async def test_the_new_address_confirms_a_change_and_the_old_one_is_notified(post: Post) -> None:
    browser = await post.service.signed_in()
    assert heading(await ask_for(browser, NEW)) == "Check your e-mail"
    link = await post.link(NEW, CHANGE)
    assert (await post.service.browser().sign_in(EMAIL)).code == 303, "nothing has changed yet"
    page = await browser.get(link)
    done = await browser.submit(page, "/account/email/change")
    assert heading(done) == "Your address was changed"
    assert heading(await browser.submit(page, "/account/email/change")) == "Your address was changed"
    assert heading(await browser.get(link)) == "Your address was changed"
    await post.settled()
    notices = [mail for mail in post.mails.to(EMAIL) if mail["Subject"] == "Your e-mail address was changed"]
    assert len(notices) == 1
    assert NEW in plain_text(notices[0])
    assert (await post.service.browser().sign_in(EMAIL)).code == 400
    assert (await post.service.browser().sign_in(NEW)).code == 303
    tokens = await post.service.tokens(browser=browser)
    found = json_of(await post.service.web.userinfo(tokens["access_token"]))
    assert (found["email"], found["email_verified"], found["sub"]) == (NEW, True, post.service.ada)


@pytest.mark.parametrize(
    ("email", "password", "words"),
    [
        (NEW, "wrong password", "current password is incorrect"),
        ("no address", PASSWORD, "one @"),
        (EMAIL.upper(), PASSWORD, "already your address"),
    ],
)
async def test_the_form_says_why_an_address_change_is_refused(
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
    assert [mail["Subject"] for mail in post.mails.to(GRACE)] == ["Your e-mail address is already in use"]
    assert "link=" not in plain_text(post.mails.to(GRACE)[0])


async def test_a_meanwhile_taken_address_gets_a_friendly_error(post: Post) -> None:
    browser = await post.service.signed_in()
    await ask_for(browser, NEW)
    link = await post.link(NEW, CHANGE)
    await post.service.add_person(NEW)
    refused = await browser.submit(await browser.get(link), "/account/email/change")
    assert refused.code == 400
    assert b"already an account with this e-mail address" in refused.body
    assert (await post.service.browser().sign_in(EMAIL)).code == 303


async def test_mails_to_a_new_address_are_limited_across_askers(post: Post) -> None:
    emails = [f"person{number}@example.com" for number in range(6)]
    for email in emails:
        await post.service.add_person(email)
    browsers = [await post.service.signed_in(email) for email in emails]
    answers = await asyncio.gather(*(ask_for(browser, NEW) for browser in browsers))
    assert sorted(answer.code for answer in answers) == [200] * 5 + [429]
    await post.settled()
    assert len(post.mails.to(NEW)) == 5


async def test_a_wrong_password_does_not_count_against_the_new_addresss_mail_limit(post: Post) -> None:
    browser = await post.service.signed_in()
    for _ in range(6):
        assert (await ask_for(browser, NEW, "wrong password")).code == 400
    assert (await ask_for(browser, NEW)).code == 200


async def test_excess_changes_do_not_count_against_another_addresss_mail_limit(post: Post) -> None:
    other = "other@example.com"
    await post.service.add_person(other)
    owner, stranger = await post.service.signed_in(other), await post.service.signed_in()
    codes = [(await ask_for(stranger, f"own-{number}@example.com")).code for number in range(5)]
    codes += [(await ask_for(stranger, NEW)).code for _ in range(5)]
    assert codes == [200] * 5 + [429] * 5
    assert (await ask_for(owner, NEW)).code == 200
    await post.settled()
    assert len(post.mails.to(NEW)) == 1


async def test_the_address_form_limits_password_guesses(post: Post) -> None:
    browser = await post.service.signed_in()
    codes = [(await ask_for(browser, NEW, f"wrong password {number}")).code for number in range(21)]
    assert codes == [400] * 20 + [429]


# Notices


def notices(post: Post, email: str = EMAIL) -> list[EmailMessage]:
    return [mail for mail in post.mails.to(email) if mail["Subject"] == "New sign-in to your account"]


async def signs_in(post: Post, agent: str) -> int:
    """The number of notices after a sign-in with a browser."""
    browser = post.service.browser()
    browser.agent = agent
    assert (await browser.sign_in()).code == 303
    await post.settled()
    return len(notices(post))


async def test_a_sign_in_from_a_new_browser_or_place_is_mailed(post: Post) -> None:
    assert await signs_in(post, "Mozilla/5.0 Firefox/140.0") == 1
    assert await signs_in(post, "Mozilla/5.0 Firefox/140.0") == 1
    assert await signs_in(post, "Mozilla/5.0 Firefox/141.0.2") == 1, "a newer version is the same browser"
    assert await signs_in(post, "Mozilla/5.0 Chrome/150.0") == 2
    text = plain_text(notices(post)[-1])
    assert "Browser: Chrome\n" in text
    assert "127.0.0.1" in text
    assert "/account/security" in text


async def test_the_sign_up_browser_counts_as_known(post: Post) -> None:
    post.site.mail.confirms = False
    browser = post.service.browser()
    page = await browser.get("/signup")
    await browser.submit(page, "/signup", email=GRACE, name="Grace", password=PASSWORD)
    again = post.service.browser()
    await again.sign_in(GRACE)
    await post.settled()
    assert notices(post, GRACE) == []


async def test_a_password_change_is_mailed(post: Post) -> None:
    browser = await post.service.signed_in()
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password="wrong", new_password=NEW_PASSWORD)
    await post.settled()
    assert "Your password was changed" not in [mail["Subject"] for mail in post.mails.mails]
    await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    await post.mails.newest(EMAIL, "Your password was changed")


async def test_text_from_strangers_is_never_mailed_to_others(post: Post) -> None:
    """Otherwise the server would send advertisements in its own name."""
    browser = post.service.browser()
    browser.agent = "Visit https://evil.example"
    await sign_up(browser, GRACE, "?next=%2FCONGRATULATIONS-you-won%3Aevil.example")
    await post.forgot(EMAIL, browser)
    await post.settled()
    assert len(post.mails.mails) == 2
    for mail in post.mails.mails:
        assert "Visit" not in plain_text(mail)
        assert "CONGRATULATIONS" not in plain_text(mail)
