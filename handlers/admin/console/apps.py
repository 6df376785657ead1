"""/admin/apps: what people sign in to."""

from __future__ import annotations

import re
from abc import abstractmethod
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from handlers.admin import operator_mails
from handlers.admin.base import valid
from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.core.amounts import typed_limit
from handlers.core.format import money_field
from handlers.core.lists.paging import part_of
from handlers.core.params import Params
from handlers.developer.log import entry_of
from handlers.developer.team.role_names import ROLE_NAMES
from outbound.sector_files import check_sector
from store.apps.owners.roles import check_role
from store.apps.registration import MOST_CALLS, Registration
from store.moments import at
from store.names import is_user_id, normalise_email
from store.operators.app_acts import AppOrder
from store.phrases import Phrase
from store.refused import Refused

APPS = "/admin/apps"
PAGE, REFUSALS = 50, 15
"""Apps, and refused requests of an app, on a page."""
_NUMBER = re.compile(r"[0-9]{1,10}")
_UP_TO = Phrase("Enter a number up to %(most)s for “%(name)s”, or nothing.")
_LIMITS = {
    "calls_per_minute": Phrase("Calls per minute"),
    "introspections_per_minute": Phrase("Introspections per minute"),
}
NOTICES = {
    "on": Phrase("The app works again."),
    "off": Phrase("The app is disabled. None of its tokens work anymore."),
    "verified": Phrase("The app is shown as verified."),
    "unverified": Phrase("The app is no longer shown as verified."),
    "rules": Phrase("Saved."),
    "team": Phrase("The team was changed."),
}


class ConsoleAppsHandler(ConsolePage):
    """The list of apps."""

    async def get(self) -> None:
        """Shows a page of apps by client id: those whose id, name, address or owner has `query`, or all."""
        params = self.asked()
        query = (params.get("query") or "").strip()[:254]
        asked = f"console apps {query}"
        after = self.store.cursors.open(asked, params.get("cursor") or "")
        found = await self.store.app_acts.page(query, after, PAGE + 1)
        onward = self.store.cursors.seal(asked, found[PAGE - 1].client_id) if len(found) > PAGE else ""
        self.show_page(
            "admin/apps.html",
            APPS,
            Phrase("Apps"),
            query=query,
            chips=chips_of(APPS, {"query": query}),
            apps=found[:PAGE],
            people=await self.addresses_of(app.owner for app in found[:PAGE]),
            made=_made,
            first=f"{APPS}?{urlencode({'query': query})}" if after else "",
            onward=f"{APPS}?{urlencode({'query': query, 'cursor': onward})}" if onward else "",
        )


class ConsoleAppHandler(ConsolePage):
    """One app."""

    async def get(self, client_id: str) -> None:
        """Shows the registration, team, numbers and refused requests."""
        app = await self.store.app_acts.find(client_id)
        refusals = await self.store.app_log.of(client_id)
        part = part_of(refusals, REFUSALS, self.page_asked("refusals"), f"{APPS}/{client_id}", "refusals", "refusals")
        self.show_page(
            "admin/app.html",
            APPS,
            app.name,
            app=app,
            made=_made(app),
            role_names=ROLE_NAMES,
            figures=await self.store.app_stats.of(client_id),
            team=await self.store.teams.people(app),
            entries=[entry_of(app, one) for one in part.rows],
            part=part,
            spend_field=money_field(app.spend_per_day) if app.spend_per_day else "",
            notice=self.notice(NOTICES),
        )


class ConsoleAppForm(ConsolePage):
    """A form of an app's page."""

    async def post(self, client_id: str) -> None:
        """Changes the app, and shows it."""
        done = await self.act(client_id, self.body())
        self.store.security.note("app_changed_by_operator", client=client_id)
        self.see_done(f"{APPS}/{client_id}?{done}")

    async def check_sector(self, uri: str, redirect_uris: tuple[str, ...]) -> None:
        """Checks that the list at a sector identifier URI has these redirect URIs. Raises ValueError."""
        await check_sector(self.site.fetcher, uri, redirect_uris)

    @abstractmethod
    async def act(self, client_id: str, params: Params) -> str:
        """Changes the app, and returns the key of the notice. Raises Refused."""


class ConsoleAppStatusHandler(ConsoleAppForm):
    """…/status."""

    async def act(self, client_id: str, params: Params) -> str:
        """Disables the app, or lets it work again."""
        status = params.require("status")
        if status not in ("active", "disabled"):
            raise Refused("invalid_request", "status is active or disabled.")
        with valid():
            changed = await self.store.app_acts.set_status(client_id, status, (params.get("reason") or "").strip())
        if status == "disabled":
            self.site.in_background(operator_mails.app_suspended(self.site, changed))
        return "on" if status == "active" else "off"


class ConsoleAppVerifyHandler(ConsoleAppForm):
    """…/verify."""

    async def act(self, client_id: str, params: Params) -> str:
        """Marks the app as verified on the consent page, or takes the mark."""
        verified = params.require("verified") == "yes"
        order = AppOrder({"verified": verified})
        await self.store.app_acts.update(client_id, order, self.site.base_url, self.check_sector)
        return "verified" if verified else "unverified"


class ConsoleAppRulesHandler(ConsoleAppForm):
    """…/rules."""

    async def act(self, client_id: str, params: Params) -> str:
        """Demands a second step of the app's people or not, and sets the limits of the app; an empty one is the
        server's."""
        fields: dict[str, Any] = {"second_step": params.get("second_step") is not None}
        for name, label in _LIMITS.items():
            text = (params.get(name) or "").strip() or "0"
            if not (_NUMBER.fullmatch(text) and int(text) <= MOST_CALLS):
                raise Refused("invalid_request", _UP_TO.filled(name=label, most=MOST_CALLS))
            fields[name] = int(text)
        fields["spend_per_day"] = typed_limit(params, "spend_per_day") or 0
        order = AppOrder(fields)
        with valid():
            await self.store.app_acts.update(client_id, order, self.site.base_url, self.check_sector)
        return "rules"


class ConsoleTeamHandler(ConsoleAppForm):
    """…/team."""

    async def act(self, client_id: str, params: Params) -> str:
        """Adds a person with an account to the team, or changes their role."""
        with valid():
            address, role = normalise_email(params.require("email")), check_role(params.require("role"))
        person = await self.store.operator.find(address, 1)
        await self.store.teams.put(client_id, person.user, role)
        return "team"


class ConsoleTeamRemoveHandler(ConsoleAppForm):
    """…/team-remove."""

    async def act(self, client_id: str, params: Params) -> str:
        """Removes a person from the team, which keeps an owner."""
        user = params.require("user")
        if not is_user_id(user):
            raise Refused("not_found")
        await self.store.teams.take(client_id, user)
        return "team"


def _made(app: Registration) -> datetime | None:
    """When the app was registered; None for one whose time was not kept."""
    return at(app.created_at) if app.created_at else None
