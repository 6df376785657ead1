"""/developer/apps/:client_id/log: the refused requests of an app, with their causes and remedies."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.developer.apps import DeveloperPage
from store.app_log import Door, LoggedRefusal
from store.apps.registration import Registration

DOORS: dict[Door, str] = {
    "authorize": "When a person was sent here",
    "token": "At the token endpoint",
    "call": "At a call",
}
_NO_ADDRESS = "Send redirect_uri with the request, letter for letter as it is registered."
_REMEDIES: dict[tuple[str, str], str] = {
    ("authorize", "invalid_scope"): "Tick the scope under “Change it”, or ask only for scopes that are ticked there.",
    ("authorize", "invalid_target"): "Send the API’s identifier as resource, just as its operator gave it to you.",
    ("authorize", "unmet_authentication_requirements"): "Ask for a level that people have set up, or go on without it.",
    ("token", "invalid_client"): "Check the client id and the secret. If the secret is lost, make a new one.",
    ("token", "invalid_grant"): "A code works once, for 60 seconds, with the redirect_uri and the code_verifier of its "
    "request. A refresh token works until the next one is used: keep the newest.",
    ("token", "invalid_scope"): "A refresh can ask for fewer scopes, not for more. For more, send the person here.",
    ("call", "invalid_token"): "Access tokens live for an hour. Refresh the token. If that is refused, send the person "
    "here again.",
    ("call", "insufficient_scope"): "Ask for the scope when you send the person here. They may also have unticked it.",
    ("call", "insufficient_credits"): "Tell the person that their credits are used up, and offer to try again later.",
    ("call", "app_spend_limit"): "The person set a monthly limit for your app. They can raise it under Connected apps.",
}
_ANYWHERE = {
    "rate_limited": "Wait as long as the header Retry-After says. The headers X-RateLimit-* tell before it happens.",
    "invalid_dpop_proof": "Make a new proof for each request: its address, its method, its token, and a new jti.",
    "use_dpop_nonce": "Repeat the request with the nonce from the header DPoP-Nonce. Most libraries do that.",
    "invalid_request": "Compare the request with “The HTTP interface”: it has each parameter and what it may be.",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """A text in three parts: what it shares with another at its beginning and end, and the difference between."""

    before: str
    middle: str
    after: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A row of the page. `sent` and `registered`: the address that was refused, and the registered one that is most
    like it."""

    refusal: LoggedRefusal
    place: str
    remedy: str
    sent: Compared | None = None
    registered: Compared | None = None


class LogHandler(DeveloperPage):
    """The page."""

    async def get(self, client_id: str) -> None:
        """Shows the refusals of the last 30 days, the latest first."""
        profile, app = await self.store.owned.find(self.require_session(), client_id)
        self.render(
            "developer/log.html",
            title=f"Log of {app.name}",
            signed_in=profile,
            app=app,
            entries=[entry_of(app, one) for one in await self.store.app_log.of(client_id)],
        )


def entry_of(app: Registration, refusal: LoggedRefusal) -> LogEntry:
    """The row of a refusal."""
    cause = refusal.cause
    place = DOORS.get(cause.door, "")
    if cause.door == "authorize" and "did not register the address" in cause.description:
        if not cause.value:
            return LogEntry(refusal, place, _NO_ADDRESS)
        sent, registered = compare_nearest(cause.value, app.redirect_uris)
        return LogEntry(refusal, place, "Register this address, or send one that is registered.", sent, registered)
    remedy = _REMEDIES.get((cause.door, cause.code)) or _ANYWHERE.get(cause.code, "")
    return LogEntry(refusal, place, remedy)


def compare_nearest(sent: str, registered: tuple[str, ...]) -> tuple[Compared, Compared]:
    """What was sent and the registered address that shares most with it, each with the difference marked."""
    pairs = [_compare(sent, one) for one in registered]
    return max(pairs, key=lambda pair: len(pair[0].before) + len(pair[0].after))


def _compare(one: str, other: str) -> tuple[Compared, Compared]:
    most = min(len(one), len(other))
    start = next((place for place in range(most) if one[place] != other[place]), most)
    end = next((place for place in range(most - start) if one[-1 - place] != other[-1 - place]), most - start)
    return _apart(one, start, end), _apart(other, start, end)


def _apart(text: str, start: int, end: int) -> Compared:
    stop = len(text) - end
    return Compared(text[:start], text[start:stop], text[stop:])
