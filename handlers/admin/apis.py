"""/api/admin/v1/apis: the APIs that this server protects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handlers.admin.base import AdminHandler, Record, valid
from handlers.core.params import Params
from store.apps.api_record import ApiRegistration, ApiScope, check_foreign
from store.apps.lookalikes import check_honest_name
from store.names import check_app_name
from store.operations import person_named
from store.operators.records import api_record
from store.refused import Refused

CHANGEABLE = ("name", "scopes", "tokenFormat", "signingAlg", "tokenLifetime", "owner")
_MEMBERS = "name, title, detail, care and secondStep"
STATUSES = {"suspend": "disabled", "resume": "active"}


class AdminApiHandler(AdminHandler):
    """A route about APIs."""

    async def found(self, client_id: str) -> ApiRegistration:
        """The API. Raises Refused("not_found")."""
        api = await self.store.apis.find(client_id)
        if api is None:
            raise Refused("not_found", "No such API.")
        return api

    async def changes(self, params: Params) -> dict[str, Any]:
        """The members of the body, by the attributes of a registration. Raises Refused, ValueError."""
        fields: dict[str, Any] = {}
        if name := params.get("name"):
            fields["name"] = check_app_name(name)
            check_honest_name(fields["name"])
        if params.value("scopes") is not None:
            fields["scopes"] = _scopes(params.structured("scopes"))
        for member, attribute in (("tokenFormat", "token_format"), ("signingAlg", "signing_alg")):
            if text := params.get(member):
                fields[attribute] = text
        if params.value("tokenLifetime") is not None:
            fields["token_lifetime"] = params.whole("tokenLifetime")
        if params.value("owner") is not None:
            owner = params.get("owner")
            fields["owner"] = (await self.store.operator.find(person_named(owner), 1)).user if owner else ""
        return fields

    async def tell_owner(self, api: ApiRegistration, before: str = "") -> None:
        """Notes with a new owner that the API was given to them."""
        if api.owner not in ("", before):
            await self.store.operator.note(api.owner, "api_given_by_operator", api.client_id)

    def note(self, event: str, api: ApiRegistration) -> None:
        """Notes an act about an API."""
        self.store.security.note(event, client=api.client_id)


class AdminApisHandler(AdminApiHandler):
    """The list of APIs."""

    async def get(self) -> None:
        """A page of APIs by client id."""
        params = self.query("limit", "cursor")
        limit, cursor = self.page(params)
        after = self.store.cursors.open("apis", cursor)
        every = sorted(await self.store.apis.list(), key=lambda one: one.client_id)
        found = [api for api in every if api.client_id > after]
        last = self.store.cursors.seal("apis", found[limit - 1].client_id) if len(found) > limit else ""
        self.write_page([api_record(api) for api in found[:limit]], last)

    async def post(self) -> None:
        """Registers an API; its secret for introspection is shown this once."""
        params = self.fields("identifier", *CHANGEABLE)
        for name in ("identifier", "name", "scopes"):
            if params.value(name) is None:
                raise Refused("invalid_request", f"{name} is missing.")
        await self.answer_once(lambda: self._create(params), 201, hidden=("client_secret",))

    async def _create(self, params: Params) -> Record:
        identifier = params.require("identifier")
        check_foreign(identifier, self.site.base_url)
        made, secret = await self.store.apis.create(ApiRegistration(identifier, **await self.changes(params)))
        await self.tell_owner(made)
        self.note("api_created_by_operator", made)
        return {**api_record(made), "client_secret": secret}


class AdminOneApiHandler(AdminApiHandler):
    """One API."""

    async def get(self, client_id: str) -> None:
        """The API."""
        self.query()
        self.write_json(api_record(await self.found(client_id)))

    async def patch(self, client_id: str) -> None:
        """Changes the members that are sent; `scopes` replaces all."""
        params = self.fields(*CHANGEABLE)
        present = await self.found(client_id)
        with valid():
            fields = await self.changes(params)
            if not fields:
                raise Refused("invalid_request", f"Send one of {', '.join(CHANGEABLE)}.")
            changed = await self.store.apis.update(client_id, **fields)
        await self.tell_owner(changed, present.owner)
        self.note("api_changed_by_operator", changed)
        self.write_json(api_record(changed))

    async def delete(self, client_id: str) -> None:
        """Deletes the API, and every token for it; `dry_run` only looks."""
        dry_run = self.flag(self.query("dry_run"), "dry_run")
        api = await self.found(client_id)
        if not dry_run:
            await self.store.apis.delete(client_id)
            self.note("api_deleted_by_operator", api)
        self.write_json(
            {"client_id": client_id, "identifier": api.identifier, "deleted": not dry_run, "dryRun": dry_run}
        )


class AdminApiStatusHandler(AdminApiHandler):
    """POST …/suspend and …/resume."""

    async def post(self, client_id: str, act: str) -> None:
        """Refuses the API's calls and new tokens for it, or lets it work again."""
        self.fields()
        await self.answer_once(lambda: self._set(client_id, STATUSES[act]))

    async def _set(self, client_id: str, status: str) -> Record:
        await self.found(client_id)
        changed = await self.store.apis.update(client_id, status=status)
        self.note("api_changed_by_operator", changed)
        return api_record(changed)


class AdminApiSecretHandler(AdminApiHandler):
    """POST …/rotate-secret."""

    async def post(self, client_id: str) -> None:
        """Makes a new secret; the one before stays valid until the next rotation, unless `dropOld`."""
        drop_old = self.flag(self.fields("dropOld"), "dropOld")
        await self.answer_once(lambda: self._rotate(client_id, drop_old), hidden=("client_secret",))

    async def _rotate(self, client_id: str, drop_old: bool) -> Record:
        await self.found(client_id)
        changed, secret = await self.store.apis.rotate_secret(client_id, drop_old=drop_old)
        self.note("api_secret_made_by_operator", changed)
        return {"client_id": client_id, "client_secret": secret}


def _scopes(value: Any) -> tuple[ApiScope, ...]:
    """The scopes in a body: objects with `name`, and if you like `title`, `detail`, `care` and `secondStep`. Raises
    ValueError."""
    if not isinstance(value, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in value
    ):
        raise ValueError(f"scopes is a list of objects with {_MEMBERS}.")
    made = []
    for one in value:
        flags = one.get("care", False), one.get("secondStep", False)
        known = {"name", "title", "detail", "care", "secondStep"}
        if not {*one} <= known or not all(isinstance(flag, bool) for flag in flags):
            raise ValueError(f"A scope has {_MEMBERS}.")
        texts = {name: one.get(name) or "" for name in ("title", "detail")}
        if not all(isinstance(text, str) for text in texts.values()):
            raise ValueError("The title and the detail of a scope are texts.")
        scope = ApiScope(one["name"], texts["title"].strip() or one["name"])
        made.append(replace(scope, detail=texts["detail"].strip(), care=flags[0], second_step=flags[1]))
    return tuple(made)
