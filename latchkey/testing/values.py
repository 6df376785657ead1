"""The values that the test kit returns: frozen, with the names of the HTTP interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class App:
    """A registered app. `client_secret` is None for a public app, `webhook_secret` for one without a webhook."""

    client_id: str
    client_secret: str | None = field(repr=False)
    name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    public: bool
    webhook_secret: str | None = field(default=None, repr=False)

    @property
    def redirect_uri(self) -> str:
        """The first redirect URI."""
        return self.redirect_uris[0]

    @property
    def scope(self) -> str:
        """The scopes in the form of the parameter `scope`."""
        return " ".join(self.scopes)


@dataclass(frozen=True)
class Api:
    """A registered API. With `client_id` and `client_secret` it introspects tokens."""

    identifier: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...]
    token_format: str

    @property
    def scope(self) -> str:
        """The scopes in the form of the parameter `scope`."""
        return " ".join(self.scopes)


@dataclass(frozen=True)
class Key:
    """A key of an app, as JSON Web Keys (RFC 7517). `thumbprint` names it (RFC 7638)."""

    thumbprint: str
    public: dict[str, Any]
    private: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Person:
    """A person. A browser test can sign in on the page with `email` and `password`."""

    sub: str
    email: str
    name: str
    password: str = field(repr=False)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenResponse:
    """The token endpoint's answer (SPEC 2.2). `expires_in` is in seconds. `id_token` is None without the scope
    `openid`."""

    access_token: str = field(repr=False)
    token_type: str
    expires_in: int
    refresh_token: str = field(repr=False)
    scope: str
    id_token: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The header for an app's calls of the API. A token that is bound to a key needs a `proof` too."""
        return {"Authorization": f"{self.token_type} {self.access_token}"}


@dataclass(frozen=True)
class Balance:
    """A person's credits in micro-dollars: `paid` in all, `held` by calls in progress, `spendable` the rest."""

    spendable: int
    held: int
    paid: int


def balance_of(figures: dict[str, Any]) -> Balance:
    """The balance in an answer."""
    return Balance(figures["spendable"], figures["held"], figures["paid"])


@dataclass(frozen=True)
class Redirect:
    """The redirect after the consent: to the app, with a code or an error. With `response_mode=form_post`, `form` has
    the fields that the browser posts to `url`; otherwise it is None."""

    url: str
    form: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The parameters for the app, in the address or the form: `code`, `state`, `iss`, or `error`,
        `error_description`, `state`, `iss`."""
        return dict(parse_qsl(urlsplit(self.url).query)) if self.form is None else dict(self.form)

    @property
    def code(self) -> str:
        """The authorization code. Raises KeyError if there is none."""
        return self.query["code"]

    @property
    def state(self) -> str | None:
        """The `state` of the request."""
        return self.query.get("state")

    @property
    def iss(self) -> str | None:
        """The issuer of the answer (RFC 9207): Latchkey's address."""
        return self.query.get("iss")

    @property
    def error(self) -> str | None:
        """Why there is no code, such as `access_denied`."""
        return self.query.get("error")
