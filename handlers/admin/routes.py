"""The routes of the management interface: who may do what, on one screen."""

from __future__ import annotations

from handlers.admin.apis import (
    AdminApiSecretHandler,
    AdminApisHandler,
    AdminApiStatusHandler,
    AdminOneApiHandler,
)
from handlers.admin.app_logo import AdminLogoHandler
from handlers.admin.apps import (
    AdminAppLogHandler,
    AdminAppSecretHandler,
    AdminAppsHandler,
    AdminAppStatusHandler,
    AdminOneAppHandler,
    AdminTeamHandler,
    AdminTeammateHandler,
    AdminWebhookSecretHandler,
)
from handlers.admin.bulk import AdminBulkHandler, AdminBulkProgressHandler
from handlers.admin.credits import AdminCreditReportHandler, AdminLedgerHandler
from handlers.admin.deliveries import (
    AdminDeliveriesHandler,
    AdminDeliveryHandler,
    AdminFailingHandler,
    AdminSendDeliveryHandler,
    AdminSendFailedHandler,
)
from handlers.admin.exports import AdminExportHandler, AdminTrailExportHandler
from handlers.admin.operator_keys import AdminOperatorKeyHandler, AdminOperatorKeysHandler
from handlers.admin.people import AdminPeopleHandler, AdminPersonHandler
from handlers.admin.person_acts import (
    AdminCancelDeletionHandler,
    AdminCreditsHandler,
    AdminResetFactorsHandler,
    AdminResumeHandler,
    AdminRoleHandler,
    AdminRolesHandler,
    AdminSendLinkHandler,
    AdminSignOutHandler,
    AdminSuspendHandler,
)
from handlers.admin.person_parts import (
    AdminGrantHandler,
    AdminIdentitiesHandler,
    AdminIdentityHandler,
    AdminSessionHandler,
    AdminSessionsHandler,
)
from handlers.admin.server import AdminHealthHandler, AdminKeysHandler, AdminSettingsHandler
from handlers.admin.trails import AdminAuditHandler, AdminGrantsHandler
from handlers.core.policy import Policy
from handlers.core.route import CLIENT, Route
from store.operators.roles import OperatorAct

BASE = "/api/admin/v1"
USER, KEY = "([0-9a-f]{32})", "([A-Za-z0-9_-]{22})"
_PERSON = rf"{BASE}/people/{USER}"


def managing(**acts: OperatorAct) -> Policy:
    """The policy of a route: the act of each method, which the table in `store/operators/roles.py` gives to roles."""
    return Policy(operator=True, acts=tuple(acts.items()))


