"""Which resource a request is for, and the scopes there. RFC 8707.

A resource is Latchkey itself, whose identifier is the base URL, its MCP server, or an API. An access token is for one
of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from store.apps.api_record import ApiRegistration, api_id, count_of, first_id
from store.apps.api_scopes import ApiScopeName, parse_qualified
from store.apps.registration import Registration
from store.names import ADVERTISED, SCOPES
from store.refused import Refused

OWN = "own"
"""The target of a token request that names Latchkey itself."""
MCP = "mcp"
"""The target that names this server's MCP server, also in place of the client id of an API. Its scopes are Latchkey's
own, but a token for one of the two works only there."""
MCP_PATH = "/mcp"
WITH_ANY_API = frozenset(("openid", "profile", "email", "groups"))
"""Scopes of OpenID Connect: a request for an API may have them too, without naming the API."""


class RequestedAccess(NamedTuple):
    """What an authorization request is for: scopes as the store has them, and the client id of the API, MCP, or
    empty."""

    scopes: tuple[str, ...]
    api: str


def target_of(resources: Collection[str], base_url: str) -> str:
    """The resource of a token request: OWN, MCP, the client id of the first API with the identifier, or empty if none
    is named. Whether there is such an API is not known yet: see `api_of`. Raises Refused("invalid_target") for
    several."""
    if not resources:
        return ""
    targets = targets_of(resources, base_url)
    if len(targets) > 1:
        raise Refused("invalid_target", "A token is for one resource. Refresh to get one for the other.")
    return next(iter(targets), "")


def targets_of(resources: Collection[str], base_url: str) -> frozenset[str]:
    """The resources of an authorization request, as `target_of`."""
    # RFC 3986 6.2.3: the base URL is the same address with a final slash.
    ours = {base_url: OWN, base_url + MCP_PATH: MCP}
    return frozenset(ours.get(one.removesuffix("/")) or api_id(one) for one in resources)


def wanted_at(
    app: Registration, own: tuple[str, ...], others: Sequence[str], targets: Collection[str]
) -> RequestedAccess:
    """What a request with these scopes and resources (`targets`, as `target_of` gives them) is for. `own` are known
    scopes of Latchkey, `others` all other names. Raises Refused("invalid_target" or "invalid_scope")."""
    if not others and not targets:
        return RequestedAccess(own, "")
    others = tuple(dict.fromkeys(others))
    if MCP in targets:
        if len(targets) > 1:
            raise Refused("invalid_target", "The MCP server is a resource of its own: name no other one with it.")
        if others:
            raise Refused("invalid_scope", "This resource does not have all of these scopes.")
        return RequestedAccess(own, MCP)
    apis = {target for target in targets if target != OWN}
    if len(apis) > 1:
        raise Refused("invalid_target", "An authorization is for one API at most, in addition to this server.")
    registered = scopes_of_apis(app)
    if not set(others) <= {scope.name for scope in registered.values()}:
        raise Refused("invalid_scope", "A scope is unknown, or the app did not register it.")
    if not targets:
        if not others:
            return RequestedAccess(own, "")
        api = meant_api(app, others)
        if not set(own) <= WITH_ANY_API:
            raise Refused("invalid_target", "Scopes of an API and of this server: name the API as resource.")
    elif not apis:
        if others:
            raise Refused("invalid_scope", "This resource does not have all of these scopes.")
        return RequestedAccess(own, "")
    else:
        api = api_of(app, apis.pop())
        if api not in {scope.api for scope in registered.values()} or not others:
            raise Refused("invalid_target", "The app has no such resource, or asks for no scope there.")
    theirs = tuple(scope for scope, parts in registered.items() if parts.api == api and parts.name in others)
    if len(theirs) < len(others):
        raise Refused("invalid_scope", "The app did not register all of these scopes at this resource.")
    return RequestedAccess((*own, *theirs), api)


def default_scope(app: Registration, targets: frozenset[str], at_mcp: Sequence[str] = ()) -> str:
    """What a request without `scope` asks for (RFC 6749 3.3): the scopes that the resource's metadata name and the app
    may have, otherwise `profile`. `at_mcp`: those of the MCP server. Empty for an app that somebody registered: it has
    to name them."""
    if not app.origin:
        return ""
    apis = {api_of(app, target) for target in targets if target not in (OWN, MCP)}
    theirs = [one.name for one in scopes_of_apis(app).values() if one.api in apis]
    own = [scope for scope in ADVERTISED if scope in app.scopes] if not apis else []
    if targets <= {MCP} and "profile" in own:
        named = [scope for scope in at_mcp if scope in own] if targets else []
        own = named or ["profile"]
    return " ".join(dict.fromkeys((*own, *theirs)))


def meant_api(app: Registration, names: Collection[str]) -> str:
    """The API (its client id) that a request without `resource` means: the one that has all these scopes, or with no
    scope the only one the app registered for. Raises Refused("invalid_target")."""
    registered = scopes_of_apis(app).values()
    apis = {scope.api for scope in registered}
    for name in names:
        apis &= {scope.api for scope in registered if scope.name == name}
    if len(apis) != 1:
        raise Refused("invalid_target", "Name the API as resource: the scopes are not those of exactly one API.")
    return apis.pop()


def scopes_of_apis(app: Registration) -> dict[str, ApiScopeName]:
    """The app's scopes of APIs, as the store has them. If it registered for an API and for one that had the same
    identifier before, only those of the later one."""
    scopes = {scope: parse_qualified(scope) for scope in app.api_scopes}
    latest: dict[str, int] = {}
    for one in scopes.values():
        first, count = first_id(one.api), count_of(one.api)
        latest[first] = max(count, latest.get(first, 0))
    return {scope: one for scope, one in scopes.items() if count_of(one.api) == latest[first_id(one.api)]}


def api_of(app: Registration, target: str) -> str:
    """The client id of the API at a target (`target_of`) that the app registered for; other targets unchanged."""
    if not app.api_scopes or not target:
        return target
    return next((one.api for one in scopes_of_apis(app).values() if first_id(one.api) == target), target)


def held_for_itself(app: Registration, api: ApiRegistration) -> tuple[str, ...]:
    """The names of scopes that an app has for itself at an API, in the API's order: without those that its owner chose,
    who may be anybody, unless the API is the owner's too. Nor has it those that others of its team chose. No person
    allows such a token."""
    chosen = app.member_scopes if api.owner and api.owner == app.owner else app.owner_scopes
    given = [scope for scope in app.api_scopes if scope not in chosen]
    return plain_names([scope for scope in qualified_scopes(api) if scope in given])


def scopes_at(having: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The requested ones of the scopes that an app has at an API, or all if there are none. Raises
    Refused("invalid_scope")."""
    if not set(names) <= set(having):
        raise Refused("invalid_scope", "The app has not registered this scope for the API.")
    return tuple(name for name in having if not names or name in names)


