"""Forgot your password?s over HTTP: links, what strangers learn and may request, and invalid links."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import ExitStack, suppress
from urllib.parse import quote, unquote

import pytest
from tornado.httpclient import HTTPResponse

from outbound.mail.line import AT_ONCE
from outbound.mail.mailer import Undelivered
from outbound.mail.message import plain_text
from outbound.mail.room import MOST_ASKED, NoRoom
from store import keys
from store.lifetimes import MAIL_TO
from store.refused import Refused
from tests.support.browser import email_links
from tests.support.browser.email_links import CONFIRM, GRACE, RESET, Post, comparable, heading, sign_up
from tests.support.browser.mailbox import link_in, until, words_of
from tests.support.browser.pages import Page
from tests.support.http.driver import EMAIL, PASSWORD, fields_of
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test

NETWORK = "127.0.0.0/24"
NEW_PASSWORD, NO_ACCOUNT = "another horse battery", "No account with this address"
confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post


# Forgot your password?s


async def test_a_forgotten_password_can_be_reset(post: Post) -> None:
    elsewhere = await post.service.signed_in()
    answer = await post.forgot()
    assert heading(answer) == "Check your e-mail"
    link = await post.link(EMAIL, RESET)
    browser = post.service.browser()
    page = await browser.get(link)
    for bad, words in (("short", "at least 10"), (EMAIL, "be your e-mail address"), ("", "at least 10")):
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
    assert "127.0.0.1" in plain_text(notice)
    assert NEW_PASSWORD not in "".join(plain_text(mail) for mail in post.mails.mails)


@pytest.mark.parametrize("confirmed", [True, False])
async def test_the_reset_page_says_what_else_ended(post: Post, confirmed: bool) -> None:
    if not confirmed:
        await post.service.store.client.hdel(keys.person(post.service.ada)["user"], "verified")
    await post.forgot()
    browser = post.service.browser()
    page = await browser.get(await post.link(EMAIL, RESET))
    done = (await browser.submit(page, "/reset", new_password=NEW_PASSWORD)).body.decode()
    assert ("A new password doesn’t remove any passkey" in done) is confirmed
    assert ("disconnected all apps" in done) is not confirmed
    await post.settled()
    notice = words_of(await post.mails.newest(EMAIL, "Your password was changed"))
    assert ("disconnected all apps" in notice) is not confirmed


async def test_a_reset_returns_to_the_original_target(post: Post) -> None:
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


async def test_the_mail_does_not_contain_the_target_and_the_target_stays_on_site(post: Post) -> None:
    browser = post.service.browser()
    page = await browser.get("/forgot?next=%2FCONGRATULATIONS")
    await browser.submit(page, "/forgot", email=EMAIL)
    await post.settled()
    assert "CONGRATULATIONS" not in plain_text(await post.mails.newest(EMAIL, RESET))
    page = await browser.get("/forgot")
    await browser.send("/forgot", "POST", form={**fields_of(page, "/forgot"), "email": EMAIL, "next": "//evil.example"})
    page = await browser.get(await post.link(EMAIL, RESET))
    done = await browser.submit(page, "/reset", new_password=NEW_PASSWORD)
    assert re.fullmatch("/signin[?]link=lk_pr_[^&]+", link_on(done, "Sign in"))


def link_on(page: HTTPResponse, words: str) -> str:
    """The target of a link."""
    (link,) = [link for link in Page(page.body.decode()).all("a") if link.text.strip() == words]
    return link.get("href")


async def test_forgot_gives_everybody_the_same_answer(post: Post) -> None:
    await post.service.add_person("gone@example.com")
    await post.service.store.operator.set_status("gone@example.com", "disabled")
    answers = []
    for email in (EMAIL, "nobody@example.com", "gone@example.com"):
        answers.append(comparable(await post.forgot(email), email))
    assert answers[0][0] == 200
    assert all(answer == answers[0] for answer in answers)
    await post.settled()
    subjects = {mail["To"]: mail["Subject"] for mail in post.mails.mails}
    assert subjects == {EMAIL: RESET, "nobody@example.com": NO_ACCOUNT, "gone@example.com": NO_ACCOUNT}
    assert len(post.mails.mails) == 3
    for email in ("nobody@example.com", "gone@example.com"):
        text = plain_text(post.mails.to(email)[0])
        assert "no active account" in " ".join(text.split())
        assert "?" not in text, "no link"


async def test_the_answer_precedes_the_account_lookup(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the response time reveals nothing either."""
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
        NO_ACCOUNT,
        "Set a new password",
        "You already have an account",
    ]