ROUTES: tuple[Route, ...] = (
    Route(rf"{BASE}/people", AdminPeopleHandler, "admin-people", managing(GET="people.read", POST="people.create")),
    Route(rf"{BASE}/people/bulk", AdminBulkHandler, "admin-bulk", managing(POST="people.bulk")),
    Route(rf"{BASE}/people/bulk/{KEY}", AdminBulkProgressHandler, "admin-bulk-progress", managing(GET="people.read")),
    Route(
        _PERSON,
        AdminPersonHandler,
        "admin-person",
        managing(GET="people.read", PATCH="people.change", DELETE="people.delete"),
    ),
    Route(rf"{_PERSON}/suspend", AdminSuspendHandler, "admin-suspend", managing(POST="people.suspend")),
    Route(rf"{_PERSON}/resume", AdminResumeHandler, "admin-resume", managing(POST="people.resume")),
    Route(rf"{_PERSON}/sign-out", AdminSignOutHandler, "admin-sign-out", managing(POST="people.sign_out")),
    Route(
        rf"{_PERSON}/reset-factors",
        AdminResetFactorsHandler,
        "admin-reset-factors",
        managing(POST="people.reset_factors"),
    ),
    Route(rf"{_PERSON}/send-link", AdminSendLinkHandler, "admin-send-link", managing(POST="people.send_link")),
    Route(
        rf"{_PERSON}/cancel-deletion",
        AdminCancelDeletionHandler,
        "admin-cancel-deletion",
        managing(POST="people.delete"),
    ),
    Route(rf"{_PERSON}/sessions", AdminSessionsHandler, "admin-sessions", managing(GET="people.read")),
    Route(rf"{_PERSON}/sessions/{KEY}", AdminSessionHandler, "admin-session", managing(DELETE="people.sign_out")),
    Route(rf"{_PERSON}/grants/{CLIENT}", AdminGrantHandler, "admin-grant", managing(DELETE="people.change")),
    Route(rf"{_PERSON}/identities", AdminIdentitiesHandler, "admin-identities", managing(GET="people.read")),
    Route(rf"{_PERSON}/identities/{KEY}", AdminIdentityHandler, "admin-identity", managing(DELETE="people.change")),
    Route(rf"{_PERSON}/export", AdminExportHandler, "admin-export", managing(GET="people.export")),
    Route(
        rf"{_PERSON}/credits", AdminCreditsHandler, "admin-credits", managing(GET="credits.read", POST="credits.give")
    ),
    Route(rf"{BASE}/credits", AdminLedgerHandler, "admin-ledger", managing(GET="credits.read")),
    Route(
        rf"{BASE}/credits/report",
        AdminCreditReportHandler,
        "admin-credit-report",
        managing(GET="credits.read", POST="credits.report"),
    ),
    Route(rf"{_PERSON}/role", AdminRoleHandler, "admin-role", managing(PUT="roles.give", DELETE="roles.give")),
    Route(rf"{BASE}/roles", AdminRolesHandler, "admin-roles", managing(GET="roles.read")),
    Route(
        rf"{BASE}/operator-keys", AdminOperatorKeysHandler, "admin-operator-keys", managing(GET="operator_keys.read")
    ),
    Route(
        rf"{BASE}/operator-keys/{KEY}",
        AdminOperatorKeyHandler,
        "admin-operator-key",
        managing(DELETE="operator_keys.revoke"),
    ),
    Route(rf"{BASE}/apps", AdminAppsHandler, "admin-apps", managing(GET="apps.read", POST="apps.change")),
    Route(
        rf"{BASE}/apps/{CLIENT}",
        AdminOneAppHandler,
        "admin-app",
        managing(GET="apps.read", PATCH="apps.change", DELETE="apps.change"),
    ),
    Route(
        rf"{BASE}/apps/{CLIENT}/(suspend|resume)",
        AdminAppStatusHandler,
        "admin-app-status",
        managing(POST="apps.change"),
    ),
    Route(
        rf"{BASE}/apps/{CLIENT}/rotate-secret", AdminAppSecretHandler, "admin-app-secret", managing(POST="apps.change")
    ),
    Route(
        rf"{BASE}/apps/{CLIENT}/rotate-webhook-secret",
        AdminWebhookSecretHandler,
        "admin-app-webhook-secret",
        managing(POST="apps.change"),
    ),
    Route(
        rf"{BASE}/apps/{CLIENT}/logo",
        AdminLogoHandler,
        "admin-app-logo",
        managing(PUT="apps.change", DELETE="apps.change"),
    ),
    Route(rf"{BASE}/apps/{CLIENT}/team", AdminTeamHandler, "admin-team", managing(GET="apps.read")),
    Route(
        rf"{BASE}/apps/{CLIENT}/team/{USER}",
        AdminTeammateHandler,
        "admin-teammate",
        managing(PUT="apps.change", DELETE="apps.change"),
    ),
    Route(rf"{BASE}/apps/{CLIENT}/log", AdminAppLogHandler, "admin-app-log", managing(GET="apps.read")),
    Route(rf"{BASE}/apis", AdminApisHandler, "admin-apis", managing(GET="apis.read", POST="apis.change")),
    Route(
        rf"{BASE}/apis/{CLIENT}",
        AdminOneApiHandler,
        "admin-api",
        managing(GET="apis.read", PATCH="apis.change", DELETE="apis.change"),
    ),
    Route(
        rf"{BASE}/apis/{CLIENT}/(suspend|resume)",
        AdminApiStatusHandler,
        "admin-api-status",
        managing(POST="apis.change"),
    ),
    Route(
        rf"{BASE}/apis/{CLIENT}/rotate-secret", AdminApiSecretHandler, "admin-api-secret", managing(POST="apis.change")
    ),
    Route(rf"{BASE}/grants", AdminGrantsHandler, "admin-grants", managing(GET="grants.read")),
    Route(rf"{BASE}/audit", AdminAuditHandler, "admin-audit", managing(GET="audit.read")),
    Route(rf"{BASE}/audit/export", AdminTrailExportHandler, "admin-audit-export", managing(GET="audit.read")),
    Route(rf"{BASE}/webhooks/deliveries", AdminDeliveriesHandler, "admin-deliveries", managing(GET="webhooks.read")),
    Route(rf"{BASE}/webhooks/deliveries/{KEY}", AdminDeliveryHandler, "admin-delivery", managing(GET="webhooks.read")),
    Route(rf"{BASE}/webhooks/failing", AdminFailingHandler, "admin-failing", managing(GET="webhooks.read")),
    Route(rf"{BASE}/webhooks/send-failed", AdminSendFailedHandler, "admin-send-failed", managing(POST="webhooks.send")),
    Route(
        rf"{BASE}/webhooks/deliveries/{KEY}/send",
        AdminSendDeliveryHandler,
        "admin-send-delivery",
        managing(POST="webhooks.send"),
    ),
    Route(rf"{BASE}/keys", AdminKeysHandler, "admin-keys", managing(GET="keys.read")),
    Route(rf"{BASE}/settings", AdminSettingsHandler, "admin-settings", managing(GET="settings.read")),
    Route(rf"{BASE}/health", AdminHealthHandler, "admin-health", managing(GET="health.read")),
)
