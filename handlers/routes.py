"""The route map: joins the tables of the folders, `routes.py` in each, and makes the application."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tornado.routing import URLSpec

from handlers.account.elsewhere.routes import ROUTES as ELSEWHERE
from handlers.account.reauth_forms import check_posts
from handlers.account.routes import ROUTES as ACCOUNT
from handlers.account.signin_routes import ROUTES as SIGNIN
from handlers.admin.console.base import check_console
from handlers.admin.console.routes import ROUTES as CONSOLE
from handlers.ai.routes import ROUTES as AI
from handlers.core.application import Latchkey
from handlers.core.fallback import FallbackHandler, StaticHandler, files_in, quote_nothing
from handlers.core.mails import send_notices
from handlers.core.policy import NOWHERE
from handlers.core.route import Route
from handlers.core.server_state import RouteTarget
from handlers.core.site import Site
from handlers.credits.routes import ROUTES as CREDITS
from handlers.developer.api_routes import ROUTES as DEVELOPER_APIS
from handlers.developer.routes import ROUTES as DEVELOPER
from handlers.developer.team.acts import check_acts
from handlers.developer.team.routes import ROUTES as TEAM
from handlers.documents.routes import ROUTES as DOCUMENTS
from handlers.guides.routes import ROUTES as GUIDES
from handlers.mcp.routes import ROUTES as MCP
from handlers.oauth.routes import ROUTES as OAUTH
from handlers.openapi.document import document_bytes
from handlers.openapi.routes import ROUTES as OPENAPI
from handlers.ops.routes import ROUTES as HEALTH
from handlers.ops.security_context import tell_security

HERE = Path(__file__).resolve().parent.parent

# Patterns are tried in this order: the most requested come first.
ROUTES: tuple[Route, ...] = (
    *DOCUMENTS,
    *OAUTH,
    *AI,
    *MCP,
    *SIGNIN,
    *ACCOUNT,
    *ELSEWHERE,
    *CREDITS,
    *DEVELOPER,
    *TEAM,
    *DEVELOPER_APIS,
    *CONSOLE,
    *GUIDES,
    *OPENAPI,
    *HEALTH,
)
POLICIES = {route.name: route.policy for route in ROUTES}
POSTS = {route.name: route.post for route in ROUTES if route.post is not None}
"""The rules of forms, by the name of the route."""


@dataclass(frozen=True)
class RouteMap:
    """The routes in the forms in which applications use them: Tornado's, those without a pattern by their path, and the
    others; and the names of static files."""

    specs: tuple[URLSpec, ...]
    literal: dict[str, RouteTarget]
    patterns: list[tuple[re.Pattern[str], RouteTarget]]
    files: frozenset[str]

    @classmethod
    @cache
    def made(cls) -> RouteMap:
        """The map, which is the same for all applications of a process. Raises WrongRoute."""
        check_posts(ROUTES)
        check_acts(ROUTES)
        check_console(ROUTES)
        targets = [(route.pattern, (route.handler, route.facts)) for route in ROUTES]
        return cls(
            tuple(route.spec() for route in ROUTES),
            {pattern.replace(r"\.", "."): target for pattern, target in targets if "(" not in pattern},
            [(re.compile(pattern), target) for pattern, target in targets if "(" in pattern],
            files_in(HERE / "static"),
        )


def make_application(site: Site) -> Latchkey:
    """The Tornado application. Raises WrongRoute."""
    routes = RouteMap.made()
    application = Latchkey(
        list(routes.specs),
        default_handler_class=FallbackHandler,
        default_handler_args={"policy": NOWHERE},
        template_path=str(HERE / "templates"),
        static_path=str(HERE / "static"),
        static_handler_class=StaticHandler,
        xsrf_cookies=True,
        xsrf_cookie_name=site.cookie("xsrf"),
        xsrf_cookie_kwargs={"httponly": True, "samesite": "Lax", "secure": site.secure, "path": "/"},
    )
    application.site = site
    application.openapi = document_bytes(ROUTES, site.base_url)
    application.literal, application.patterns = routes.literal, routes.patterns
    application.files = routes.files
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    tell_security(application)
    send_notices(site)
    return application
