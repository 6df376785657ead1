"""Receives Latchkey's events about connections, so that open pages of the demo app notice their end. Any library for
Standard Webhooks can check the signature."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import time
from collections import OrderedDict
from typing import Any

from demo_pages import LOG, Session
from tornado.web import RequestHandler

OLDEST_SECONDS = 300
LONGEST_STAMP = 12
MOST_SEEN = 1000
FEWEST_KEY_BYTES = 24
ENDS_ACCESS = ("grant.revoked", "tokens.revoked", "user.deleted")


def key_of(secret: str) -> bytes:
    """The key that a signing secret stands for. Raises ValueError for what is none."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith("whsec_") or len(key) < FEWEST_KEY_BYTES:
        raise ValueError("this is no signing secret of a webhook")
    return key


class Webhooks(RequestHandler):
    """Takes events. Each may come more than once, and later than another that happened after it."""

    def initialize(self, key: bytes, sessions: OrderedDict[str, Session], seen: OrderedDict[str, None]) -> None:
        self.key, self.sessions, self.seen = key, sessions, seen

    def post(self) -> None:
        """204 for an event, whether or not it is news; 400 for what the server has not signed."""
        if not self.is_signed():
            self.set_status(400)
            return
        name = self.request.headers["webhook-id"]
        if name not in self.seen:
            self.act(json.loads(self.request.body))
            self.seen[name] = None
            while len(self.seen) > MOST_SEEN:
                self.seen.popitem(last=False)
        self.set_status(204)

    def is_signed(self) -> bool:
        """Whether who knows the secret has sent this, and just now."""
        headers = self.request.headers
        name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not stamp.isdecimal() or len(stamp) > LONGEST_STAMP or abs(time.time() - int(stamp)) > OLDEST_SECONDS:
            return False
        digest = hmac.digest(self.key, f"{name}.{stamp}.".encode() + self.request.body, "sha256")
        expected = b"v1," + base64.b64encode(digest)
        signatures = headers.get("webhook-signature", "").split(" ")
        return any(hmac.compare_digest(expected, one.encode()) for one in signatures)

    def act(self, event: dict[str, Any]) -> None:
        """Makes open pages of the person check at once. Only the server knows whether access ended, or was granted
        again since. The app knows the person only if they share that."""
        LOG.info("told of %s", event["type"])
        if event["type"] in ENDS_ACCESS:
            for session in self.sessions.values():
                if session.person in ("", event["data"]["sub"]):
                    session.stir()
