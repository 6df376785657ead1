"""Authorization requests: from the browser's arrival to the code. SPEC 4.1, 4.2."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from store import keys
from store.accounts.signin.sessions import Session
from store.apps.registration import Registration
from store.bounds import Bounds
from store.crypto.seal import Sealer, Token, TokenKind, fresh_epoch, new_id
from store.engine.scripts import Reply, Scripts
from store.lifetimes import ACCESS_TOKEN, AUTHORIZE, CODE, DEVICE_REQUEST, REQUEST, SPENDING_MAIL, UNDO_LINK
from store.oauth.budgets import Budget, amounts, read_budgets
from store.oauth.sign_in import methods_for
from store.phrases import Phrase
from store.rates import Rates
from store.refused import Refused, let_in, refuse_signed_out
from store.results import Allowance, Profile, Visitor, Window, allowance_of, profile_of


class AuthorizationRequest(NamedTuple):
    """A request that passed every check. `challenge` is empty without PKCE; `terms` are those of the registration that
    the request was checked against; `place` is the grant's field for remembered consent (`Registration.place`).
    `nonce` goes into the ID token; `acr` has the requested levels, best first; `mode` is `form_post` or empty; `pushed`
    is the id of a pushed request, or empty. `api` is the client id of the API that the app wants to call, or empty; its
    scopes are qualified. `jkt` is the thumbprint of the key that the code is bound to (RFC 9449 10), or empty. `device`
    is the id of a device's request, or empty: such a request has no redirect URI and no place.
    `details`: the requested budgets, as scripts take them (`store/oauth/budgets.py`), or empty. `allowed`:
    `Registration.members_of`. `second_step`: the app or a scope demands that the sign-in had one."""

    client: str
    redirect_uri: str
    scopes: tuple[str, ...]
    state: str
    challenge: str
    terms: str
    place: str
    nonce: str = ""
    acr: tuple[str, ...] = ()
    mode: str = ""
    pushed: str = ""
    api: str = ""
    jkt: str = ""
    device: str = ""
    details: str = ""
    allowed: str = ""
    second_step: bool = False


class Awaited(NamedTuple):
    """What the id of a pending request names: the app, and the id of the pushed request or the device's request that it
    answers, or empty."""

    client: str
    pushed: str
    device: str = ""


class SignInAgain(Exception):
    """The person is signed in, but not recently enough, or not for this request."""


class StepUp(Exception):
    """The person is signed in, but in none of the ways that this request requires."""

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self.profile = profile


@dataclass(frozen=True, slots=True)
class Remembered:
    """Consent was given before: the code for the browser's way back."""

    code: str


