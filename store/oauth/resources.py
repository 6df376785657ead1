"""Which resource a request means, and the scopes there. RFC 8707."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import ApiScopeName, parse_qualified
from store.apps.registration import Registration
from store.refused import Refused


def meant_api(app: Registration, names: Collection[str]) -> str:
    """The API (its client id) that a request without `resource` means: the one that has all these scopes, or with no
    scope the only one the app registered for. Raises Refused("invalid_target")."""
    registered = [parse_qualified(scope) for scope in app.api_scopes]
    apis = {scope.api for scope in registered}
    for name in names:
        apis &= {scope.api for scope in registered if scope.name == name}
    if len(apis) != 1:
        raise Refused("invalid_target", "Name the API as resource: the scopes are not those of exactly one API.")
    return apis.pop()


def scopes_at(app: Registration, api: ApiRegistration, names: Sequence[str]) -> tuple[str, ...]:
    """The requested scopes, or all if there are none, that the app registered for at this API; in the API's order.
    Raises Refused("invalid_scope")."""
    having = [name for name in api.scope_names() if ApiScopeName(api.client_id, name).qualified in app.api_scopes]
    if not having or not set(names) <= set(having):
        raise Refused("invalid_scope", "The app has not registered this scope for the API.")
    return tuple(name for name in having if not names or name in names)
