"""Token exchange at the token endpoint. RFC 8693 2."""

from __future__ import annotations

from handlers.core.api import ApiHandler
from handlers.core.auth.dpop import read_proof
from handlers.core.params import Params
from handlers.oauth.details import check_details
from handlers.oauth.requests import IGNORED, MAX_SCOPE, bounded
from store.apps.client_ids import is_api_id
from store.apps.registration import Registration
from store.lifetimes import ACCESS_TOKEN, DAY, SECOND
from store.names import check_program_name
from store.oauth.budgets import details_of
from store.oauth.exchange.token_exchange import DelegatedToken, WantedToken
from store.oauth.resources import targets_of
from store.refused import Refused, UnknownUser, reason_of

_TYPES = "urn:ietf:params:oauth:token-type:"
ACCESS = f"{_TYPES}access_token"
_JWT = f"{_TYPES}jwt"
SUBJECT_TYPES = (ACCESS, _JWT)
"""The types of subject and actor tokens: an access token may be a JWT (RFC 9068)."""
MAX_AUDIENCE = 2048
MAX_LIFE = DAY // SECOND
MOST_NAME = 100
"""Characters of a name."""
assert ACCESS_TOKEN <= DAY


async def exchange_token(handler: ApiHandler, params: Params) -> None:
    """Answers a token exchange with a delegated token (RFC 8693 2.2.1). Raises Refused."""
    site, store = handler.site, handler.store
    base = site.base_url
    presented, actor = params.require("subject_token"), params.get("actor_token")
    _check_types(params, presented, actor)
    scopes = tuple(dict.fromkeys(name for name in bounded(params, "scope", MAX_SCOPE).split() if name != IGNORED))
    details = check_details(params, site.models.find)
    wanted = WantedToken(_target(params, base), scopes, details, _life(params), _name(params))
    sent = handler.client_id_of(params)
    if sent is not None and is_api_id(sent):
        asker = await handler.authenticate_asker(params)
    else:
        app = await handler.authenticate(params)
        assert app is not None
        asker = app
    try:
        subject = await store.token_exchange.subject(asker, presented, base)
        proof = None
        if subject.app.dpop_required or "DPoP" in handler.request.headers:
            handler.expect_proof()
            proof = read_proof(handler.request, site, subject.app.rules)
        if actor is not None:
            # RFC 8693 2.1: `act` names whoever asks, so an actor token is theirs.
            live = await store.introspection.by_app(asker, actor, base) if isinstance(asker, Registration) else None
            if live is None or not live.is_access:
                raise UnknownUser(Refused("invalid_request", "The actor token is not a live access token of this app."))
        await store.subjects.prepare(subject.app.sector)
        issued = await store.token_exchange.exchange(asker, subject, wanted, proof, base)
    except UnknownUser as unknown:
        await handler.refuse_unknown(unknown.refusal)
    _write(handler, issued, "DPoP" if proof else "Bearer")


def _write(handler: ApiHandler, issued: DelegatedToken, token_type: str) -> None:
    handler.write_window(issued.window)
    handler.set_header("Pragma", "no-cache")  # RFC 6749 5.1
    answer = {
        "access_token": issued.access_token,
        "issued_token_type": ACCESS,
        "token_type": token_type,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
    }
    if issued.budgets:
        answer["authorization_details"] = details_of(issued.budgets)
    handler.write_json(answer)


def _check_types(params: Params, subject: str, actor: str | None) -> None:
    _check_type("subject_token", params.require("subject_token_type"), subject)
    if (params.get("requested_token_type") or ACCESS) != ACCESS:
        raise Refused("invalid_request", f"requested_token_type is {ACCESS}.")
    kind = params.get("actor_token_type")
    if actor is None and kind is not None:
        raise Refused("invalid_request", "actor_token_type comes with actor_token only.")
    if actor is not None:
        _check_type("actor_token", kind, actor)


def _check_type(name: str, kind: str | None, token: str) -> None:
    """Whether the type of a token is one we know, and the token may be of it. RFC 8693 2.1, 3."""
    if kind not in SUBJECT_TYPES:
        raise Refused("invalid_request", f"{name}_type is {' or '.join(SUBJECT_TYPES)}.")
    if kind == _JWT and token.count(".") != 2:
        raise Refused("invalid_request", f"{name} is no JWT. For an opaque token, {name}_type is {ACCESS}.")


def _target(params: Params, base: str) -> str:
    """The resource that `resource` and `audience` name, as `target_of`; an API is also named by its client id."""
    targets = set(targets_of(params.several("resource"), base))
    for audience in params.several("audience"):
        if len(audience.encode()) > MAX_AUDIENCE:
            raise Refused("invalid_request", f"audience is longer than {MAX_AUDIENCE} bytes.")
        targets |= {audience} if is_api_id(audience) else targets_of((audience,), base)
    if len(targets) > 1:
        raise Refused("invalid_target", "A token is for one resource.")
    return targets.pop() if targets else ""


def _life(params: Params) -> int:
    """The life that the request wants (ms); 0 for as long as the subject token."""
    if params.value("expires_in") in (None, ""):
        return 0
    seconds = params.whole("expires_in")
    if not 1 <= seconds <= MAX_LIFE:
        raise Refused("invalid_request", f"expires_in is a number of seconds from 1 to {MAX_LIFE}.")
    return seconds * SECOND


def _name(params: Params) -> str:
    """The name of the delegated token, for the person."""
    name = bounded(params, "name", 4 * MOST_NAME)
    try:
        return check_program_name(name) if name else ""
    except ValueError as error:
        raise Refused("invalid_request", f"name: {reason_of(error)}") from None
