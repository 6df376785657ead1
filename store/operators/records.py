"""What operators see as JSON, as the management interface and commands write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from store.accounts.audit.logged_event import AuditEvent
from store.accounts.identities import LinkedIdentity
from store.accounts.signin.sessions import LiveSession
from store.app_log import LoggedRefusal
from store.apps.api_record import ApiRegistration
from store.apps.owners.team import Teammate
from store.apps.registration import Registration
from store.crypto.signing_store import ListedKey
from store.moments import at, timestamp
from store.oauth.grants import Grant
from store.operations import Suspension
from store.operators.bulk_acts import BulkPlan
from store.operators.delivery_pages import FailingEndpoint
from store.operators.jobs import OperatorJob
from store.operators.operator_keys import OperatorKey
from store.operators.people_pages import PersonSummary
from store.operators.person_view import PersonView
from store.operators.role_holders import RoleHolder
from store.webhooks.attempts import Attempt
from store.webhooks.deliveries import Delivery


def summary_record(one: PersonSummary) -> dict[str, Any]:
    """A person in a list."""
    return {
        "id": one.user,
        "email": one.email,
        "email_verified": one.email_verified,
        "name": one.name,
        "status": one.status,
        "createdAt": timestamp(one.created_at),
        "lastSignInAt": _moment(one.signed_in_at),
    }


def person_record(view: PersonView) -> dict[str, Any]:
    """A person with what an operator sees of them."""
    person, security = view.person, view.security
    return {
        **summary_record(view.summary),
        "groups": list(person.groups),
        "externalId": person.external_id or None,
        "role": view.role,
        "suspension": suspension_record(person.suspension),
        "deletionAt": _moment(person.delete_at),
        "authenticatorApp": security.app_since is not None,
        "passkeys": len(security.passkeys),
        "recoveryCodesLeft": security.codes,
        "sessions": len(security.sessions),
        "apps": list(person.apps),
        "ownApps": list(person.registered),
        "teams": list(person.joined),
        "activity": [
            {
                "at": timestamp(entry.at),
                "event": entry.event,
                "client_id": entry.client,
                "address": entry.address,
                "agent": entry.agent,
            }
            for entry in person.activity
        ],
    }


def suspension_record(suspension: Suspension | None) -> dict[str, Any] | None:
    """Why and until when a person is suspended, with the operators' note."""
    if suspension is None:
        return None
    return {"reason": suspension.reason, "note": suspension.note, "until": _moment(suspension.until)}


def key_record(key: OperatorKey) -> dict[str, Any]:
    """An operator key, without its text."""
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "address": key.network or None,
        "createdAt": timestamp(at(key.made_at)),
        "expiresAt": timestamp(at(key.ends_at)) if key.ends_at else None,
        "lastUsedAt": timestamp(at(key.used_at)) if key.used_at else None,
        "lastUsedFrom": key.used_from or None,
    }


def holder_record(holder: RoleHolder) -> dict[str, Any]:
    """A person with a role."""
    return {"id": holder.user, "role": holder.role, "since": timestamp(at(holder.since)), "givenBy": holder.by}


def app_record(app: Registration) -> dict[str, Any]:
    """An app, without secrets."""
    return {**app.record(), "createdAt": timestamp(at(app.created_at))}


def api_record(api: ApiRegistration) -> dict[str, Any]:
    """An API, without secrets."""
    return {**api.record(), "createdAt": timestamp(at(api.created_at))}


def mate_record(mate: Teammate) -> dict[str, Any]:
    """A person in the team of an app."""
    member, person = mate
    return {
        "sub": member.user,
        "email": person.email if person else None,
        "name": person.name if person else None,
        "role": member.role,
        "since": timestamp(at(member.since)),
    }


def refusal_record(one: LoggedRefusal) -> dict[str, Any]:
    """Why an app was refused."""
    cause = {"door": one.cause.door, "error": one.cause.code, "description": one.cause.description}
    times = {"times": one.times, "first": timestamp(one.first), "last": timestamp(one.last)}
    return {**cause, "value": one.cause.value, **times}


def grant_record(user: str, grant: Grant) -> dict[str, Any]:
    """A grant of a person to an app."""
    return {
        "person": user,
        "client_id": grant.client,
        "scopes": list(grant.scopes),
        "connectedAt": _moment(grant.connected_at),
        "lastUsedAt": _moment(grant.last_used_at),
        "revokedAt": _moment(grant.revoked_at),
        "dataUntil": _moment(grant.data_until),
        "pausedAt": _moment(grant.paused_at),
        "spendLimit": grant.spend_limit,
        "authorizationDetails": [{**budget.detail(), "used": budget.used} for budget in grant.budgets],
    }


