"""/developer/apps/:client_id/log: the refused requests of an app, with their causes and remedies."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.core.lists.paging import part_of
from handlers.developer.apps import DeveloperPage
from store.app_log import Door, LoggedRefusal
from store.apps.registration import Registration
from store.phrases import Phrase, StoredMessages

PAGE = 25
"""Refusals on a page."""
DOORS: dict[Door, str] = {
    "authorize": Phrase("When your app sent a person here"),
    "token": Phrase("At the token endpoint"),
    "call": Phrase("In an API call"),
}
_NO_ADDRESS = Phrase("Send redirect_uri with the request, exactly as you registered it.")
_REMEDIES: dict[tuple[str, str], str] = {
    ("authorize", "invalid_scope"): Phrase(
        "Tick the scope under Settings, or ask only for scopes that are ticked there."
    ),
    ("authorize", "invalid_target"): Phrase(
        "Send the API’s identifier as resource, exactly as its operator gave it to you."
    ),
    ("authorize", "unmet_authentication_requirements"): Phrase(
        "Ask for a level that people have set up, or continue without it."
    ),
    ("token", "invalid_client"): Phrase(
        "Check the client ID and the secret. If you lost the secret, create a new one under Credentials."
    ),
    ("token", "invalid_grant"): Phrase(
        "A code works once, for 60 seconds, with the redirect_uri and the code_verifier of its "
        "request. A refresh token works until the next one is used, so keep the newest."
    ),
    ("token", "invalid_scope"): Phrase(
        "A refresh can ask for fewer scopes, but not for more. For more, send the person here. Many libraries repeat "
        "the configured scope at each refresh: pass it only when you send the person here."
    ),
    ("call", "invalid_token"): Phrase(
        "Access tokens last an hour. Refresh the token. If that is refused, send the person here again."
    ),
    ("call", "app_paused"): Phrase(
        "The person paused your app. Its tokens stay, so try again later, or ask the person to resume it under "
        "Connected apps."
    ),
    ("call", "insufficient_scope"): Phrase(
        "Ask for the scope when you send the person here. The person may also have unticked it."
    ),
    ("call", "insufficient_credits"): Phrase(
        "Tell the person that they’ve used up their credits, and offer to try again later."
    ),
    ("call", "app_spend_limit"): Phrase(
        "The person set a monthly limit for your app, or your app has reached the operator's limit for a day. "
        "The person can raise theirs under Connected apps."
    ),
    ("call", "person_spend_limit"): Phrase(
        "The person has reached the operator's limit for a day. Try again tomorrow."
    ),
}
_ANYWHERE: dict[str, str] = {
    "rate_limited": Phrase(
        "Wait as long as the Retry-After header says. The X-RateLimit-* headers warn you before it happens."
    ),
    "invalid_dpop_proof": Phrase(
        "Make a new proof for each request, with its address, its method, its token and a new jti."
    ),
    "use_dpop_nonce": Phrase("Repeat the request with the nonce from the DPoP-Nonce header. Most libraries do that."),
    "invalid_request": Phrase("Compare the request with “The HTTP interface”, which describes each parameter."),
}

TO_PROGRAMS = (
    Phrase("%(app)s did not register the address that it wants to send you back to."),
    Phrase("The app did not register these scopes: %(scopes)s."),
    Phrase("A scope is unknown, or the app did not register it."),
    Phrase("An app with hosted storage asks for data:read or data:write."),
    Phrase("The only response type is code."),
    Phrase("This app must use PKCE: code_challenge is missing."),
    Phrase("Every app of this server must use PKCE: code_challenge is missing."),
    Phrase("code_challenge is missing."),
    Phrase("code_challenge_method must be S256."),
    Phrase("No sign-in here has the requested level."),
    Phrase("Client authentication failed."),
    Phrase("The code is expired, used, or not one of this app's."),
    Phrase("The refresh token is expired, used, revoked, or not one of this app's."),
    Phrase("The access token is expired, revoked or not valid."),
    Phrase("The person has paused this app."),
    Phrase("This needs the scope %(scope)s."),
)
"""What apps are refused with most often. Programs, and the store, have these texts in English."""
OF_EARLIER_RELEASES = (Phrase("The app did not register all of these scopes."),)
"""Messages that no request gets now. The log keeps them for 30 days."""
_STORED = StoredMessages((*TO_PROGRAMS, *OF_EARLIER_RELEASES), ".{1,200}")


@dataclass(frozen=True, slots=True)
class Compared:
    """A text in three parts: what it shares with another at its beginning and end, and the difference between."""

    before: str
    middle: str
    after: str


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A row of the page. `description` is a message, or else English. `sent` and `registered`: the address that was
    refused, and the registered one that is most like it."""

    refusal: LoggedRefusal
    place: str
    remedy: str
    description: str
    sent: Compared | None = None
    registered: Compared | None = None


class LogHandler(DeveloperPage):
    """The page."""

    async def get(self, client_id: str) -> None:
        """Shows the refusals of the last 30 days, the latest first."""
        profile, app = await self.own(client_id)
        refusals = await self.store.app_log.of(client_id)
        part = part_of(refusals, PAGE, self.page_asked(), f"/developer/apps/{client_id}/log")
        self.render(
            "developer/log.html",
            title=Phrase("Log of %(app)s", app=app.name),
            signed_in=profile,
            app=app,
            wrong=None,
            notice=None,
            entries=[entry_of(app, one) for one in part.rows],
            part=part,
        )


def entry_of(app: Registration, refusal: LoggedRefusal) -> LogEntry:
    """The row of a refusal."""
    cause = refusal.cause
    place, said = DOORS.get(cause.door, ""), shown_description(cause.description)
    if cause.door == "authorize" and "did not register the address" in cause.description:
        # The page of the error speaks to the person who was sent; this one, to whoever runs the app.
        if not cause.value:
            return LogEntry(refusal, place, _NO_ADDRESS, Phrase("The request has no redirect URI."))
        said = Phrase("The request names a redirect URI that the app did not register.")
        sent, registered = compare_nearest(cause.value, app.redirect_uris)
        register = Phrase("Register this address, or send one that is registered.")
        return LogEntry(refusal, place, register, said, sent, registered)
    remedy = _REMEDIES.get((cause.door, cause.code)) or _ANYWHERE.get(cause.code, "")
    return LogEntry(refusal, place, remedy, said)


def shown_description(stored: str) -> str:
    """The description of a refusal for a page: a message if there is one, otherwise the English text."""
    return stored if isinstance(stored, Phrase) else _STORED.find(stored)


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
