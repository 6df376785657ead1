"""The routes of the console: who may see and do what, on one screen."""

from __future__ import annotations

from handlers.admin.console.apis import (
    APIS,
    ConsoleApiHandler,
    ConsoleApiSecretHandler,
    ConsoleApisHandler,
    ConsoleApiStatusHandler,
)
from handlers.admin.console.apps import (
    APPS,
    ConsoleAppHandler,
    ConsoleAppRulesHandler,
    ConsoleAppsHandler,
    ConsoleAppStatusHandler,
    ConsoleAppVerifyHandler,
    ConsoleTeamHandler,
    ConsoleTeamRemoveHandler,
)
from handlers.admin.console.audit import AUDIT, ConsoleAuditFileHandler, ConsoleAuditHandler, ConsoleEventHandler
from handlers.admin.console.base import CONSOLE
from handlers.admin.console.bulk import BULK, ConsoleBulkHandler, ConsoleBulkProgressHandler
from handlers.admin.console.credits import (
    CREDITS,
    ConsoleCreditDaysHandler,
    ConsoleCreditReportHandler,
    ConsoleCreditsDeskHandler,
)
from handlers.admin.console.figures import ConsoleFiguresFileHandler
from handlers.admin.console.overview import ConsoleHandler
from handlers.admin.console.people import PEOPLE, ConsolePeopleHandler
from handlers.admin.console.person import ConsolePersonHandler
from handlers.admin.console.person_acts import (
    ConsoleCancelDeletionHandler,
    ConsoleCreditsHandler,
    ConsoleDeleteHandler,
    ConsoleEmailHandler,
    ConsoleExportHandler,
    ConsolePlanDeletionHandler,
    ConsoleResetFactorsHandler,
    ConsoleResumeHandler,
    ConsoleRoleHandler,
    ConsoleSendLinkHandler,
    ConsoleSignOutHandler,
    ConsoleSuspendHandler,
)
from handlers.admin.console.person_parts import (
    ConsoleDisconnectHandler,
    ConsoleEndSessionHandler,
    ConsoleUnlinkHandler,
)
from handlers.admin.console.search import ConsoleSearchHandler
from handlers.admin.console.server import HEALTH, SETTINGS, ConsoleHealthHandler, ConsoleSettingsHandler
from handlers.admin.console.webhooks import (
    WEBHOOKS,
    ConsoleDeliveryHandler,
    ConsoleSendAgainHandler,
    ConsoleSendFailedHandler,
    ConsoleWebhooksHandler,
)
from handlers.core.person_posts import AGAIN, NOTHING_LASTS, operators_form
from handlers.core.policy import Policy
from handlers.core.route import CLIENT, Route
from store.operators.roles import OperatorAct

_PERSON = rf"{PEOPLE}/([0-9a-f]{{32}})"
_DELIVERY = rf"{WEBHOOKS}/{CLIENT}/([A-Za-z0-9_-]{{22}})"


def shows(act: OperatorAct) -> Policy:
    """The policy of a page: the act, which the table of `store/operators/roles.py` gives to roles."""
    return Policy(xsrf=True, acts=(("GET", act),))


def does(act: OperatorAct) -> Policy:
    """The policy of a form."""
    return Policy(xsrf=True, acts=(("POST", act),))


