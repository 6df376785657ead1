"""/api/admin/v1/apps: apps, their secrets, teams and logs."""

from __future__ import annotations

from typing import Any

import orjson

from handlers.admin import operator_mails
from handlers.admin.base import AdminHandler, Record, valid
from handlers.core.params import Params
from outbound.sector_files import check_sector
from store.apps.client_keys import AUTH_METHODS, BY_KEY, BY_NOTHING, registered_keys
from store.apps.owners.roles import check_role
from store.apps.registration_rows import RECORD
from store.names import check_client_id
from store.operators.app_acts import AppOrder
from store.operators.records import app_record, mate_record, refusal_record
from store.refused import Refused

TEXTS = ("name", "homepage", "webhookUrl", "idTokenAlg", "backchannelLogoutUri", "subjectType", "profile", "jwksUri")
LISTS = ("redirect_uris", "webhookEvents", "postLogoutRedirectUris", "allowedGroups")
FLAGS = (
    *(
        "public",
        "pkceRequired",
        "hostedStorage",
        "issInResponse",
        "verified",
        "requirePushed",
        "dpopRequired",
        "deviceGrant",
        "firstParty",
        "secondStep",
    ),
)
NUMBERS = ("refreshRetrySeconds", "refreshLifetimeDays", "callsPerMinute", "introspectionsPerMinute", "spendPerDay")
OTHERS = ("scopes", "authMethod", "jwks", "owner", "sectorIdentifierUri", "anyName")
CHANGEABLE = (*TEXTS, *LISTS, *FLAGS, *NUMBERS, *OTHERS)
FIXED = ("subjectType", "sectorIdentifierUri")
"""Members that an app has from its registration on."""


class AdminAppHandler(AdminHandler):
    """A route about one app."""

    def order(self, params: Params) -> AppOrder:
        """What the body says of an app. Raises Refused("invalid_request"), ValueError."""
        sent = {name for name in params.names() if params.value(name) is not None}
        fields: dict[str, Any] = {RECORD[name]: params.get(name) or "" for name in TEXTS if name in sent}
        fields |= {RECORD[name]: params.texts(name) or [] for name in LISTS if name in sent}
        fields |= {RECORD[name]: self.flag(params, name) for name in FLAGS if name in sent}
        fields |= {RECORD[name]: params.whole(name) for name in NUMBERS if name in sent}
        if "scopes" in sent:
            scopes = params.value("scopes")
            fields["scopes"] = scopes if isinstance(scopes, str) else " ".join(params.texts("scopes") or [])
        if "sectorIdentifierUri" in sent:
            fields["sector_uri"] = params.get("sectorIdentifierUri") or ""
        if "authMethod" in sent:
            method = params.require("authMethod")
            if method not in AUTH_METHODS:
                raise Refused("invalid_request", f"authMethod is {', '.join(AUTH_METHODS)}.")
            fields |= {"public": method == BY_NOTHING, "private_key_jwt": method == BY_KEY}
        if "jwks" in sent:
            fields |= {"jwks": registered_keys(orjson.dumps(params.structured("jwks"))), "jwks_uri": ""}
        return AppOrder(fields, params.get("owner"), None, self.flag(params, "anyName"))

    async def check_sector(self, uri: str, redirect_uris: tuple[str, ...]) -> None:
        """Checks that the list at a sector identifier URI has these redirect URIs. Raises ValueError."""
        await check_sector(self.site.fetcher, uri, redirect_uris)

    def note(self, event: str, client: str) -> None:
        """Notes an act about an app."""
        self.store.security.note(event, client=client)


class AdminAppsHandler(AdminAppHandler):
    """The list of apps."""

    async def get(self) -> None:
        """A page of apps by client id: those whose id, name, address or owner has `query`, or all."""
        params = self.query("query", "limit", "cursor")
        limit, cursor = self.page(params)
        query = params.get("query") or ""
        if len(query) > 254:
            raise Refused("invalid_request", "query is at most 254 characters.")
        asked = f"apps {query}"
        after = self.store.cursors.open(asked, cursor)
        found = await self.store.app_acts.page(query, after, limit + 1)
        last = self.store.cursors.seal(asked, found[limit - 1].client_id) if len(found) > limit else ""
        self.write_page([app_record(app) for app in found[:limit]], last)

    async def post(self) -> None:
        """Registers an app; the secrets in the answer are shown this once."""
        params = self.fields("client_id", *CHANGEABLE)
        for name in ("name", "redirect_uris", "scopes"):
            if params.value(name) is None:
                raise Refused("invalid_request", f"{name} is missing.")
        await self.answer_once(lambda: self._create(params), 201, hidden=("client_secret", "webhook_secret"))

    async def _create(self, params: Params) -> Record:
        client_id = params.get("client_id")
        client_id = check_client_id(client_id) if client_id else None
        acts = self.store.app_acts
        app, secret, signing = await acts.create(self.order(params), self.site.base_url, self.check_sector, client_id)
        self.note("app_created_by_operator", app.client_id)
        return app_record(app) | ({"client_secret": secret} if secret else {}) | _signing(signing)


