"""A thief with cookie and password gets 100 wrong codes, whatever forms they send and cookies they drop."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from tornado.httpclient import HTTPResponse

from outbound.mail.message import plain_text
from store import keys
from store.accounts.signin.guesses import STOPPED, WRONG
from store.lifetimes import DAY, FACTOR_MOST
from tests.support.browser import email_links
from tests.support.browser.email_links import Post
from tests.support.browser.second_factors import CONFIRM, SECURITY, Person, says
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock

pytestmark = [pytest.mark.gen_test(timeout=120), pytest.mark.slow]

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

SESSION, DEVICE = "latchkey_session", "latchkey_device"
BAD = "000000"
FORMS: dict[str, dict[str, str]] = {
    CONFIRM: {"password": PASSWORD, "code": BAD},
    "/account/delete": {"email": EMAIL, "password": PASSWORD, "code": BAD},
    "/developer/apps/mine/delete": {"confirm": "Mine", "password": PASSWORD, "code": BAD},
    "/developer/apps/mine/rotate": {"confirm_password": PASSWORD, "confirm_code": BAD},
    SECURITY: {"current_password": PASSWORD, "new_password": "another horse battery"},
    f"{SECURITY}/sessions/end-others": {},
}


class Thief:
    """A copy of the session cookie, the password, and the answers to both."""

    def __init__(self, service: Service, cookie: str, clock: FakeClock) -> None:
        self.service, self.cookie, self.clock = service, cookie, clock
        self.answers: Counter[str] = Counter()
        self.token: dict[str, str] = {}
        self.browser = Browser(service.base_url)

    async def begins_again(self) -> None:
        """In a browser with the stolen cookie and no other."""
        self.browser = Browser(self.service.base_url, {SESSION: self.cookie})
        self.token = fields_of(await self.browser.get(SECURITY), "/signout")

    async def sends(self, action: str) -> None:
        """A form for signed-in people."""
        self.browser.cookies[SESSION] = self.cookie
        self.hears(await self.browser.send(action, "POST", form={**self.token, **FORMS[action]}))

    async def signs_in(self) -> None:
        """The password, and a code."""
        self.browser.cookies.pop(SESSION, None)
        answer = await self.browser.send("/signin", "POST", form={**self.token, "email": EMAIL, "password": PASSWORD})
        if answer.code == 303:
            answer = await self.browser.send("/signin/second", "POST", form={**self.token, "code": BAD})
        self.hears(answer)

    def hears(self, answer: HTTPResponse) -> None:
        """Counts what an answer says about a code, and waits if the answer says so."""
        word = "wrong" if says(answer, WRONG) else "stopped" if says(answer, STOPPED) else str(answer.code)
        self.answers[word] += 1
        assert DEVICE not in self.browser.cookies, "nothing was shown that makes a browser a known one"
        if answer.code == 429:
            self.clock.advance(DAY / 1000)


@pytest.mark.parametrize("seed", range(2))
async def test_a_thief_gets_at_most_a_hundred_wrong_codes(post: Post, clock: FakeClock, seed: int) -> None:
    clock.stop()
    ada = await Person.arrive(post.service)
    await ada.add_app()
    await post.service.add_app("mine", owner=post.service.ada)
    thief, dice = Thief(post.service, ada.browser.cookies[SESSION], clock), random.Random(seed)
    # Above a hundred, or it would prove nothing; of the forms that show no code some are sent as well.
    await thief.begins_again()
    while thief.answers["wrong"] + thief.answers["stopped"] < FACTOR_MOST + 20:
        if dice.random() < 0.1:
            await thief.begins_again()
        if dice.random() < 0.4:
            await thief.signs_in()
        else:
            await thief.sends(dice.choice(list(FORMS)))
    assert thief.answers["wrong"] == FACTOR_MOST, thief.answers
    await post.settled()
    notices = [plain_text(mail) for mail in post.mails.to(EMAIL) if "know your password" in mail["Subject"]]
    assert 1 <= len(notices) <= 2
    guesses = await post.service.store.client.hgetall(keys.person(post.service.ada)["guesses"])
    assert set(guesses) <= {b"count", b"until"}
