"""What demands that a person's sign-in had a second step: an app by its registration, a scope of this server by the
operator's setting, a scope of an API by the API's registration."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import ApiScopeName
from store.apps.registration import Registration


def demands_step(
    app: Registration, scopes: Collection[str], own: Collection[str], api: ApiRegistration | None = None
) -> bool:
    """Whether a request of the app for these scopes, as the store has them, demands a second step. `own`: the scopes of
    this server that do; `api`: the API that the request is for."""
    return app.demands_step or any(scope in scopes for scope in (*giving(own), *_theirs(api)))


def demanded_scopes(app: Registration, own: Collection[str], apis: Iterable[ApiRegistration] = ()) -> str:
    """What demands a second step of the app's refresh tokens, as the script takes it: `*` for all of them, otherwise
    scopes. `own` as in `demands_step`."""
    if app.demands_step:
        return "*"
    return " ".join((*giving(own), *(scope for api in apis for scope in _theirs(api))))


def giving(own: Collection[str]) -> tuple[str, ...]:
    """These scopes of this server, and whatever includes one of them: `profile` gives the address too."""
    return (*own, "profile") if "email" in own and "profile" not in own else tuple(own)


def _theirs(api: ApiRegistration | None) -> list[str]:
    if api is None:
        return []
    return [ApiScopeName(api.client_id, scope.name).qualified for scope in api.scopes if scope.second_step]
