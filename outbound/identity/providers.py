"""Identity providers that the operator names, and what differs between their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from outbound.address_policy import Network
from outbound.identity.ldap.directory import DirectorySettings
from store.accounts.identities import UpstreamIdentity
from store.crypto.jose.private import PrivateKey
from store.names import normalise_email

OIDC, GITHUB, GOOGLE, MICROSOFT, APPLE, LDAP = "oidc", "github", "google", "microsoft", "apple", "ldap"
TYPES = (OIDC, GITHUB, GOOGLE, MICROSOFT, APPLE, LDAP)
ISSUERS = {
    GITHUB: "https://github.com",
    GOOGLE: "https://accounts.google.com",
    MICROSOFT: "https://login.microsoftonline.com",
    APPLE: "https://appleid.apple.com",
}
TITLES = {GITHUB: "GitHub", GOOGLE: "Google", MICROSOFT: "Microsoft", APPLE: "Apple"}
CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"
"""The tenant of Microsoft's personal accounts."""
EVERY_TENANT = ("common", "organizations", "consumers")
TENANT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TEXTS_FOR_TRUE = (True, 1, "1", "true")
"""Apple and Microsoft document text where others send a boolean. Python takes 1 and True for equal."""
_PLACE = "tenantid".join("{}")
"""What stands for the tenant in the issuer of a discovery document for many."""
LONGEST_EMAIL = 254


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as the operator configured it. `name` is in its addresses here, `title` on its button. `secret` is the
    client secret; `key` signs it where Apple wants a signed one. `by_address`: it may link an account with an address
    that both verified; `create`: it may make accounts; both only in `domains`, if there are any. `own_step`: a second
    step here is asked for; `mfa_acr`: values of its `acr` that mean a second step there, which counts only without
    `own_step`. `networks`: private networks where it may be. `directory`: how to ask one of the type ldap."""

    name: str
    title: str
    type: str
    issuer: str
    client_id: str
    secret: str = field(default="", repr=False)
    auth_method: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    tenant: str = ""
    team_id: str = ""
    key_id: str = ""
    key: PrivateKey | None = field(default=None, repr=False, compare=False)
    by_address: bool = False
    create: bool = False
    domains: tuple[str, ...] = ()
    own_step: bool = True
    mfa_acr: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    directory: DirectorySettings | None = None

    @property
    def discovers(self) -> bool:
        """Whether its endpoints are in a discovery document."""
        return self.type not in (GITHUB, LDAP)

    @property
    def metadata_url(self) -> str:
        """OpenID Connect Discovery 4.1."""
        tenant = f"/{self.tenant}/v2.0" if self.type == MICROSOFT else ""
        return f"{self.issuer.rstrip('/')}{tenant}/.well-known/openid-configuration"

    @property
    def metadata_issuer(self) -> str:
        """The issuer that its discovery document must name. Microsoft's, for many tenants, has a place for one."""
        if self.type != MICROSOFT:
            return self.issuer
        tenant = self.tenant if TENANT.fullmatch(self.tenant) else _PLACE
        return f"{self.issuer}/{tenant}/v2.0"

    @property
    def confirms(self) -> bool:
        """Whether it can say when somebody signed in there. GitHub never does."""
        return self.type != GITHUB

    def is_mine(self, issuer: str) -> bool:
        """Whether identities of this issuer are this provider's."""
        if self.type != MICROSOFT:
            return issuer == self.issuer
        start, end = f"{self.issuer}/", "/v2.0"
        if not (issuer.startswith(start) and issuer.endswith(end)):
            return False
        return self._admits(issuer[len(start) : -len(end)])

    def _admits(self, tenant: str) -> bool:
        if not TENANT.fullmatch(tenant):
            return False
        match self.tenant:
            case "common":
                return True
            case "organizations":
                return tenant != CONSUMERS
            case "consumers":
                return tenant == CONSUMERS
        return tenant == self.tenant

    def issued(self, claims: Mapping[str, Any]) -> bool:
        """Whether an ID token names this provider. Microsoft's must name its own tenant twice."""
        issuer = claims.get("iss")
        if not isinstance(issuer, str) or not self.is_mine(issuer):
            return False
        return self.type != MICROSOFT or issuer == f"{self.issuer}/{claims.get('tid')}/v2.0"

    def verified_email(self, claims: Mapping[str, Any]) -> str:
        """The address that the provider verified, normalised; empty for every other. Only the boolean true counts,
        except where the vendor documents text."""
        match self.type:
            case "microsoft":  # `email` may be anything; this optional claim says that its domain's owner is verified
                verified = claims.get("xms_edov") in _TEXTS_FOR_TRUE
            case "apple":
                verified = claims.get("email_verified") in _TEXTS_FOR_TRUE
            case _:
                verified = claims.get("email_verified") is True
        email = claims.get("email")
        if not verified or not isinstance(email, str) or len(email) > LONGEST_EMAIL:
            return ""
        try:
            email = normalise_email(email)
        except ValueError:
            return ""
        # Google speaks for its own addresses, and for those of an organization; others it verified some day.
        if self.type == GOOGLE and email.partition("@")[2] not in ("gmail.com", "googlemail.com"):
            return email if claims.get("hd") == email.partition("@")[2] else ""
        return email

    def trusts(self, email: str) -> bool:
        """Whether the operator believes this provider about the domain of an address."""
        return not self.domains or email.partition("@")[2] in self.domains

    def has_second_step(self, claims: Mapping[str, Any]) -> bool:
        """Whether the sign-in there had a second step that counts here."""
        methods, level = claims.get("amr"), claims.get("acr")
        if self.own_step:
            return False
        return (isinstance(methods, list) and "mfa" in methods) or (isinstance(level, str) and level in self.mfa_acr)


class Providers:
    """All configured providers, in the order of the file."""

    def __init__(self, listed: tuple[Provider, ...] = ()) -> None:
        self._by_name = {one.name: one for one in listed}

    def __iter__(self) -> Iterator[Provider]:
        return iter(self._by_name.values())

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Providers) and self._by_name == other._by_name

    __hash__ = None  # type: ignore[assignment]  # it is compared, never a key

    def find(self, name: str) -> Provider | None:
        """The provider of this name."""
        return self._by_name.get(name)

    def of(self, identity: UpstreamIdentity) -> Provider | None:
        """The provider that signs people in with this identity."""
        return next((one for one in self if one.is_mine(identity.issuer)), None)

    def usable(self, identities: Iterable[UpstreamIdentity]) -> list[str]:
        """The names of identities with which a person can sign in: a provider for them is offered."""
        return [identity.name for identity in identities if self.of(identity)]
