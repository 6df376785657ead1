"""What an assertion gives an app: one resource, and the scopes that all agree on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import ApiScopeName
from store.apps.apis import Apis
from store.apps.registration import Registration
from store.names import SCOPES
from store.oauth.assertions.id_jag import AssertionClaims
from store.oauth.assertions.issuers import EVERYTHING, TrustedIssuer
from store.oauth.resources import MCP, OWN, api_of, registered_at, targets_of
from store.oauth.second_steps import giving
from store.refused import Refused

NO_SIGN_IN = "openid"
"""Signing in is what a person does in a browser: an assertion never gives this scope."""
SPENDS = "credits:spend"


class AskedAccess(NamedTuple):
    """The resource (`api`: the client id of an API, MCP, or empty for Latchkey itself) and its scopes as the store has
    them."""

    api: str
    scopes: tuple[str, ...]


async def asked_access(
    app: Registration,
    trusted: TrustedIssuer,
    claims: AssertionClaims,
    target: str,
    names: Collection[str],
    base_url: str,
    apis: Apis,
) -> AskedAccess:
    """The access that an assertion gives. A request may name one of the resources (`target`, as `target_of` gives it)
    and some of the scopes (`names`). Raises Refused("invalid_grant", "invalid_target" or "invalid_scope"),
    StoreUnavailable."""
    target, most = _resource(trusted, claims, target, base_url)
    api = api_of(app, target)
    if target in (OWN, MCP):
        if target == MCP and not apis.mcp:
            raise _no_target()
        having: Sequence[str] = app.grantable
        harmless, stepped = [name for name in having if name != SPENDS], giving(apis.stepped)
    else:
        found = await apis.active(api)
        if found is None or not app.rules.allows(found.jwt_alg):
            raise _no_target()
        having, harmless = registered_at(app, found), _harmless(found)
        stepped = tuple(scope.name for scope in found.scopes if scope.second_step)
    # The draft, 4.4.1: what is granted may be less than the assertion says.
    given = [name for name in having if name in (harmless if EVERYTHING in most else ()) or name in most]
    given = [name for name in given if name != NO_SIGN_IN and (claims.scopes is None or name in claims.scopes)]
    if not claims.second_step:
        if app.demands_step:
            raise Refused("invalid_grant", "This app needs a second step, and the assertion shows none (amr).")
        given = [name for name in given if name not in stepped]
    if not given:
        raise Refused("invalid_grant", "The assertion gives this app no scope of this resource.")
    if names:
        given = [name for name in given if name in names]
        if not given:
            raise Refused("invalid_scope", "The assertion gives this app none of these scopes.")
    if target in (OWN, MCP):
        own = tuple(name for name in SCOPES if name in given)
        return AskedAccess(MCP if target == MCP else "", own)
    return AskedAccess(api, tuple(ApiScopeName(api, name).qualified for name in given))


def _resource(
    trusted: TrustedIssuer, claims: AssertionClaims, target: str, base_url: str
) -> tuple[str, tuple[str, ...]]:
    """The resource as a target, and the most scopes there."""
    allowed = {next(iter(targets_of((one,), base_url))): scopes for one, scopes in trusted.resources}
    choices = allowed.keys() & targets_of(claims.resources, base_url) if claims.resources else allowed.keys()
    if not choices:
        raise Refused("invalid_grant", "The issuer may not give access to this resource.")
    if target:
        if target not in choices:
            raise Refused("invalid_target", "The assertion is not for this resource.")
    elif len(choices) > 1:
        raise Refused("invalid_target", "The assertion is for several resources: name one as resource.")
    else:
        [target] = choices
    return target, allowed[target]


def _harmless(api: ApiRegistration) -> list[str]:
    return [scope.name for scope in api.scopes if not scope.care]


def _no_target() -> Refused:
    return Refused("invalid_target", "There is no such resource for this grant.")
