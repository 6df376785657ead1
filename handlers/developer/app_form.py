"""The form of an app: typed values and their errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from handlers.core.params import Params
from handlers.core.site import Site
from handlers.developer.api_boxes import ApiBoxes, offered_scopes
from handlers.developer.app_keys import check_keys, chosen_method, default_method, shown_keys
from store.apps.api_scopes import check_api_scopes
from store.apps.client_keys import BY_KEY, BY_SECRET
from store.apps.lookalikes import check_honest_name
from store.apps.redirect_uris import check_redirect_uri, host_of
from store.apps.registration import MAX_REDIRECT_URIS, MOST_LIFETIME, MOST_RETRY, Registration, check_homepage
from store.apps.sectors import PUBLIC, SUBJECT_TYPES, InvalidSector, check_one_host, check_told_at
from store.crypto.jose.private import OURS
from store.names import SCOPES, check_app_name
from store.phrases import Phrase
from store.refused import reason_of
from store.webhooks.urls import LOGOUT_URL, check_webhook_url

BOX = "scope:"
_NUMBER = re.compile(r"[0-9]{1,10}")


@dataclass
class AppForm:
    """The values of the form, and the errors by field. `api_scopes` are qualified; `jwks` is the text of the keys,
    `kept_keys` what a registration keeps of them; `sector` is that of a registered pairwise app;
    `demanded`: the operator demands a second step already."""

    name: str = ""
    homepage: str = ""
    redirect_uris: str = ""
    scopes: tuple[str, ...] = ("profile",)
    public: bool = False
    pkce_required: bool = True
    nonce: str = ""
    hosted_storage: bool = False
    omit_iss: bool = False
    refresh_retry_seconds: str = "0"
    refresh_lifetime_days: str = "0"
    post_logout_redirect_uris: str = ""
    backchannel_logout_uri: str = ""
    api_scopes: tuple[str, ...] = ()
    auth_method: str = BY_SECRET
    jwks: str = ""
    jwks_uri: str = ""
    kept_keys: str = ""
    require_pushed: bool = False
    dpop_required: bool = False
    id_token_alg: str = OURS[0]
    subject_type: str = PUBLIC
    sector: str = ""
    device_grant: bool = False
    owner_second_step: bool = False
    demanded: bool = False
    errors: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, app: Registration) -> AppForm:
        """The form filled in for a registered app."""
        uris = "\n".join(app.redirect_uris)
        return cls(
            app.name,
            app.homepage,
            uris,
            app.scopes,
            app.public,
            app.pkce_required,
            hosted_storage=app.hosted_storage,
            omit_iss=not app.iss_in_response,
            refresh_retry_seconds=str(app.refresh_retry_seconds),
            refresh_lifetime_days=str(app.refresh_lifetime_days),
            post_logout_redirect_uris="\n".join(app.post_logout_redirect_uris),
            backchannel_logout_uri=app.backchannel_logout_uri,
            api_scopes=app.api_scopes,
            auth_method=app.auth_method,
            jwks=shown_keys(app.jwks),
            jwks_uri=app.jwks_uri,
            require_pushed=app.require_pushed,
            dpop_required=app.dpop_required,
            id_token_alg=app.id_token_alg,
            subject_type=app.subject_type,
            sector=app.sector,
            device_grant=app.device_grant,
            owner_second_step=app.owner_second_step,
            demanded=app.second_step,
        )

    @classmethod
    def read(
        cls, params: Params, public: bool, site: Site, apis: Sequence[ApiBoxes] = (), app: Registration | None = None
    ) -> AppForm:
        """The typed values, each checked for this server. `apis`: the boxes of the page; `app`: the app that is to be
        changed. It may keep its name, and its keys if the form has no fields for them. Its subject type stays."""
        present = cls.of(app) if app else cls(auth_method=default_method(public))
        made = cls(
            name=params.get("name") or "",
            homepage=(params.get("homepage") or "").strip(),
            redirect_uris=params.get("redirect_uris") or "",
            scopes=tuple(scope for scope in SCOPES if params.get(BOX + scope)),
            public=public,
            pkce_required=params.get("pkce_required") is not None,
            nonce=params.get("nonce") or "",
            hosted_storage=params.get("hosted_storage") is not None,
            omit_iss=params.get("omit_iss") is not None,
            refresh_retry_seconds=(params.get("refresh_retry_seconds") or "0").strip(),
            refresh_lifetime_days=(params.get("refresh_lifetime_days") or "0").strip(),
            post_logout_redirect_uris=params.get("post_logout_redirect_uris") or "",
            backchannel_logout_uri=(params.get("backchannel_logout_uri") or "").strip(),
            api_scopes=tuple(scope for scope in offered_scopes(apis) if params.get(BOX + scope)),
            auth_method=params.get("auth_method") or present.auth_method,
            jwks=_given(params, "jwks", present.jwks),
            jwks_uri=_given(params, "jwks_uri", present.jwks_uri),
            require_pushed=params.get("require_pushed") is not None,
            dpop_required=params.get("dpop_required") is not None,
            id_token_alg=params.get("id_token_alg") or present.id_token_alg,
            subject_type=present.subject_type if app else params.get("subject_type") or PUBLIC,
            sector=present.sector,
            device_grant=params.get("device_grant") is not None,
            owner_second_step=params.get("owner_second_step") is not None,
            demanded=present.demanded,
        )
        made.check(site, present.name)
        if app is None:
            made.check_subjects()
        made.check_proof(site)
        if made.device_grant and made.subject_type != PUBLIC and not (app and app.from_operator):
            made.errors["device_grant"] = [
                Phrase(
                    "An app that gets its own ID for each person can’t sign people in on devices. Ask the operator "
                    "of this server."
                )
            ]
        return made

    def check(self, site: Site, named: str) -> None:
        """Collects the errors of values that may not be registered."""
        try:
            self.name = check_app_name(self.name)
            if self.name != named:
                check_honest_name(self.name, site.brand.name)
        except ValueError as error:
            self.errors["name"] = [reason_of(error)]
        try:
            check_homepage(self.homepage)
        except ValueError:
            self.errors["homepage"] = [Phrase("Start with https:// or http://, and use no spaces.")]
        if not self.scopes and not self.api_scopes:
            self.errors["scopes"] = [Phrase("Choose at least one thing that your app may ask for.")]
        if self.hosted_storage and not Registration.data_scopes(self.scopes):
            self.errors["hosted_storage"] = [
                Phrase("Choose above that it may read or write documents, or untick this.")
            ]
        for name, most in (("refresh_retry_seconds", MOST_RETRY), ("refresh_lifetime_days", MOST_LIFETIME)):
            text = getattr(self, name)
            if not (_NUMBER.fullmatch(text) and int(text) <= most):
                self.errors[name] = [
                    Phrase("Enter a whole number from %(least)s to %(most)s.", least="0", most=str(most))
                ]
        if not lines_of(self.redirect_uris):
            self.errors["redirect_uris"] = [Phrase("Enter at least one address.")]
        for name in ("redirect_uris", "post_logout_redirect_uris"):
            if wrong := self.wrong_uris(getattr(self, name), site.base_url):
                self.errors[name] = wrong
        if self.backchannel_logout_uri:
            try:
                check_webhook_url(self.backchannel_logout_uri, loopback=site.on_loopback, what=LOGOUT_URL)
            except ValueError as error:
                self.errors["backchannel_logout_uri"] = [reason_of(error)]

    def check_subjects(self) -> None:
        """Collects the errors of the ids that the app is to know people by. An owner names no sector identifier URI, so
        the redirect URIs must be of one host."""
        if self.subject_type not in SUBJECT_TYPES:
            self.errors["subject_type"] = [Phrase("Choose one of these.")]
        elif self.subject_type != PUBLIC and "redirect_uris" not in self.errors:
            try:
                uris = list(lines_of(self.redirect_uris))
                check_one_host(uris, "")
                self.check_told(host_of(uris[0]))
            except InvalidSector:
                self.errors["subject_type"] = [
                    Phrase("Use redirect URIs of one host, or ask the operator of this server to register your app.")
                ]

    def check_told(self, sector: str) -> None:
        """Collects the error of a logout URL outside of the sector."""
        try:
            check_told_at(sector, self.backchannel_logout_uri)
        except InvalidSector as error:
            self.errors["backchannel_logout_uri"] = [reason_of(error)]

    def check_proof(self, site: Site) -> None:
        """Collects the errors of how the app proves itself, and how ID tokens are signed for it."""
        try:
            self.auth_method = chosen_method(self.auth_method, self.public)
        except ValueError as error:
            self.errors["auth_method"] = [reason_of(error)]
        self.kept_keys, errors = check_keys(self.auth_method, self.jwks, self.jwks_uri, loopback=site.on_loopback)
        self.errors |= errors
        if self.id_token_alg not in OURS:
            self.errors["id_token_alg"] = [Phrase("Choose one of these.")]
        try:
            check_api_scopes(self.api_scopes)
        except ValueError as error:
            self.errors["scopes"] = [not_allowed(error)]

    def wrong_uris(self, typed: str, base_url: str) -> list[str]:
        """Why these addresses may not be registered. If there are too many, none is checked."""
        uris = lines_of(typed)
        if len(uris) > MAX_REDIRECT_URIS:
            return [
                Phrase(
                    "You entered %(number)s addresses; an app can have at most %(most)s.",
                    number=len(uris),
                    most=MAX_REDIRECT_URIS,
                )
            ]
        wrong: list[str] = []
        for uri, line in uris.items():
            try:
                check_redirect_uri(uri, self.public, base_url)
            except ValueError as error:
                wrong.append(Phrase("Line %(line)s: %(reason)s", line=line, reason=reason_of(error)))
        return wrong

    def fields(self) -> dict[str, Any]:
        """The fields of a registration that this form sets."""
        return {
            "name": self.name,
            "homepage": self.homepage,
            "redirect_uris": tuple(lines_of(self.redirect_uris)),
            "scopes": self.scopes,
            "pkce_required": self.pkce_required or self.public,
            "hosted_storage": self.hosted_storage,
            "iss_in_response": not self.omit_iss,
            "refresh_retry_seconds": int(self.refresh_retry_seconds),
            "refresh_lifetime_days": int(self.refresh_lifetime_days),
            "post_logout_redirect_uris": tuple(lines_of(self.post_logout_redirect_uris)),
            "backchannel_logout_uri": self.backchannel_logout_uri,
            "api_scopes": self.api_scopes,
            "private_key_jwt": self.auth_method == BY_KEY,
            "jwks": self.kept_keys,
            "jwks_uri": self.jwks_uri,
            "require_pushed": self.require_pushed,
            "dpop_required": self.dpop_required,
            "device_grant": self.device_grant,
            "owner_second_step": self.owner_second_step,
            "id_token_alg": self.id_token_alg,
            "subject_type": self.subject_type,
        }


def not_allowed(error: ValueError) -> str:
    """Why a registration breaks a rule, as a sentence."""
    reason = reason_of(error)
    return reason if reason.endswith(".") else Phrase("This isn’t allowed: %(reason)s.", reason=reason)


def _given(params: Params, name: str, present: str) -> str:
    typed = params.get(name)
    return present if typed is None else typed.strip()


def lines_of(typed: str) -> dict[str, int]:
    """The addresses in a field, each once, with its first line. Checks and registration both use this result, uncut."""
    found: dict[str, int] = {}
    for number, line in enumerate(typed.split("\n"), 1):
        if uri := line.strip():
            found.setdefault(uri, number)
    return found
