"""The registration record of an app (SPEC 2.1) and its rules."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from store.apps.api_scopes import check_api_scopes
from store.apps.client_keys import BY_KEY, BY_NOTHING, BY_SECRET, check_jwks_uri
from store.apps.client_secrets import secret_matches
from store.apps.logos import LOGO_ID, logo_path
from store.apps.owners.roles import Member, well_formed
from store.apps.profiles import DEMANDS, NONE, PROFILES, ProfileRules, lacking
from store.apps.redirect_uris import check_redirect_uri, host_of, match_redirect_uri, web_host
from store.apps.registration_rows import fields_of, grantable_of, packed_row, place_of, record_of, terms_of
from store.apps.sectors import FIXED, PUBLIC, InvalidSector, check_one_host, check_subject_type
from store.crypto.jose.private import OURS
from store.lifetimes import DOMAIN_PROOF
from store.names import check_app_name, check_client_id, is_domain, parse_scope
from store.webhooks.event_types import EVERY, chosen_types
from store.webhooks.urls import LOGOUT_URL, check_webhook_url

MAX_REDIRECT_URIS = 20
_HOMEPAGE = re.compile(r"https?://[!-~]{1,2000}")
LIVE_SECRETS = 2
MOST_RETRY, MOST_LIFETIME = 60, 3650
"""The longest refresh retry window of an app in seconds, and the longest lifetime of refresh tokens in days."""
MOST_CALLS, MOST_SPENDING = 10_000_000, 10**12  # in a minute; micro-dollars in a day
DYNAMIC, DOCUMENT = "dynamic", "document"
"""How an app registered itself: by dynamic registration (RFC 7591), or by a Client ID metadata document."""


class InvalidRegistration(ValueError):
    """A registration breaks a rule; the message says which, for people."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An app. `secrets` holds SHA-256 digests, newest first; `created_at` is in epoch milliseconds; `status` is active,
    off (by its owner) or disabled (by the operator). `webhook_secrets` are sealed, newest first; of two, the older
    signs for a day after `webhook_rotated_at` (epoch ms). `verified`: the operator has verified the app. `domain` is
    proven until `domain_until` (epoch ms); `domain_checked` is the time of the last check (epoch ms), `domain_misses`
    the number of checks since the last good one that found no file, or a file without the app. `secrets_at`: when the
    owner made each secret, 0 if somebody else did; `secret_notes`: what owners see of secrets
    (`store/apps/client_secrets.py`); `changed_at`: the owner's last act on the app, other than ending something (both
    epoch ms). `api_scopes` are scopes of APIs, qualified; `owner_scopes` are those among them that the owner chose, so
    nobody but people can give them to the app. `post_logout_redirect_uris`: where a sign-out that the app requested may
    lead; `backchannel_logout_uri`: where it hears that a session has ended, empty for nowhere. `private_key_jwt`: the
    app authenticates by signed assertions; `jwks` has its public keys (`store/apps/client_keys.py`), or `jwks_uri` is
    where they are. `require_pushed`: its authorization requests must be pushed (RFC 9126). `dpop_required`: its access
    tokens are bound to keys. `profile`: one of PROFILES, whose rules then hold too. `logo` is the id of the app's logo,
    whose image has a key of its own. `webhook_events`: the types of events it wants, or EVERY. `members`: the team
    without its first owner, `owner`; `member_scopes`: those of `owner_scopes` that somebody else of the team chose.
    `origin`: DYNAMIC or DOCUMENT if the app registered itself, otherwise empty; it then has no scopes in its row, and
    gets them when it is read (`store/apps/self_registered/kept.py`). A document is at `document_url` and is read again
    after `fresh_until` (epoch ms); the client id is a digest of the URL. `access_digest`: of the token that changes a
    dynamic registration. `secret_in_body`: the app said that it sends its secret in the body. `device_grant`: it may
    sign people in on devices that show a code (RFC 8628). `allowed_groups`: whose members alone may use it.
    `first_party`: the operator's own app, which needs no consent to sign people in. `second_step`: the operator demands
    one of everybody who connects the app, `owner_second_step`: its owner does. `calls_per_minute`,
    `introspections_per_minute` and `spend_per_day` (micro-dollars) are the operator's limits for this app, 0 for those
    of the server. `suspended_reason`: why it is disabled, for its owners. `details_types`: the authorization details
    that it said it will use (RFC 9396 10)."""

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    scopes: tuple[str, ...]
    public: bool = False
    pkce_required: bool = False
    hosted_storage: bool = False
    iss_in_response: bool = True
    refresh_retry_seconds: int = 0
    refresh_lifetime_days: int = 0
    api_scopes: tuple[str, ...] = ()
    owner_scopes: tuple[str, ...] = ()
    member_scopes: tuple[str, ...] = ()
    homepage: str = ""
    logo: str = ""
    secrets: tuple[bytes, ...] = ()
    status: str = "active"
    owner: str = ""
    members: tuple[Member, ...] = ()
    created_at: int = 0
    webhook_url: str = ""
    webhook_secrets: tuple[bytes, ...] = ()
    webhook_rotated_at: int = 0
    verified: bool = False
    domain: str = ""
    domain_until: int = 0
    domain_checked: int = 0
    domain_misses: int = 0
    secrets_at: tuple[int, ...] = ()
    secret_notes: tuple[str, ...] = ()
    changed_at: int = 0
    id_token_alg: str = OURS[0]
    post_logout_redirect_uris: tuple[str, ...] = ()
    backchannel_logout_uri: str = ""
    subject_type: str = PUBLIC
    sector_uri: str = ""
    private_key_jwt: bool = False
    jwks: str = ""
    jwks_uri: str = ""
    require_pushed: bool = False
    dpop_required: bool = False
    profile: str = NONE
    webhook_events: tuple[str, ...] = EVERY
    origin: str = ""
    document_url: str = ""
    fresh_until: int = 0
    access_digest: bytes = b""
    secret_in_body: bool = False
    device_grant: bool = False
    allowed_groups: tuple[str, ...] = ()
    first_party: bool = False
    second_step: bool = False
    owner_second_step: bool = False
    calls_per_minute: int = 0
    introspections_per_minute: int = 0
    spend_per_day: int = 0
    suspended_reason: str = ""
    details_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_client_id(self.client_id)
        check_app_name(self.name)
        check_homepage(self.homepage)
        if not 1 <= len(self.redirect_uris) <= MAX_REDIRECT_URIS:
            raise InvalidRegistration(f"an app registers 1 to {MAX_REDIRECT_URIS} redirect URIs")
        if len(self.post_logout_redirect_uris) > MAX_REDIRECT_URIS:
            raise InvalidRegistration(f"an app registers at most {MAX_REDIRECT_URIS} postLogoutRedirectUris")
        if not self.scopes and not self.api_scopes and not self.origin:
            raise InvalidRegistration("an app registers at least one scope")
        if self.scopes and tuple(parse_scope(" ".join(self.scopes))) != self.scopes:
            raise InvalidRegistration("scopes must be known, named once each, and in the order of the documentation")
        check_api_scopes(self.api_scopes)
        # SPEC 2.4: an app that uses hosted storage must request at least one of data:read or data:write.
        if self.hosted_storage and not self.data_scopes(self.scopes):
            raise InvalidRegistration("an app with hosted storage registers data:read or data:write")
        if self.public and self.secrets:
            raise InvalidRegistration("a public app has no secret")
        self._check_profile()
        self._check_keys()
        self._check_origin()
        if self.status not in ("active", "off", "disabled"):
            raise InvalidRegistration("status is active, off or disabled")
        if not 0 <= self.refresh_retry_seconds <= MOST_RETRY:
            raise InvalidRegistration(f"refreshRetrySeconds is 0 to {MOST_RETRY}")
        if max(calls := (self.calls_per_minute, self.introspections_per_minute)) > MOST_CALLS or min(calls) < 0:
            raise InvalidRegistration(f"callsPerMinute and introspectionsPerMinute are 0 to {MOST_CALLS}")
        if not 0 <= self.spend_per_day <= MOST_SPENDING:
            raise InvalidRegistration(f"spendPerDay is 0 to {MOST_SPENDING} micro-dollars")
        if not 0 <= self.refresh_lifetime_days <= MOST_LIFETIME:
            raise InvalidRegistration(f"refreshLifetimeDays is 0 (no end) to {MOST_LIFETIME}")
        if self.id_token_alg not in OURS:
            raise InvalidRegistration(f"idTokenAlg is one of {', '.join(OURS)}")
        check_subject_type(self.subject_type, self.sector_uri)
        if not well_formed(self.owner, self.members):
            raise InvalidRegistration("a team has a first owner, and each person once")
        if self.logo and not LOGO_ID.fullmatch(self.logo):
            raise InvalidRegistration("a logo is named by the digest of its image")
        if self.domain and not is_domain(self.domain):
            raise InvalidRegistration("a proven domain is a name such as example.com")
        if self.webhook_url:
            check_webhook_url(self.webhook_url, loopback=True)  # the server decides whether loopback is allowed
        if chosen_types(self.webhook_events) != self.webhook_events:
            raise InvalidRegistration("webhookEvents are named once each, in the order of the documentation")
        if self.backchannel_logout_uri:
            check_webhook_url(self.backchannel_logout_uri, loopback=True, what=LOGOUT_URL)

    def _check_profile(self) -> None:
        """Names everything that the profile demands and the app lacks, before anything else is refused alone."""
        if self.profile not in PROFILES:
            raise InvalidRegistration(f"profile is {' or '.join(PROFILES)}")
        if self.profile != NONE and (found := list(lacking(self, self.rules))):
            raise InvalidRegistration(DEMANDS.filled(profile=self.profile, rules="; ".join(found)))

    def _check_keys(self) -> None:
        if self.private_key_jwt and (self.public or self.secrets):
            raise InvalidRegistration("an app authenticates in one way: by a secret, by private_key_jwt, or not at all")
        if self.jwks and self.jwks_uri:
            raise InvalidRegistration("an app registers jwks or jwksUri, not both")
        if self.private_key_jwt and not self.has_keys:
            raise InvalidRegistration("an app with private_key_jwt registers jwks or jwksUri")
        if self.jwks_uri:
            check_jwks_uri(self.jwks_uri, loopback=True)  # the server decides whether loopback is allowed

    def _check_origin(self) -> None:
        if self.origin not in ("", DYNAMIC, DOCUMENT) or bool(self.document_url) != (self.origin == DOCUMENT):
            raise InvalidRegistration("an app registers itself dynamically, or by the document at its URL")
        if self.origin and (self.owner or self.verified or self.domain):
            raise InvalidRegistration("nobody owns or vouches for an app that registered itself")
        if self.origin and not self.pkce_required:
            raise InvalidRegistration("an app that registered itself uses PKCE")

    def check_redirect_uris(self, before: Registration | None = None) -> None:
        """Raises InvalidRedirectURI unless all of them may register, and InvalidSector. Called only when a registration
        is written, and those that `before` has are skipped: 20 long ones take 2 to 10 ms, and lists of apps read
        hundreds."""
        checked = set() if before is None or before.public != self.public else {*before.return_uris}
        for uri in self.return_uris:
            if uri not in checked:
                check_redirect_uri(uri, self.public)
        if self.sector:
            check_one_host(self.redirect_uris, self.sector_uri)
        # Core 8.1: another sector would make strangers of everybody who uses the app.
        if before is not None and (before.sector, before.sector_uri) != (self.sector, self.sector_uri):
            raise InvalidSector(FIXED)

    @property
    def return_uris(self) -> tuple[str, ...]:
        """Every address of the app to which a browser may be sent."""
        return (*self.redirect_uris, *self.post_logout_redirect_uris)

    @staticmethod
    def data_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
        """The scopes for hosted documents among these."""
        return tuple(scope for scope in scopes if scope.startswith("data:"))

    @property
    def rules(self) -> ProfileRules:
        """The rules of the app's profile."""
        return PROFILES[self.profile]

    @property
    def active(self) -> bool:
        """Whether the app may do anything."""
        return self.status == "active"

    @property
    def has_secret(self) -> bool:
        """Whether the app authenticates with a secret."""
        return not self.public and not self.private_key_jwt

    @property
    def has_keys(self) -> bool:
        """Whether the app registered public keys."""
        return bool(self.jwks or self.jwks_uri)

    @property
    def auth_method(self) -> str:
        """How the app authenticates: one of AUTH_METHODS."""
        return BY_NOTHING if self.public else BY_KEY if self.private_key_jwt else BY_SECRET

    @property
    def demands_step(self) -> bool:
        """Whether everybody who connects the app needs a second step."""
        return self.second_step or self.owner_second_step

    @property
    def needs_pkce(self) -> bool:
        """Whether PKCE is mandatory (SPEC 5.2): for a public app, and with `pkceRequired`."""
        return self.public or self.pkce_required

    @property
    def logo_path(self) -> str:
        """The path of the app's logo; empty if it has none."""
        return logo_path(self.client_id, self.logo)

    @property
    def sector(self) -> str:
        """The sector of a pairwise app (Core 8.1); empty for the subject type `public`."""
        return "" if self.subject_type == PUBLIC else host_of(self.sector_uri or self.redirect_uris[0])

    def refresh_days(self, most: int) -> int:
        """The lifetime in days of the refresh tokens of a sign-in: the shorter of the app's own and the server's
        `most`; 0 means unlimited."""
        own = self.refresh_lifetime_days
        return min(own, most) if own and most else own or most

    @property
    def grantable(self) -> tuple[str, ...]:
        """The scopes that a person may grant: the registered ones, and `email`, which `profile` includes."""
        return grantable_of(self.scopes)

    @property
    def from_operator(self) -> bool:
        """Whether an operator registered the app, so nobody else can change it, or marked it as verified."""
        return self.verified or not (self.owner or self.origin)

    @property
    def signs_in_devices(self) -> bool:
        """Whether it may sign people in on devices. Those have no redirect URI, so an app with the address of another
        site would learn that site's pairwise ids. The operator vouches for theirs."""
        return self.device_grant and (self.from_operator or not self.sector)

    @property
    def wire_id(self) -> str:
        """The client id as the app and others know it: of a document its URL."""
        return self.document_url or self.client_id

    def may_return_to(self, redirect_uri: str) -> bool:
        """Whether a browser may be sent to this address with an answer. Apps that registered themselves may listen at
        any port of `localhost` too: programs of the Model Context Protocol register it without one."""
        return match_redirect_uri(self.redirect_uris, redirect_uri, localhost=bool(self.origin))

    def proven_for(self, redirect_uri: str) -> str:
        """The proven domain if the redirect URI is at it or below it, otherwise an empty text."""
        host = web_host(redirect_uri) if self.domain else None
        return self.domain if host and (host == self.domain or host.endswith(f".{self.domain}")) else ""

    def with_domain(self, domain: str, now: int) -> Registration:
        """The registration with this domain as the proven one, whose file named the app at `now` (epoch ms)."""
        until = now + DOMAIN_PROOF
        return replace(self, domain=domain, domain_until=until, domain_checked=now, domain_misses=0)

    def made_at(self) -> dict[bytes, int]:
        """When the owner made each secret (epoch ms); 0 if somebody else did."""
        return dict(zip(self.secrets, self.secrets_at or (0,) * len(self.secrets), strict=False))

    @property
    def terms(self) -> str:
        """A digest of the fields that an authorization request is checked against. A check against other terms than the
        present ones is void: a withdrawn redirect URI gets no code, even for a pending request."""
        return terms_of(self)

    @property
    def members_of(self) -> str:
        """The groups whose members alone may use the app, one in each line; empty for everybody."""
        return "\n".join(self.allowed_groups)

    def place(self, redirect_uri: str) -> str:
        """The field of a grant that remembers consent to a redirect URI: a digest of the URI and of the app's details
        on the page. A change of any of them ends remembered consent."""
        return place_of(self, redirect_uri)

    def secret_matches(self, secret: str) -> bool:
        """Whether this is one of the app's secrets, as the function of this name."""
        return secret_matches(secret, self.secrets)

    def record(self) -> dict[str, Any]:
        """The registration with the field names of the HTTP interface; without secrets."""
        return record_of(self)

    def pack(self) -> bytes:
        """The stored bytes."""
        return packed_row(self)

    @classmethod
    def unpack(cls, packed: bytes) -> Registration:
        """The inverse of `pack`."""
        return cls(**fields_of(packed))


def check_homepage(address: str) -> None:
    """Raises InvalidRegistration unless an app may name this address, or none, as its own."""
    if address and not _HOMEPAGE.fullmatch(address):
        raise InvalidRegistration("homepage must be an http or https address in ASCII, without spaces")
