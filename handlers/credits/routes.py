"""The route of a person's credits."""

from __future__ import annotations

from handlers.core.policy import PAGE
from handlers.core.route import Route
from handlers.credits.pages import CreditsHandler

ROUTES: tuple[Route, ...] = (Route(r"/account/credits", CreditsHandler, "account-credits", PAGE),)
