"""The routes that a test calls over HTTP: docs/testing.md. They are no part of the product's map."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from handlers.core.application import Latchkey
from handlers.core.base import BaseHandler
from handlers.core.format import iso
from handlers.core.params import JSON, once, parse_pairs
from handlers.core.policy import OPEN, Policy
from store.credits.credits import CURRENCY, MAX_AMOUNT, SCALE
from store.crypto.jose.algorithms import ES256
from store.crypto.passwords import check_length
from store.names import check_groups, check_person_name
from store.refused import Refused
from testkit.authorize import PlayedAuthorizeHandler
from testkit.devices import enter_code
from testkit.guard import check_driver
from testkit.keys import private_jwk
from testkit.reading import (
    FARTHEST,
    amount_of,
    answer_of,
    api_of,
    checked_email,
    email_of,
    flag,
    number,
    registration_of,
    scopes_of,
)
from testkit.rehearsal import VISITOR, Rehearsal
from testkit.tokens import WantedTokens, issue

UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}


class TestingHandler(BaseHandler):
    """A call by a test."""

    constant_headers = tuple(
        (name, JSON if name == "Content-Type" else value) for name, value in BaseHandler.constant_headers
    )

    def initialize(self, policy: Policy, rehearsal: Rehearsal | None = None) -> None:
        """Keeps the rehearsal too."""
        super().initialize(policy)
        assert rehearsal is not None
        self.rehearsal = rehearsal

    def prepare(self) -> None:
        """Raises Refused if the client may not control this server."""
        check_driver(self.request)
        super().prepare()


class TravelHandler(TestingHandler):
    """POST /testing/travel."""

    async def post(self) -> None:
        """Moves the service's clock forward by the sum of the given times."""
        params = self.body()
        if odd := [name for name in params.names() if name not in UNITS]:
            raise Refused("invalid_request", f"{odd[0][:40]!a} is none of {', '.join(UNITS)}.")
        passed = sum(size * number(params, name) for name, size in UNITS.items())
        if not 0 < passed <= FARTHEST:
            raise Refused("invalid_request", "Travel goes forward, ten years at most.")
        now = await self.rehearsal.travel(passed)
        self.write_json({"now": iso(datetime.fromtimestamp(now, UTC))})


class ConsentsHandler(TestingHandler):
    """POST /testing/consents."""

    async def post(self) -> None:
        """Sets the person at the browser, and their answer."""
        self.rehearsal.answer = answer = answer_of(
            self.body(), self.rehearsal.answer, await self.rehearsal.known_scopes()
        )
        self.write_json({"email": answer.email, "answer": answer.decides})


class DevicesHandler(TestingHandler):
    """POST /testing/devices."""

    async def post(self) -> None:
        """Enters the code of a device as the person would, and allows or denies access."""
        params = self.body()
        played = answer_of(params, self.rehearsal.answer, await self.rehearsal.known_scopes())
        if played.decides == "ask":
            raise Refused("invalid_request", "answer is allow or deny.")
        client_id = await enter_code(self.rehearsal, params.require("user_code"), played)
        self.write_json({"client_id": client_id, "email": played.email, "answer": played.decides})


class TestAppsHandler(TestingHandler):
    """POST /testing/apps."""

    async def post(self) -> None:
        """Registers an app. Answers with the record, and the secret of a confidential app."""
        params = self.body()
        registration, secret = registration_of(params, await self.store.apis.list())
        begun = self.store.webhooks.begun(registration, params.get("webhook_secret"))
        made, shown = await self.store.apps.create(begun.registration, secret)
        secrets_once = {"client_secret": shown, "webhook_secret": begun.secret}
        self.write_json({**made.record(), **{name: one for name, one in secrets_once.items() if one}})


class TestApisHandler(TestingHandler):
    """POST /testing/apis."""

    async def post(self) -> None:
        """Registers an API. Answers with the record, and the secret for introspection."""
        made, secret = await self.store.apis.create(*api_of(self.body(), self.site.base_url))
        self.write_json({**made.record(), "client_secret": secret})


