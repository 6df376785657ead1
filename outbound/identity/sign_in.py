"""Signing people in at identity providers: the request, the code's exchange, and who came. OpenID Connect Core 3.1."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from aiohttp.abc import AbstractResolver

from outbound.address_policy import AddressPolicy, Network
from outbound.fetching import Fetcher
from outbound.identity.calling import ProviderAway, ProviderCaller, ProviderRefused
from outbound.identity.id_token import LEEWAY, check_id_token
from outbound.identity.ldap.directory import Directories
from outbound.identity.metadata import MetadataCache, ProviderMetadata
from outbound.identity.providers import APPLE, GITHUB, Provider
from outbound.published_keys import PublishedKeys, Publisher
from store.accounts.identities import check_identity, label_of
from store.accounts.signin.upstream import FIRST, Arrival
from store.accounts.signin.upstream_flow import Flow
from store.clock import wall
from store.crypto.jose import jws
from store.crypto.jose.refusal import JoseError
from store.names import check_person_name

log = logging.getLogger("latchkey.identity")

LONGEST_TOKEN = 16 * 2**10
LONGEST_CODE = 4096
KEYS_SECONDS = 5.0
SECRET_SECONDS = 300
"""How long a signed client secret of Apple's lasts."""
LONGEST_NAME = 100
MOST_ADDRESSES = 100
_ACCESS_DENIED = ("access_denied", "user_cancelled_authorize", "user_cancelled_login", "consent_required")


class Cancelled(Exception):
    """The person did not want to sign in there."""


