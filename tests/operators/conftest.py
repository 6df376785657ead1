"""The operations port of a service, and programs of the operator with keys of each role."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.admin.interface_document import admin_document
from handlers.admin.routes import ROUTES
from handlers.core.site import Site
from handlers.ops.credits import make_ops_application
from handlers.ops.operations import Operations
from handlers.ops.security_context import tell_security
from store.accounts.audit.logged_event import AuditEvent
from store.accounts.signin.sessions import Session
from store.operators.roles import OperatorRole
from store.wiring import Store
from tests.support.http.conformance import Interface
from tests.support.http.driver import EMAIL, PASSWORD, Service, json_of, send
from tests.support.store.world import VISITOR

API = "/api/admin/v1"
SETTING = "operator-key_0123456789-abcdefgh"
"""A key of the settings."""


@lru_cache(maxsize=1)
def described() -> Interface:
    """The interface, as its OpenAPI document describes it."""
    return Interface(admin_document(ROUTES, "/"))


@pytest.fixture
def app(site: Site) -> Operations:
    """The application of the operations port; `service` serves it."""
    made = make_ops_application(site, (SETTING,))
    tell_security(made)
    return made


class Desk:
    """Programs of the operator. `events` are those of the security log."""

    def __init__(self, service: Service) -> None:
        self.url, self.store, self.ada = service.base_url, service.store, service.ada
        self.service = service
        self.keys: dict[OperatorRole, str] = {}
        self.events: list[AuditEvent] = []
        self.store.security.tell = self.events.append

    async def key(self, role: OperatorRole) -> str:
        """A key of this role."""
        if role not in self.keys:
            _, self.keys[role] = await self.store.operator_keys.create(role, name=f"The {role}")
        return self.keys[role]

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        role: OperatorRole = "admin",
        key: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> HTTPResponse:
        """One request, with a JSON body unless it is None or text."""
        sent = {"Authorization": f"Bearer {key or await self.key(role)}", **(headers or {})}
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        if text is not None:
            sent.setdefault("Content-Type", "application/json")
        response = await send(f"{self.url}{API}{path}", method, body=text, headers=sent, described=False)
        names = {name.lower(): value for name, value in response.headers.get_all()}
        place, _, query = f"{API}{path}".partition("?")
        described().check(method, place, response.code, names, response.body)
        if response.code < 400:
            described().check_query(method, place, query)
        return response

    async def get(self, path: str, role: OperatorRole = "admin") -> Any:
        """The JSON of a successful GET."""
        response = await self.ask("GET", path, role=role)
        assert response.code == 200, response.body
        return json_of(response)

    async def do(self, method: str, path: str, body: object = None, role: OperatorRole = "admin") -> Any:
        """The JSON of a successful write."""
        response = await self.ask(method, path, body, role=role)
        assert response.code in (200, 201), response.body
        return json_of(response)

    async def person(self, email: str, name: str = "Somebody") -> str:
        """The user id of a new person."""
        found = await self.do("POST", "/people", {"email": email, "name": name, "password": "correct horse battery"})
        return str(found["id"])

    async def sign_in(self, email: str = EMAIL, password: str = PASSWORD) -> Session:
        """A browser session of a person: this port has no pages."""
        credentials = await self.store.people.credentials(email)
        assert credentials
        assert await self.store.people.verify(email, password)
        session = self.store.sessions.open((await self.store.sessions.start(credentials, VISITOR)).cookie)
        assert session
        return session


@pytest.fixture
def desk(service: Service) -> Desk:
    """Ada's server, as its operators see it."""
    return Desk(service)


def refused(response: HTTPResponse, status: int, code: str) -> str:
    """The description of an error."""
    body = json_of(response)
    assert (response.code, body["error"]) == (status, code), body
    return str(body["error_description"])


async def role_of(store: Store, user: str) -> str | None:
    """The role of a person."""
    return await store.role_holders.of(user)