class PeopleHandler(TestingHandler):
    """POST /testing/people."""

    async def post(self) -> None:
        """Makes a person with a confirmed address."""
        params = self.body()
        email = checked_email(params.get("email") or f"person-{secrets.token_hex(4)}@example.com")
        name = params.get("name") or email.partition("@")[0]
        password = params.get("password") or secrets.token_urlsafe(12)
        credits = amount_of(params, "credits", 0) if params.value("credits") is not None else 0
        try:
            name = check_person_name(name)
            check_length(password)  # tests may use weak passwords
            groups = check_groups(params.texts("groups") or ())
        except ValueError as error:
            raise Refused("invalid_request", str(error)) from None
        user = await self.rehearsal.person(email, name, password, groups)
        if credits:
            await self.store.credits.grant(user, credits, reason="A test")
        self.write_json({"sub": user, "email": email, "name": name, "password": password, "groups": list(groups)})


class TestGroupsHandler(TestingHandler):
    """POST /testing/people/groups."""

    async def post(self) -> None:
        """Replaces a person's groups, as the operator does."""
        params = self.body()
        person = await self.store.operator.find(await self.rehearsal.user(email_of(params)))
        wanted = params.texts("groups") or ()
        try:
            kept = check_groups(wanted)
            gone = [name for name in person.groups if name not in kept]
            groups = await self.store.groups.change(person.user, person.groups, add=kept, remove=gone)
        except ValueError as error:
            raise Refused("invalid_request", str(error)) from None
        self.write_json({"sub": person.user, "groups": list(groups)})


class LeaveHandler(TestingHandler):
    """POST /testing/people/delete."""

    async def post(self) -> None:
        """Deletes the account as the person would."""
        self.write_json({"sub": await self.store.operator.delete(email_of(self.body()))})


class TestSignOutHandler(TestingHandler):
    """POST /testing/people/signout."""

    async def post(self) -> None:
        """Signs a played person out."""
        self.write_json({"sub": await self.rehearsal.sign_out(email_of(self.body()))})


class TokensHandler(TestingHandler):
    """POST /testing/tokens."""

    async def post(self) -> None:
        """SPEC 2.2: issues tokens, like a sign-in, a consent and an exchange."""
        params = self.body()
        jkt = params.get("dpop_jkt") or ""
        wanted = WantedTokens(
            email_of(params),
            params.require("client_id"),
            scopes_of(params, await self.rehearsal.known_scopes()),
            params.several("resource"),
            jkt,
            params.get("nonce") or "",
        )
        self.write_json(await issue(self.rehearsal, wanted))


class KeysHandler(TestingHandler):
    """POST /testing/keys."""

    async def post(self) -> None:
        """Makes a key for an app."""
        key = await self.rehearsal.keys.make(self.body().get("algorithm") or ES256)
        public = key.public.to_jwk(key.algorithm)
        self.write_json({"thumbprint": key.kid, "public": public, "private": private_jwk(key)})


class RotateSigningHandler(TestingHandler):
    """POST /testing/rotate."""

    async def post(self) -> None:
        """Gives the signing keys successors."""
        self.write_json({"kids": await self.rehearsal.rotate(now=flag(self.body(), "now", False))})


class ProofsHandler(TestingHandler):
    """POST /testing/proofs."""

    async def post(self) -> None:
        """Makes a DPoP proof with a key that was made here."""
        params = self.body()
        jkt, method, url = (params.require(name) for name in ("thumbprint", "method", "url"))
        token, nonce = params.get("access_token"), params.get("nonce")
        self.write_json({"proof": self.rehearsal.keys.proof(jkt, method, url, token, nonce)})


class DisconnectHandler(TestingHandler):
    """POST /testing/disconnect."""

    async def post(self) -> None:
        """Disconnects the app as the person would, on the page of connected apps."""
        params = self.body()
        session, client_id = await self.rehearsal.session(email_of(params)), params.require("client_id")
        until = await self.store.grants.revoke(session, client_id, VISITOR)
        self.store.app_stats.disconnected(client_id)
        self.write_json({"dataUntil": iso(until)})


