"""What each route requires, as data. Each row of the route map has a policy."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.core.person_posts import PersonPost
from store.apps.owners.roles import Act
from store.operators.roles import OperatorAct


@dataclass(frozen=True, slots=True)
class Policy:
    """`scope`: scopes, separated by spaces, of which the token must have one; empty if the route needs no token.
    `window`: the group of SPEC 8.1 that counts the request. `write_scope`, `write_window`: the same for methods that
    write, if different. `xsrf`: the client is a browser with cookies. `operator`: the route needs an operator key;
    `registration`: it takes a token for registrations. `acts`: for a route of the management interface, the act of
    each method, which the table of `store/operators/roles.py` gives to roles.
    `finishes`: the last step of a flow, which has a reserve under overload. `route`, `post` and `act`: the name of the
    route, the rules of its form, and what its page shows of an app, set by the row."""

    scope: str = ""
    window: str = ""
    write_scope: str = ""
    write_window: str = ""
    xsrf: bool = False
    operator: bool = False
    registration: bool = False
    finishes: bool = False
    acts: tuple[tuple[str, OperatorAct], ...] = ()
    route: str = ""
    post: PersonPost | None = None
    act: Act | None = None

    def act_of(self, method: str) -> OperatorAct | None:
        """The act of an operator that a method does here; None if there is none."""
        return dict(self.acts).get("GET" if method == "HEAD" else method)

    @property
    def own_tokens(self) -> bool:
        """Whether the route takes tokens that nobody gets by the metadata of the API."""
        return self.operator or self.registration


PAGE = Policy(xsrf=True)
OPEN = Policy()
NOWHERE = Policy(route="unmatched")
"""The policy of requests that match no route."""
LAST_PAGE = Policy(xsrf=True, finishes=True)
