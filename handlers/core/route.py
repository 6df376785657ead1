"""A row of the route map: all that the server has to know of a route before its handler runs.

Each folder of handlers has its rows in its `routes.py`; `handlers/routes.py` joins them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tornado.routing import URLSpec

from handlers.core.base import BaseHandler
from handlers.core.person_posts import PersonPost
from handlers.core.policy import Policy

CLIENT, DELIVERY = "([A-Za-z0-9_-]{1,64})", "([A-Za-z0-9_-]{22})"


@dataclass(frozen=True, slots=True)
class Route:
    """`pattern`: a regular expression that the whole path matches. `name`: the route in logs, metrics and documents.
    `policy` has no default: no route is open because nobody thought of it. `post`: the rules of the form of a page;
    `check_posts` of `handlers/account/reauth_forms.py` refuses a form without them."""

    pattern: str
    handler: type[BaseHandler]
    name: str
    policy: Policy
    post: PersonPost | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The arguments of the handler's `initialize`: the policy, with the name of the route and the rules of its
        form."""
        return {"policy": replace(self.policy, route=self.name, post=self.post)}

    def spec(self) -> URLSpec:
        """The row as Tornado reads it."""
        return URLSpec(self.pattern, self.handler, self.facts, self.name)


class WrongRoute(Exception):
    """A row of the route map contradicts its handler, or itself."""
