"""A directory that provisions people."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from store.operators.roles import OperatorRole
from tests.operators.conftest import Desk
from tests.support.http.driver import json_of, send

SCIM = "application/scim+json"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"


class Provisioner:
    """A directory with a key of the role `scim`."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.store = desk, desk.store

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        role: OperatorRole = "scim",
        headers: dict[str, str] | None = None,
    ) -> HTTPResponse:
        """One request."""
        sent = {"Authorization": f"Bearer {await self.desk.key(role)}", "Content-Type": SCIM, **(headers or {})}
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        response = await send(f"{self.desk.url}/scim/v2{path}", method, body=text, headers=sent, described=False)
        if response.body:
            assert response.headers["Content-Type"] == SCIM
        return response

    async def get(self, path: str) -> Any:
        """The JSON of a successful GET."""
        response = await self.ask("GET", path)
        assert response.code == 200, response.body
        return json_of(response)

    async def make(self, email: str = "bea@example.com", **more: Any) -> Any:
        """A new person."""
        response = await self.ask(
            "POST", "/Users", {"schemas": [USER], "userName": email, "displayName": "Bea", **more}
        )
        assert response.code == 201, response.body
        return json_of(response)

    async def patch(self, user: str, *operations: dict[str, Any]) -> HTTPResponse:
        """Operations on a person."""
        return await self.ask("PATCH", f"/Users/{user}", {"schemas": [PATCH], "Operations": list(operations)})

    async def refused(self, response: HTTPResponse, status: int, kind: str | None = None) -> str:
        """The detail of an error."""
        body = json_of(response)
        assert (response.code, body["status"], body.get("scimType")) == (status, str(status), kind), body
        assert body["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        return str(body["detail"])

    @property
    def noted(self) -> list[tuple[str, str]]:
        """The events of the security log, each with who acted."""
        return [(event.event, event.by) for event in self.desk.events if event.by]


@pytest.fixture
def scim(desk: Desk) -> Provisioner:
    """The directory of Ada's organization."""
    return Provisioner(desk)
