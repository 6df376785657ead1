"""E-mail links in browser tests: requests them, follows them, and compares what strangers see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store import keys
from store.lifetimes import CHANGE_APP, OWN_PASSKEY, OWN_PASSWORDS, SIGN_IN_DEVICES, Group
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.mailbox import Kept, link_in, mailer, until
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service
from tests.support.store.world import refusal_of

GRACE = "grace@example.com"
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
    """Helpers for mails."""

    def __init__(self, service: Service, site: Site, mails: Kept) -> None:
        self.service, self.site, self.mails = service, site, mails

    async def settled(self) -> None:
        """Waits until every queued mail is sent."""
        await until(lambda: not self.site.tasks and not self.site.mail._tasks)

    async def link(self, email: str, subject: str) -> str:
        """The path of the link in the newest mail with this subject."""
        await self.settled()
        return link_in(await self.mails.newest(email, subject))

    async def unconfirmed(self, email: str = GRACE) -> tuple[str, Browser]:
        """A signed-in person whose account is older than the mail server."""
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


async def sign_up(browser: Browser, email: str = GRACE, query: str = "") -> HTTPResponse:
    return await browser.submit(await browser.get("/signup" + query), "/signup", email=email)


def comparable(response: HTTPResponse, email: str) -> tuple[Any, ...]:
    """An answer without its random parts."""
    body = re.sub(r'name="_xsrf" value="[^"]*"', "", response.body.decode()).replace(email, "EMAIL")
    chance = ("Date", "X-Request-Id", "Set-Cookie", "Content-Length")
    headers = sorted((name, value) for name, value in response.headers.get_all() if name not in chance)
    return response.code, body, headers


FEW = 4
"""Places left in the windows of one person, so that the test is short."""
OWN_WINDOWS = (CHANGE_APP, OWN_PASSKEY, OWN_PASSWORDS, SIGN_IN_DEVICES)


async def leave_few(post: Post, windows: Iterable[Group]) -> int:
    """Uses places until few are left; returns the number of mails that the windows allowed."""
    most = 0
    for group in windows:
        taken = group.limit - FEW if group in OWN_WINDOWS else 0
        most += group.limit - taken
        for _ in range(taken):
            await refusal_of(post.service.store.limits._take_key(group, keys.limit(post.service.ada, group.name)))
    return most
