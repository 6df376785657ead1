"""The routes of the documentation in the portal."""

from __future__ import annotations

from handlers.core.policy import PAGE
from handlers.core.route import CLIENT, Route
from handlers.guides.pages import GuideHandler, GuidePartHandler

NAME = "([A-Za-z0-9_-]{1,64})"

ROUTES: tuple[Route, ...] = (
    Route(rf"/developer/apps/{CLIENT}/guides/{NAME}", GuideHandler, "developer-guide", PAGE, act="see"),
    Route(rf"/developer/apps/{CLIENT}/guides/{NAME}/{NAME}", GuidePartHandler, "developer-guide-part", PAGE, act="see"),
)
