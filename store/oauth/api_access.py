"""Access tokens for APIs: what the token endpoint knows of APIs before its script runs, and JWTs. RFC 9068."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from store.apps.api_record import ApiRegistration
from store.apps.api_scopes import parse_qualified
from store.apps.apis import Apis
from store.apps.registration import Registration
from store.crypto.jose.refusal import JoseError
from store.crypto.signing_keys import Signer, SigningKeys
from store.lifetimes import ACCESS_TOKEN, SECOND
from store.oauth.resources import MCP, OWN
from store.oauth.second_steps import demanded_scopes
from store.oauth.sign_in import level_and_time
from store.oauth.subjects import Subjects

AT_JWT = "at+jwt"
"""The type of a JWT access token (RFC 9068 2.1)."""


class AllowedApis(NamedTuple):
    """The resources that an app may get tokens for: `registered`, its scopes as the store has them, and `lifetimes`,
    the APIs with the lifetimes of their tokens in ms, both as the scripts take them. `signers` by algorithm.
    `demanded`: what demands a second step, as the scripts take it (`store/oauth/second_steps.py`)."""

    registered: str
    lifetimes: str = ""
    apis: Mapping[str, ApiRegistration] = {}
    signers: Mapping[str, Signer] = {}
    demanded: str = ""


class ApiToken(NamedTuple):
    """An access token for an API. `issued` and `expires` are in seconds since 1970; `acr` and `auth_time` (seconds) are
    of the person's sign-in, empty and None without one; `jkt` is the thumbprint of the key that it is bound to, or
    empty."""

    api: ApiRegistration
    client_id: str
    sub: str
    sealed: str
    scope: str
    issued: int
    expires: int
    acr: str = ""
    auth_time: int | None = None
    jkt: str = ""
    act: dict[str, Any] | None = None


class ApiAccess:
    """Knows the APIs, and signs JWTs."""

    def __init__(self, apis: Apis, signing: SigningKeys, subjects: Subjects) -> None:
        self._apis = apis
        self._signing = signing
        self._subjects = subjects

    async def allowed(self, app: Registration, target: str = "") -> AllowedApis:
        """The resources that the app may get tokens for. The script alone knows which one a request without a target
        is for, so all are read; registrations are cached, and an app without scopes of APIs costs nothing. Reads what
        signs and names, too: after the script, a store that is away would cost the person the tokens. Raises
        StoreUnavailable."""
        ours = (f"{MCP} {ACCESS_TOKEN}",) if self._apis.mcp else ()
        if not app.api_scopes:
            demanded = demanded_scopes(app, self._apis.stepped)
            return AllowedApis(" ".join(app.grantable), " ".join(ours), demanded=demanded)
        scopes = [parse_qualified(scope) for scope in app.api_scopes]
        ids = sorted({scope.api for scope in scopes})
        found = await asyncio.gather(*(self._apis.active(one) for one in ids))
        apis = {api.client_id: api for api in found if api and app.rules.allows(api.jwt_alg)}
        # A scope that an API has given up is no scope. One of a disabled API counts again when the API does.
        kept = [one.qualified for one in scopes if one.api not in apis or one.name in apis[one.api].scope_names()]
        signers = await self.signers(() if target == OWN else apis.values())
        await self._subjects.prepare(app.sector)
        lifetimes = " ".join((*ours, *(f"{one} {api.token_lifetime * SECOND}" for one, api in apis.items())))
        demanded = demanded_scopes(app, self._apis.stepped, apis.values())
        return AllowedApis(" ".join((*app.grantable, *kept)), lifetimes, apis, signers, demanded)

    async def signers(self, apis: Iterable[ApiRegistration]) -> dict[str, Signer]:
        """The keys that sign for those of the APIs that want JWTs. Raises StoreUnavailable."""
        algorithms = {api.jwt_alg for api in apis} - {""}
        return {algorithm: await self._signing.for_signing(algorithm) for algorithm in sorted(algorithms)}

    async def for_person(
        self,
        app: Registration,
        user: str,
        sealed: str,
        scope: str,
        row: Sequence[bytes],
        allowed: AllowedApis,
        issuer: str,
        jkt: str,
        act: dict[str, Any] | None = None,
    ) -> tuple[str, int]:
        """The access token for the API that a script answered (`api_token_fields` in `lua/include/oauth/resource.lua`),
        and its lifetime in seconds. While the person has paused the app, it is no JWT."""
        client_id, issued, expires, signed, paused = (value.decode() for value in row)
        api = allowed.apis[client_id]
        if paused:
            # Nobody who checks a JWT alone would learn of the pause.
            return sealed, int(expires) - int(issued)
        sub = await self._subjects.at_api(api.sector, app.sector, user)
        sign_in = level_and_time(signed)
        token = ApiToken(api, app.wire_id, sub, sealed, scope, int(issued), int(expires), *sign_in, jkt, act)
        return self.wire_form(token, issuer, allowed.signers), token.expires - token.issued

    def wire_form(self, token: ApiToken, issuer: str, signers: Mapping[str, Signer]) -> str:
        """The token as the API wants it: sealed, or a JWT."""
        if not token.api.jwt_alg:
            return token.sealed
        return signers[token.api.jwt_alg].sign(claims_of(token, issuer), AT_JWT)

    async def sealed_in(self, presented: str, issuer: str) -> str:
        """The sealed token in a JWT access token of ours; any other text unchanged (RFC 9068 4). Whether it is over is
        for its row to say. Raises StoreUnavailable."""
        if presented.count(".") != 2:
            return presented
        try:
            claims = (await self._signing.verify(presented, types=(AT_JWT,))).claims
        except JoseError:
            return presented
        return str(claims["jti"]) if claims.get("iss") == issuer and "jti" in claims else presented


def claims_of(token: ApiToken, issuer: str) -> dict[str, Any]:
    """The claims of RFC 9068 2.2. `jti` is the sealed token, by which introspection and revocation find its row."""
    claims: dict[str, Any] = {
        "iss": issuer,
        "aud": token.api.identifier,
        "sub": token.sub,
        "client_id": token.client_id,
        "iat": token.issued,
        "exp": token.expires,
        "jti": token.sealed,
        "scope": token.scope,
    }
    if token.auth_time is not None:
        # RFC 9470 6.1: how and when the person signed in, which a refresh does not change.
        claims |= {"acr": token.acr, "auth_time": token.auth_time}
    if token.jkt:
        # RFC 9449 6.1: the API checks the proof of each call against it.
        claims["cnf"] = {"jkt": token.jkt}
    if token.act:
        claims["act"] = token.act
    return claims
