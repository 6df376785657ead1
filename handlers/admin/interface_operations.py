"""What the management interface takes and answers, by route and method: what the route map doesn't say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from store.operators.event_filter import EVENT_FILTERS

PAGED: Final = ("limit", "cursor")


class AdminOperation(NamedTuple):
    """`answer` names a schema of `interface_schemas.py`; `many`: a page of it. `query`: parameters; `body`: the schema
    of the request, empty for none. `once`: takes an `Idempotency-Key`. `status`: of a success.
    `image`: the request is a picture. `endless`: with `follow`, a page says whether there is more by now. `counted`: a
    page has a `total`. `required`: parameters that a request must have."""

    summary: str
    answer: str
    query: tuple[str, ...] = ()
    body: str = ""
    many: bool = False
    once: bool = False
    status: int = 200
    image: bool = False
    endless: bool = False
    counted: bool = False
    required: tuple[str, ...] = ()


ADMIN_OPERATIONS: Final[Mapping[str, AdminOperation]] = {
    "admin-people GET": AdminOperation(
        "Find people", "PersonSummary", ("query", "status", "order", *PAGED), many=True, counted=True
    ),
    "admin-people POST": AdminOperation(
        "Create or invite a person", "NewPerson", (), "PersonOrder", once=True, status=201
    ),
    "admin-bulk POST": AdminOperation("Act on many people, after a dry run", "Bulk", (), "BulkOrder"),
    "admin-bulk-progress GET": AdminOperation("Show how far an act on many people is", "Bulk"),
    "admin-person GET": AdminOperation("Show a person", "Person"),
    "admin-person PATCH": AdminOperation(
        "Change address, name and groups of a person", "Person", (), "PersonChange", once=True
    ),
    "admin-person DELETE": AdminOperation(
        "Delete a person with everything that is theirs", "DeletedPerson", ("dry_run", "wait_days", "reason")
    ),
    "admin-cancel-deletion POST": AdminOperation("Cancel the planned deletion of a person", "Person", once=True),
    "admin-suspend POST": AdminOperation("Suspend a person", "Person", (), "Suspension", once=True),
    "admin-resume POST": AdminOperation("Let a person in again", "Person", once=True),
    "admin-sign-out POST": AdminOperation("End every session of a person", "Person", once=True),
    "admin-reset-factors POST": AdminOperation(
        "Remove authenticator app, passkeys and recovery codes", "Person", once=True
    ),
    "admin-send-link POST": AdminOperation("Mail a person a link", "SentLink", (), "LinkOrder", once=True),
    "admin-sessions GET": AdminOperation("List the sessions of a person", "Session", many=True),
    "admin-session DELETE": AdminOperation("End one session of a person", "EndedPart"),
    "admin-grant DELETE": AdminOperation("Disconnect an app from a person", "EndedGrant"),
    "admin-identities GET": AdminOperation("List the accounts of a person at other sites", "Identity", many=True),
    "admin-identity DELETE": AdminOperation("Disconnect an account at another site", "EndedPart"),
    "admin-export GET": AdminOperation("Export everything about a person", "", ("format", "documents")),
    "admin-credits GET": AdminOperation("Show balance and ledger of a person", "Ledger", PAGED),
    "admin-credits POST": AdminOperation("Add or take credits of a person", "Granted", (), "CreditOrder", once=True),
    "admin-ledger GET": AdminOperation(
        "Search the ledger of a person",
        "LedgerEntry",
        ("person", "app", "kind", "transaction", "since", "until", *PAGED),
        many=True,
        required=("person",),
    ),
    "admin-credit-report GET": AdminOperation("Show the report on everybody's credits", "CreditReport"),
    "admin-credit-report POST": AdminOperation(
        "Begin a report on everybody's credits", "CreditReport", (), "Report", once=True
    ),
    "admin-role PUT": AdminOperation("Give a person a role of operators", "GivenRole", (), "RoleOrder"),
    "admin-role DELETE": AdminOperation("Take the role of a person", "GivenRole"),
    "admin-roles GET": AdminOperation("List people with a role", "RoleHolder", many=True),
    "admin-operator-keys GET": AdminOperation("List operator keys", "OperatorKey", many=True),
    "admin-operator-key DELETE": AdminOperation("End an operator key", "Ended"),
    "admin-apps GET": AdminOperation("Find apps", "App", ("query", *PAGED), many=True),
    "admin-apps POST": AdminOperation("Register an app", "App", (), "AppOrder", once=True, status=201),
    "admin-app GET": AdminOperation("Show an app", "App"),
    "admin-app PATCH": AdminOperation("Change an app", "App", (), "AppChange"),
    "admin-app DELETE": AdminOperation("Delete an app", "DeletedApp", ("dry_run", "purge")),
    "admin-app-status POST": AdminOperation("Suspend an app, or let it work again", "App", (), "AppStatus", once=True),
    "admin-app-secret POST": AdminOperation("Make a new client secret", "NewSecret", (), "Rotation", once=True),
    "admin-app-webhook-secret POST": AdminOperation("Make a new secret that signs webhooks", "NewSecret", once=True),
    "admin-app-logo PUT": AdminOperation("Set the logo of an app", "App", image=True),
    "admin-app-logo DELETE": AdminOperation("Remove the logo of an app", "App"),
    "admin-team GET": AdminOperation("List the team of an app", "Teammate", many=True),
    "admin-teammate PUT": AdminOperation("Give a person a role in the team", "Teammate", (), "TeamOrder", many=True),
    "admin-teammate DELETE": AdminOperation("Remove a person from the team", "Teammate", many=True),
    "admin-app-log GET": AdminOperation("List why an app was refused", "Refusal", many=True),
    "admin-apis GET": AdminOperation("List APIs", "Api", PAGED, many=True),
    "admin-apis POST": AdminOperation("Register an API", "Api", (), "ApiOrder", once=True, status=201),
    "admin-api GET": AdminOperation("Show an API", "Api"),
    "admin-api PATCH": AdminOperation("Change an API", "Api", (), "ApiChange"),
    "admin-api DELETE": AdminOperation("Delete an API", "DeletedApi", ("dry_run",)),
    "admin-api-status POST": AdminOperation("Suspend an API, or let it work again", "Api", once=True),
    "admin-api-secret POST": AdminOperation(
        "Make a new secret for introspection", "NewSecret", (), "Rotation", once=True
    ),
    "admin-grants GET": AdminOperation(
        "List the apps that a person connected", "AppGrant", ("person",), many=True, required=("person",)
    ),
    "admin-audit GET": AdminOperation(
        "List security events, newest first",
        "Event",
        (*EVENT_FILTERS, "since", "follow", *PAGED),
        many=True,
        endless=True,
    ),
    "admin-audit-export GET": AdminOperation(
        "Export security events, oldest first", "", ("format", "since", "until", *EVENT_FILTERS)
    ),
    "admin-deliveries GET": AdminOperation(
        "List webhook deliveries, newest first", "Delivery", ("state", "app", "type", *PAGED), many=True
    ),
    "admin-delivery GET": AdminOperation("Show a webhook delivery with its attempts", "ShownDelivery", ("client_id",)),
    "admin-failing GET": AdminOperation("List endpoints whose last attempt failed", "FailingEndpoints"),
    "admin-send-failed POST": AdminOperation(
        "Post every given-up webhook event of an app once more", "SentAgain", (), "SendFailedOrder", once=True
    ),
    "admin-send-delivery POST": AdminOperation(
        "Post a webhook event once more", "Delivery", (), "DeliveryOrder", once=True
    ),
    "admin-keys GET": AdminOperation("List secret keys and keys that sign", "ServerKey", many=True),
    "admin-settings GET": AdminOperation("List the settings in force", "SettingList"),
    "admin-health GET": AdminOperation("Show the health of server and store", "Health"),
}
"""The operations, by the name of the route and the method."""
