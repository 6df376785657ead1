"""The body of an event, and its signature: Standard Webhooks 1.0."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from store.moments import timestamp as written

PREFIX = "whsec_"


def body_of(type: str, occurred_at: int, client_id: str, sub: str, details: Mapping[str, str]) -> bytes:
    """The JSON body of an event, the same for each attempt. `occurred_at` is in epoch ms. `sub` is empty if the event
    concerns no person."""
    data = {"client_id": client_id, **({"sub": sub} if sub else {}), **details}
    moment = datetime.fromtimestamp(occurred_at // 1000, UTC).replace(microsecond=occurred_at % 1000 * 1000)
    return json.dumps({"type": type, "timestamp": written(moment), "data": data}, separators=(",", ":")).encode()


def signed(message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """The headers of a message, with a signature by each secret (`whsec_…`). `timestamp` is the attempt's, in epoch
    seconds; receivers refuse messages older than some five minutes."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_signature(secret, content)}" for secret in secrets),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()
