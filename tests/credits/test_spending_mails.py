"""Mails about apps that may spend more than before, and the limits on such mails."""

from __future__ import annotations

import pytest

from outbound.mail.message import plain_text
from store import keys
from store.lifetimes import SPENDING_MAIL
from tests.support.browser import email_links
from tests.support.browser.email_links import Post, heading
from tests.support.browser.second_factors import Person
from tests.support.http.decision import DECIDE
from tests.support.http.driver import EMAIL, PASSWORD, Browser, fields_of, text_of
from tests.support.processes.engines import FakeClock
from tests.support.store.second_factors import shown
from tests.support.store.world import VISITOR, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

APPS = "/account/apps"
LIMIT, REVOKE = f"{APPS}/web-app/limit", f"{APPS}/web-app/revoke"
SPENDS = "profile credits:spend"
CONNECTED, RAISED, REMOVED = (
    "An app can spend your credits",
    "A spending limit was raised",
    "A spending limit was removed",
)


def thief_of(ada: Browser) -> Browser:
    """Another browser, with a copy of the cookies and nothing else."""
    return Browser(ada.base_url, dict(ada.cookies))


async def subjects(post: Post) -> list[str]:
    """Subjects of mails about spending, oldest first."""
    await post.settled()
    return [s for mail in post.mails.to(EMAIL) if (s := mail["Subject"]) in (CONNECTED, RAISED, REMOVED)]


async def decides(browser: Browser, post: Post, limit: str, scope: str = SPENDS, untick: str = "") -> None:
    page = await browser.get(post.service.web.authorize_url(scope=scope, prompt="consent"))
    fields: dict[str, str | None] = {"spend_dollars": limit} if "credits:spend" in scope else {}
    if untick:
        fields[f"scope:{untick}"] = None
    assert (await browser.submit(page, DECIDE, decision="allow", **fields)).code == 303


async def test_a_cookie_thief_cannot_enable_spending_unnoticed(post: Post) -> None:
    thief = thief_of(await post.service.signed_in())
    await decides(thief, post, "", "profile data:read")
    assert await subjects(post) == [], "an app that may not spend is not mailed about"
    for limit, subject in (("5", CONNECTED), ("6", RAISED), ("", REMOVED), ("5", None), ("5", None), ("4", None)):
        before = await subjects(post)
        await decides(thief, post, limit)
        assert await subjects(post) == before + ([subject] if subject else []), limit
    await thief.submit(await thief.get(APPS), REVOKE)
    await decides(thief, post, "1")
    assert (await subjects(post))[-1] == CONNECTED, "connected again after it was disconnected"
    before = await subjects(post)
    await decides(thief, post, "", "profile")
    await decides(thief, post, "1")
    assert await subjects(post) == before, "what was not asked about stayed as it was"
    await decides(thief, post, "1", untick="credits:spend")
    await decides(thief, post, "1")
    assert await subjects(post) == [*before, CONNECTED], "the scope had been taken away"
    activity = text_of(await thief.get("/account/security"))
    assert "Spending limit changed" in activity


async def test_the_mail_does_not_quote_the_owners_text(post: Post) -> None:
    ada = await post.service.signed_in()
    evil = "Your account is blocked, call 555 0100"
    await post.service.store.apps.update("web-app", None, name=evil, homepage="https://call-now.example/")
    await decides(ada, post, "5")
    await decides(ada, post, "12.50")
    page = text_of(await ada.get(APPS))
    for subject, words in ((CONNECTED, "up to $5.00 a month"), (RAISED, "up to $12.50 a month")):
        text = " ".join(plain_text(await post.mails.newest(EMAIL, subject)).split())
        assert words in text
        for needed in ("web-app", "When:", "Network address:", "Testing/1.0", f"{post.service.base_url}{APPS}"):
            assert needed in text, needed
        for chosen in ("blocked", "555", "call-now", "app.example"):
            assert chosen not in text
    assert "web-app" in page, "the page says which app the id is"


async def test_changing_a_limit_asks_to_reauthenticate_and_keeps_the_input(post: Post) -> None:
    ada = await post.service.signed_in()
    await decides(ada, post, "5")
    thief = thief_of(ada)
    confirm = await thief.submit(await thief.get(APPS), LIMIT, dollars="900")
    assert (confirm.code, heading(confirm)) == (403, "Confirm it’s you")
    assert fields_of(confirm, LIMIT)["dollars"] == "900"
    assert f'href="{APPS}"' in confirm.body.decode(), "the way back is a page that there is"
    assert (await thief.submit(confirm, LIMIT, confirm_password="wrong password")).code == 400
    assert "Its limit is $5.00." in text_of(await ada.get(APPS))
    assert await subjects(post) == [CONNECTED]
    confirm = await ada.submit(await ada.get(APPS), LIMIT, dollars="9")
    assert (await ada.submit(confirm, LIMIT, confirm_password=PASSWORD)).code == 303
    assert "Its limit is $9.00." in text_of(await ada.get(APPS))
    for dollars in ("8", "8", ""):
        assert (await ada.submit(await ada.get(APPS), LIMIT, dollars=dollars)).code == 303
    assert await subjects(post) == [CONNECTED, RAISED, REMOVED]


async def test_repeated_connections_do_not_flood_the_mailbox(clock: FakeClock, post: Post) -> None:
    ada = Person(post.service, await post.service.signed_in())
    for _ in range(SPENDING_MAIL.limit + 3):
        await post.service.store.client.delete(keys.limit(post.service.ada, "oauth"))
        await decides(ada.browser, post, "5")
        await ada.browser.submit(await ada.browser.get(APPS), REVOKE)
    assert await subjects(post) == [CONNECTED] * SPENDING_MAIL.limit
    texts = [plain_text(mail) for mail in post.mails.to(EMAIL) if mail["Subject"] == CONNECTED]
    assert ["This is the last e-mail" in text for text in texts] == [False] * (SPENDING_MAIL.limit - 1) + [True]
    clock.advance(SPENDING_MAIL.period // 1000 + 1)
    await decides(await post.service.signed_in(), post, "5")
    assert len(await subjects(post)) == SPENDING_MAIL.limit + 1


async def test_refused_changes_are_not_mailed(post: Post) -> None:
    ada = await post.service.signed_in()
    page = await ada.get(post.service.web.authorize_url(scope=SPENDS, prompt="consent"))
    assert (await ada.submit(page, DECIDE, decision="allow", spend_dollars="much")).code == 400
    assert (await ada.submit(page, DECIDE, decision="deny")).code == 303
    session = post.service.store.sessions.open(ada.cookies["latchkey_session"])
    assert session
    await shown(post.service.store, session)
    assert (
        await refusal_of(post.service.store.credits.set_spend_limit(session, "web-app", None, VISITOR)) == "not_found"
    )
    assert await subjects(post) == []
