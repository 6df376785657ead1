"""An app that stores documents over HTTP, and the form of a refusal."""

from __future__ import annotations

from tornado.httpclient import HTTPResponse

from store.documents.documents import Quotas
from tests.support.http.driver import Service, json_of, send

DATA = "/api/v1/data/"
LARGEST = Quotas().document_bytes


class Client:
    """An app's calls with one access token."""

    def __init__(self, service: Service, token: str) -> None:
        self.service, self.token = service, token

    @classmethod
    async def make(cls, service: Service, *scopes: str) -> Client:
        """An app with the scopes data:read and data:write, or those given."""
        app = await service.store.apps.find(service.web.client_id)
        assert app is not None
        minted = await service.store.tokens.mint(service.ada, app, scopes or ("data:read", "data:write"))
        return cls(service, minted.access_token)

    async def send(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> HTTPResponse:
        """One request below /api/v1/data/; underscores in header names become hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await send(
            self.service.base_url + DATA + path,
            method,
            body=body,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **named},
        )

    async def put(self, path: str, body: str | bytes = "1", **headers: str) -> HTTPResponse:
        """Writes a document."""
        return await self.send("PUT", path, body, **headers)

    async def get(self, path: str, **headers: str) -> HTTPResponse:
        """Reads the document or collection at a path."""
        return await self.send("GET", path, **headers)

    async def used(self) -> tuple[int, int]:
        """Documents and bytes from the usage record."""
        usage = json_of(await self.get("_meta/usage"))
        return usage["documents"]["used"], usage["bytes"]["used"]


def assert_refused(response: HTTPResponse, status: int, code: str) -> None:
    """The catalogue's error in the API's form."""
    assert (response.code, json_of(response)["error"]) == (status, code), response.body
    assert json_of(response)["error_description"]
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["X-Request-Id"]
