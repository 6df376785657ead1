"""The schemas of the management interface."""

from __future__ import annotations

from typing import Any, Final

JsonSchema = dict[str, Any]

TEXT: Final[JsonSchema] = {"type": "string"}
FLAG: Final[JsonSchema] = {"type": "boolean"}
COUNT: Final[JsonSchema] = {"type": "integer"}
TIME: Final[JsonSchema] = {"type": "string", "format": "date-time"}
TEXTS: Final[JsonSchema] = {"type": "array", "items": TEXT}
ID: Final[JsonSchema] = {"type": "string", "pattern": "^[0-9a-f]{32}$"}


def maybe(schema: JsonSchema) -> JsonSchema:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def record(required: JsonSchema, optional: JsonSchema | None = None, *, closed: bool = True) -> JsonSchema:
    """An object with these members; `closed`: and no others."""
    members: JsonSchema = {"type": "object", "properties": {**required, **(optional or {})}, "required": [*required]}
    return {**members, "additionalProperties": False} if closed else members


def reference(name: str) -> JsonSchema:
    """A schema by name."""
    return {"$ref": f"#/components/schemas/{name}"}


ROLE: Final[JsonSchema] = {"enum": ["admin", "support", "auditor"]}
_PERSON: Final[JsonSchema] = {
    **{"id": ID, "email": TEXT, "email_verified": FLAG, "name": TEXT, "status": {"enum": ["active", "disabled"]}},
    **{"createdAt": TIME, "lastSignInAt": maybe(TIME)},
}
_SEEN: Final[JsonSchema] = {
    **{"groups": TEXTS, "externalId": maybe(TEXT), "role": maybe(ROLE)},
    **{"suspension": maybe(reference("ShownSuspension")), "deletionAt": maybe(TIME)},
    **{"authenticatorApp": FLAG, "passkeys": COUNT, "recoveryCodesLeft": COUNT, "sessions": COUNT},
    **{"apps": TEXTS, "ownApps": TEXTS, "teams": TEXTS, "activity": {"type": "array", "items": {"type": "object"}}},
}
_APP_CHANGE: Final[JsonSchema] = {
    **{"name": TEXT, "redirect_uris": TEXTS, "scopes": {"anyOf": [TEXT, TEXTS]}, "public": FLAG, "homepage": TEXT},
    **{"pkceRequired": FLAG, "hostedStorage": FLAG, "issInResponse": FLAG, "verified": FLAG, "requirePushed": FLAG},
    **{"dpopRequired": FLAG, "deviceGrant": FLAG, "webhookUrl": TEXT, "webhookEvents": TEXTS, "idTokenAlg": TEXT},
    **{"postLogoutRedirectUris": TEXTS, "backchannelLogoutUri": TEXT, "profile": TEXT, "jwksUri": TEXT},
    **{"jwks": {"type": "object"}, "authMethod": TEXT, "refreshRetrySeconds": COUNT, "refreshLifetimeDays": COUNT},
    **{"owner": TEXT, "anyName": FLAG, "allowedGroups": TEXTS, "firstParty": FLAG},
    **{"secondStep": FLAG, "callsPerMinute": COUNT, "introspectionsPerMinute": COUNT, "spendPerDay": COUNT},
}
_SCOPE: Final[JsonSchema] = record({"name": TEXT}, {"title": TEXT, "detail": TEXT, "care": FLAG, "secondStep": FLAG})
_API_CHANGE: Final[JsonSchema] = {
    **{"name": TEXT, "scopes": {"type": "array", "items": _SCOPE}, "tokenFormat": TEXT, "signingAlg": TEXT},
    **{"tokenLifetime": COUNT, "owner": TEXT},
}
_BALANCE: Final[JsonSchema] = {"paid": COUNT, "held": COUNT, "spendable": COUNT, "currency": TEXT, "scale": COUNT}
_GONE: Final[JsonSchema] = {"deleted": FLAG, "dryRun": FLAG}