def resets(post: Post) -> int:
    return [mail["Subject"] for mail in post.mails.to(EMAIL)].count(RESET)


async def strangers_ask(post: Post, networks: int, typed: str = EMAIL) -> int:
    """The number of mails for Ada that strangers cause, asking as often as possible from each network. `typed` is the
    address, in which `{}` is another number each time."""
    admitted = 0
    for number in range(networks * 6):
        try:
            await post.service.store.limits.forgot(f"198.51.{number // 6}.{number}", typed.format(number))
        except Refused:
            continue
        admitted += 1
    return admitted


async def test_strangers_cannot_block_a_password_reset(post: Post) -> None:
    known = await post.service.signed_in()
    assert await strangers_ask(post, 3) == 15
    assert (await post.forgot()).code == 200, "the owner's network has a window of its own"
    await strangers_ask(post, 10)
    assert (await post.forgot()).code == 429
    assert (await post.forgot(browser=known)).code == 200, "so has a browser that the owner signed in with"
    await post.settled()
    assert resets(post) == 2


@pytest.mark.parametrize("path", ["/forgot", "/signup", "/account/email"])
async def test_a_request_refused_for_a_full_mail_queue_does_not_count_for_the_account(post: Post, path: str) -> None:
    """Nor does it invalidate the link in the mailbox."""
    owner = GRACE if path == "/signup" else EMAIL
    browser = await post.service.signed_in() if path == "/account/email" else post.service.browser()
    fields = {"email": f"new-{owner}", "current_password": PASSWORD} if "account" in path else {"email": owner}
    page = await browser.get(path)
    assert (await browser.submit(page, path, **fields)).code == 200
    await post.settled()
    link = link_in(post.mails.mails[-1])
    with ExitStack() as reserved:
        for _ in range(MOST_ASKED):
            reserved.enter_context(post.site.mail.room.reserve(NETWORK, "reset" if path == "/forgot" else ""))
        for _ in range(10):
            refused = await browser.submit(page, path, **fields)
            assert (refused.code, refused.headers["Retry-After"]) == (429, "60")
    assert (await browser.get(link)).code == 200
    codes = [(await browser.submit(page, path, **fields)).code for _ in range(5)]
    assert codes == [200] * 4 + [429], "the windows counted one mail of five"
    await post.settled()
    assert post.site.mail.room.empty, "no request keeps its place"


