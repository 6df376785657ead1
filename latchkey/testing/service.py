"""What a test does with the service: makes apps and people, plays the person, moves the clock."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, overload
from urllib.parse import urlencode, urlsplit

from latchkey.testing.values import App, Balance, Person, Redirect, TokenResponse

SECONDS = 30.0
"""For one call."""


class LatchkeyError(Exception):
    """The service refused what a test asked for. `status` is that of HTTP, `error` the code of the interface, both as
    an app would see them."""

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(f"{status} {error}: {description}")
        self.status, self.error = status, error


class Latchkey:
    """The whole service at `url`, with nothing in it at the beginning of each test.

    Every method is a plain call that is done when it returns, in milliseconds, and works in async tests as well: the
    service is another process. Each raises LatchkeyError where the service refuses.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._last: Person | None = None

    # Apps and people

    def app(
        self,
        name: str = "An app in a test",
        *,
        redirect_uris: Sequence[str] = ("https://app.example/callback",),
        scopes: str | Sequence[str] = "profile",
        public: bool = False,
        pkce_required: bool = False,
        hosted_storage: bool = False,
        refresh_retry_seconds: int = 0,
        refresh_lifetime_days: int = 0,
        iss_in_response: bool = True,
        webhook_url: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
    ) -> App:
        """Registers an app (SPEC 2.1). `scopes` are names with spaces between them, or a list; a public app has no
        secret and uses PKCE. Events are posted to `webhook_url`, which may be one of this machine; with it there is a
        `webhook_secret`. `client_id` and `client_secret` (32 characters at least) are made where none are given."""
        record = {
            "name": name,
            "redirect_uris": list(redirect_uris),
            "scopes": scopes if isinstance(scopes, str) else list(scopes),
            "public": public,
            "pkceRequired": pkce_required,
            "hostedStorage": hosted_storage,
            "refreshRetrySeconds": refresh_retry_seconds,
            "refreshLifetimeDays": refresh_lifetime_days,
            "issInResponse": iss_in_response,
            "webhookUrl": webhook_url,
            "client_id": client_id,
            "client_secret": client_secret,
        }
        made = self._post("apps", **record)
        return App(
            made["client_id"],
            made.get("client_secret"),
            made["name"],
            tuple(made["redirect_uris"]),
            tuple(made["scopes"]),
            made["public"],
            made.get("webhook_secret"),
        )

    def person(
        self, name: str = "Ada Lovelace", *, email: str | None = None, password: str | None = None, credits: int = 0
    ) -> Person:
        """Makes a person with a confirmed address and `credits` micro-dollars. Address and password are made where
        none are given."""
        made = self._post("people", name=name, email=email, password=password, credits=credits)
        self._last = Person(**made)
        return self._last

    def token(
        self, person: Person | None = None, app: App | None = None, scopes: str | Sequence[str] = ()
    ) -> TokenResponse:
        """Tokens of `app` for `person`, as a consent and an exchange give them (SPEC 2.2), with all of the app's scopes
        or only `scopes`. Without a person it is the one who was made last, without an app a new one."""
        app = app or self.app(scopes=scopes or "profile")
        asked = scopes if isinstance(scopes, str) else list(scopes)
        return TokenResponse(
            **self._post("tokens", email=self._somebody(person).email, client_id=app.client_id, scopes=asked)
        )

    # The person

    @overload
    def consents(
        self,
        url: None = None,
        *,
        person: Person | None = None,
        scopes: str | Sequence[str] | None = None,
        spend_limit: int | None = None,
    ) -> None: ...

    @overload
    def consents(
        self,
        url: str,
        *,
        person: Person | None = None,
        scopes: str | Sequence[str] | None = None,
        spend_limit: int | None = None,
    ) -> Redirect: ...

    def consents(
        self,
        url: str | None = None,
        *,
        person: Person | None = None,
        scopes: str | Sequence[str] | None = None,
        spend_limit: int | None = None,
    ) -> Redirect | None:
        """The person sits at the browser, is signed in, and allows.

        With the address of an authorization request: that one request, and returns what goes back to the app. Without:
        every request from now on, so that a browser or an HTTP client that follows redirects passes straight through.
        They allow all that is asked for, or of it only `scopes`; an app that may spend may spend `spend_limit`
        micro-dollars a month, or without limit. Without a person it is the one who was made last, else a new one.
        """
        return self._plays(url, "allow", person, scopes, spend_limit)

    @overload
    def denies(self, url: None = None, *, person: Person | None = None) -> None: ...

    @overload
    def denies(self, url: str, *, person: Person | None = None) -> Redirect: ...

    def denies(self, url: str | None = None, *, person: Person | None = None) -> Redirect | None:
        """As `consents`, but the person refuses, so that the app gets `error=access_denied`; whatever they allowed
        before, they are asked again."""
        return self._plays(url, "deny", person)

    def shows_pages(self) -> None:
        """Nobody is played from now on: browsers see the sign-in and the consent page, as at the beginning."""
        self._post("consents", answer="ask")

    def revoke(self, person: Person, app: App) -> datetime:
        """The person disconnects the app in their account (SPEC 3.1): every token is dead at once. Returns until when
        the app's documents are kept."""
        return datetime.fromisoformat(
            self._post("disconnect", email=person.email, client_id=app.client_id)["dataUntil"]
        )

    def deletes_account(self, person: Person) -> None:
        """The person deletes the account, and everything apps keep for them."""
        self._post("people/delete", email=person.email)

    # Credits

    def credit(self, person: Person, amount: int) -> Balance:
        """Gives a person micro-dollars, or takes them with an amount below zero."""
        return _balance(self._post("credits", email=person.email, amount=amount))

    def balance(self, person: Person) -> Balance:
        """What a person has."""
        query = urlencode({"email": person.email})
        return _balance(self._ask("GET", f"/testing/credits?{query}"))

    # Time, limits, trouble

    def travel(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Puts the clock of the whole service forward by the sum: tokens expire, windows of rate limits empty, the
        grace window ends. What apps are to hear of until now is posted before. Returns its time. The test's own clock
        stays as it is."""
        passed = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        return datetime.fromisoformat(self._post("travel", **passed)["now"])

    def exhausts(self, group: str, person: Person | None = None, app: App | None = None) -> int:
        """Uses up what is left of a rate limit (SPEC 8.1), as a burst of requests would: the next one is answered 429.
        `group` is of the person `oauth`, `authorize` or `ai`, of the person with an app `data-read`, `data-write`,
        `data-list`, `credits-read`, `apps-read` or `ai-models`. Returns the seconds of `Retry-After`."""
        named = {"client_id": app.client_id} if app else {}
        answer: int = self._post("limits", group=group, email=self._somebody(person).email, **named)["retryAfter"]
        return answer

    @contextlib.contextmanager
    def unavailable(self) -> Iterator[None]:
        """Within the block the service has lost its store: whatever needs it is answered 503 with `Retry-After`."""
        self._post("store", away=True)
        try:
            yield
        finally:
            self._post("store", away=False)

    def reset(self) -> None:
        """Empties the service, as between two tests, and ends what is being posted."""
        self._last = None
        self._post("reset")

    # How

    def _somebody(self, person: Person | None) -> Person:
        return person or self._last or self.person()

    def _plays(
        self,
        url: str | None,
        answer: str,
        person: Person | None,
        scopes: str | Sequence[str] | None = None,
        spend_limit: int | None = None,
    ) -> Redirect | None:
        who = self._somebody(person)
        wanted: dict[str, Any] = {"email": who.email, "answer": answer}
        if scopes is not None:
            wanted["scopes"] = scopes if isinstance(scopes, str) else list(scopes)
        if spend_limit is not None:
            wanted["spend_limit"] = spend_limit
        if url is None:
            self._post("consents", **wanted)
            return None
        return self._open(url, json.dumps(wanted))

    def _open(self, url: str, answer: str) -> Redirect:
        """Opens an authorization request as a browser does, and stops where it is sent on to the app."""
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.url:
            raise ValueError(f"this is no address at {self.url}: {url}")
        sent = {"Accept": "application/json", "Latchkey-Consents": answer}
        status, headers, body = self._send("GET", f"{parts.path}?{parts.query}", None, sent)
        location = headers.get("Location")
        if location is None:
            raise _error(status, body)
        return Redirect(location)

    def _post(self, call: str, **given: Any) -> Any:
        body = json.dumps({name: value for name, value in given.items() if value is not None})
        return self._ask("POST", f"/testing/{call}", body)

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        status, _, answer = self._send(method, path, body, headers)
        if status != 200:
            raise _error(status, answer)
        return json.loads(answer)

    def _send(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urlsplit(self.url)
        # One for each call: a test may stand still at a breakpoint for longer than a connection is kept.
        with contextlib.closing(http.client.HTTPConnection(parts.netloc, timeout=SECONDS)) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()


def _balance(figures: dict[str, Any]) -> Balance:
    return Balance(figures["spendable"], figures["held"], figures["paid"])


def _error(status: int, body: bytes) -> LatchkeyError:
    try:
        said = json.loads(body)
        return LatchkeyError(status, said["error"], said["error_description"])
    except (ValueError, KeyError, TypeError):
        return LatchkeyError(status, "no_redirect", "the browser stays on a page of Latchkey's")
