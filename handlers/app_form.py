"""The form of an app: what was typed, and what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from handlers.params import Params
from store.names import SCOPES, check_app_name
from store.redirect_uris import MAX_REDIRECT_URI_LENGTH, check_redirect_uri
from store.registration import MAX_REDIRECT_URIS, MOST_RETRY, Registration, check_homepage

BOX = "scope:"
MAX_NUMBER = 10
_NUMBER = re.compile(r"[0-9]+")


@dataclass
class AppForm:
    """The form of an app as it was filled in, and what is wrong with it by field."""

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
    errors: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, app: Registration) -> AppForm:
        """The form of a registered app."""
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
        )

    @classmethod
    def read(cls, params: Params, public: bool) -> AppForm:
        """What was typed, checked field by field."""
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
            refresh_retry_seconds=(params.get("refresh_retry_seconds") or "0").strip()[:MAX_NUMBER],
        )
        made.check()
        return made

    def check(self) -> None:
        """Notes what may not register, and why."""
        try:
            self.name = check_app_name(self.name)
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
        if not (_NUMBER.fullmatch(self.refresh_retry_seconds) and int(self.refresh_retry_seconds) <= MOST_RETRY):
            self.errors["refresh_retry_seconds"] = [f"Type a whole number from 0 to {MOST_RETRY}."]
        wrong = []
        lines = [(number, line.strip()) for number, line in enumerate(self.redirect_uris.split("\n"), 1)]
        for number, line in [(number, line) for number, line in lines if line][: 2 * MAX_REDIRECT_URIS]:
            try:
                check_redirect_uri(line, self.public)
            except ValueError as error:
                wrong.append(f"Line {number}: {error}")
        uris = self.uris()
        if not uris:
            wrong.append("Enter at least one address.")
        elif len(uris) > MAX_REDIRECT_URIS:
            wrong.append(f"These are {len(uris)} addresses; an app has at most {MAX_REDIRECT_URIS}.")
        if wrong:
            self.errors["redirect_uris"] = wrong
        self.redirect_uris = self.redirect_uris[: MAX_REDIRECT_URIS * (MAX_REDIRECT_URI_LENGTH + 2)]

    def uris(self) -> tuple[str, ...]:
        """The addresses, each once."""
        return tuple(dict.fromkeys(line.strip() for line in self.redirect_uris.split("\n") if line.strip()))

    def fields(self) -> dict[str, Any]:
        """The fields of a registration that this form sets."""
        return {
            "name": self.name,
            "homepage": self.homepage,
            "redirect_uris": self.uris(),
            "scopes": self.scopes,
            "pkce_required": self.pkce_required or self.public,
            "hosted_storage": self.hosted_storage,
            "iss_in_response": not self.omit_iss,
            "refresh_retry_seconds": int(self.refresh_retry_seconds),
        }
