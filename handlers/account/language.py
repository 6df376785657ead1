"""/account/language: the language of pages and mails, and the time zone of their times."""

from __future__ import annotations

from handlers.core.page import PageHandler
from handlers.core.words.zones import places, zone_of
from store.phrases import Phrase
from store.refused import Refused
from store.results import Preferences


class LanguageHandler(PageHandler):
    """The page of a person's preferences."""

    async def get(self) -> None:
        """Shows the lists."""
        profile = await self.store.sessions.profile(self.require_session())
        language = self.wording(profile.preferences).language
        self.render(
            "account/language.html",
            title=Phrase("Language and time zone") if len(self.site.languages.all) > 1 else Phrase("Time zone"),
            signed_in=profile,
            languages=[(one.code, one.tag, one.name) for one in self.site.languages.all],
            regions=places(language.row.dates),
            chosen=profile.preferences,
        )

    async def post(self) -> None:
        """Keeps the choice; an empty one follows the browser."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        # A server with one language does not ask for it.
        chosen = Preferences(params.get("language") or "", params.get("zone") or "")
        known = not chosen.language or chosen.language in self.site.languages.by_code
        if not known or (chosen.zone and zone_of(chosen.zone) is None):
            raise Refused("invalid_request", Phrase("Choose a language and a time zone from the lists."))
        await self.store.profiles.prefer(session, chosen, self.visitor)
        self.see_done("/account?preferences")
