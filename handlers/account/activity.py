"""/account/security/activity: what happened on the person's account, filtered and in pages."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from handlers.account.security import SecurityPage
from handlers.core.params import once, parse_pairs
from store.accounts.signin.sessions import Activity
from store.phrases import Phrase
from store.refused import Refused

PAGE = 25
MOST_APPS = 50
"""Apps that the filter offers, those with the newest events."""
KINDS = {
    "": Phrase("Everything"),
    "signin": Phrase("Signing in and out"),
    "account": Phrase("Changes to your account"),
    "apps": Phrase("Apps"),
    "other": Phrase("Other"),
}
SIGN_INS = frozenset(
    (
        *("signed_up", "signed_in", "signed_in_by_passkey", "signed_in_by_recovery", "signed_out", "codes_guessed"),
        "signed_in_by_provider",
        *("session_ended", "session_crowded_out", "other_sessions_ended", "password_mistyped", "passkey_copied"),
    )
)
_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,3})")


def kind_of(entry: Activity) -> str:
    """The kind that an event is filtered by. Every event has exactly one."""
    if entry.client:
        return "apps"
    if entry.ordinary:
        return "other"
    return "signin" if entry.event in SIGN_INS else "account"


def placed(entries: list[Activity]) -> list[tuple[tuple[int, int], Activity]]:
    """The entries with their places: the time in epoch ms, and the number among those of the same ms. A place stays
    the same while newer events are added in front."""
    found: list[tuple[tuple[int, int], Activity]] = []
    for entry in reversed(entries):
        at = round(entry.at.timestamp() * 1000)
        number = found[-1][0][1] + 1 if found and found[-1][0][0] == at else 0
        found.append(((at, number), entry))
    return found[::-1]


def place_of(text: str) -> tuple[int, int] | None:
    """The place in an address; None without one. Raises Refused("invalid_request")."""
    found = _PLACE.fullmatch(text)
    if text and not found:
        raise Refused("invalid_request", "before is the place of an entry.")
    return (int(found[1]), int(found[2])) if found else None


class ActivityHandler(SecurityPage):
    """The activity."""

    async def get(self) -> None:
        """Shows a page, newest first. `kind` and `app` filter; `before` shows what is older than that place."""
        params = once(parse_pairs(self.request.query))
        kind, client, before = (params.get(name) or "" for name in ("kind", "app", "before"))
        if kind not in KINDS:
            raise Refused("invalid_request", f"kind is one of {', '.join(filter(None, KINDS))}.")
        limit = place_of(before)
        profile, entries = await self.store.sessions.activity(self.require_session())
        clients = list(dict.fromkeys(entry.client for entry in entries if entry.client))[:MOST_APPS]
        found = [
            (place, entry)
            for place, entry in placed(entries)
            if (not kind or kind_of(entry) == kind)
            and (not client or entry.client == client)
            and (limit is None or place < limit)
        ]
        page = found[:PAGE]
        chosen = {name: value for name, value in (("kind", kind), ("app", client)) if value}
        onward = "{}-{}".format(*page[-1][0]) if len(found) > PAGE else ""
        names = await self.names_of([*clients, *(entry.client for _, entry in page)])
        self.render(
            "account/activity.html",
            title=Phrase("Activity"),
            signed_in=profile,
            kinds=KINDS,
            kind=kind,
            apps=[(one, names[one]) for one in clients],
            client=client,
            entries=[self.shown(entry, names) for _, entry in page],
            first=f"?{urlencode(chosen)}" if before else "",
            onward=f"?{urlencode({**chosen, 'before': onward})}" if onward else "",
        )
