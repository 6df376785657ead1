"""Repeated sign-ins that set a second step up, for the tests of their mails."""

from __future__ import annotations

from tornado.httpclient import HTTPResponse

from store.accounts.signin.totp import STEP, code_at
from tests.accounts.mails.team_acts import Act, Prepare
from tests.support.browser.email_links import Post
from tests.support.http.driver import Browser, fields_of, json_of
from tests.support.store.authenticator import Authenticator


def stranger(post: Post, number: int) -> Browser:
    """An unknown browser."""
    name = "".join(chr(ord("a") + int(digit)) for digit in str(number))
    return Browser(post.service.base_url, agent=f"Browser-{name}")


async def at_setup(post: Post, number: int) -> tuple[Browser, HTTPResponse] | None:
    """A sign-in that must set a second step up, whose last one an operator took away; None if it is refused."""
    post.service.store.sessions.required.who = "all"
    await post.service.store.operator.reset_factors(post.service.ada)
    browser = stranger(post, number)
    await browser.sign_in()
    page = await browser.get("/signin/setup?next=/account")
    return (browser, page) if page.code == 200 else None


async def set_up(post: Post) -> Act:
    """Sets an authenticator app up at each sign-in."""
    store = post.service.store

    async def act(number: int) -> None:
        found = await at_setup(post, number)
        if found is None:
            return
        browser, page = found
        secret = store.factors.open_secret(post.service.ada, fields_of(page, "/signin/setup")["secret"])
        code = code_at(secret, await store.apps.now() // STEP)
        await browser.submit(page, "/signin/setup", code=code)

    return act


async def set_up_passkey(post: Post) -> Act:
    """The same with a passkey."""
    path = "/signin/setup/passkey"

    async def act(number: int) -> None:
        found = await at_setup(post, number)
        if found is None:
            return
        browser, page = found
        form = {"_xsrf": fields_of(page, path)["_xsrf"]}
        answer = await browser.send(f"{path}/options", "POST", form=form, headers={"Accept": "application/json"})
        device = Authenticator(post.service.base_url)
        await browser.submit(page, path, credential=device.create(json_of(answer)["publicKey"]))

    return act


SIGN_IN_ACTS: dict[tuple[str, ...], Prepare] = {
    ("signin-setup",): set_up,
    ("signin-setup-passkey",): set_up_passkey,
}
"""The acts, by the routes that they use."""
