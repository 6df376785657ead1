"""Scopes of APIs in the store: qualified by their API, because two APIs may have scopes of one name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from store.phrases import Phrase

MOST_API_SCOPES = 100
"""Scopes of APIs that one app may register."""
_QUALIFIED = re.compile(r"(api_[A-Za-z0-9]{15}[0-9]{0,6})/([!#-<>-\[\]-~]{1,64})")


class ApiScopeName(NamedTuple):
    """A scope of an API. On the wire it is `name` alone."""

    api: str
    name: str

    @property
    def qualified(self) -> str:
        """The form in the store. A client id has no slash, so it ends at the first one."""
        return f"{self.api}/{self.name}"


def check_api_scopes(scopes: Sequence[str]) -> None:
    """Raises ValueError unless an app may register these."""
    if len({parse_qualified(scope) for scope in scopes}) < len(scopes) or len(scopes) > MOST_API_SCOPES:
        raise ValueError(Phrase("an app registers at most %(most)s scopes of APIs, each once", most=MOST_API_SCOPES))


def parse_qualified(text: str) -> ApiScopeName:
    """The inverse of `qualified`. Raises ValueError."""
    found = _QUALIFIED.fullmatch(text)
    if found is None:
        raise ValueError("a scope of an API is qualified by the client_id of the API")
    return ApiScopeName(*found.groups())
