"""What each route demands, as data. Each row of the route map has one of these."""

from __future__ import annotations

from dataclasses import dataclass

from handlers.core.person_posts import PersonPost


@dataclass(frozen=True, slots=True)
class Policy:
    """`scope`: the token must carry one of these (space-separated); empty where no token is asked for. `window`: the
    group of SPEC 8.1 that counts the request. `write_scope`, `write_window`: the same for methods that write, where
    they differ. `xsrf`: a browser with cookies is on the other side. `operator`: an operator key is asked for.
    `finishes`: it is the last step of something, and has a reserve when there is more to do than can be done.
    `route` and `post`: the name of the route and the rules of its form, which its row sets."""

    scope: str = ""
    window: str = ""
    write_scope: str = ""
    write_window: str = ""
    xsrf: bool = False
    operator: bool = False
    finishes: bool = False
    route: str = ""
    post: PersonPost | None = None


PAGE = Policy(xsrf=True)
OPEN = Policy()
NOWHERE = Policy(route="unmatched")
"""Of what no route answers."""
LAST_PAGE = Policy(xsrf=True, finishes=True)
