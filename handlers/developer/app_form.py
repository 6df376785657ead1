"""The form of an app: typed values and their errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from handlers.core.params import Params
from handlers.core.site import Site
from store.apps.lookalikes import check_honest_name
from store.apps.redirect_uris import check_redirect_uri
from store.apps.registration import MAX_REDIRECT_URIS, MOST_LIFETIME, MOST_RETRY, Registration, check_homepage
from store.names import SCOPES, check_app_name
from store.webhooks.urls import LOGOUT_URL, check_webhook_url

BOX = "scope:"
_NUMBER = re.compile(r"[0-9]{1,10}")


@dataclass
class AppForm:
    """The values of the form, and the errors by field."""

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
        )

    @classmethod
    def read(cls, params: Params, public: bool, site: Site, named: str = "") -> AppForm:
        """The typed values, each checked for this server. `named` is the app's present name, which it may keep."""
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
        )
        made.check(site, named)
        return made

    def check(self, site: Site, named: str) -> None:
        """Collects the errors of values that may not be registered."""
        try:
            self.name = check_app_name(self.name)
            if self.name != named:
                check_honest_name(self.name)
        except ValueError as error:
            self.errors["name"] = [str(error)]
        try:
            check_homepage(self.homepage)
        except ValueError:
            self.errors["homepage"] = ["Begin with https:// or http://, and use no spaces."]
        if not self.scopes:
            self.errors["scopes"] = ["Choose at least one thing that your app may ask for."]
        if self.hosted_storage and not Registration.data_scopes(self.scopes):
            self.errors["hosted_storage"] = ["Choose above that it may read or write documents, or do not tick this."]
        for name, most in (("refresh_retry_seconds", MOST_RETRY), ("refresh_lifetime_days", MOST_LIFETIME)):
            text = getattr(self, name)
            if not (_NUMBER.fullmatch(text) and int(text) <= most):
                self.errors[name] = [f"Type a whole number from 0 to {most}."]
        if not lines_of(self.redirect_uris):
            self.errors["redirect_uris"] = ["Enter at least one address."]
        for name in ("redirect_uris", "post_logout_redirect_uris"):
            if wrong := self.wrong_uris(getattr(self, name), site.base_url):
                self.errors[name] = wrong
        if self.backchannel_logout_uri:
            try:
                check_webhook_url(self.backchannel_logout_uri, loopback=site.on_loopback, what=LOGOUT_URL)
            except ValueError as error:
                self.errors["backchannel_logout_uri"] = [str(error)]

    def wrong_uris(self, typed: str, base_url: str) -> list[str]:
        """Why these addresses may not be registered. If there are too many, none is checked."""
        uris = lines_of(typed)
        if len(uris) > MAX_REDIRECT_URIS:
            return [f"These are {len(uris)} addresses; an app has at most {MAX_REDIRECT_URIS}."]
        wrong = []
        for uri, line in uris.items():
            try:
                check_redirect_uri(uri, self.public, base_url)
            except ValueError as error:
                wrong.append(f"Line {line}: {error}")
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
        }


def lines_of(typed: str) -> dict[str, int]:
    """The addresses in a field, each once, with its first line. Checks and registration both use this result, uncut."""
    found: dict[str, int] = {}
    for number, line in enumerate(typed.split("\n"), 1):
        if uri := line.strip():
            found.setdefault(uri, number)
    return found
