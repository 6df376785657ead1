"""The routes of a person's credits."""

from __future__ import annotations

from handlers.core.policy import PAGE
from handlers.core.route import Route
from handlers.credits.pages import CreditsHandler, SpendingFileHandler

ROUTES: tuple[Route, ...] = (
    Route(r"/account/credits", CreditsHandler, "account-credits", PAGE),
    Route(r"/account/credits/spending\.csv", SpendingFileHandler, "account-spending-file", PAGE),
)