ADMIN_SCHEMAS: Final[JsonSchema] = {
    "Error": record({"error": TEXT, "error_description": TEXT}, {"retryAfter": COUNT}),
    "PersonSummary": record(_PERSON),
    "Person": record({**_PERSON, **_SEEN}),
    "NewPerson": {
        "anyOf": [
            record({**_PERSON, **_SEEN}, {"password": maybe(TEXT)}),
            record({"email": TEXT, "invited": {"const": True}, "mailed": FLAG, "link": maybe(TEXT)}),
        ]
    },
    "ShownSuspension": record({"reason": TEXT, "note": TEXT, "until": maybe(TIME)}),
    "PersonOrder": record({"email": TEXT}, {"name": TEXT, "password": TEXT, "groups": TEXTS, "invite": FLAG}),
    "PersonChange": record({}, {"email": TEXT, "wayBack": FLAG, "name": TEXT, "groups": TEXTS}),
    "DeletedPerson": record(
        {"id": ID, "email": TEXT, "apps": COUNT, "ownApps": COUNT, **_GONE, "deletionAt": maybe(TIME)}
    ),
    "Suspension": record({"reason": TEXT}, {"note": TEXT, "until": TEXT}),
    "BulkOrder": record(
        {},
        {
            "act": {"enum": ["suspend", "resume", "sign-out", "delete", "cancel-deletion"]},
            "people": {"type": "array", "items": ID},
            **{
                "query": TEXT,
                "status": TEXT,
                "reason": TEXT,
                "note": TEXT,
                "until": TEXT,
                "waitDays": COUNT,
                "dryRun": FLAG,
                "token": TEXT,
            },
        },
    ),
    "Bulk": record(
        {
            **{"id": TEXT, "act": TEXT, "dryRun": FLAG, "state": {"enum": ["ready", "running", "stopped", "done"]}},
            **{"token": TEXT, "total": COUNT, "done": COUNT, "changed": COUNT, "refused": COUNT},
            "refusals": {"type": "array", "items": record({"id": TEXT, "reason": TEXT})},
            "waitDays": maybe(COUNT),
        }
    ),
    "LinkOrder": record({"kind": {"enum": ["reset", "confirm"]}}),
    "SentLink": record({"id": ID, "email": TEXT, "kind": TEXT, "sent": FLAG}),
    "CreditOrder": record({"amount": COUNT}, {"reason": TEXT}),
    "Granted": record({"id": ID, "amount": COUNT, **_BALANCE, "replayed": FLAG}),
    "Ledger": record(
        {**_BALANCE, "items": {"type": "array", "items": {"type": "object"}}, "nextCursor": maybe(TEXT)},
        {"holds": {"type": "array"}, "opening": {"type": "object"}},
    ),
    "LedgerEntry": record({"person": ID, "id": TEXT, "at": TIME, "kind": TEXT, "amount": COUNT}, closed=False),
    "Report": record({}, {"app": TEXT, "kind": TEXT, "transaction": TEXT, "since": TEXT, "until": TEXT}),
    "CreditReport": record(
        {
            **{"state": {"enum": ["ready", "running", "stopped", "done"]}, "done": COUNT, "total": COUNT},
            **{
                "days": {"type": "array"},
                "reconciliation": {"type": "object"},
                "items": {"type": "array"},
                "more": FLAG,
            },
        },
        closed=False,
    ),
    "RoleOrder": record({"role": ROLE}),
    "GivenRole": record({"id": ID, "role": maybe(ROLE), "before": maybe(ROLE)}),
    "RoleHolder": record({"id": ID, "role": ROLE, "since": TIME, "givenBy": TEXT}),
    "OperatorKey": record(
        {
            **{"id": TEXT, "name": TEXT, "role": TEXT, "address": maybe(TEXT), "createdAt": TIME},
            **{"expiresAt": maybe(TIME), "lastUsedAt": maybe(TIME), "lastUsedFrom": maybe(TEXT)},
        }
    ),
    "Ended": record({"id": TEXT, "revoked": FLAG}),
    "App": record({"client_id": TEXT, "name": TEXT, "status": TEXT, "scopes": TEXTS, "createdAt": TIME}, closed=False),
    "AppOrder": record(
        {name: _APP_CHANGE[name] for name in ("name", "redirect_uris", "scopes")},
        {"client_id": TEXT, **_APP_CHANGE, "subjectType": TEXT, "sectorIdentifierUri": TEXT},
    ),
    "AppChange": record({}, _APP_CHANGE),
    "AppStatus": record({}, {"reason": TEXT}),
    "DeletedApp": record({"client_id": TEXT, "people": COUNT, "purged": FLAG, **_GONE}),
    "Rotation": record({}, {"dropOld": FLAG}),
    "NewSecret": record({"client_id": TEXT}, {"client_secret": maybe(TEXT), "webhook_secret": maybe(TEXT)}),
    "TeamOrder": record({"role": {"enum": ["owner", "developer", "viewer"]}}),
    "Teammate": record({"sub": ID, "email": maybe(TEXT), "name": maybe(TEXT), "role": TEXT, "since": TIME}),
    "Refusal": record(
        {
            **{"door": TEXT, "error": TEXT, "description": TEXT, "value": TEXT},
            **{"times": COUNT, "first": TIME, "last": TIME},
        }
    ),
    "Api": record(
        {"client_id": TEXT, "identifier": TEXT, "name": TEXT, "status": TEXT, "createdAt": TIME}, closed=False
    ),
    "ApiOrder": record(
        {"identifier": TEXT, "name": TEXT, "scopes": _API_CHANGE["scopes"]},
        {name: schema for name, schema in _API_CHANGE.items() if name not in ("name", "scopes")},
    ),
    "ApiChange": record({}, _API_CHANGE),
    "DeletedApi": record({"client_id": TEXT, "identifier": TEXT, **_GONE}),
    "AppGrant": record({"person": ID, "client_id": TEXT, "scopes": TEXTS, "connectedAt": TIME}, closed=False),
    "EndedGrant": record({"person": ID, "client_id": TEXT, "dataUntil": TIME}),
    "Session": record({"id": TEXT, "signedInAt": TIME, "lastUsedAt": TIME, "address": TEXT, "agent": TEXT}),
    "Identity": record(
        {
            **{"id": TEXT, "issuer": TEXT, "subject": TEXT, "label": maybe(TEXT)},
            **{"linkedAt": maybe(TIME), "lastUsedAt": maybe(TIME)},
        }
    ),
    "EndedPart": record({"id": TEXT, "ended": FLAG}),
    "Event": record({"at": TIME, "id": TEXT, "event": TEXT, "result": TEXT, "actor": TEXT, "by": TEXT}, closed=False),
    "Delivery": record({"id": TEXT, "client_id": TEXT, "type": TEXT, "state": TEXT}, closed=False),
    "ShownDelivery": record({"id": TEXT, "client_id": TEXT, "exchanges": {"type": "array"}}, closed=False),
    "FailingEndpoints": record(
        {
            "items": {
                "type": "array",
                "items": record({"client_id": TEXT, "endpoint": {"enum": ["events", "logout"]}, "since": TIME}),
            },
            "count": COUNT,
        }
    ),
    "DeliveryOrder": record({"client_id": TEXT}),
    "SendFailedOrder": record({"client_id": TEXT}, {"dryRun": FLAG}),
    "SentAgain": record({"client_id": TEXT, "count": COUNT, "dryRun": FLAG}),
    "ServerKey": record({"kind": {"enum": ["secret", "signing"]}, "id": TEXT}, closed=False),
    "SettingList": record(
        {"items": {"type": "array", "items": record({"name": TEXT, "value": {}, "source": TEXT, "secret": FLAG})}}
    ),
    "Health": record({"status": TEXT, "version": TEXT, "store": {"type": "object"}}, closed=False),
}
"""The schemas by name."""
