"""Changes of a registration that its owner makes: of its fields, and of its secrets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from store.apps.client_secrets import live_notes, note_of, secret_digest, secret_mark, told
from store.apps.registration import LIVE_SECRETS, Registration
from store.apps.sectors import InvalidSector, check_told_at
from store.phrases import Phrase
from store.refused import Refused

_DOMAIN = ("domain", "domain_until", "domain_checked", "domain_misses")
_APART = ("secrets", "secrets_at", "secret_notes", "verified", "owner", "members", *_DOMAIN)
"""Fields that have their own time, or none."""


def replacing(present: Registration, changed: Registration, *, by_owner: bool) -> Registration:
    """The changed registration as a replacement of the present one: a change of name or redirect URIs ends a proven
    domain. An owner's change of these, or a new logo, ends the operator's mark, which vouches for what people see."""
    same = (changed.name, changed.redirect_uris) == (present.name, present.redirect_uris)
    vouched = same and changed.logo in ("", present.logo)
    domain = changed.domain if same else ""
    return replace(changed, domain=domain, verified=changed.verified and (vouched or not by_owner))


def stamped(present: Registration, changed: Registration, now: int) -> Registration:
    """The changed registration as its owner's replacement of the present one, with the time (epoch ms) of new parts.
    Ending a secret, switching the app off and proving a domain get no time: nobody needs to take them back."""
    ended = changed.status if changed.status != "active" else present.status
    apart = {name: getattr(changed, name) for name in _APART}
    same = replace(present, **apart, status=ended) == changed
    known = present.made_at()
    secrets_at = tuple(known.get(secret, now) for secret in changed.secrets)
    return replace(changed, secrets_at=told(secrets_at), changed_at=changed.changed_at if same else now)


def changed_by_owner(app: Registration, by: str, /, **changes: Any) -> Registration:
    """The registration with the changes of somebody in its team (a user id). Raises InvalidSector for a URL for logout
    tokens outside of the sector of a pairwise app, Refused("access_denied") if they would enable an app that the
    operator has disabled, or change redirect URIs that a sector identifier URI lists, and Refused("invalid_request") if
    they would change the sector. An app that authenticates by a key from now on has no secrets left."""
    if "status" in changes and app.status == "disabled":
        raise Refused("access_denied", Phrase("The operator of this server has disabled this app."))
    if changes.get("private_key_jwt") and app.secrets:
        changes |= {"secrets": (), "secrets_at": (), "secret_notes": ()}
    if "api_scopes" in changes:
        changes["owner_scopes"] = tuple(
            scope for scope in changes["api_scopes"] if scope in app.owner_scopes or scope not in app.api_scopes
        )
        changes["member_scopes"] = tuple(
            scope
            for scope in changes["owner_scopes"]
            if scope in app.member_scopes or (by != app.owner and scope not in app.api_scopes)
        )
    changed = replace(app, **changes)
    if app.sector and changed.redirect_uris != app.redirect_uris:
        if app.sector_uri:
            raise Refused(
                "access_denied", Phrase("Only the operator of this server can change the redirect URIs of this app.")
            )
        try:
            changed.check_redirect_uris(app)
        except InvalidSector as error:
            raise Refused("invalid_request", str(error)) from None
    if changed.backchannel_logout_uri != app.backchannel_logout_uri:
        check_told_at(own_sector(changed), changed.backchannel_logout_uri)
    return changed


def own_sector(app: Registration) -> str:
    """The sector of a pairwise app whose owner nobody vouches for; otherwise empty."""
    return "" if app.from_operator else app.sector


def rotated(app: Registration, secret: str, drop_old: bool = False, spare: bool = False, now: int = 0) -> Registration:
    """The registration with a new secret in front, made at `now` (epoch ms). The older of two secrets ends; with
    `spare`, raises Refused."""
    if not app.has_secret:
        if app.public:
            raise Refused("invalid_request", Phrase("A public app has no secret."))
        raise Refused("invalid_request", Phrase("An app with private_key_jwt has no secret."))
    if spare and len(app.secrets) >= LIVE_SECRETS:
        raise Refused("invalid_request", Phrase("This app already has two client secrets. Revoke one first."))
    kept = () if drop_old else app.secrets[: LIVE_SECRETS - 1]
    made = _with_secrets(app, (secret_digest(secret), *kept))
    return replace(made, secret_notes=(note_of(secret, now), *made.secret_notes))


def _with_secrets(app: Registration, secrets: tuple[bytes, ...]) -> Registration:
    known = app.made_at()
    times = told([known.get(secret, 0) for secret in secrets])
    return replace(app, secrets=secrets, secrets_at=times, secret_notes=live_notes(app.secret_notes, secrets))


def without_secret(app: Registration, mark: str) -> Registration:
    """The registration without the secret with this mark. Raises Refused("not_found", or "invalid_request" for the last
    one)."""
    kept = tuple(digest for digest in app.secrets if secret_mark(digest) != mark)
    if len(kept) == len(app.secrets):
        raise Refused("not_found", Phrase("This app no longer has that secret."))
    if not kept:
        raise Refused("invalid_request", Phrase("This is the only secret of the app. Create a new one first."))
    return _with_secrets(app, kept)
