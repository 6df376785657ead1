"""Operators in their browsers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tornado.httpclient import HTTPResponse

from store.accounts.audit.logged_event import AuditEvent
from store.operators.roles import OperatorRole
from tests.support.http.driver import PASSWORD, Browser, Service, fields_of

CONFIRM = "confirm_password"


class Console:
    """A service with operators, and the events of its security log."""

    def __init__(self, service: Service) -> None:
        self.service, self.store = service, service.store
        self.events: list[AuditEvent] = []
        self.store.security.tell = self.events.append

    async def person(self, email: str, name: str = "Somebody") -> str:
        """The user id of a new person."""
        return await self.service.add_person(email, name)

    async def browser(self, email: str, method: str = "otp") -> Browser:
        """A browser in which a person signed in with this method."""
        browser = self.service.browser()
        assert (await browser.sign_in(email)).code == 303
        session = self.store.sessions.open(browser.cookies["latchkey_session"])
        assert session
        await self.store.client.hset(session.keys()["session"], "method", method)
        return browser

    async def operator(self, role: OperatorRole, email: str = "") -> Operator:
        """Somebody with a role, signed in."""
        address = email or f"{role}@example.com"
        user = await self.person(address, f"The {role}")
        await self.store.role_holders.give(user, role)
        return Operator(self, role, user, address, await self.browser(address))


@dataclass
class Operator:
    """A person with a role, in a browser."""

    console: Console
    role: OperatorRole
    user: str
    email: str
    browser: Browser

    async def open(self, path: str) -> str:
        """The text of a page."""
        page = await self.browser.get(path)
        assert page.code == 200, (path, page.code, page.body)
        return page.body.decode()

    async def send(self, path: str, **fields: str) -> HTTPResponse:
        """A form, sent from a browser that has the page's token."""
        page = await self.browser.get("/account")
        xsrf = fields_of(page, "/signout")["_xsrf"]
        return await self.browser.send(path, "POST", form={"_xsrf": xsrf, **fields})

    async def do(self, path: str, **fields: str) -> HTTPResponse:
        """A form that must work."""
        answer = await self.send(path, **fields)
        assert answer.code == 303, (path, answer.code, answer.body)
        return answer

    async def confirm(self, path: str, **fields: str) -> HTTPResponse:
        """The form, with the password on the page that asks for it."""
        return await self.send(path, **fields, **{CONFIRM: PASSWORD})


@pytest.fixture
def console(service: Service) -> Console:
    """Ada's server, with its console."""
    return Console(service)
