"""What the test kit hands out: frozen values, with the names of the HTTP interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class App:
    """A registered app. `client_secret` is None for a public one, `webhook_secret` for one without a webhook."""

    client_id: str
    client_secret: str | None = field(repr=False)
    name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    public: bool
    webhook_secret: str | None = field(default=None, repr=False)

    @property
    def redirect_uri(self) -> str:
        """The first of its redirect URIs."""
        return self.redirect_uris[0]

    @property
    def scope(self) -> str:
        """Its scopes as the parameter `scope` has them."""
        return " ".join(self.scopes)


@dataclass(frozen=True)
class Person:
    """A person. With `email` and `password` a browser's test can sign in as them on the page."""

    sub: str
    email: str
    name: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class TokenResponse:
    """SPEC 2.2: what the token endpoint answers. `expires_in` is in seconds."""

    access_token: str = field(repr=False)
    token_type: str
    expires_in: int
    refresh_token: str = field(repr=False)
    scope: str

    @property
    def headers(self) -> dict[str, str]:
        """The header with which an app calls the API."""
        return {"Authorization": f"Bearer {self.access_token}"}


@dataclass(frozen=True)
class Balance:
    """A person's credits in micro-dollars: `paid` in all, `held` by calls under way, `spendable` what is left."""

    spendable: int
    held: int
    paid: int


@dataclass(frozen=True)
class Redirect:
    """Where the person's browser was sent after the consent: to the app, with a code or an error."""

    url: str

    @property
    def query(self) -> dict[str, str]:
        """The parameters that the app gets: `code`, `state`, `iss`, or `error`, `error_description`, `state`, `iss`."""
        return dict(parse_qsl(urlsplit(self.url).query))

    @property
    def code(self) -> str:
        """The authorization code. Raises KeyError where there is none."""
        return self.query["code"]

    @property
    def state(self) -> str | None:
        """The `state` of the request."""
        return self.query.get("state")

    @property
    def iss(self) -> str | None:
        """Who answers (RFC 9207): Latchkey's address."""
        return self.query.get("iss")

    @property
    def error(self) -> str | None:
        """Why there is no code, such as `access_denied`."""
        return self.query.get("error")