class SignInElsewhere:
    """Sends people to providers and takes them back. `networks` and `loopback`: as webhooks may reach them."""

    def __init__(
        self,
        networks: tuple[Network, ...] = (),
        *,
        loopback: bool = False,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._networks, self._loopback, self._resolver = networks, loopback, resolver
        self._caller = ProviderCaller(resolver)
        self.metadata = MetadataCache()
        self.directories = Directories()
        self._known: dict[tuple[Network, ...], tuple[AddressPolicy, Fetcher, PublishedKeys]] = {}

    def _reach(self, provider: Provider) -> tuple[AddressPolicy, Fetcher, PublishedKeys]:
        """How to call this provider: it may be in private networks that are its own."""
        if (found := self._known.get(provider.networks)) is None:
            policy = AddressPolicy((*self._networks, *provider.networks), loopback=self._loopback)
            fetcher = Fetcher(policy, whole=KEYS_SECONDS, resolver=self._resolver)
            found = self._known[provider.networks] = policy, fetcher, PublishedKeys(fetcher)
        return found

    def age_keys(self, seconds: float) -> None:
        """Makes the published keys older."""
        for _, _, keys in self._known.values():
            keys.age(seconds)

    async def request(self, provider: Provider, flow: Flow, callback: str, hint: str = "") -> str:
        """The address where the browser signs in. Raises ProviderAway."""
        metadata = await self.metadata.of(provider, self._reach(provider)[1])
        asked = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": callback,
            "scope": " ".join(provider.scopes),
            "state": flow.state,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        if provider.type != GITHUB:
            asked["nonce"] = flow.nonce
        if provider.type == APPLE:  # which sends name and address no other way
            asked["response_mode"] = "form_post"
        if flow.fresh:
            asked |= {"prompt": "login", "max_age": "0"}
        if hint and provider.type not in (GITHUB, APPLE):
            asked["login_hint"] = hint
        endpoint = metadata.authorization_endpoint
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"

    async def arrive(
        self, provider: Provider, flow: Flow, answer: Mapping[str, str], callback: str, payer: str
    ) -> Arrival:
        """Who comes back with this answer, whose `state` was checked. `payer`: whose places the calls take. Raises
        Cancelled, ProviderAway, ProviderRefused."""
        policy, fetcher, keys = self._reach(provider)
        metadata = await self.metadata.of(provider, fetcher)
        _check_sender(provider, metadata, answer)
        if said := answer.get("error"):
            if said in _ACCESS_DENIED:
                raise Cancelled
            if said in ("temporarily_unavailable", "server_error"):
                raise ProviderAway(said)
            raise ProviderRefused("error")
        code = answer.get("code", "")
        if not 0 < len(code) <= LONGEST_CODE:
            raise ProviderRefused("code")
        tokens = await self._exchange(policy, payer, provider, metadata, flow, code, callback)
        access_token = _text(tokens, "access_token", LONGEST_TOKEN)
        if provider.type == GITHUB and flow.fresh:
            raise ProviderRefused("auth_time")
        if provider.type == GITHUB:
            return await self._from_github(policy, payer, provider, metadata, access_token)
        id_token = _text(tokens, "id_token", LONGEST_TOKEN)
        publisher = Publisher(f"identity provider {provider.name}", metadata.jwks_uri, provider.name)
        try:
            claims = await keys.verified_by(
                publisher,
                lambda known: check_id_token(
                    id_token, known, provider, metadata.algorithms, flow.nonce, access_token, wall.time()
                ),
            )
        except JoseError as error:
            if error.reason == "no_keys":
                raise ProviderAway("no keys") from None
            raise ProviderRefused(f"id_token {error.reason}") from None
        # Core 3.1.2.1: whoever asked for a new sign-in here gets none that was made there before.
        if flow.fresh and claims.get("auth_time", 0) < flow.began - LEEWAY:
            raise ProviderRefused("auth_time")
        if "email" not in claims and metadata.userinfo_endpoint:
            claims = {**await self._userinfo(policy, payer, provider, metadata, access_token, claims["sub"]), **claims}
        return arrival_of(provider, claims, answer.get("name", ""))

    async def _exchange(
        self,
        policy: AddressPolicy,
        payer: str,
        provider: Provider,
        metadata: ProviderMetadata,
        flow: Flow,
        code: str,
        callback: str,
    ) -> dict[str, Any]:
        """RFC 6749 4.1.3, RFC 7636 4.5."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": flow.verifier,
        }
        headers = {}
        method = provider.auth_method or ("client_secret_basic" if metadata.basic else "client_secret_post")
        if provider.type == APPLE:
            method = "client_secret_post"
        if method == "client_secret_basic":
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = provider.client_id
            if method == "client_secret_post":
                form["client_secret"] = _signed_secret(provider) if provider.type == APPLE else provider.secret
        status, found = await self._caller.call(policy, payer, metadata.token_endpoint, form, headers)
        # GitHub answers 200 with an error.
        if status != 200 or not isinstance(found, dict) or "error" in found:
            error = found.get("error") if isinstance(found, dict) else None
            known = error if error in ("invalid_client", "invalid_grant", "unauthorized_client") else "refused"
            if known != "invalid_grant":
                log.warning("the identity provider %s refused the exchange of a code: %s", provider.name, known)
            raise ProviderRefused(f"exchange {known}")
        if str(found.get("token_type", "")).lower() != "bearer":
            raise ProviderRefused("token_type")
        return found

    async def _userinfo(
        self,
        policy: AddressPolicy,
        payer: str,
        provider: Provider,
        metadata: ProviderMetadata,
        access_token: str,
        subject: str,
    ) -> dict[str, Any]:
        """OpenID Connect Core 5.3: counts only for the subject of the ID token (5.3.2)."""
        headers = {"authorization": f"Bearer {access_token}"}
        status, found = await self._caller.call(policy, payer, metadata.userinfo_endpoint, headers=headers)
        if status != 200 or not isinstance(found, dict) or found.get("sub") != subject:
            raise ProviderRefused("userinfo")
        # What the ID token must say is never taken from here.
        return {name: found[name] for name in _OF_USERINFO if name in found}

    async def _from_github(
        self,
        policy: AddressPolicy,
        payer: str,
        provider: Provider,
        metadata: ProviderMetadata,
        access_token: str,
    ) -> Arrival:
        headers = {
            "authorization": f"Bearer {access_token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
        }
        status, user = await self._caller.call(policy, payer, metadata.userinfo_endpoint, headers=headers)
        number = user.get("id") if isinstance(user, dict) else None
        if status != 200 or not isinstance(user, dict) or type(number) is not int or number <= 0:
            raise ProviderRefused("user")
        url = f"{metadata.userinfo_endpoint}/emails"
        status, listed = await self._caller.call(policy, payer, url, headers=headers)
        claims: dict[str, Any] = {"iss": provider.issuer, "sub": str(number), "name": user.get("name")}
        claims["preferred_username"] = user.get("login")
        if status == 200 and isinstance(listed, list):
            for one in listed[:MOST_ADDRESSES]:
                if isinstance(one, dict) and one.get("primary") is True:
                    claims |= {"email": one.get("email"), "email_verified": one.get("verified")}
        return arrival_of(provider, claims, "")


_OF_USERINFO = ("email", "email_verified", "name", "preferred_username")


def _check_sender(provider: Provider, metadata: ProviderMetadata, answer: Mapping[str, str]) -> None:
    """RFC 9207 2.4: an answer of another provider is not this one's, whatever address it came to."""
    if (issuer := answer.get("iss")) is None:
        if metadata.names_itself:
            raise ProviderRefused("iss")
        return
    if provider.type == GITHUB:
        mine = issuer in (provider.issuer, f"{provider.issuer}/login/oauth")
    else:
        mine = provider.is_mine(issuer) or issuer == provider.metadata_issuer
    if not mine:
        raise ProviderRefused("iss")


def arrival_of(provider: Provider, claims: Mapping[str, Any], name: str) -> Arrival:
    """Who comes, from checked claims. `name`: what the browser brought. Raises ProviderRefused."""
    try:
        identity = check_identity(claims["iss"], claims["sub"])
    except ValueError:
        raise ProviderRefused("sub") from None
    email = provider.verified_email(claims)
    shown = claims.get("email") or claims.get("preferred_username")
    if not isinstance(shown, str):
        shown = ""
    method = f"{FIRST}+mfa" if provider.has_second_step(claims) else FIRST
    trusted = email if provider.by_address and provider.trusts(email) else ""
    return Arrival(identity, trusted, _name(claims.get("name"), name, email or shown), label_of(shown), method)


def _name(*candidates: object) -> str:
    """The first of these that may be a person's name; of an address, the part before the @."""
    for one in candidates:
        if isinstance(one, str) and one:
            try:
                return check_person_name(one[:LONGEST_NAME].partition("@")[0])
            except ValueError:
                continue
    return "Person"


def _text(tokens: Mapping[str, Any], name: str, longest: int) -> str:
    value = tokens.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isascii() or not value.isprintable():
        raise ProviderRefused(name)
    return value


def _signed_secret(provider: Provider) -> str:
    """Apple's client secret: a token of the developer team, signed with the key that Apple issued."""
    assert provider.key is not None
    now = int(wall.time())
    claims = {
        "iss": provider.team_id,
        "iat": now,
        "exp": now + SECRET_SECONDS,
        "aud": provider.issuer,
        "sub": provider.client_id,
    }
    return jws.sign(claims, provider.key, "JWT", provider.key_id)
