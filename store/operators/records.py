"""People, keys and roles as JSON, as the management interface and commands write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from store.moments import at, timestamp
from store.operations import Suspension
from store.operators.operator_keys import OperatorKey
from store.operators.people_pages import PersonSummary
from store.operators.person_view import PersonView
from store.operators.role_holders import RoleHolder


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
        "role": view.role,
        "suspension": suspension_record(person.suspension),
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


def _moment(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