ROUTES: tuple[Route, ...] = (
    Route(CONSOLE, ConsoleHandler, "console", shows("health.read")),
    Route(rf"{CONSOLE}/sign-ins", ConsoleFiguresFileHandler, "console-figures-file", shows("health.read")),
    Route(rf"{CONSOLE}/search", ConsoleSearchHandler, "console-search", shows("people.read")),
    Route(PEOPLE, ConsolePeopleHandler, "console-people", shows("people.read")),
    Route(
        BULK,
        ConsoleBulkHandler,
        "console-bulk",
        Policy(xsrf=True, acts=(("GET", "people.bulk"), ("POST", "people.bulk"))),
        operators_form(
            "act on many people",
            keeps=("act", "reason", "note", "until", "days", "at_once", "number", "person_*"),
        ),
    ),
    Route(rf"{BULK}/([A-Za-z0-9_-]{{22}})", ConsoleBulkProgressHandler, "console-bulk-progress", shows("people.read")),
    Route(_PERSON, ConsolePersonHandler, "console-person", shows("people.read")),
    Route(
        rf"{_PERSON}/suspend",
        ConsoleSuspendHandler,
        "console-suspend",
        does("people.suspend"),
        operators_form("suspend a person", "resume them", ("reason", "note", "until")),
    ),
    Route(
        rf"{_PERSON}/resume",
        ConsoleResumeHandler,
        "console-resume",
        does("people.resume"),
        operators_form("end a person’s suspension", "suspend them"),
    ),
    Route(
        rf"{_PERSON}/sign-out",
        ConsoleSignOutHandler,
        "console-sign-out",
        does("people.sign_out"),
        operators_form("sign a person out everywhere", "they sign in again"),
    ),
    Route(
        rf"{_PERSON}/end-session",
        ConsoleEndSessionHandler,
        "console-end-session",
        does("people.sign_out"),
        operators_form("sign a person out on one device", "they sign in again", ("session",)),
    ),
    Route(
        rf"{_PERSON}/disconnect",
        ConsoleDisconnectHandler,
        "console-disconnect",
        does("people.change"),
        operators_form("disconnect an app from a person", "they connect it again", ("client_id",)),
    ),
    Route(
        rf"{_PERSON}/unlink",
        ConsoleUnlinkHandler,
        "console-unlink",
        does("people.change"),
        operators_form("disconnect a person’s account at another site", "they connect it again", ("identity",)),
    ),
    Route(
        rf"{_PERSON}/email",
        ConsoleEmailHandler,
        "console-email",
        does("people.change"),
        operators_form("change a person’s e-mail address", "the mailed link, for 7 days", ("email", "lost")),
    ),
    Route(
        rf"{_PERSON}/send-link",
        ConsoleSendLinkHandler,
        "console-send-link",
        does("people.send_link"),
        operators_form("mail a person a link", NOTHING_LASTS, ("kind",)),
    ),
    Route(
        rf"{_PERSON}/reset-factors",
        ConsoleResetFactorsHandler,
        "console-reset-factors",
        does("people.reset_factors"),
        operators_form("turn off a person’s two-step verification and remove their passkeys"),
    ),
    Route(
        rf"{_PERSON}/credits",
        ConsoleCreditsHandler,
        "console-credits",
        does("credits.give"),
        operators_form(
            "change a person’s credits", "the same amount with a minus in front", ("amount", "reason", "key")
        ),
    ),
    Route(
        rf"{_PERSON}/role",
        ConsoleRoleHandler,
        "console-role",
        does("roles.give"),
        operators_form("change a person’s role", AGAIN, ("role",)),
    ),
    Route(
        rf"{_PERSON}/export",
        ConsoleExportHandler,
        "console-export",
        does("people.export"),
        operators_form("download a person’s data", NOTHING_LASTS, ("format", "documents")),
    ),
    Route(
        rf"{_PERSON}/plan-deletion",
        ConsolePlanDeletionHandler,
        "console-plan-deletion",
        does("people.delete"),
        operators_form("delete a person’s account after a wait", "cancel the deletion", ("days", "reason")),
    ),
    Route(
        rf"{_PERSON}/cancel-deletion",
        ConsoleCancelDeletionHandler,
        "console-cancel-deletion",
        does("people.delete"),
        operators_form("cancel the deletion of a person’s account", "plan it again"),
    ),
    Route(
        rf"{_PERSON}/delete",
        ConsoleDeleteHandler,
        "console-delete",
        does("people.delete"),
        operators_form("delete a person’s account", keeps=("address",)),
    ),
    Route(AUDIT, ConsoleAuditHandler, "console-audit", shows("audit.read")),
    Route(rf"{AUDIT}/export", ConsoleAuditFileHandler, "console-audit-file", shows("audit.read")),
    Route(rf"{AUDIT}/([0-9]{{1,13}}-[0-9]{{1,15}})", ConsoleEventHandler, "console-event", shows("audit.read")),
    Route(APPS, ConsoleAppsHandler, "console-apps", shows("apps.read")),
    Route(rf"{APPS}/{CLIENT}", ConsoleAppHandler, "console-app", shows("apps.read")),
    Route(
        rf"{APPS}/{CLIENT}/status",
        ConsoleAppStatusHandler,
        "console-app-status",
        does("apps.change"),
        operators_form("disable an app or enable it again", AGAIN, ("status", "reason")),
    ),
    Route(
        rf"{APPS}/{CLIENT}/rules",
        ConsoleAppRulesHandler,
        "console-app-rules",
        does("apps.change"),
        operators_form(
            "change the rules and limits of an app",
            AGAIN,
            ("second_step", "calls_per_minute", "introspections_per_minute", "spend_per_day"),
        ),
    ),
    Route(
        rf"{APPS}/{CLIENT}/verify",
        ConsoleAppVerifyHandler,
        "console-app-verify",
        does("apps.change"),
        operators_form("change whether an app is verified", AGAIN, ("verified",)),
    ),
    Route(
        rf"{APPS}/{CLIENT}/team",
        ConsoleTeamHandler,
        "console-app-team",
        does("apps.change"),
        operators_form("change the team of an app", AGAIN, ("email", "role")),
    ),
    Route(
        rf"{APPS}/{CLIENT}/team-remove",
        ConsoleTeamRemoveHandler,
        "console-app-team-remove",
        does("apps.change"),
        operators_form("remove a person from the team of an app", "add them again", ("user",)),
    ),
    Route(APIS, ConsoleApisHandler, "console-apis", shows("apis.read")),
    Route(rf"{APIS}/{CLIENT}", ConsoleApiHandler, "console-api", shows("apis.read")),
    Route(
        rf"{APIS}/{CLIENT}/status",
        ConsoleApiStatusHandler,
        "console-api-status",
        does("apis.change"),
        operators_form("disable an API or enable it again", AGAIN, ("status",)),
    ),
    Route(
        rf"{APIS}/{CLIENT}/secret",
        ConsoleApiSecretHandler,
        "console-api-secret",
        does("apis.change"),
        operators_form("replace the secret of an API"),
    ),
    Route(CREDITS, ConsoleCreditsDeskHandler, "console-ledger", shows("credits.read")),
    Route(rf"{CREDITS}/days", ConsoleCreditDaysHandler, "console-credit-days", shows("credits.read")),
    Route(
        rf"{CREDITS}/report",
        ConsoleCreditReportHandler,
        "console-credit-report",
        does("credits.report"),
        operators_form(
            "make a report on everybody’s credits", NOTHING_LASTS, ("app", "kind", "transaction", "since", "until")
        ),
    ),
    Route(HEALTH, ConsoleHealthHandler, "console-health", shows("health.read")),
    Route(SETTINGS, ConsoleSettingsHandler, "console-settings", shows("settings.read")),
    Route(WEBHOOKS, ConsoleWebhooksHandler, "console-webhooks", shows("webhooks.read")),
    Route(_DELIVERY, ConsoleDeliveryHandler, "console-delivery", shows("webhooks.read")),
    Route(
        rf"{_DELIVERY}/again",
        ConsoleSendAgainHandler,
        "console-send-again",
        does("webhooks.send"),
        operators_form("send a webhook event again", NOTHING_LASTS),
    ),
    Route(
        rf"{WEBHOOKS}/{CLIENT}/send-failed",
        ConsoleSendFailedHandler,
        "console-send-failed",
        Policy(xsrf=True, acts=(("GET", "webhooks.send"), ("POST", "webhooks.send"))),
        operators_form("send an app’s given-up webhook events again", NOTHING_LASTS),
    ),
)
