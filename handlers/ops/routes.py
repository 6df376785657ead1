"""The health routes of the public port."""

from __future__ import annotations

from handlers.core.policy import OPEN
from handlers.core.route import Route
from handlers.ops.health import HealthHandler, ReadyHandler

ROUTES: tuple[Route, ...] = (
    Route(r"/healthz", HealthHandler, "healthz", OPEN),
    Route(r"/readyz", ReadyHandler, "readyz", OPEN),
)
