"""Token exchange: delegated tokens, which come from an access token and are no wider. RFC 8693."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from store import keys
from store.apps.api_record import ApiRegistration
from store.apps.apps import Apps
from store.apps.registration import Registration
from store.crypto.dpop import DpopProof
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Scripts
from store.lifetimes import ACCESS_TOKEN
from store.limits import RateLimits
from store.oauth.api_access import ApiAccess
from store.oauth.budgets import Budget, told_budgets
from store.oauth.exchange.handed_on import HandedOn, told_handed_on
from store.oauth.proofs import Proofs, demand_proof
from store.oauth.resources import MCP, api_of
from store.oauth.token_refusals import refuse_exchange
from store.refused import Refused, UnknownUser, let_in
from store.results import Window

DEEPEST = 5
"""The most generations of delegated tokens."""
MOST_DELEGATED = 100
"""The most live delegated tokens of one person and app."""


class Subject(NamedTuple):
    """A subject token that opens, with its app; whether it is live is for the script to say."""

    token: Token
    app: Registration


class WantedToken(NamedTuple):
    """What a request wants of a delegated token: `target` as `target_of` in `store/oauth/resources.py`, plain names of
    `scopes`, parts of budgets as scripts take them (`details`), a life of `lasts` ms; empty or 0 for as much as the
    subject token has. `name`: for people, or empty."""

    target: str = ""
    scopes: Sequence[str] = ()
    details: str = ""
    lasts: int = 0
    name: str = ""


class DelegatedToken(NamedTuple):
    """A delegated token; it has no refresh token. `expires_in` is in seconds; `budgets`: what it may spend."""

    access_token: str
    expires_in: int
    scope: str
    window: Window
    budgets: tuple[Budget, ...]


class TokenExchange:
    """Issues delegated tokens, for an authenticated app or API."""

    def __init__(
        self,
        scripts: Scripts,
        sealer: Sealer,
        limits: RateLimits,
        apps: Apps,
        access: ApiAccess,
        proofs: Proofs,
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._limits = limits
        self._apps = apps
        self._access = access
        self._proofs = proofs

    async def subject(self, asker: Registration | ApiRegistration, presented: str, issuer: str) -> Subject:
        """Opens a subject token, sealed or a JWT from `issuer`. Raises UnknownUser for a text that is no access token
        of ours, or one of another app."""
        token = self._sealer.open(TokenKind.ACCESS, await self._access.sealed_in(presented, issuer))
        if token is None:
            raise UnknownUser(_no_subject())
        if isinstance(asker, Registration):
            if token.client != asker.client_id:
                raise UnknownUser(_no_subject())
            return Subject(token, asker)
        app = await self._apps.active(token.client)
        if app is None:
            raise UnknownUser(_no_subject())
        return Subject(token, app)

    async def exchange(
        self,
        asker: Registration | ApiRegistration,
        subject: Subject,
        wanted: WantedToken,
        proof: DpopProof | None,
        issuer: str,
    ) -> DelegatedToken:
        """A token that comes from the subject token. RFC 8693 2.1. With a proof, it is bound to its key; one that comes
        from a bound token always is, of a public app to the same key. A JWT says that it is from `issuer`.

        Raises Refused("invalid_request", "invalid_target", "invalid_scope", "invalid_authorization_details",
        "invalid_dpop_proof" or "rate_limited"), UnknownUser for a dead subject token, or one that the asker may not
        hand on."""
        (token, app), group, child = subject, self._limits.rates.oauth, new_id()
        is_app = isinstance(asker, Registration)
        demand_proof(app, proof)
        async with self._proofs.counted(proof):
            allowed = await self._access.allowed(app)
            new = keys.token(token.user, token.client, child, 0)
            jkt = proof.jkt if proof else ""
            reply = await self._scripts.run(
                "exchange_token",
                {
                    **keys.token(token.user, token.client, token.id, token.generation),
                    "child": new["family"],
                    "child_access": new["access"],
                    "window": keys.limit(token.user, group.name, "" if is_app else asker.client_id),
                    "activity": keys.person(token.user)["activity"],
                },
                client=token.client,
                actor=asker.client_id,
                audience="*" if is_app else asker.client_id,
                parent=token.id,
                generation=token.generation,
                child_id=child,
                target=api_of(app, wanted.target),
                apis=allowed.lifetimes,
                wanted=" ".join(wanted.scopes),
                registered=allowed.registered,
                details=wanted.details,
                lasts=wanted.lasts,
                name=wanted.name,
                jkt=jkt,
                same_key="1" if app.public and is_app else "",
                access_ttl=ACCESS_TOKEN,
                deepest=DEEPEST,
                most=MOST_DELEGATED,
                limit=group.limit,
                period=group.period,
            )
            if reply.word == "dead":
                raise UnknownUser(_no_subject())
            window = let_in(group, reply)
            refuse_exchange(reply, window)
        sealed = self._sealer.seal(Token(TokenKind.ACCESS, token.user, token.client, child, 0))
        lasts, scope, row = reply.number("expires_in"), reply.text("scope"), reply.rows("api")
        if row and row[0] != MCP.encode():
            act = act_of(app, reply.text("act"))
            sealed, whole = await self._access.for_person(
                app, token.user, sealed, scope, row, allowed, issuer, jkt, act
            )
            lasts = min(lasts, whole)
        return DelegatedToken(sealed, lasts, scope, window, told_budgets(reply.rows("budgets")))

    async def listed(self, user: str, client: str) -> tuple[HandedOn, ...]:
        """The live delegated tokens of a person and an app. Raises StoreUnavailable."""
        known = {"grant": keys.grant(user, client)}
        reply = await self._scripts.run("list_delegated", known, prefix=keys.prefix(user))
        return tuple(told_handed_on(row) for row in reply.rows("rows"))


def act_of(app: Registration, actors: str) -> dict[str, Any] | None:
    """The claim `act` (RFC 8693 4.1) for a token of the app. `actors`: client ids with spaces between them, the
    last one who exchanged first. None without any."""
    act: dict[str, Any] | None = None
    for actor in reversed(actors.split()):
        known = app.wire_id if actor == app.client_id else actor
        act = {"sub": known, "client_id": known, **({"act": act} if act else {})}
    return act


def _no_subject() -> Refused:
    # RFC 8693 2.2.2: this code, also where the grant's own would be invalid_grant.
    return Refused("invalid_request", "The subject token is expired, revoked, or not one that you may hand on.")
