"""A row of the route map: all that the server needs to know of a route before its handler runs.

Each folder of handlers has its rows in its `routes.py`; `handlers/routes.py` joins them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tornado.routing import URLSpec

from handlers.core.base import BaseHandler
from handlers.core.person_posts import PersonPost
from handlers.core.policy import Policy
from store.apps.owners.roles import Act

CLIENT, DELIVERY = "([A-Za-z0-9_-]{1,64})", "([A-Za-z0-9_-]{22})"


@dataclass(frozen=True, slots=True)
class Route:
    """`pattern`: a regular expression that matches the whole path. `name`: the route in logs, metrics and documents.
    `policy` has no default, so that no route is open by oversight. `post`: the rules of a page's form; `check_posts` of
    `handlers/account/reauth_forms.py` refuses a form without them. `act`: what the page shows of an app, for the roles
    of its team; `check_acts` of `handlers/developer/team/acts.py` refuses a page of an app without one."""

    pattern: str
    handler: type[BaseHandler]
    name: str
    policy: Policy
    post: PersonPost | None = None
    act: Act | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The arguments of the handler's `initialize`: the policy, with the route's name and the rules of its form."""
        return {"policy": replace(self.policy, route=self.name, post=self.post, act=self.act)}

    def spec(self) -> URLSpec:
        """The row in Tornado's form."""
        return URLSpec(self.pattern, self.handler, self.facts, self.name)


class WrongRoute(Exception):
    """A row of the route map contradicts its handler, or itself."""