class AdminOneAppHandler(AdminAppHandler):
    """One app."""

    async def get(self, client_id: str) -> None:
        """The app, with the number of people who connected it."""
        self.query()
        app = await self.store.app_acts.find(client_id)
        figures = await self.store.app_stats.of(client_id)
        self.write_json({**app_record(app), "people": figures.people})

    async def patch(self, client_id: str) -> None:
        """Changes the members that are sent; lists are replaced."""
        params = self.fields(*(name for name in CHANGEABLE if name not in FIXED))
        with valid():
            changed, _, signing = await self.store.app_acts.update(
                client_id, self.order(params), self.site.base_url, self.check_sector
            )
        self.note("app_changed_by_operator", client_id)
        self.write_json(app_record(changed) | _signing(signing))

    async def delete(self, client_id: str) -> None:
        """Deletes the app; people keep its documents for 30 days, or not with `purge`. `dry_run` only counts people."""
        params = self.query("dry_run", "purge")
        dry_run, purge = self.flag(params, "dry_run"), self.flag(params, "purge")
        figures = await self.store.app_stats.of(client_id)
        if dry_run:
            await self.store.app_acts.find(client_id)
        else:
            await self.store.app_acts.begin_deletion(client_id, purge=purge)
            self.note("app_deleted_by_operator", client_id)
            # The app is gone. The rest takes seconds, and every server continues it after an interruption.
            self.site.in_background(self.store.apps.finish_deletion(client_id, purge=purge))
        record = {"client_id": client_id, "people": figures.people, "purged": purge and not dry_run}
        self.write_json({**record, "deleted": not dry_run, "dryRun": dry_run})


class AdminAppStatusHandler(AdminAppHandler):
    """POST …/suspend and …/resume."""

    async def post(self, client_id: str, act: str) -> None:
        """Stops every token of the app at once, or lets it work again. With a `reason` for its owners, who get a
        mail."""
        params = self.fields("reason") if act == "suspend" else self.fields()
        status = "disabled" if act == "suspend" else "active"
        await self.answer_once(lambda: self._set(client_id, status, params.get("reason") or ""))

    async def _set(self, client_id: str, status: str, reason: str) -> Record:
        changed = await self.store.app_acts.set_status(client_id, status, reason)
        if status == "disabled":
            self.site.in_background(operator_mails.app_suspended(self.site, changed))
        self.note("app_changed_by_operator", client_id)
        return app_record(changed)


class AdminAppSecretHandler(AdminAppHandler):
    """POST …/rotate-secret."""

    async def post(self, client_id: str) -> None:
        """Makes a new client secret; the one before stays valid until the next rotation, unless `dropOld`."""
        drop_old = self.flag(self.fields("dropOld"), "dropOld")
        await self.answer_once(lambda: self._rotate(client_id, drop_old), hidden=("client_secret",))

    async def _rotate(self, client_id: str, drop_old: bool) -> Record:
        _, secret = await self.store.apps.rotate_secret(client_id, drop_old=drop_old)
        self.note("app_secret_made_by_operator", client_id)
        return {"client_id": client_id, "client_secret": secret}


class AdminWebhookSecretHandler(AdminAppHandler):
    """POST …/rotate-webhook-secret."""

    async def post(self, client_id: str) -> None:
        """Makes a new secret that signs webhooks; the one before it signs too, for a day."""
        self.fields()
        await self.answer_once(lambda: self._rotate(client_id), hidden=("webhook_secret",))

    async def _rotate(self, client_id: str) -> Record:
        _, secret = await self.store.webhooks.rotate(client_id)
        self.note("webhook_secret_made_by_operator", client_id)
        return {"client_id": client_id, "webhook_secret": secret}


class AdminTeamHandler(AdminAppHandler):
    """…/team: the people who manage the app in the browser."""

    async def get(self, client_id: str) -> None:
        """Everybody: at most 20 people, so this list has one page."""
        self.query()
        await self.write_team(client_id)

    async def write_team(self, client_id: str) -> None:
        """Writes the present team."""
        self.store.apps.forget(client_id)
        app = await self.store.app_acts.find(client_id)
        self.write_page([mate_record(one) for one in await self.store.teams.people(app)], "")


class AdminTeammateHandler(AdminTeamHandler):
    """One person of the team."""

    async def put(self, client_id: str, user: str) -> None:
        """Adds the person, or changes their role: owner, developer or viewer."""
        role = check_role(self.fields("role").require("role"))
        await self.store.teams.put(client_id, user, role)
        self.note("app_changed_by_operator", client_id)
        await self.write_team(client_id)

    async def delete(self, client_id: str, user: str) -> None:
        """Removes the person from the team, which keeps an owner."""
        self.query()
        await self.store.teams.take(client_id, user)
        self.note("app_changed_by_operator", client_id)
        await self.write_team(client_id)


class AdminAppLogHandler(AdminAppHandler):
    """…/log: why the app was refused."""

    async def get(self, client_id: str) -> None:
        """The refusals, the latest first: at most 200 causes, so this list has one page."""
        self.query()
        await self.store.app_acts.find(client_id)
        self.write_page([refusal_record(one) for one in await self.store.app_log.of(client_id)], "")


def _signing(secret: str | None) -> Record:
    return {"webhook_secret": secret} if secret else {}