@dataclass(frozen=True, slots=True)
class Pending:
    """The person has to decide: details for the page, and the id that the page sends back with the decision.
    `spend_limit` is that of an earlier consent, in micro-dollars a month; `budgets` are requested;
    `paused`: the person has paused the app; `ended`: they have disconnected it; `budgeted`: a budget of an earlier
    decision also limits what the app may now spend."""

    request_id: str
    profile: Profile
    granted: frozenset[str]
    spend_limit: int | None = None
    budgets: tuple[Budget, ...] = ()
    paused: bool = False
    ended: bool = False
    budgeted: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Where to send the browser, and how (`mode`, as in the request); `code` is None if the person denied.
    `connected`: the app is newly connected; `allowance`: the notice to mail to the person if the app may spend more
    than before. `code_id`: the id in the code."""

    redirect_uri: str
    state: str
    code: str | None
    window: Window
    connected: bool = False
    allowance: Allowance | None = None
    mode: str = ""
    code_id: str = ""


class ConsentRequest(NamedTuple):
    """The part of a request that the consent page shows, as in `AuthorizationRequest`."""

    redirect_uri: str
    scopes: tuple[str, ...]
    api: str = ""


class Outsider(Refused):
    """The person is in none of the groups whose members may use the app."""

    def __init__(self, profile: Profile) -> None:
        super().__init__("access_denied", Phrase("This app is only for members of certain groups."))
        self.profile = profile


class NothingTicked(Refused):
    """The person allowed none of the scopes. The request stays open; `asked` and `pending` show its page again."""

    def __init__(self, asked: ConsentRequest, pending: Pending, window: Window) -> None:
        super().__init__(
            "invalid_scope", Phrase("Choose at least one of the things that the app asks for."), window=window
        )
        self.asked, self.pending = asked, pending


PUSHED, DEVICE = 1, 2
"""The generations in the ids of pending requests that were pushed, and that devices made."""
TOO_MANY_APPS = Phrase(
    "You've connected as many apps as one account can have. Disconnect one that you no longer use and delete its "
    "documents. Then go back and allow this one."
)


class Authorizations:
    """Pending requests, decisions and the resulting codes. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, sealer: Sealer, idle: int, bounds: Bounds, rates: Rates) -> None:
        self._bounds = bounds
        self._rates = rates
        self._scripts = scripts
        self._sealer = sealer
        self._idle = idle
        self.keep: Callable[[Registration], Awaitable[None]] = nothing
        """Keeps an app that registered itself, before somebody allows it."""

    async def begin(
        self,
        session: Session,
        request: AuthorizationRequest,
        *,
        always_ask: bool,
        fresh: int | None = None,
        since: int = 0,
    ) -> Remembered | Pending:
        """Returns a code if a live grant covers the scopes and remembers consent to them at this redirect URI.
        Otherwise keeps the request for 10 minutes. `fresh`: how long ago the sign-in may have been, in ms. `since`: the
        time of a sign-in for this request (epoch ms), which counts for 10 minutes whatever `fresh` says. Without both,
        any sign-in will do. Raises SignedOut, SignInAgain, Outsider, StepUp, Refused("rate_limited")."""
        # A pushed or a device's request has one pending one, whose id says so. So its end can come before the decision.
        code_id = new_id()
        one_id = request.pushed or request.device or code_id
        reply = await self._scripts.run(
            "begin_authorization",
            {
                **keys.token(session.user, request.client, code_id, 0),
                "session": keys.session(session.user, session.session_id),
                "outbox": keys.outbox(session.user),
                "request": keys.request(session.user, one_id),
                "code": keys.code(session.user, code_id),
                "window": keys.limit(session.user, AUTHORIZE.name),
            },
            scope=" ".join(request.scopes),
            redirect_uri=request.redirect_uri,
            challenge=request.challenge,
            state=request.state,
            always_ask="1" if always_ask else "0",
            request_ttl=REQUEST,
            code_ttl=CODE,
            idle=self._idle,
            terms=request.terms,
            place=request.place,
            limit=AUTHORIZE.limit,
            period=AUTHORIZE.period,
            client=request.client,
            fresh=-1 if fresh is None else fresh,
            since=since,
            since_lasts=REQUEST,
            methods=methods_for(request.acr, second_step=request.second_step),
            nonce=request.nonce,
            acr=",".join(request.acr),
            fresh_sid=new_id(),
            mode=request.mode,
            pushed="1" if request.pushed or request.device else "",
            api=request.api,
            jkt=request.jkt,
            member=keys.member(session.user),
            details=request.details,
            allowed=request.allowed,
        )
        refuse_signed_out(reply)
        if reply.word == "outsider":
            raise Outsider(profile_of(session.user, reply))
        if reply.word == "sign_in":
            raise SignInAgain
        if reply.word == "step_up":
            raise StepUp(profile_of(session.user, reply))
        if reply.word == "rate_limited":
            let_in(AUTHORIZE, reply)
        if reply.word == "remembered":
            return Remembered(self._sealer.seal(Token(TokenKind.CODE, session.user, request.client, code_id, 0)))
        kind = PUSHED if request.pushed else DEVICE if request.device else 0
        request_id = self._sealer.seal(Token(TokenKind.REQUEST, session.user, request.client, one_id, kind))
        return replace(_pending(request_id, session.user, reply), ended=bool(reply.raw("ended")))

    def awaited(self, session: Session, request_id: str) -> Awaited | None:
        """What a request id of this person names, or None for any other text. No I/O."""
        token = self._sealer.open(TokenKind.REQUEST, request_id)
        if token is None or token.user != session.user:
            return None
        pushed, device = (token.id if token.generation == kind else "" for kind in (PUSHED, DEVICE))
        return Awaited(token.client, pushed, device)

    async def decide(
        self,
        session: Session,
        app: Registration,
        request_id: str,
        *,
        allow: bool,
        scopes: Sequence[str] | None,
        visitor: Visitor,
        spend_limit: int | Literal["none", ""] = "",
        budgets: Mapping[str, int] | None = None,
        budgets_last: int = 0,
        unseen: bool = False,
    ) -> Decision:
        """Carries out the decision on a pending request and uses the request up. `scopes` are the plain names of the
        ticked scopes, None for all requested ones. The grant loses requested scopes that were not ticked, and keeps
        scopes that were not requested. A decision ends a grace window (SPEC 3.1); the grant then has only the ticked
        scopes. `spend_limit` is what the app may spend in a calendar month, in micro-dollars; "" leaves it unchanged.
        `budgets` has the amounts that the person set, by type: they lower what the app asked for. Budgets end after
        `budgets_last` ms; 0: never. `unseen`: the person saw no page, so nothing that they ended begins again.
        Raises SignedOut, NothingTicked, Refused("invalid_request" or "rate_limited"), Refused("access_denied") if the
        person has the most apps allowed: that changes nothing, and the request stays open."""
        token = self._sealer.open(TokenKind.REQUEST, request_id)
        if token is None or token.user != session.user or token.client != app.client_id:
            raise Refused("invalid_request", Phrase("This request isn't yours."))
        user, client, device = session.user, token.client, token.generation == DEVICE
        if allow and app.origin:
            await self.keep(app)
        group = self._rates.oauth
        code_id = new_id()
        reply = await self._scripts.run(
            "decide_authorization",
            {
                **session.keys(),
                **keys.hosted(user, client),
                **keys.outbox_keys(user[:3]),
                "request": keys.request(user, token.id),
                "grant": keys.grant(user, client),
                "code": keys.code(user, code_id),
                "app_users": keys.shard_app_users(user[:3], client),
                "window": keys.limit(user, group.name),
                "mails": keys.limit(user, SPENDING_MAIL.name),
            },
            member=keys.member(user),
            client=client,
            decision="allow" if allow else "deny",
            scopes="*" if scopes is None else " ".join(dict.fromkeys(scopes)),
            fresh_epoch=fresh_epoch(),
            # A device may poll late, and its sign-in is no part of this session.
            code_ttl=DEVICE_REQUEST if device else CODE,
            idle=self._idle,
            limit=group.limit,
            period=group.period,
            terms=app.terms,
            spend_limit=spend_limit,
            mails_most=SPENDING_MAIL.limit,
            mails_period=SPENDING_MAIL.period,
            raise_kept=UNDO_LINK,
            prefix=keys.prefix(user),
            shard=keys.shard_prefix(user),
            most=self._bounds.grants,
            access_ttl=ACCESS_TOKEN,
            fresh_sid="" if device else new_id(),
            amounts=amounts((budgets or {}).items()),
            lasts=budgets_last,
            allowed=app.members_of,
            unseen="1" if unseen else "",
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        window = let_in(group, reply)
        if reply.word == "gone":
            raise Refused(
                "invalid_request",
                Phrase("This request has expired or was already answered. Go back to the app."),
                window=window,
            )
        if reply.word == "invalid_scope":
            asked = ConsentRequest(reply.text("redirect_uri"), tuple(reply.text("scope").split()), reply.text("api"))
            raise NothingTicked(asked, _pending(request_id, user, reply), window)
        if reply.word == "full":
            raise Refused("access_denied", TOO_MANY_APPS, window=window)
        code, connected, allowance = None, False, None
        if reply.word == "allowed":
            code = self._sealer.seal(Token(TokenKind.CODE, user, client, code_id, 0))
            connected, allowance = reply.text("connected") == "1", allowance_of(reply)
        return Decision(
            reply.text("redirect_uri"),
            reply.text("state"),
            code,
            window,
            connected,
            allowance,
            reply.text("mode"),
            code_id if code else "",
        )


async def nothing(app: Registration) -> None:
    """Does nothing."""


def _pending(request_id: str, user: str, reply: Reply) -> Pending:
    return Pending(
        request_id,
        profile_of(user, reply),
        frozenset(reply.text("granted").split()),
        reply.number("spend_limit") if reply.raw("spend_limit") else None,
        read_budgets(reply.text("details")),
        bool(reply.raw("paused")),
        budgeted=bool(reply.raw("budgeted")),
    )
