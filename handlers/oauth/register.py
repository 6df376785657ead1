"""POST /api/oauth/register, and the address of each registration: apps that register themselves. RFC 7591, RFC 7592."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import replace
from typing import Any

from handlers.core.api import ApiHandler
from handlers.core.params import JSON, media_type
from store.apps.client_ids import new_client_id
from store.apps.client_secrets import new_secret, note_of, secret_digest
from store.apps.registration import DYNAMIC, Registration
from store.apps.self_registered.initial_tokens import digest_of
from store.apps.self_registered.kept import REFRESH_DAYS
from store.apps.self_registered.metadata import (
    LONGEST_METADATA,
    MEMBERS,
    NEVER_SENT,
    OF_A_CHANGE,
    STRUCTURED,
    check_unchanged,
    chosen_by_operator,
    metadata_of,
    registration_of,
    with_secret_of,
)
from store.apps.tombstones import BY_OWNER
from store.errors import StoreUnavailable
from store.lifetimes import UNUSED_APP
from store.oauth.budgets import BUDGET_TYPES
from store.refused import Refused

ACCESS_PREFIX = "lk_rg_"
OFF = "This server registers no apps by themselves: its operator registers yours."


class RegistrationPage(ApiHandler):
    """Shared by both addresses."""

    def bearer(self) -> str:
        """The token in the header; empty without one."""
        header = self.request.headers.get_list("Authorization")
        scheme, _, token = (header[0] if len(header) == 1 else "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def metadata(self, *more: str) -> dict[str, Any]:
        """The client metadata in the body, with `more` members. In a form, lists and objects are JSON texts."""
        if len(self.request.body) > LONGEST_METADATA:
            raise Refused("invalid_client_metadata", f"The metadata have more than {LONGEST_METADATA} bytes.")
        params = self.body()
        if more and (sent := set(params.names()) & NEVER_SENT):
            raise Refused("invalid_request", f"{min(sent)} is chosen by the server, and is not sent.")
        texts = media_type(self.request) != JSON
        read = {True: params.structured, False: params.value}
        return {name: read[texts and name in STRUCTURED](name) for name in (*MEMBERS, *more)}

    def registration(self, metadata: dict[str, Any], client_id: str, **fields: Any) -> Registration:
        """The app that the metadata describe. Raises Refused."""
        base, here, own = self.site.base_url, self.site.on_loopback, self.site.brand.name
        fields = {"origin": DYNAMIC, "refresh_lifetime_days": REFRESH_DAYS} | fields
        return registration_of(metadata, client_id, base, own, loopback=here, **fields)

    async def tell(self, app: Registration, token: str, secret: str | None, status: int) -> None:
        """RFC 7591 3.2.1, RFC 7592 3: what is registered, and how to change it. A secret is shown once."""
        filled = await self.store.self_registered.filled(app)
        answer = metadata_of(filled)
        if "credits:spend" in filled.scopes:
            # RFC 9396 10: an app that named none may ask for all.
            answer.setdefault("authorization_details_types", list(BUDGET_TYPES))
        answer["client_id_issued_at"] = app.created_at // 1000
        if secret:
            answer |= {"client_secret": secret, "client_secret_expires_at": 0}
        answer["registration_access_token"] = token
        answer["registration_client_uri"] = f"{self.site.base_url}/api/oauth/register/{app.client_id}"
        self.set_header("Pragma", "no-cache")
        self.write_json(answer, status)


class RegisterClientHandler(RegistrationPage):
    """Registers an app that nobody registered before."""

    async def post(self) -> None:
        """Answers with the registration (201)."""
        allowed = self.site.dynamic_registration
        if allowed == "off":
            raise Refused("not_found", OFF)
        window = await self.store.limits.register_client(self.counted_address)
        try:
            initial = self.bearer() if allowed == "token" else ""
            if allowed == "token" and not initial:
                raise Refused("invalid_token", "Registering needs a registration token: ask the operator for one.")
            app, token, secret = await self._register(self.metadata(), digest_of(initial) if initial else "")
        except Refused as refusal:
            refusal.window = window
            self.store.security.note("registration_refused", detail=refusal.code)
            raise
        self.store.security.note("client_registered", client=app.client_id)
        self.write_window(window)
        await self.tell(app, token, secret, 201)

    async def _register(self, metadata: dict[str, Any], initial: str) -> tuple[Registration, str, str | None]:
        token, now = ACCESS_PREFIX + secrets.token_urlsafe(32), await self.store.apps.now()
        client_id = new_client_id()
        app = self.registration(metadata, client_id, access_digest=digest(token), created_at=now)
        app, secret = with_new_secret(app, now)
        kept = self.store.self_registered
        await kept.claim(client_id, UNUSED_APP, initial)
        if not await kept.save(app, b"", UNUSED_APP):
            raise StoreUnavailable("the client id is taken")
        return app, token, secret


class ClientConfigurationHandler(RegistrationPage):
    """One registration, for the app that has its token. RFC 7592."""

    async def get(self, client_id: str) -> None:
        """Answers with the registration."""
        _, app = await self._own(client_id)
        await self.tell(app, self.bearer(), None, 200)

    async def put(self, client_id: str) -> None:
        """Replaces the registration. What the metadata leave out has its default again (RFC 7592 2.2)."""
        packed, present = await self._own(client_id)
        metadata = self.metadata(*OF_A_CHANGE)
        check_unchanged(metadata, present)
        asked = self.registration(metadata, client_id, **chosen_by_operator(present))
        changed = with_secret_of(asked, present)
        secret = None
        if changed.has_secret and not changed.secrets:
            changed, secret = with_new_secret(changed, await self.store.apps.now())
        kept = self.store.self_registered
        await kept.claim(client_id, UNUSED_APP)  # the place lasts as long as the row
        if not await kept.save(changed, packed, UNUSED_APP):
            raise StoreUnavailable("the registration changed meanwhile")
        self.store.security.note("client_changed", client=client_id)
        await self.tell(changed, self.bearer(), secret, 200)

    async def delete(self, client_id: str) -> None:
        """Deletes the app, and every token of it."""
        _, app = await self._own(client_id)
        if not await self.store.self_registered.drop(app):
            await self.store.apps.begin_deletion(client_id, reason=BY_OWNER)
            self.site.in_background(self.store.apps.finish_deletion(client_id))
        self.store.security.note("client_deleted", client=client_id)
        self.set_status(204)
        self.finish()

    async def _own(self, client_id: str) -> tuple[bytes, Registration]:
        """The stored registration, if the request has its token. Raises Refused("invalid_token"), also if there is no
        such app (RFC 7592 2.1)."""
        self.write_window(await self.store.limits.public_client(client_id, self.counted_address))
        packed, app = await self.store.apps.row(client_id)
        known = app.access_digest if app and app.active else b""
        if not hmac.compare_digest(digest(self.bearer()), known or bytes(32)) or app is None:
            raise Refused("invalid_token", "The registration access token is wrong, or the app is gone.")
        return packed, app


def digest(token: str) -> bytes:
    """The stored digest of a registration access token: 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def with_new_secret(app: Registration, now: int) -> tuple[Registration, str | None]:
    """The registration with a secret made at `now` (epoch ms), and the secret; None if the app uses none."""
    if not app.has_secret:
        return app, None
    secret = new_secret()
    return replace(app, secrets=(secret_digest(secret),), secret_notes=(note_of(secret, now),)), secret
