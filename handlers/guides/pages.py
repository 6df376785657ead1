"""/developer/apps/:client_id/guides: pages of the documentation, filled with the values of an app."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from handlers.core.words.html import Html
from handlers.developer.apps import DeveloperPage
from handlers.guides.guide_values import filler
from store.apps.owners.members import role_of
from store.apps.owners.roles import may
from store.apps.registration import Registration
from store.phrases import Phrase
from store.refused import Refused
from store.results import Profile

if TYPE_CHECKING:
    from handlers.guides.guide_text import GuidePage, GuidePart

TITLES = {"webhooks": Phrase("How webhooks work"), "clients": Phrase("Client libraries")}
PARTED = ("clients",)
"""Guides that are too long for one page."""
INTERFACE = "http.md"


class GuideHandler(DeveloperPage):
    """A page of the documentation, or a part of it. The documentation is in English always."""

    async def get(self, client_id: str, name: str, slug: str = "") -> None:
        """Shows the part with the app's values."""
        profile, app = await self.own(client_id)
        if name not in TITLES:
            raise Refused("not_found")
        page = _LOADED.get(name)
        if page is None:
            # The parser is imported with the first page, which takes a tenth of a second.
            page = _LOADED[name] = await asyncio.to_thread(_load, name)
        part = page.part(slug)
        if part is None:
            raise Refused("not_found")
        self.render(
            "guides/guide.html",
            title=Phrase("%(guide)s: %(app)s", guide=part.title or TITLES[name], app=app.name),
            signed_in=profile,
            app=app,
            name=name,
            part=part,
            heading=TITLES[name],
            others=[one for one in page.parts if one.slug and not slug],
            text=Html(self.shown(profile, app, name, page, part)),
        )

    def shown(self, profile: Profile, app: Registration, name: str, page: GuidePage, part: GuidePart) -> str:
        """The HTML of a part for this app. Viewers see no webhook URL, which may carry a secret."""
        from handlers.guides.guide_text import HTTP_PAGE, Showing, shown_part

        guides = f"/developer/apps/{app.client_id}/guides"

        def leads_to(link: str) -> str:
            file, _, anchor = link.partition("#")
            guide = file.removesuffix(".md") or name
            if guide not in TITLES:
                return HTTP_PAGE if file == INTERFACE else ""
            if guide == name and anchor in part.anchors:
                return f"#{anchor}"
            within = page.anchors.get(anchor, "") if guide == name else ""
            return f"{guides}/{guide}/{within}" if within else f"{guides}/{guide}"

        say = self.wording(profile.preferences).say
        showing = Showing(
            filler(
                app if may(role_of(app, profile.user), "change") else replace(app, webhook_url=""), self.site.base_url
            ),
            leads_to,
            code_label=lambda number: say(Phrase("Code %(number)s", number=number)),
            copy_label=lambda number: say(Phrase("Copy code %(number)s", number=number)),
            table_label=lambda number: say(Phrase("Table %(number)s", number=number)),
        )
        return shown_part(part, showing)


class GuidePartHandler(GuideHandler):
    """A part of a guide that is too long for one page: the log knows a route by its handler."""


_LOADED: dict[str, GuidePage] = {}


def _load(name: str) -> GuidePage:
    from handlers.guides.guide_text import guide_page

    return guide_page(name, parted=name in PARTED)
