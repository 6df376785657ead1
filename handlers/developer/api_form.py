"""The form of an API: typed values and their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from handlers.core.params import Params
from store.apps.api_record import (
    LEAST_LIFETIME,
    MAX_API_SCOPES,
    MOST_LIFETIME,
    SIGNING_ALGS,
    TOKEN_FORMATS,
    ApiRegistration,
    ApiScope,
    InvalidScope,
)
from store.apps.lookalikes import check_honest_name
from store.names import check_app_name
from store.phrases import Phrase
from store.refused import reason_of

BLANK_ROWS = 2
MOST_ROWS = MAX_API_SCOPES + BLANK_ROWS
_TEXTS = ("name", "title", "detail")
_NUMBER = re.compile(r"[0-9]{1,6}")
_LABELS = {
    "name": Phrase("Name"),
    "token_format": Phrase("Access token format"),
    "signing_alg": Phrase("Access token signature"),
    "token_lifetime": Phrase("Access token lifetime (seconds)"),
}


@dataclass
class ScopeRow:
    """The fields of one scope. `new`: the API doesn't have it yet. `error` says why it can't be,
    and `wrong` which of its fields has the error."""

    name: str = ""
    title: str = ""
    detail: str = ""
    care: bool = False
    removed: bool = False
    new: bool = False
    second_step: bool = False
    error: str = ""
    wrong: str = ""

    @property
    def blank(self) -> bool:
        """Whether nothing was typed."""
        return not (self.name or self.title or self.detail)

    def scope(self) -> ApiScope | None:
        """The scope; None, and `error`, if it can't be. A name alone is its own title."""
        try:
            return ApiScope(self.name, self.title or self.name, self.detail, self.care, self.second_step)
        except InvalidScope as error:
            self.error, self.wrong = reason_of(error), error.member
            return None


@dataclass
class ApiForm:
    """The values of the form, and the errors by field."""

    name: str
    token_format: str
    signing_alg: str
    token_lifetime: str
    rows: list[ScopeRow]
    errors: dict[str, str] = field(default_factory=dict)
    scopes: tuple[ApiScope, ...] = ()

    @classmethod
    def of(cls, api: ApiRegistration) -> ApiForm:
        """The form filled in for a registered API."""
        rows = [ScopeRow(one.name, one.title, one.detail, one.care, second_step=one.second_step) for one in api.scopes]
        return cls(api.name, api.token_format, api.signing_alg, str(api.token_lifetime), rows).with_blank_rows()

    @classmethod
    def read(cls, params: Params, api: ApiRegistration) -> ApiForm:
        """The typed values, each checked. `api` is the registration that is to be changed."""
        made = cls(
            name=params.get("name") or "",
            token_format=params.get("token_format") or api.token_format,
            signing_alg=params.get("signing_alg") or api.signing_alg,
            token_lifetime=(params.get("token_lifetime") or "").strip(),
            rows=_rows_of(params, frozenset(api.scope_names())),
        )
        made.check(api.name)
        return made.with_blank_rows() if made.errors else made

    def with_blank_rows(self) -> ApiForm:
        """The form with empty rows for new scopes at its end."""
        self.rows += [ScopeRow(new=True) for _ in range(min(BLANK_ROWS, MAX_API_SCOPES - len(self.rows)))]
        return self

    def check(self, named: str) -> None:
        """Collects the errors. `named` is the API's present name, which it may keep."""
        try:
            self.name = check_app_name(self.name)
            if self.name != named:
                check_honest_name(self.name)
        except ValueError as error:
            self.errors["name"] = reason_of(error)
        choices = {"token_format": TOKEN_FORMATS, "signing_alg": SIGNING_ALGS}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                self.errors[name] = Phrase("Choose one of these.")
        text = self.token_lifetime
        if not (_NUMBER.fullmatch(text) and LEAST_LIFETIME <= int(text) <= MOST_LIFETIME):
            self.errors["token_lifetime"] = Phrase(
                "Enter a whole number from %(least)s to %(most)s.", least=str(LEAST_LIFETIME), most=str(MOST_LIFETIME)
            )
        self.check_scopes()

    def check_scopes(self) -> None:
        """Collects the errors of the scopes that stay."""
        kept = [row for row in self.rows if not row.removed]
        self.scopes = tuple(scope for row in kept if (scope := row.scope()))
        names = [row.name for row in kept]
        for row in kept:
            if names.count(row.name) > 1 and not row.error:
                row.error, row.wrong = Phrase("An API can have each scope only once."), "name"
        if not kept:
            self.errors["scopes"] = Phrase("Keep at least one scope.")
        elif len(kept) > MAX_API_SCOPES:
            self.errors["scopes"] = Phrase("An API can have at most %(most)s scopes.", most=MAX_API_SCOPES)
        elif any(row.error for row in kept):
            self.errors["scopes"] = Phrase("Fix the highlighted scope below.")

    def fields(self) -> dict[str, Any]:
        """The fields of a registration that this form sets."""
        return {
            "name": self.name,
            "token_format": self.token_format,
            "signing_alg": self.signing_alg,
            "token_lifetime": int(self.token_lifetime),
            "scopes": self.scopes,
        }


def changed_lines(api: ApiRegistration, fields: dict[str, Any]) -> list[Phrase]:
    """A line for the owner's mail for each of the `fields` that differs from the registration."""
    lines = [
        Phrase("%(field)s: %(value)s (was %(before)s)", field=label, value=fields[name], before=getattr(api, name))
        for name, label in _LABELS.items()
        if fields[name] != getattr(api, name)
    ]
    before, after = _by_name(api.scopes), _by_name(fields["scopes"])
    for name, scope in after.items():
        if name not in before:
            lines.append(Phrase("Scope added: %(scope)s (%(title)s)", scope=name, title=scope.title))
        elif scope != before[name]:
            lines.append(Phrase("Scope changed: %(scope)s (%(title)s)", scope=name, title=scope.title))
    return lines + [Phrase("Scope removed: %(scope)s", scope=name) for name in before if name not in after]


def _by_name(scopes: Iterable[ApiScope]) -> dict[str, ApiScope]:
    return {scope.name: scope for scope in scopes}


def _rows_of(params: Params, known: frozenset[str]) -> list[ScopeRow]:
    rows: list[ScopeRow] = []
    for number in range(MOST_ROWS):
        name, title, detail = ((params.get(f"scope_{number}_{part}") or "").strip() for part in _TEXTS)
        flags = (params.get(f"scope_{number}_{part}") is not None for part in ("care", "remove", "second_step"))
        care, removed, second_step = flags
        row = ScopeRow(name, title, detail, care, removed, new=name not in known, second_step=second_step)
        rows += [] if row.blank else [row]
    return rows
