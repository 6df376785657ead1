"""What operators do to apps: commands and the management interface register and change them by the same rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from store.apps.api_apps import apis_of
from store.apps.apis import Apis, check_signed, resolve_scopes
from store.apps.apps import Apps
from store.apps.client_ids import new_client_id
from store.apps.client_keys import BY_KEY, check_jwks_uri
from store.apps.lookalikes import check_honest_name
from store.apps.owners.members import given_to
from store.apps.owners.owned import OwnedApps
from store.apps.profiles import NONE, PROFILES
from store.apps.redirect_uris import InvalidRedirectURI, check_redirect_uri
from store.apps.registration import Registration
from store.apps.sectors import check_sector_uri
from store.apps.self_registered.kept import SelfRegistered
from store.apps.webhooks import Webhooks
from store.crypto.jose.private import OURS
from store.directory.folding import MAX_QUERY
from store.names import check_app_name, check_groups, check_reason
from store.operations import Operator, person_named
from store.refused import Refused
from store.results import unheard
from store.webhooks.event_types import chosen_types
from store.webhooks.urls import LOGOUT_URL, check_webhook_url, is_loopback_url

NO_REASON = "Only a disabled app can have a reason."
CheckSector = Callable[[str, tuple[str, ...]], Awaitable[None]]
"""Checks that the list at a sector identifier URI has these redirect URIs. Raises ValueError."""


class AppOrder(NamedTuple):
    """What an operator wants of an app. `fields`: those of a Registration, by their attributes, but `scopes` as text
    with the plain names of scopes of APIs. `owner`: an e-mail address or user id; None leaves it. `logo`: the encoded
    image, empty for none; None leaves it. `any_name` also takes a name that looks like another one."""

    fields: dict[str, Any]
    owner: str | None = None
    logo: bytes | None = None
    any_name: bool = False


class OrderedApp(NamedTuple):
    """The app, with secrets that were made and are shown only now."""

    app: Registration
    secret: str | None = None
    signing: str | None = None


class AppActs:
    """Registers, changes and deletes apps. Methods raise StoreUnavailable."""

    def __init__(
        self,
        apps: Apps,
        apis: Apis,
        webhooks: Webhooks,
        owned: OwnedApps,
        operator: Operator,
        self_registered: SelfRegistered,
    ) -> None:
        self._apps = apps
        self._apis = apis
        self._webhooks = webhooks
        self._owned = owned
        self._operator = operator
        self._self_registered = self_registered

    async def create(
        self, order: AppOrder, base_url: str, check_sector: CheckSector, client_id: str | None = None
    ) -> OrderedApp:
        """Registers an app. `base_url`: of this server; empty on a developer's machine. Raises Refused, ValueError."""
        fields = await self._fields(order, base_url)
        fields = {"device_grant": True} | _of_profile(fields, None) | fields
        uris = (*fields["redirect_uris"], *fields.get("post_logout_redirect_uris", ()))
        _check_redirect_uris(uris, fields.get("public", False), base_url)
        if client_id is None:
            client_id = new_client_id()
        else:
            await self._apps.check_free(client_id)
        checked = Registration(client_id, **fields)  # checked before the owner: nobody can own an invalid app
        await self._check_apis(checked)
        await _check_sector(checked, base_url, check_sector)
        if order.owner:
            fields["owner"] = await self._given(client_id, order.owner)
        begun, signing = self._webhooks.begun(Registration(client_id, **fields))
        made, secret = await self._apps.create(begun, logo=order.logo or b"")
        return OrderedApp(made, secret, signing)

    async def update(self, client_id: str, order: AppOrder, base_url: str, check_sector: CheckSector) -> OrderedApp:
        """Changes the given fields of an app. Raises Refused, ValueError."""
        fields = await self._fields(order, base_url)
        if not fields and order.owner is None and order.logo is None:
            raise Refused("invalid_request", "Nothing to change is given.")
        present = await self.find(client_id)
        fields = _of_profile(fields, present) | _with_reason(fields, present) | fields
        public = fields.get("public", present.public)
        uris = fields.get("redirect_uris", present.redirect_uris)
        back = fields.get("post_logout_redirect_uris", present.post_logout_redirect_uris)
        _check_redirect_uris((*uris, *back), public, base_url)
        if public or fields.get("private_key_jwt", present.private_key_jwt):
            fields["secrets"] = ()
        if fields.get("verified") is False:
            fields["domain"] = ""
        changed = replace(present, **fields)
        changed.check_redirect_uris(present)
        await self._check_apis(changed)
        if changed.redirect_uris != present.redirect_uris:
            await _check_sector(changed, base_url, check_sector)
        owner = await self._given(client_id, order.owner) if order.owner is not None else None
        url = fields.pop("webhook_url", None)

        def given(app: Registration) -> Registration:
            return replace(given_to(app, owner) if owner else app, **fields)

        changed, signing = await self._apps.change(client_id, given, logo=order.logo), None
        await self._self_registered.keep(changed)
        if url is not None:
            changed, signing = await self._webhooks.set_url(client_id, url)
        return OrderedApp(changed, None, signing)

    async def set_status(self, client_id: str, status: str, reason: str = "") -> Registration:
        """Disables an app, which stops every token of it at once, or lets it work again (`active`). `reason`: of a
        disabled app, for its owners. Raises Refused("not_found"), ValueError."""
        check_reason(reason)
        if reason and status != "disabled":
            raise ValueError(NO_REASON)
        changed = await self._apps.update(client_id, status=status, suspended_reason=reason)
        await self._self_registered.keep(changed)
        return changed

    async def find(self, client_id: str) -> Registration:
        """The app with this client id. Raises Refused("not_found")."""
        found = await self._apps.find(client_id)
        if found is None:
            raise Refused("not_found", "No such app.")
        return found

    async def delete(
        self, client_id: str, *, purge: bool = False, progress: Callable[[int, int], None] = unheard
    ) -> None:
        """Deletes an app. Its documents live 30 more days, or are deleted at once with `purge`. Raises
        Refused("not_found")."""
        await self.begin_deletion(client_id, purge=purge)
        await self._apps.finish_deletion(client_id, progress, purge=purge)

    async def begin_deletion(self, client_id: str, *, purge: bool = False) -> None:
        """The first step of a deletion, after which the app is gone. Raises Refused("not_found")."""
        registration, _ = await self._apps.fresh(client_id)
        await self._apps.begin_deletion(client_id, purge=purge)
        if registration and registration.owner:
            with suppress(Refused):  # the owner's account may be gone
                await self._operator.note(registration.owner, "own_app_deleted_by_operator", client_id)

    async def page(self, query: str, after: str, most: int) -> list[Registration]:
        """At most `most` apps in the order of client ids, beyond the id `after`, whose client id, name, address or
        owner has this text."""
        wanted, found = query[:MAX_QUERY].casefold().strip(), list[Registration]()
        async for app in self._apps.beyond(after):
            told = (app.client_id, app.wire_id, app.name, app.homepage, app.owner, *app.redirect_uris)
            if not wanted or any(wanted in text.casefold() for text in told):
                found.append(app)
            if len(found) == most:
                break
        return found

    async def _fields(self, order: AppOrder, base_url: str) -> dict[str, Any]:
        fields = dict(order.fields)
        if "name" in fields:
            fields["name"] = check_app_name(fields["name"])
            if not order.any_name:
                check_honest_name(fields["name"])
        for name in ("redirect_uris", "post_logout_redirect_uris"):
            if name in fields:
                fields[name] = tuple(filter(None, fields[name]))
        if "allowed_groups" in fields:
            fields["allowed_groups"] = check_groups(filter(None, fields["allowed_groups"]))
        if "webhook_events" in fields:
            fields["webhook_events"] = chosen_types(filter(None, fields["webhook_events"]))
        # Without a base URL, assume the server of a developer's machine.
        loopback = not base_url or is_loopback_url(base_url)
        if fields.get("webhook_url"):
            check_webhook_url(fields["webhook_url"], loopback=loopback)
        if fields.get("backchannel_logout_uri"):
            check_webhook_url(fields["backchannel_logout_uri"], loopback=loopback, what=LOGOUT_URL)
        if fields.get("jwks_uri"):
            check_jwks_uri(fields["jwks_uri"], loopback=loopback)
        if "scopes" in fields:
            own, theirs = resolve_scopes(fields["scopes"], await self._apis.list())
            fields |= {"scopes": own, "api_scopes": theirs, "owner_scopes": (), "member_scopes": ()}
        return fields

    async def _check_apis(self, app: Registration) -> None:
        """Checks that the app's profile allows how its APIs want tokens signed. Raises ValueError."""
        apis = [await self._apis.find(one) for one in sorted(apis_of(app))]
        check_signed(app, [api for api in apis if api])

    async def _given(self, client_id: str, owner: str) -> str:
        """The user id of the new owner, whose list then has the app. Raises Refused("not_found"), ValueError."""
        person = await self._operator.find(person_named(owner), 1)
        await self._owned.give(person.user, client_id)
        return person.user


