"""Two APIs, and apps that call them for people and for themselves."""

from __future__ import annotations

from typing import Any

from tornado.httpclient import HTTPResponse

from store.apps.api_record import ApiRegistration, ApiScope
from tests.support.http.driver import App, Browser, Service, json_of, send

READ = ApiScope("read", "See your orders", "What you ordered, and when.")
WRITE = ApiScope("write", "Place orders", care=True)
ADMIN = ApiScope("admin", "Manage everything")
ORDERS = ApiRegistration("https://orders.example", "Orders", (READ, WRITE), token_lifetime=300)
BILLS = ApiRegistration("https://bills.example/v1", "Bills", (ApiScope("read", "See your bills"), ADMIN))
OWN = ("openid", "profile", "credits:read", "apps:read", "data:read")


def at(api: ApiRegistration, *names: str) -> tuple[str, ...]:
    """Scopes of an API as an app registers them."""
    return tuple(f"{api.client_id}/{name}" for name in names)


BOTH = (*at(ORDERS, "read", "write"), *at(BILLS, "read", "admin"))


async def about(service: Service, token: str, client_id: str, secret: str | None) -> Any:
    """What a caller of introspection learns."""
    form = {"token": token, "client_id": client_id, "client_secret": secret or ""}
    response = await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form)
    assert response.code == 200, response.body
    return json_of(response)


async def called(service: Service, token: str, path: str = "/api/oauth/userinfo") -> HTTPResponse:
    """A call of Latchkey's own API."""
    return await send(service.base_url + path, headers={"Authorization": f"Bearer {token}"})


class Shop:
    """The service with both APIs and an app that has registered for all of their scopes."""

    service: Service
    app: App
    secrets: dict[str, str]

    @classmethod
    async def open(cls, service: Service, client_id: str = "shop", **fields: Any) -> Shop:
        """Registers what is not there yet."""
        self = cls()
        self.service, self.secrets = service, {}
        for api in (ORDERS, BILLS):
            if await service.store.apis.fresh(api.client_id) is None:
                await service.store.apis.create(api)
            _, self.secrets[api.client_id] = await service.store.apis.rotate_secret(api.client_id)
        self.app = await service.add_app(client_id, **{"scopes": OWN, "api_scopes": BOTH, **fields})
        return self

    async def tokens(self, scope: str, browser: Browser | None = None, **changes: Any) -> dict[str, Any]:
        """Tokens after the whole flow from the authorization request."""
        return await self.service.tokens(self.app, browser, scope=scope, **changes)

    async def refresh(self, tokens: dict[str, Any], **changes: str | None) -> dict[str, Any]:
        """The next tokens of a family."""
        response = await self.app.refresh(tokens["refresh_token"], **changes)
        assert response.code == 200, response.body
        found: dict[str, Any] = json_of(response)
        return found

    async def at(self, api: ApiRegistration, token: str) -> Any:
        """What an API learns about a token."""
        return await about(self.service, token, api.client_id, self.secrets[api.client_id])

    async def to_app(self, token: str) -> Any:
        """What the app learns about its token."""
        return await about(self.service, token, self.app.client_id, self.app.secret)


def error_of(response: HTTPResponse) -> tuple[int, str]:
    """The status and the error code of a refused request."""
    return response.code, json_of(response)["error"]
