"""Profiles: sets of rules that an app is registered with, beyond those for every app. Each check asks this table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from store.apps.client_keys import BY_KEY, parsed_keys
from store.apps.registration_rows import NO_PROFILE, RECORD
from store.crypto.jose.algorithms import ALGORITHMS, ED25519, EDDSA, ES256, PS256
from store.crypto.jose.private import OURS
from store.phrases import Phrase

NONE, FAPI2 = NO_PROFILE, "fapi2"
DEMANDS = Phrase("the profile %(profile)s demands: %(rules)s")
_NAMES = {attribute: name for name, attribute in RECORD.items()}
_ADDRESSES = ("redirect_uris", "post_logout_redirect_uris", "backchannel_logout_uri", "jwks_uri", "webhook_url")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ProfileRules:
    """`settings`: fields of a registration, each with the only value allowed; `algorithms`: those of everything signed
    by the app or for it, the first the default of its ID tokens; `issuer_alone`: a client assertion names the issuer
    as its audience, in a string, and nothing else; `tls_only`: every address of the app begins with https."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    algorithms: tuple[str, ...] = ALGORITHMS
    issuer_alone: bool = False
    tls_only: bool = False

    def among(self, algorithms: Iterable[str]) -> tuple[str, ...]:
        """Those of the algorithms that the profile allows."""
        return tuple(one for one in algorithms if one in self.algorithms)

    def allows(self, algorithm: str) -> bool:
        """Whether the profile allows something signed like this; also what is not signed at all, with an empty name."""
        return not algorithm or algorithm in self.algorithms

    def switched_on(self, id_token_alg: str) -> dict[str, Any]:
        """The settings that switching the profile on brings along, for an app with this `id_token_alg`. How the app
        authenticates is for its developer to change."""
        brought = {name: value for name, value in self.settings.items() if name != "auth_method"}
        return brought if id_token_alg in self.algorithms else {**brought, "id_token_alg": self.algorithms[0]}


PROFILES: Mapping[str, ProfileRules] = MappingProxyType(
    {
        NONE: ProfileRules(),
        # FAPI 2.0 Security Profile 5.3.2, 5.4.1
        FAPI2: ProfileRules(
            {
                "auth_method": BY_KEY,
                "require_pushed": True,
                "pkce_required": True,
                "dpop_required": True,
                "iss_in_response": True,
                # The profile knows the authorization code alone.
                "device_grant": False,
                # 5.3.2.1, note 1: who rotates refresh tokens lets the app repeat a refresh. 60 is the most there is.
                "refresh_retry_seconds": 60,
            },
            algorithms=(ES256, PS256, EDDSA, ED25519),
            issuer_alone=True,
            tls_only=True,
        ),
    }
)


def brought_along(profile: str, given: Collection[str]) -> dict[str, Any]:
    """The fields of a registration that a profile sets for a new app. `given`: the members that its record has, which
    stay. Nothing for an unknown profile."""
    rules = PROFILES.get(profile, ProfileRules())
    brought = {**rules.settings, **rules.switched_on(OURS[0])}
    return {name: value for name, value in brought.items() if _NAMES[name] not in given}


def lacking(app: Any, rules: ProfileRules) -> Iterator[str]:
    """What a Registration lacks for these rules: a phrase for each field, which names the field of the record."""
    for name, value in rules.settings.items():
        if getattr(app, name) != value:
            yield f"{_NAMES[name]} is {str(value).lower() if isinstance(value, bool) else value}"
    if rules.settings.get("auth_method") == BY_KEY and not app.has_keys:
        yield "jwks or jwksUri is there"
    if app.jwks and not any(rules.among(key.algorithms) for key in parsed_keys(app.jwks)):
        yield f"jwks has a key for {listed(rules.algorithms)}"
    if app.id_token_alg not in rules.algorithms:
        yield f"idTokenAlg is {listed(rules.among(OURS))}"
    if rules.tls_only:
        for name in _ADDRESSES:
            value = getattr(app, name)
            plain = [uri for uri in ((value,) if isinstance(value, str) else value) if uri and not is_tls(uri)]
            if plain:
                yield f"{_NAMES[name]} begins with https:// ({', '.join(ascii(uri[:_SHOWN]) for uri in plain)})"


def is_tls(uri: str) -> bool:
    """Whether a registered address is reached over TLS."""
    return uri.startswith("https://")


def listed(names: Collection[str]) -> str:
    """Names as people list them."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
