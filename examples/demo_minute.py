"""A guided minute: a limit at consent, a document that stays the person's, a helper with a part of the limit, the end.

The steps are forms on the front page that work without JavaScript.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from demo_notes import NotePage
from demo_pages import Session
from notes_client import add_note
from oauth_client import OAuthClient, Tokens, Trouble
from paid_client import Spent, dollars, spend_until_refused

NEEDS = {"credits:spend", "data:write"}
"""The scopes without which there is no guided minute."""
LIMIT, PART = 50_000, 10_000
"""What the site asks for, and what it hands on to its helper, in micro-dollars."""
NOTE = "Ferns have no flowers and no seeds."
HELPER, HELPER_SECONDS = "Fern reader", 600
QUESTION = "What does a fern live on, and where does it grow? " * 180
"""Long, so that a few calls reach the limit."""
MOST_CALLS = 6


@dataclass
class Minute:
    """What the page shows of the steps. `note`, `helper` and `spent` say what each did, and are empty before."""

    hands_on: str
    granted: str
    note: str
    helper: str
    spent: str
    ended: bool
    notes_link: str
    apps_link: str


def minute_of(client: OAuthClient, session: Session) -> Minute | None:
    """The state of the steps; None where the app may not ask for what they take."""
    if not set(client.scopes.split()) >= NEEDS:
        return None
    apps, steps = f"{client.issuer}/account/apps", session.steps
    return Minute(
        hands_on=short(PART),
        granted=limit_of(session.tokens),
        note=steps.get("note", ""),
        helper=steps.get("helper", ""),
        spent=steps.get("spent", ""),
        ended=bool(steps) and session.tokens is None,
        notes_link=f"{apps}/{client.client_id}/data",
        apps_link=apps,
    )


def limit_of(tokens: Tokens | None) -> str:
    """The limit that the person granted, in words; empty if there is none."""
    amounts = [one["limit"] for one in (tokens.budgets if tokens else ()) if one.get("type") == "credits"]
    return short(amounts[0]) if amounts else ""


def short(amount: int) -> str:
    """Micro-dollars in words, in cents unless there are parts of one."""
    number, _, unit = dollars(amount).partition(" ")
    whole, _, parts = number.partition(".")
    return f"{whole}.{parts.rstrip('0').ljust(2, '0')} {unit}"


def limit_wanted(amount: int) -> list[dict[str, Any]]:
    """The limit as `authorization_details` (RFC 9396), for all calls together."""
    return [{"type": "credits", "limit": amount, "period": "total"}]


class MinuteNote(NotePage):
    """Keeps a note."""

    async def post(self) -> None:
        await self.change(lambda tokens: add_note(self.client, tokens, NOTE))
        self.checked_session().steps["note"] = NOTE


class MinuteHelper(NotePage):
    """Hands a part of the limit to a helper, which asks until it is refused."""

    async def post(self) -> None:
        async def help_out(tokens: Tokens) -> None:
            helper = await self.client.hand_on(tokens, HELPER, "credits:spend", HELPER_SECONDS, limit_wanted(PART))
            spent = await spend_until_refused(self.client, helper, QUESTION, MOST_CALLS)
            self.checked_session().steps["helper"] = in_words(spent)

        await self.change(help_out)


class MinuteSpend(NotePage):
    """Asks until the server refuses."""

    async def post(self) -> None:
        async def spend(tokens: Tokens) -> None:
            if not limit_of(tokens):
                raise Trouble("Connect with a limit first.")
            spent = await spend_until_refused(self.client, tokens, QUESTION, MOST_CALLS)
            self.checked_session().steps["spent"] = in_words(spent)

        await self.change(spend)


def in_words(spent: Spent) -> str:
    """The outcome of the questions, for the page."""
    questions = "1 question" if spent.asked == 1 else f"{spent.asked} questions"
    said = f"{questions} for {short(spent.charged)}."
    return f"{said} Latchkey refused the next one. {spent.refusal}" if spent.refusal else said
