"""Ada in a browser, with an authenticator app and a passkey, and what the pages say about them."""

from __future__ import annotations

import re
from typing import Any

from tornado.httpclient import HTTPResponse

from store.accounts.signin.totp import STEP, code_at
from tests.support.http.driver import PASSWORD, Browser, Service, fields_of, json_of, text_of
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import MARGIN

SECURITY = "/account/security"
CONFIRM = f"{SECURITY}/confirm"
APP = f"{SECURITY}/authenticator"
PASSKEYS = f"{SECURITY}/passkeys"


def says(page: HTTPResponse, words: str) -> bool:
    return words in text_of(page)


def recovery_codes(page: HTTPResponse) -> list[str]:
    """The codes on the recovery code page."""
    return re.findall(r"<code>([a-z2-7-]{19})</code>", page.body.decode())


class Person:
    """Ada with her browser, authenticator app and passkey."""

    def __init__(self, service: Service, browser: Browser) -> None:
        self.service = service
        self.browser = browser
        self.secret = b""
        self.codes: list[str] = []
        self.device = Authenticator(service.base_url)

    @classmethod
    async def arrive(cls, service: Service) -> Person:
        return cls(service, await service.signed_in())

    async def add_app(self) -> HTTPResponse:
        if not await self.proved():
            await self.reauth()
        page = await self.browser.get(APP)
        sealed = fields_of(page, APP)["secret"]
        self.secret = self.service.store.factors.open_secret(self.service.ada, sealed)
        done = await self.browser.submit(page, APP, code=await self.code(-1))
        self.codes = recovery_codes(done)
        return done

    async def code(self, beside: int = 0) -> str:
        seconds, _ = await self.service.store.client.time()
        return code_at(self.secret, (seconds * 1000 + MARGIN) // STEP + beside)

    async def reauth(self, code: str = "") -> HTTPResponse:
        """Re-authenticates."""
        page = await self.browser.get(SECURITY)
        return await self.browser.submit(page, CONFIRM, password=PASSWORD, code=code)

    async def proved(self) -> bool:
        """Whether her page asks for no re-authentication."""
        return not says(await self.browser.get(SECURITY), "Confirm it’s you")

    async def options(self, path: str, browser: Browser | None = None, page: str = SECURITY) -> dict[str, Any]:
        """A request of the page's script."""
        browser = browser or self.browser
        shown = await browser.get(page)
        xsrf = fields_of(shown, path.removesuffix("/options"))["_xsrf"]
        answer = await browser.send(path, "POST", form={"_xsrf": xsrf}, headers={"Accept": "application/json"})
        assert answer.code == 200, answer.body
        options: dict[str, Any] = json_of(answer)["publicKey"]
        return options

    async def add_passkey(self, name: str = "My phone") -> HTTPResponse:
        if not await self.proved():
            await self.reauth(self.codes.pop() if self.codes else "")
        options = await self.options(f"{PASSKEYS}/options")
        page = await self.browser.get(SECURITY)
        return await self.browser.submit(page, PASSKEYS, credential=self.device.create(options), name=name)

    async def half(self, next: str = "/account") -> Browser:
        """Another browser, after the correct password."""
        browser = self.service.browser()
        answer = await browser.sign_in(next=next)
        assert answer.headers["Location"].startswith("/signin/second?next=")
        return browser