def ordered_at(api: ApiRegistration, scopes: Sequence[str]) -> tuple[str, ...]:
    """The stored scopes of a request for this API: Latchkey's own, and the API's in its order. Raises
    Refused("invalid_scope") if the API no longer has one of them."""
    theirs = tuple(scope for scope in qualified_scopes(api) if scope in scopes)
    own = tuple(scope for scope in scopes if is_own(scope))
    if len(own) + len(theirs) < len(scopes):
        raise Refused("invalid_scope", "The resource does not have all of these scopes.")
    return own + theirs


def qualified_scopes(api: ApiRegistration) -> tuple[str, ...]:
    """The API's scopes as the store has them."""
    return tuple(ApiScopeName(api.client_id, name).qualified for name in api.scope_names())


def registered_at(app: Registration, api: ApiRegistration) -> tuple[str, ...]:
    """The names of scopes that the API has and the app registered, in the API's order."""
    return plain_names([scope for scope in qualified_scopes(api) if scope in app.api_scopes])


def is_at(scope: str, api: str) -> bool:
    """Whether a stored scope is one of this API (its client id)."""
    return scope.startswith(f"{api}/")


def is_own(scope: str) -> bool:
    """Whether a stored scope is one of Latchkey itself."""
    return "/" not in scope


def plain_names(scopes: Collection[str]) -> tuple[str, ...]:
    """Stored scopes as they are on the wire, each name once."""
    names = (scope if is_own(scope) else parse_qualified(scope).name for scope in scopes)
    return tuple(dict.fromkeys(names))


def apart(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of scopes: Latchkey's own, and others."""
    return tuple(name for name in names if name in SCOPES), tuple(name for name in names if name not in SCOPES)
