"""/admin/health and /admin/settings: the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from handlers.admin.console.base import ConsolePage
from handlers.admin.console.chips import chips_of
from handlers.admin.console.overview import QUEUES, snapshot_of
from handlers.admin.server_health import health_of
from store.moments import at
from store.phrases import Phrase

HEALTH, SETTINGS = "/admin/health", "/admin/settings"
PAGE = 25
SHOWN_KINDS = 15
LONGEST_VALUE = 300
SHOWS = ("changed", "all")


class ConsoleHealthHandler(ConsolePage):
    """The health of server and store."""

    async def get(self) -> None:
        """Shows versions, replicas, memory by kind of key, files, keys and queues."""
        found = await health_of(self.application, self.site)
        ages, memory = found.ages, found.memory
        self.show_page(
            "admin/health.html",
            HEALTH,
            Phrase("Health"),
            server=found,
            health=found.store,
            saved_at=snapshot_of(found),
            secret=at(ages.secret) if ages.secret else None,
            signing=at(ages.signing) if ages.signing else None,
            memory=memory,
            sampled_at=at(memory.at) if memory else None,
            kinds=memory.kinds[:SHOWN_KINDS] if memory else (),
            queues=[(QUEUES[name], count) for name, count in found.queues.items()],
        )


class ShownSetting(NamedTuple):
    """A setting as the page shows it. `value` is empty for none and for a secret; `flag` for a setting without one;
    `live`: SIGHUP changes it."""

    name: str
    value: str
    source: str
    secret: bool
    meaning: str
    flag: str
    environment: str
    live: bool

    @property
    def searched(self) -> str:
        """The text in which the page looks for what was typed, folded."""
        return f"{self.name} {self.flag} {self.environment} {self.meaning}".casefold()


class ConsoleSettingsHandler(ConsolePage):
    """The settings in force."""

    async def get(self) -> None:
        """Shows the settings that are not at their default, or all; `query` finds a part of a name, flag, variable
        or meaning."""
        params, facts = self.asked(), self.site.facts()
        query = (params.get("query") or "").strip()[:100]
        show = "all" if params.get("show") == "all" or query else "changed"
        after = params.get("after") or ""
        fitting = [
            one
            for one in (shown_setting(item, facts.explained.get(str(item["name"]), {})) for item in facts.settings)
            if (show == "all" or one.source != "default") and query.casefold() in one.searched
        ]
        names = [one.name for one in fitting]
        begin = names.index(after) + 1 if after in names else 0
        rest = fitting[begin:]
        chosen = {"query": query, "show": show}
        self.show_page(
            "admin/settings.html",
            SETTINGS,
            Phrase("Settings"),
            typed=query,
            chips=chips_of(SETTINGS, {"query": query, "show": "all" if params.get("show") == "all" else ""}),
            show=show,
            settings=rest[:PAGE],
            first=f"?{urlencode(chosen)}" if begin else "",
            onward=f"?{urlencode({**chosen, 'after': rest[PAGE - 1].name})}" if len(rest) > PAGE else "",
        )


def shown_setting(item: Mapping[str, Any], about: Mapping[str, Any]) -> ShownSetting:
    """A row of the page."""
    value = item["value"]
    text = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    cut = text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
    return ShownSetting(
        str(item["name"]),
        cut,
        str(item["source"]),
        bool(item["secret"]),
        str(about.get("meaning", "")),
        str(about.get("flag", "")),
        str(about.get("environment", "")),
        bool(about.get("live")),
    )