def event_record(event: AuditEvent) -> dict[str, Any]:
    """An event of the security log."""
    return {"at": timestamp(at(event.at_ms)), "id": event.id, **event.shown()}


def session_record(one: LiveSession) -> dict[str, Any]:
    """A session of a person."""
    moments = {"signedInAt": timestamp(one.created_at), "lastUsedAt": timestamp(one.seen_at)}
    return {"id": one.session_id, **moments, "address": one.address, "agent": one.agent}


def identity_record(one: LinkedIdentity) -> dict[str, Any]:
    """A person's account at another site."""
    account = {"issuer": one.identity.issuer, "subject": one.identity.subject, "label": one.label or None}
    return {
        "id": one.identity.name,
        **account,
        "linkedAt": _moment(one.linked_at),
        "lastUsedAt": _moment(one.used_at),
    }


def delivery_record(one: Delivery) -> dict[str, Any]:
    """A webhook delivery, without its content."""
    return {
        "id": one.id,
        "client_id": one.client_id,
        "type": one.type,
        "sub": one.sub,
        "state": one.state,
        "attempts": one.attempts,
        "occurredAt": timestamp(at(one.occurred_at)),
        "nextAttemptAt": timestamp(at(one.next_attempt_at)) if one.next_attempt_at else None,
        "lastStatus": one.last_status,
        "lastError": one.last_error,
    }


def plan_record(plan: BulkPlan) -> dict[str, Any]:
    """What a dry run of an act on many people found."""
    refusals = [{"id": user, "reason": why} for user, why in plan.refusals]
    return {
        **{"id": plan.token, "act": plan.act, "dryRun": True, "state": "ready", "token": plan.token},
        **{"total": plan.people + plan.refused, "done": 0, "changed": plan.people, "refused": plan.refused},
        "refusals": refusals,
        "waitDays": plan.days,
    }


def bulk_record(job: OperatorJob) -> dict[str, Any]:
    """How far an act on many people is."""
    refusals = [{"id": user, "reason": why} for user, why in job.report.get("refusals", [])]
    return {
        **{"id": job.id, "act": job.order["act"], "dryRun": False, "state": job.state, "token": job.id},
        **{"total": job.total, "done": job.done, "changed": job.report.get("changed", 0)},
        **{"refused": job.report.get("refused", 0), "refusals": refusals, "waitDays": job.order.get("days")},
    }


def attempt_record(one: Attempt) -> dict[str, Any]:
    """An attempt at a delivery: what was sent, and the answer. Bytes that are not UTF-8 are replaced."""
    exchange, answer = one.exchange, one.exchange.answer
    return {
        "number": one.number,
        "at": timestamp(at(one.at)),
        "milliseconds": exchange.milliseconds,
        "url": exchange.url,
        "requestHeaders": dict(exchange.headers),
        "requestBody": exchange.body.decode("utf-8", "replace"),
        "status": one.status,
        "responseHeaders": dict(answer.headers) if answer else None,
        "responseBody": answer.body.decode("utf-8", "replace") if answer else None,
        "error": one.error,
    }


def endpoint_record(one: FailingEndpoint) -> dict[str, Any]:
    """An endpoint of an app that fails."""
    return {"client_id": one.client_id, "endpoint": one.endpoint, "since": timestamp(at(one.since))}


def secret_key_record(key_id: int, front: bool, sealed_at: int, since: int) -> dict[str, Any]:
    """A secret key, without the key. Times are epoch ms, 0 for unknown."""
    sealed, known = (timestamp(at(moment)) if moment else None for moment in (sealed_at, since))
    return {"kind": "secret", "id": str(key_id), "front": front, "lastSealedAt": sealed, "since": known}


def signing_key_record(listed: ListedKey) -> dict[str, Any]:
    """A key that signs, without its private half."""
    return {
        "kind": "signing",
        "id": listed.row.kid,
        "alg": listed.row.algorithm,
        "state": listed.phase.value,
        "signsFrom": timestamp(at(listed.row.first_use)),
        "until": timestamp(at(listed.until)) if listed.until else None,
    }


def _moment(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
