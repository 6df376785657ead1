"""The routes of a person's credits."""

from __future__ import annotations

from handlers.core.person_posts import PersonPost
from handlers.core.policy import OPEN, PAGE, Policy
from handlers.core.route import Route
from handlers.credits.pages import CreditMailsHandler, CreditsHandler, SpendingFileHandler
from handlers.credits.purchases import CheckoutHandler, StripeEventsHandler
from handlers.credits.usage import UsagePageHandler, UsageReportHandler, UsageRowsHandler

ROUTES: tuple[Route, ...] = (
    Route(r"/account/credits", CreditsHandler, "account-credits", PAGE),
    Route(
        r"/account/credits/mails",
        CreditMailsHandler,
        "account-credit-mails",
        PAGE,
        PersonPost("choose e-mails about credits", undo="tick or clear the box again"),
    ),
    Route(
        r"/account/credits/checkout",
        CheckoutHandler,
        "account-credits-checkout",
        PAGE,
        # A thief could only pay for the person. Stripe's page asks for a card, because none is kept.
        PersonPost("buy credits", undo="close the payment page; nothing is paid until you confirm there"),
    ),
    # Stripe signs each event, and no browser sends one.
    Route(r"/api/payments/stripe", StripeEventsHandler, "stripe-events", OPEN),
    Route(
        r"/api/v1/credits/usage",
        UsageReportHandler,
        "credits-usage",
        Policy(scope="credits:read", window="credits-usage"),
    ),
    Route(r"/account/credits/usage", UsagePageHandler, "account-usage", PAGE),
    Route(r"/account/credits/usage\.csv", UsageRowsHandler, "account-usage-file", PAGE),
    Route(r"/account/credits/spending\.csv", SpendingFileHandler, "account-spending-file", PAGE),
)
