"""The scopes of APIs that an owner may choose for an app, as boxes of its form."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from handlers.core.scopes import ScopeWords
from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import parse_qualified
from store.apps.registration import Registration
from store.oauth.resources import qualified_scopes
from store.phrases import Phrase

MOST_APIS = 50
"""APIs in one form, in addition to those that the app uses. The operator can give an app scopes of any other."""


class ScopeBox(NamedTuple):
    """A box: the scope as the store has it, its name on the wire, and its words."""

    scope: str
    name: str
    words: ScopeWords


class ApiBoxes(NamedTuple):
    """The boxes of one API. `name` is empty for scopes that no active API has."""

    name: str
    identifier: str
    boxes: tuple[ScopeBox, ...]


def api_boxes(apis: Sequence[ApiRegistration], having: Collection[str] = (), owner: str = "") -> list[ApiBoxes]:
    """What an app of this `owner` (a user id) that has the scopes `having` may have. Scopes that need care come from
    the operator, or are those of the owner's own APIs."""
    used = {parse_qualified(scope).api for scope in having}
    active = [api for api in apis if api.active]
    shown = [api for api in active if api.client_id in used]
    others = sorted((api for api in active if api.client_id not in used), key=lambda api: not _is_of(api, owner))
    shown += others[:MOST_APIS]
    offered = [ApiBoxes(api.name, api.identifier, boxes) for api in shown if (boxes := _boxes_of(api, having, owner))]
    known = {box.scope for api in offered for box in api.boxes}
    if left := tuple(_left_box(scope) for scope in having if scope not in known):
        offered.append(ApiBoxes("", "", left))
    return offered


def offered_scopes(offered: Sequence[ApiBoxes]) -> tuple[str, ...]:
    """The scopes of all boxes."""
    return tuple(box.scope for api in offered for box in api.boxes)


def scopes_of(app: Registration | None) -> tuple[str, ...]:
    """The scopes of APIs that an app has now; none for a new app."""
    return app.api_scopes if app else ()


def _is_of(api: ApiRegistration, owner: str) -> bool:
    return bool(owner) and api.owner == owner


def _boxes_of(api: ApiRegistration, having: Collection[str], owner: str) -> tuple[ScopeBox, ...]:
    both = zip(qualified_scopes(api), api.scopes, strict=True)
    return tuple(
        ScopeBox(qualified, scope.name, ScopeWords(scope.title, scope.detail, scope.care, api.name))
        for qualified, scope in both
        if not scope.care or qualified in having or _is_of(api, owner)
    )


def _left_box(scope: str) -> ScopeBox:
    name = parse_qualified(scope).name
    return ScopeBox(
        scope, name, ScopeWords(name, Phrase("Its API is switched off, or no longer has this scope."), False)
    )
