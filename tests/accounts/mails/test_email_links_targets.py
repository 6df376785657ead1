"""Targets of links that a stranger had mailed to another person."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import pytest

from tests.support.browser import email_links
from tests.support.browser.email_links import GRACE, RESET, Post
from tests.support.browser.pages import ROOT
from tests.support.http.driver import EMAIL, PASSWORD, Browser

pytestmark = pytest.mark.gen_test(timeout=60)

confirms, mails, site, post = email_links.confirms, email_links.mails, email_links.site, email_links.post

NEW_PASSWORD = "another horse battery"


async def resets(post: Post, browser: Browser) -> str:
    """The next link on the page that confirms the password change."""
    page = await browser.get(await post.link(EMAIL, RESET))
    done = (await browser.submit(page, "/reset", new_password=NEW_PASSWORD)).body.decode()
    return str(re.findall(r'href="(/signin[^"]*)"', done)[-1])


async def signs_up(post: Post, browser: Browser) -> str:
    """The redirect at the end of a sign-up."""
    page = await browser.get(await post.link(GRACE, "Finish creating your account"))
    return (await browser.submit(page, "/signup", name="Grace", password=PASSWORD)).headers["Location"]


@pytest.mark.parametrize(
    ("asks", "email", "ends", "home"),
    [
        pytest.param("/forgot", EMAIL, resets, "/signin?link=…", id="a password"),
        pytest.param("/signup", GRACE, signs_up, "/account?ready", id="an invitation"),
    ],
)
async def test_a_link_requested_by_a_stranger_has_no_target(
    post: Post, asks: str, email: str, ends: Callable[[Post, Browser], Awaitable[str]], home: str
) -> None:
    planted = "/oauth/authorize?client_id=evil&scope=bogus"
    person = post.service.browser()
    for browser, target in ((person, "/account/apps"), (post.service.browser(), planted)):
        page = await browser.get(f"{asks}?next={quote(target, safe='')}")
        assert (await browser.submit(page, asks, email=email)).code == 200
        await post.settled()
    assert re.sub("link=[^&]+$", "link=…", await ends(post, person)) == home


def test_every_page_with_a_kept_target_checks_who_chose_it() -> None:
    """The exception is the address confirmation, which only the person's own session can request."""
    uses = {
        (path.name, line.strip())
        for path in (ROOT / "handlers").rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"\b(seen|invited)\.target\b", line) and "going_on(" not in line
    }
    assert uses == {("email_links.py", "await self.allow_redirect_of(seen.target)")}
