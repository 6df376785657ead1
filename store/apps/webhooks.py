"""Webhook URLs of apps, and the signing secrets of webhooks.

A secret is sealed, not hashed, because signing needs it again. It is shown once, when it is made. For a day after a
rotation there are two secrets, and both sign.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets as random
import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from store.apps.apps import Apps
from store.apps.registration import Registration
from store.apps.tombstones import Remains
from store.crypto.keyring import Keys
from store.crypto.sealed_secrets import SealedSecrets
from store.errors import StoreError
from store.lifetimes import WEBHOOK_OVERLAP
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.deliveries import SESSION_ENDED
from store.webhooks.event_types import is_chosen

PREFIX = "whsec_"
_LETTERS = string.ascii_letters + string.digits
_LENGTH = 44  # base64 of 33 bytes


class WebhookChange(NamedTuple):
    """A changed registration, and the new signing secret if one was made."""

    registration: Registration
    secret: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """The URL for events of an app, and the secrets that sign them, newest first. `payer`: whose share of the relay's
    places the events use, the owner's or, without an owner, the app's own. `algorithm`: that of logout tokens, which a
    key of the server signs."""

    url: str
    secrets: tuple[str, ...]
    payer: str
    algorithm: str = ""


class WebhookSecrets(SealedSecrets):
    """The signing secrets of webhooks, each sealed for its app."""

    def __init__(self, keys: Keys) -> None:
        super().__init__(keys, b"webhook", "the signing secret of a webhook")

    def resealed(self, client_id: str, sealed: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """The secrets of an app under the front key. Raises StoreError."""
        return tuple(one if self.is_front(one) else self.seal(client_id, self.open(client_id, one)) for one in sealed)


class Webhooks:
    """Webhook settings: owners and operators change them, and the relay reads them."""

    def __init__(self, apps: Apps, secrets: WebhookSecrets) -> None:
        self._apps = apps
        self._secrets = secrets

    def begun(self, app: Registration, secret: str | None = None) -> WebhookChange:
        """A registration before its creation, with a signing secret if it has a URL: the given secret, or a new one,
        which is returned."""
        if not app.webhook_url or app.webhook_secrets:
            return WebhookChange(app, None)
        secret = secret or new_webhook_secret()
        sealed = self._secrets.seal(app.client_id, secret.encode())
        return WebhookChange(replace(app, webhook_secrets=(sealed,)), secret)

    async def set_url(
        self, client_id: str, url: str, *, events: tuple[str, ...] | None = None, by: str | None = None
    ) -> WebhookChange:
        """Sets the URL, and if given the chosen event types; an empty URL turns webhooks off. An app without a secret
        gets one. With `by`, only for an app that this person owns. Raises Refused("not_found"), ValueError for a
        forbidden URL or an unknown type."""

        def changed(app: Registration, _: int) -> WebhookChange:
            chosen = app.webhook_events if events is None else events
            return self.begun(replace(app, webhook_url=url, webhook_events=chosen))

        return await self._change(client_id, changed, by)

    async def rotate(
        self, client_id: str, *, by: str | None = None, mark: str | None = None, ends: str | None = "older"
    ) -> WebhookChange:
        """Gives the app a new signing secret; the previous one also signs for a day. If two sign already, one of them
        `ends` at once: the "older" or the "newer". With a `mark`, only if the newest secret still has it, so that a
        form sent twice works once. Raises Refused("not_found", or as `rotated`)."""
        return await self._change(client_id, lambda app, now: self.rotated(app, now, mark, ends), by)

    def live_secrets(self, app: Registration | Remains, now: int) -> tuple[bytes, ...]:
        """The sealed secrets that sign at a time (epoch ms), newest first."""
        return app.webhook_secrets[: 2 if now < app.webhook_rotated_at + WEBHOOK_OVERLAP else 1]

    async def wants(self, client_id: str, event: str = "") -> bool:
        """Whether this app receives events of this type. Raises StoreUnavailable."""
        app = await self._receiving(client_id)
        if event == SESSION_ENDED:
            return isinstance(app, Registration) and bool(app.backchannel_logout_uri)
        return app is not None and _wanted(app, event)

    async def target(self, client_id: str, event: str = "") -> Target | None:
        """The target for events of this type; None if the app is missing, inactive or without a URL, or did not
        choose this type. Raises StoreError, StoreUnavailable."""
        app = await self._receiving(client_id)
        if event == SESSION_ENDED:
            if not isinstance(app, Registration) or not app.backchannel_logout_uri:
                return None
            return Target(app.backchannel_logout_uri, (), app.owner or client_id, app.id_token_alg)
        if app is None or not _wanted(app, event):
            return None
        if not app.webhook_secrets:
            raise StoreError(f"the app {client_id} has a webhook and no secret for it")
        live = self.live_secrets(app, await self._apps.now()) if len(app.webhook_secrets) > 1 else app.webhook_secrets
        secrets = tuple(self._secrets.open(client_id, one).decode() for one in live)
        return Target(app.webhook_url, secrets, app.owner or client_id)

    async def _receiving(self, client_id: str) -> Registration | Remains | None:
        """The app whose webhook receives events: an active app, or one that was active when it was deleted."""
        app = await self._apps.remembered(client_id)
        return app if isinstance(app, Remains) or (app and app.active) else None

    def rotated(self, app: Registration, now: int, mark: str | None, ends: str | None) -> WebhookChange:
        """The registration with a new secret in front, at a time (epoch ms). Raises Refused("invalid_request") if there
        is no URL, the newest secret has another mark, or two sign and `ends` names neither."""
        if not app.webhook_url:
            raise Refused("invalid_request", Phrase("This app has no webhook URL."))
        if mark not in (None, newest_mark(app)):
            raise Refused(
                "invalid_request", Phrase("Another secret was created after you opened this page. Nothing was changed.")
            )
        two_sign = len(self.live_secrets(app, now)) > 1
        if two_sign and ends not in ("newer", "older"):
            raise Refused(
                "invalid_request",
                Phrase("Nothing was changed. Two secrets already sign events, so choose which of them stops."),
            )
        kept = app.webhook_secrets[1:2] if two_sign and ends == "newer" else app.webhook_secrets[:1]
        secret = new_webhook_secret()
        sealed = (self._secrets.seal(app.client_id, secret.encode()), *kept)
        return WebhookChange(replace(app, webhook_secrets=sealed, webhook_rotated_at=now), secret)

    async def _change(
        self, client_id: str, change: Callable[[Registration, int], WebhookChange], by: str | None
    ) -> WebhookChange:
        now = await self._apps.now()
        made: list[str | None] = []

        def changed(app: Registration) -> Registration:
            registration, secret = change(app, now)
            made.append(secret)
            return registration

        registration = await self._apps.change(client_id, changed, by)
        return WebhookChange(registration, made[-1])


def _wanted(app: Registration | Remains, event: str) -> bool:
    return bool(app.webhook_url) and is_chosen(app.webhook_events, event)


def newest_mark(app: Registration) -> str:
    """The name of the newest signing secret on pages: a digest of the sealed form reveals nothing about the secret."""
    return hashlib.sha256(b"".join(app.webhook_secrets[:1])).hexdigest()[:8]


def new_webhook_secret() -> str:
    """A new signing secret of 262 random bits: `whsec_` and base64, as in Standard Webhooks. It has only letters and
    digits, so a double click selects all of it."""
    return PREFIX + "".join(random.choice(_LETTERS) for _ in range(_LENGTH))


def check_webhook_secret(secret: str) -> None:
    """Raises ValueError unless an imported signing secret is valid: `whsec_` and the base64 of 24 to 64 bytes, as in
    Standard Webhooks. The message reveals nothing about the secret."""
    try:
        length = len(base64.b64decode(secret.removeprefix(PREFIX).encode("ascii"), validate=True))
    except (UnicodeEncodeError, binascii.Error):
        length = 0
    if not secret.startswith(PREFIX) or not 24 <= length <= 64:
        raise ValueError(f"must be {PREFIX} and the base64 of 24 to 64 bytes")