async def test_free_queue_places_do_not_reveal_accounts(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = asyncio.Event()
    monkeypatch.setattr(post.mails, "send", lambda message: stuck.wait())
    browser = post.service.browser()
    for number in range(AT_ONCE):
        assert (await sign_up(browser, f"slow-{number}@example.com")).code == 200
    left = []
    for email in (EMAIL, "nobody@example.com"):
        for _ in range(3):
            assert (await post.forgot(email)).code == 200
        await until(lambda: not post.site.tasks)
        left.append(room_for_resets(post))
    assert left == [MOST_ASKED - 3, MOST_ASKED - 6]
    stuck.set()
    await post.settled()
    assert post.site.mail.room.empty


def room_for_resets(post: Post) -> int:
    """The number of further reset requests that this network can make now."""
    room = 0
    with ExitStack() as reserved, suppress(NoRoom):
        while True:
            reserved.enter_context(post.site.mail.room.reserve(NETWORK, "reset"))
            room += 1
    return room


async def test_a_known_browser_gets_five_mails_an_hour_for_its_own_account_only(post: Post) -> None:
    known = await post.service.signed_in()
    await strangers_ask(post, 10)
    assert [(await post.forgot(browser=known)).code for _ in range(6)] == [200] * 5 + [429]
    await post.settled()
    assert resets(post) == 5
    for _ in range(5):
        assert (await post.forgot("nobody@example.com", known)).code == 200
    assert (await post.forgot("nobody@example.com", known)).code == 429


async def test_one_mailbox_gets_twenty_mails_an_hour_from_strangers(post: Post) -> None:
    assert await strangers_ask(post, 30) == 20


@pytest.mark.parametrize("typed", ["nobody+{}@example.com", "n.obody+{}@example.com", "+1555+{}@example.com"])
async def test_tags_of_a_mailbox_share_its_twenty_mails(post: Post, typed: str) -> None:
    assert await strangers_ask(post, 30, typed) == 20


async def test_strangers_who_ask_for_phone_numbers_keep_no_other_number_from_a_reset(post: Post) -> None:
    await strangers_ask(post, 4, "+1555{}@example.com")
    assert (await post.forgot("+4477@example.com")).code == 200


async def test_tagged_addresses_get_the_mails_of_their_mailbox_limit(post: Post) -> None:
    browser = post.service.browser()
    page = await browser.get("/signup")
    tagged = [f"no.body+{number}@example.com" for number in range(6)]
    codes = [(await browser.submit(page, "/signup", email=email)).code for email in tagged]
    assert codes == [200] * 5 + [429]
    await post.settled()
    assert {mail["To"] for mail in post.mails.mails} == set(tagged[:5]), "a mail goes to the address that was typed"


async def test_tags_share_the_limit_of_changes_of_an_address(post: Post) -> None:
    limits = post.service.store.limits
    for number in range(MAIL_TO.limit):
        await limits.change_mail("192.0.2.1", f"nobody+{number}@example.com")
    with pytest.raises(Refused):
        await limits.change_mail("192.0.2.1", "nobody@example.com")
    await limits.give_back_change_mail("192.0.2.1", "nobody+0@example.com")
    await limits.change_mail("192.0.2.1", "no.body@example.com")


async def test_forgot_is_limited_per_account_existing_or_not_and_per_address(post: Post, clock: FakeClock) -> None:
    clock.stop()
    for email in (EMAIL, "nobody@example.com"):
        assert [(await post.forgot(email)).code for _ in range(6)] == [200] * 5 + [429]
    for number in range(8):
        await post.forgot(f"nobody{number}@example.com")
    assert (await post.forgot("another@example.com")).code == 429
    await post.settled()
    assert [len(post.mails.to(email)) for email in (EMAIL, "nobody@example.com")] == [5, 5]
    assert len(post.mails.mails) == 20 - 2, "a refused request mails nobody"


@pytest.mark.trap(21)
@pytest.mark.parametrize("typed", ["", "no address", "a@" + "b" * 5000, "a@b@c", "a\r\nBcc: eve@example.com"])
async def test_the_form_rejects_an_invalid_address(post: Post, typed: str) -> None:
    answer = await post.forgot(typed)
    assert answer.code == 400
    assert b'role="alert"' in answer.body
    assert post.mails.mails == []


@pytest.mark.trap(22)
@pytest.mark.parametrize("path", ["/confirm", "/forgot", "/reset", "/account/email", "/account/email/change"])
async def test_forms_need_an_xsrf_token_and_the_same_origin(post: Post, path: str) -> None:
    browser = await post.service.signed_in()
    assert (await browser.send(path, "POST", form={"email": EMAIL, "link": "x"})).code == 403
    form = fields_of(await browser.get("/account/security"), "/account/security")
    foreign = {"Origin": "https://evil.example"}
    assert (await browser.send(path, "POST", form={**form, "email": EMAIL}, headers=foreign)).code == 403


@pytest.mark.trap(21)
@each("path", ["/confirm", "/reset", "/account/email/change"])
@each("link", ["", "x", "%00", "%ff", "lk_cf_" + "A" * 5000, "a&link=b"])
async def test_an_invalid_link_gets_an_explaining_page(post: Post, path: str, link: str) -> None:
    browser = await post.service.signed_in()
    assert (await browser.get(f"{path}?link={link}")).code == 400
    form = fields_of(await browser.get("/account/security"), "/account/security")
    answer = await browser.send(path, "POST", form={**form, "link": unquote(link, errors="replace")})
    assert answer.code == 400


@pytest.mark.trap(24)
async def test_no_log_contains_a_link_or_an_address(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("", "tornado", "asyncio", "latchkey"):
        caplog.set_level(logging.DEBUG, logger=name)
    _, browser = await post.unconfirmed()
    post.mails.failures = [Undelivered("SMTPDataError 550", temporary=False)]
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    await post.settled()
    await browser.submit(await browser.get("/account"), "/account/email/confirm")
    await post.forgot(GRACE)
    await sign_up(post.service.browser(), "nobody@example.com")
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