def _of_profile(fields: dict[str, Any], present: Registration | None) -> dict[str, Any]:
    """What a profile brings along. It changes no present app's way to authenticate: that would end its secrets."""
    rules = PROFILES[fields.get("profile", NONE)]
    brought = rules.switched_on(present.id_token_alg if present else OURS[0])
    if present is None and rules.settings.get("auth_method") == BY_KEY:
        brought["private_key_jwt"] = True
    return brought


def _with_reason(fields: dict[str, Any], present: Registration) -> dict[str, Any]:
    """The reason for which an app is disabled: another status ends it. Raises ValueError for one without a disabled
    app."""
    check_reason(fields.get("suspended_reason", ""))
    if fields.get("status", present.status) == "disabled":
        return {}
    if fields.get("suspended_reason"):
        raise ValueError(NO_REASON)
    return {"suspended_reason": ""} if "status" in fields else {}


def _check_redirect_uris(uris: tuple[str, ...], public: bool, base_url: str) -> None:
    """Checks each URI, and names the invalid one. Raises ValueError."""
    for uri in uris:
        try:
            check_redirect_uri(uri, public, base_url)
        except InvalidRedirectURI as error:
            raise ValueError(f"redirect URI {uri[:200]!a}: {error}") from None


async def _check_sector(app: Registration, base_url: str, check: CheckSector) -> None:
    """Checks that the sector identifier URI, if there is one, lists the app's redirect URIs. Raises ValueError."""
    if app.sector_uri:
        check_sector_uri(app.sector_uri, loopback=not base_url or is_loopback_url(base_url))
        await check(app.sector_uri, app.redirect_uris)
