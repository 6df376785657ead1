"""JWT access tokens of every wrong kind, at every endpoint that reads access tokens. RFC 9068 4, RFC 8725."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dev.fuzz.jwts import wrong_jwts
from store import lifetimes, limits
from tests.support.http.api_shop import ORDERS, Shop, called, error_of
from tests.support.http.driver import Service, send

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.rfc("9068 2.1 signed")
@pytest.mark.rfc("7662 4 signature")
@pytest.mark.trap(39)
@pytest.mark.trap(44)
@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
async def test_no_wrong_jwt_is_live_or_opens_or_ends_anything(
    service: Service, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ADDRESS", replace(lifetimes.ADDRESS, limit=100_000))
    shop = await Shop.open(service)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt", signing_alg=algorithm)
    token = (await shop.tokens("openid write"))["access_token"]
    keys = service.store.signing_keys
    claims, signer = (await keys.verify(token, types=("at+jwt",))).claims, await keys.for_signing(algorithm)
    header = {"typ": "at+jwt", "alg": algorithm, "kid": signer.kid}
    credentials = {"client_id": ORDERS.client_id, "client_secret": shop.secrets[ORDERS.client_id]}
    at = f"{service.base_url}/api/oauth"
    for what, text in wrong_jwts(signer.key, header, claims).items():
        if not text:
            continue
        asked = await send(f"{at}/introspect", "POST", form={"token": text, **credentials})
        revoked = await send(f"{at}/revoke", "POST", form={"token": text})
        if len(text) < 60_000:
            assert (asked.code, asked.body, revoked.code) == (200, b'{"active":false}', 200), what
        else:
            assert {asked.code, revoked.code} <= {200, 413}, what
            assert b"true" not in asked.body, what
        if len(text) < 8_000 and text.isascii() and text.isprintable():
            assert error_of(await called(service, text)) == (401, "invalid_token"), what
    assert error_of(await called(service, token)) == (401, "invalid_token"), "it is for the API"
    assert (await shop.at(ORDERS, token))["active"] is True, "nothing ended it"
