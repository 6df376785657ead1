"""/admin/apis: the APIs that accept tokens of this server."""

from __future__ import annotations

from urllib.parse import urlencode

from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.core.lists.paging import part_of
from store.apps.api_record import ApiRegistration
from store.moments import at
from store.phrases import Phrase
from store.refused import Refused

APIS = "/admin/apis"
PAGE = 20
"""APIs, and apps of an API, on a page."""
NOTICES = {
    "on": Phrase("The API works again."),
    "off": Phrase("The API is disabled. We refuse its requests, and apps get no new tokens for it."),
}


class ConsoleApisHandler(ConsolePage):
    """The list of APIs."""

    async def get(self) -> None:
        """Shows the APIs whose id, identifier, name or owner has `query`, or all."""
        query = (self.asked().get("query") or "").strip()[:254]
        found = [
            api
            for api in await self.store.apis.every()
            if query.casefold() in " ".join((api.client_id, api.identifier, api.name, api.owner)).casefold()
        ]
        part = part_of(found, PAGE, self.page_asked(), f"{APIS}?{urlencode({'query': query})}" if query else APIS)
        self.show_page(
            "admin/apis.html",
            APIS,
            Phrase("APIs"),
            query=query,
            apis=part,
            people=await self.addresses_of(api.owner for api in part.rows),
            chips=chips_of(APIS, {"query": query}),
        )


class ConsoleApiBase(ConsolePage):
    """Shared by the page of an API and its forms."""

    async def found(self, client_id: str) -> ApiRegistration:
        """The API. Raises Refused("not_found")."""
        api = await self.store.apis.fresh(client_id)
        if api is None:
            raise Refused("not_found")
        return api

    async def show(self, api: ApiRegistration, secret: str = "") -> None:
        """The page; a new `secret` is shown this once."""
        using = await self.store.owned_apis.apps_at(api)
        owner = await self.store.people_pages.one(api.owner) if api.owner else None
        self.show_page(
            "admin/api.html",
            APIS,
            api.name,
            scripts=bool(secret),
            api=api,
            made=at(api.created_at) if api.created_at else None,
            owner=owner,
            using=using,
            part=part_of(using.apps, PAGE, self.page_asked("apps"), f"{APIS}/{api.client_id}", "apps", "apps"),
            secret=secret,
            notice=self.notice(NOTICES),
        )


class ConsoleApiHandler(ConsoleApiBase):
    """One API."""

    async def get(self, client_id: str) -> None:
        """Shows identifier, scopes, tokens, owner and the apps with its scopes."""
        await self.show(await self.found(client_id))


class ConsoleApiStatusHandler(ConsoleApiBase):
    """…/status."""

    async def post(self, client_id: str) -> None:
        """Disables the API, or lets it work again."""
        status = self.body().require("status")
        if status not in ("active", "disabled"):
            raise Refused("invalid_request", "status is active or disabled.")
        await self.found(client_id)
        await self.store.apis.update(client_id, status=status)
        self.store.security.note("api_changed_by_operator", client=client_id)
        self.see_done(f"{APIS}/{client_id}?{'on' if status == 'active' else 'off'}")


class ConsoleApiSecretHandler(ConsoleApiBase):
    """…/secret."""

    async def post(self, client_id: str) -> None:
        """Makes a new secret and ends every other, and shows it once."""
        await self.found(client_id)
        changed, secret = await self.store.apis.rotate_secret(client_id, drop_old=True)
        self.store.security.note("api_secret_made_by_operator", client=client_id)
        await self.show(changed, secret)
