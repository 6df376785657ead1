"""A person's ways to sign in and live sessions, for exports: without secrets, keys or digests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from store.accounts.identities import LinkedIdentity
from store.accounts.signin.passkeys import Passkey
from store.accounts.signin.sessions import LiveSession
from store.moments import timestamp


@dataclass(frozen=True, slots=True)
class Security:
    """A person's factors and sessions. `app_since`: when the authenticator app was set up, None without one; `codes`:
    how many recovery codes are left."""

    app_since: datetime | None
    codes: int
    passkeys: tuple[Passkey, ...]
    sessions: tuple[LiveSession, ...]
    identities: tuple[LinkedIdentity, ...]


def security_record(security: Security) -> dict[str, Any]:
    """The same as JSON fields, named as in the interface."""
    return {
        "authenticatorAppSince": timestamp(security.app_since) if security.app_since else None,
        "recoveryCodesLeft": security.codes,
        "passkeys": [
            {
                "name": passkey.name,
                "createdAt": timestamp(passkey.created_at),
                "lastUsedAt": timestamp(passkey.used_at) if passkey.used_at else None,
            }
            for passkey in security.passkeys
        ],
        "identities": [
            {
                "issuer": one.identity.issuer,
                "subject": one.identity.subject,
                "label": one.label or None,
                "linkedAt": timestamp(one.linked_at) if one.linked_at else None,
                "lastUsedAt": timestamp(one.used_at) if one.used_at else None,
            }
            for one in security.identities
        ],
        "sessions": [
            {
                "signedInAt": timestamp(one.created_at),
                "lastUsedAt": timestamp(one.seen_at),
                "address": one.address,
                "agent": one.agent,
            }
            for one in security.sessions
        ],
    }
