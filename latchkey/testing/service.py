"""How a test controls the service: makes apps and people, acts for the person, moves the clock."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, overload
from urllib.parse import urlencode

from latchkey.testing.calls import Calls, listed
from latchkey.testing.exchanges import Exchanges
from latchkey.testing.records import app_record
from latchkey.testing.values import Api, App, Balance, Key, Person, Redirect, TokenResponse, balance_of


class Latchkey(Exchanges):
    """The whole service at `url`, empty at the start of each test.

    Every method is an ordinary call that takes milliseconds, and is done when it returns. It also works in async tests,
    because the service is another process. Each method raises LatchkeyError if the service refuses.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._calls = Calls(url)
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
        webhook_events: Sequence[str] | None = None,
        id_token_alg: str | None = None,
        subject_type: str | None = None,
        post_logout_redirect_uris: Sequence[str] = (),
        backchannel_logout_uri: str | None = None,
        auth_method: str | None = None,
        jwks: Mapping[str, Any] | Sequence[Key] | None = None,
        jwks_uri: str | None = None,
        require_pushed: bool = False,
        dpop_required: bool = False,
        device_grant: bool = True,
        profile: str | None = None,
        client_id: str | None = None,
        client_secret: str | None = None,
    ) -> App:
        """Registers an app (SPEC 2.1). `scopes` is a list, or names separated by spaces, those of registered APIs too.
        A public app has no secret and uses PKCE. Events (those of `webhook_events`) are posted to `webhook_url`, logout
        tokens to `backchannel_logout_uri`; both may be on this machine. Without `client_id`, `client_secret` (at least
        32 characters) or a secret of the webhook, one is made. With the `subject_type` "pairwise" its `sub` of a person
        differs from that of `person`. With the `auth_method` "private_key_jwt" it proves itself by a key of `jwks`,
        public ones or those that `key` made. The `profile` "fapi2" switches on what it demands, and needs keys."""
        given = {name: value for name, value in locals().items() if name != "self"}
        made = self._calls.post("apps", app_record(given))
        return App(
            made["client_id"],
            made.get("client_secret"),
            made["name"],
            tuple(made["redirect_uris"]),
            tuple(made["scopes"]),
            made["public"],
            made.get("webhook_secret"),
        )

    def api(
        self,
        identifier: str = "https://api.example.com",
        *,
        scopes: Mapping[str, str] | str | Sequence[str],
        name: str = "An API in a test",
        token_format: str | None = None,
        signing_alg: str | None = None,
        token_lifetime: int | None = None,
        client_secret: str | None = None,
    ) -> Api:
        """Registers an API that apps call with tokens of the service (RFC 8707). `scopes` are names, or names with
        their titles for people. `token_format` is "opaque" or "jwt", `token_lifetime` is in seconds. Register the API
        before the apps that want its scopes."""
        if isinstance(scopes, Mapping):
            titled = [{"name": one, "title": title} for one, title in scopes.items()]
        else:
            titled = [{"name": one} for one in (scopes.split() if isinstance(scopes, str) else scopes)]
        record = {
            "identifier": identifier,
            "name": name,
            "scopes": titled,
            "tokenFormat": token_format,
            "signingAlg": signing_alg,
            "tokenLifetime": token_lifetime,
            "client_secret": client_secret,
        }
        made = self._calls.post("apis", record)
        names = tuple(scope["name"] for scope in made["scopes"])
        return Api(made["identifier"], made["client_id"], made["client_secret"], names, made["tokenFormat"])

    def person(
        self,
        name: str = "Ada Lovelace",
        *,
        email: str | None = None,
        password: str | None = None,
        credits: int = 0,
        groups: Sequence[str] = (),
    ) -> Person:
        """Makes a person with a confirmed address, `credits` micro-dollars and these groups. Without an address or
        password, makes one."""
        given: dict[str, Any] = {"name": name, "email": email, "password": password, "credits": credits}
        made = self._post("people", **given, groups=list(groups))
        self._last = Person(**{**made, "groups": tuple(made["groups"])})
        return self._last

    def groups(self, person: Person | None, groups: Sequence[str]) -> Person:
        """Replaces a person's groups, as the operator does, and returns the changed person. None is the person made
        last."""
        who = self._somebody(person)
        made = self._post("people/groups", email=who.email, groups=list(groups))
        changed = replace(who, groups=tuple(made["groups"]))
        if who == self._last:
            self._last = changed
        return changed

    # Tokens and keys

    def token(
        self,
        person: Person | None = None,
        app: App | None = None,
        scopes: str | Sequence[str] = (),
        *,
        resource: str | Api | None = None,
        dpop: Key | str | None = None,
        nonce: str | None = None,
    ) -> TokenResponse:
        """Issues tokens of `app` for `person`, like a sign-in, a consent and an exchange (SPEC 2.2), with all of the
        app's scopes or only `scopes`. `resource` is the API that the access token is for, or `url` for the service
        itself; it may be left out as in an authorization request. `dpop` is the key, or the thumbprint of the key, that
        the tokens are bound to. With the scope `openid` there is an ID token, which has the `nonce`. By default the
        person made last, and a new app."""
        app = app or self.app(scopes=scopes or "profile")
        wanted = {
            "email": self._somebody(person).email,
            "client_id": app.client_id,
            "scopes": listed(scopes),
            "resource": resource.identifier if isinstance(resource, Api) else resource,
            "dpop_jkt": dpop.thumbprint if isinstance(dpop, Key) else dpop,
            "nonce": nonce,
        }
        return TokenResponse(**self._calls.post("tokens", wanted))

    def jwks(self) -> Any:
        """The public keys with which apps and APIs check ID tokens and JWT access tokens: `{"keys": […]}` (RFC
        7517)."""
        return self._calls.ask("GET", "/.well-known/jwks.json")

    def rotate_keys(self, *, now: bool = False) -> None:
        """Publishes a successor of each signing key, as the operator does. The successors sign a day later, or from
        `now` on."""
        self._post("rotate", now=now)

    def key(self, algorithm: str = "ES256") -> Key:
        """Makes a key for an app: "ES256", "RS256" or "EdDSA"."""
        return Key(**self._post("keys", algorithm=algorithm))

    def proof(
        self, key: Key, method: str, url: str, token: TokenResponse | None = None, nonce: str | None = None
    ) -> str:
        """A DPoP proof (RFC 9449) by a key of `key`, for one request: the value of the header `DPoP`. A call with a
        bound token needs a proof with that `token`, a request to the token endpoint one without."""
        access = token.access_token if token else None
        given = {"thumbprint": key.thumbprint, "method": method, "url": url, "access_token": access, "nonce": nonce}
        proof: str = self._calls.post("proofs", given)["proof"]
        return proof

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
        """Acts for a person who is signed in and allows access.

        With the address of an authorization request: allows this request, and returns what is sent to the app. Without
        an address: allows every later request, so that a browser or an HTTP client passes straight through. The person
        allows all requested scopes, or only `scopes`. An app that may spend gets a limit of `spend_limit` micro-dollars
        a month, or none. By default the person made last, or a new one.
        """
        return self._plays(url, "allow", person, scopes, spend_limit)

    @overload
    def denies(self, url: None = None, *, person: Person | None = None) -> None: ...

    @overload
    def denies(self, url: str, *, person: Person | None = None) -> Redirect: ...

    def denies(self, url: str | None = None, *, person: Person | None = None) -> Redirect | None:
        """Like `consents`, but the person refuses, and the app gets `error=access_denied`. Asks even if the person has
        allowed access before."""
        return self._plays(url, "deny", person)

    def enters(
        self,
        user_code: str,
        *,
        person: Person | None = None,
        denies: bool = False,
        scopes: str | Sequence[str] | None = None,
        spend_limit: int | None = None,
    ) -> None:
        """Enters the code of a device (RFC 8628) and allows access, or `denies` it. The device learns it with its next
        poll. The other arguments are those of `consents`."""
        wanted = self._answer("deny" if denies else "allow", person, scopes, spend_limit)
        self._post("devices", user_code=user_code, **wanted)

    def shows_pages(self) -> None:
        """Stops acting for people: browsers see the sign-in and consent pages, as at the start."""
        self._post("consents", answer="ask")

    def revoke(self, person: Person, app: App) -> datetime:
        """Disconnects the app as the person would (SPEC 3.1): every token is dead at once. Returns the time until which
        the app's documents are kept."""
        return datetime.fromisoformat(
            self._post("disconnect", email=person.email, client_id=app.client_id)["dataUntil"]
        )

    def pauses(self, person: Person, app: App, paused: bool = True) -> None:
        """Pauses the app as the person would, or resumes it: the calls of a paused app are 403 `app_paused`."""
        self._post("pause", email=person.email, client_id=app.client_id, paused=paused)

    def signs_out(self, person: Person) -> None:
        """Signs the person out of the service: their next token is of a new session. Apps with a
        `backchannel_logout_uri` that got an ID token are told."""
        self._post("people/signout", email=person.email)

    def deletes_account(self, person: Person) -> None:
        """Deletes the account as the person would, with everything that apps keep for them."""
        self._post("people/delete", email=person.email)

    # Credits

    def credit(self, person: Person, amount: int) -> Balance:
        """Gives a person micro-dollars, or takes them if `amount` is negative."""
        return balance_of(self._post("credits", email=person.email, amount=amount))

    def balance(self, person: Person) -> Balance:
        """The person's credits."""
        query = urlencode({"email": person.email})
        return balance_of(self._calls.ask("GET", f"/testing/credits?{query}"))

    # Time, limits, outages

    def travel(
        self, *, weeks: float = 0, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Moves the service's clock forward by the sum: tokens expire, windows of rate limits empty, the grace window
        ends. Events that are due now are posted first. Returns the service's time. The test's own clock doesn't
        change."""
        passed = {"weeks": weeks, "days": days, "hours": hours, "minutes": minutes, "seconds": seconds}
        return datetime.fromisoformat(self._post("travel", **passed)["now"])

    def exhausts(self, group: str, person: Person | None = None, app: App | None = None) -> int:
        """Uses up a rate limit (SPEC 8.1), like a burst of requests: the next request is answered 429. `group` is
        `oauth`, `authorize` or `ai` of the person, or `data-read`, `data-write`, `data-list`, `credits-read`,
        `apps-read` or `ai-models` of the person with an app. Returns the seconds of `Retry-After`."""
        named = {"client_id": app.client_id} if app else {}
        answer: int = self._post("limits", group=group, email=self._somebody(person).email, **named)["retryAfter"]
        return answer

    @contextlib.contextmanager
    def unavailable(self) -> Iterator[None]:
        """Takes the store away during the block: requests that need it are answered 503 with `Retry-After`."""
        self._post("store", away=True)
        try:
            yield
        finally:
            self._post("store", away=False)

    def reset(self) -> None:
        """Empties the service, as between two tests, and stops posts in progress."""
        self._last = None
        self._post("reset")

    # Implementation

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
        wanted = self._answer(answer, person, scopes, spend_limit)
        if url is None:
            self._post("consents", **wanted)
            return None
        return Redirect(*self._calls.open(url, json.dumps(wanted)))

    def _answer(
        self, answer: str, person: Person | None, scopes: str | Sequence[str] | None, spend_limit: int | None
    ) -> dict[str, Any]:
        wanted: dict[str, Any] = {"email": self._somebody(person).email, "answer": answer}
        if scopes is not None:
            wanted["scopes"] = listed(scopes)
        if spend_limit is not None:
            wanted["spend_limit"] = spend_limit
        return wanted

    def _post(self, call: str, **given: Any) -> Any:
        return self._calls.post(call, given)
