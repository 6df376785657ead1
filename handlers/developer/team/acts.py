"""What the role of a person allows on the pages of an app, and the check that each of their routes says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from handlers.core.base import BaseHandler
from handlers.core.page import PageHandler
from handlers.core.route import CLIENT, Route, WrongRoute
from store.apps.owners.members import role_of
from store.apps.owners.roles import ACTS, Act, may
from store.apps.registration import Registration
from store.refused import Refused
from store.results import Profile

APPS = "/developer/apps/"
APP_PAGES = APPS + CLIENT


class TeamPage(PageHandler):
    """Shared by the pages of an app: who may do what the route is for."""

    checked: ClassVar[bool] = True

    @property
    def act(self) -> Act | None:
        """What this request does to the app; None on pages of no app."""
        post = self.policy.post
        reads = self.request.method in ("GET", "HEAD")
        return self.policy.act if reads else post.act if post else None

    async def own(self, client_id: str) -> tuple[Profile, Registration]:
        """The person who is signed in, and the app, if the person's role allows this request. Raises SignedOut,
        Refused("not_found" or "access_denied")."""
        act = self.act
        if act is None:
            raise Refused("not_found")
        return await self.store.owned.find(self.require_session(), client_id, act)

    def render_string(self, template_name: str, **kwargs: Any) -> bytes:
        """The page. `allowed` tells templates whether the person's role allows an act."""
        app, profile = kwargs.get("app"), kwargs.get("signed_in")
        role = role_of(app, profile.user) if isinstance(app, Registration) and isinstance(profile, Profile) else None
        return super().render_string(template_name, allowed=lambda act: may(role, act), my_role=role, **kwargs)


def check_acts(routes: Iterable[Route]) -> None:
    """Raises WrongRoute unless each page and each form of an app says which act it is, and its handler asks whether the
    person may do that."""
    for route in routes:
        of_app = route.pattern.startswith(APPS)
        reads = route.handler.get is not BaseHandler.get
        if bool(route.act) != (of_app and reads) or (route.act and route.act not in ACTS):
            raise WrongRoute(f"{route.name}: a page of an app names an act of its team, and no other page does")
        posted = route.post.act if route.post else None
        if bool(posted) != (of_app and route.post is not None) or (posted and posted not in ACTS):
            raise WrongRoute(f"{route.name}: a form of an app names an act of its team, and no other form does")
        if of_app and not issubclass(route.handler, TeamPage):
            raise WrongRoute(f"{route.name}: a page of an app, and its handler checks no role")