class PauseHandler(TestingHandler):
    """POST /testing/pause."""

    async def post(self) -> None:
        """Pauses the app as the person would, on the page of connected apps, or resumes it if `paused` is false."""
        params = self.body()
        session, client_id = await self.rehearsal.session(email_of(params)), params.require("client_id")
        paused = flag(params, "paused", True)
        change = self.store.grants.pause if paused else self.store.grants.resume
        await change(session, client_id, VISITOR)
        self.write_json({"paused": paused})


class TestCreditsHandler(TestingHandler):
    """/testing/credits."""

    async def get(self) -> None:
        """Answers with the person's credits."""
        email = email_of(once(parse_pairs(self.request.query)))
        await self.write_balance(await self.rehearsal.user(email))

    async def post(self) -> None:
        """Gives a person micro-dollars, or takes them."""
        params = self.body()
        amount = amount_of(params, "amount", -MAX_AMOUNT)
        user = await self.rehearsal.user(email_of(params))
        await self.store.credits.grant(user, amount, reason=params.get("reason") or "A test")
        await self.write_balance(user)

    async def write_balance(self, user: str) -> None:
        """Writes the same figures as the operations port."""
        account = await self.store.credits.show(user, most=1)
        figures = {"paid": account.paid, "held": account.held, "spendable": account.spendable}
        self.write_json({"sub": user, **figures, "currency": CURRENCY, "scale": SCALE})


class LimitsHandler(TestingHandler):
    """POST /testing/limits."""

    async def post(self) -> None:
        """Uses up a rate limit."""
        params = self.body()
        email, group = email_of(params), params.require("group")
        self.write_json({"retryAfter": await self.rehearsal.exhaust(email, group, params.get("client_id") or "")})


class StoreHandler(TestingHandler):
    """POST /testing/store."""

    async def post(self) -> None:
        """Takes the store away, or brings it back."""
        away = flag(self.body(), "away", True)
        self.rehearsal.away(away)
        self.write_json({"away": away})


class TestResetHandler(TestingHandler):
    """POST /testing/reset."""

    async def post(self) -> None:
        """Returns to the state after a start."""
        self.body()
        await self.rehearsal.reset()
        self.write_json({})


TESTING_ROUTES: list[tuple[str, Any]] = [
    (r"/testing/travel", TravelHandler),
    (r"/testing/consents", ConsentsHandler),
    (r"/testing/devices", DevicesHandler),
    (r"/testing/apps", TestAppsHandler),
    (r"/testing/apis", TestApisHandler),
    (r"/testing/people", PeopleHandler),
    (r"/testing/people/groups", TestGroupsHandler),
    (r"/testing/people/delete", LeaveHandler),
    (r"/testing/people/signout", TestSignOutHandler),
    (r"/testing/tokens", TokensHandler),
    (r"/testing/keys", KeysHandler),
    (r"/testing/rotate", RotateSigningHandler),
    (r"/testing/proofs", ProofsHandler),
    (r"/testing/disconnect", DisconnectHandler),
    (r"/testing/pause", PauseHandler),
    (r"/testing/credits", TestCreditsHandler),
    (r"/testing/limits", LimitsHandler),
    (r"/testing/store", StoreHandler),
    (r"/testing/reset", TestResetHandler),
]


def add_to(application: Latchkey, rehearsal: Rehearsal) -> None:
    """Adds the tests' routes to the application, and replaces the authorization endpoint with one that acts for the
    person."""
    _, known = application.literal["/oauth/authorize"]
    application.literal = {
        **application.literal,
        **{path: (handler, {"policy": OPEN, "rehearsal": rehearsal}) for path, handler in TESTING_ROUTES},
        "/oauth/authorize": (PlayedAuthorizeHandler, {**known, "rehearsal": rehearsal}),
    }
