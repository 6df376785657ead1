"""The routes of the OpenAPI document, for programs and for people."""

from __future__ import annotations

from handlers.core.policy import OPEN, PAGE
from handlers.core.route import Route
from handlers.openapi.document import OpenApiHandler
from handlers.openapi.viewer import DocsHandler

ROUTES: tuple[Route, ...] = (
    Route(r"/openapi\.json", OpenApiHandler, "openapi", OPEN),
    Route(r"/docs", DocsHandler, "docs", PAGE),
)
