"""JWT access tokens of people: what they say, and that revocation and introspection find their row. RFC 9068, 9470."""

from __future__ import annotations

from typing import Any

import pytest

from store import keys
from store.crypto.jose.algorithms import half_hash
from store.crypto.seal import TokenKind
from tests.support.http.api_shop import BILLS, ORDERS, Shop, at, called, error_of
from tests.support.http.driver import Service, json_of
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)


async def jwt_shop(service: Service, client_id: str = "shop", algorithm: str = "ES256", **fields: Any) -> Shop:
    """A shop whose first API wants JWTs."""
    shop = await Shop.open(service, client_id, **fields)
    await service.store.apis.update(ORDERS.client_id, token_format="jwt", signing_alg=algorithm)
    return shop


async def read(service: Service, token: str) -> Any:
    """A JWT access token of ours."""
    return await service.store.signing_keys.verify(token, types=("at+jwt",))


@pytest.mark.rfc("9068 2.1 signed")
@pytest.mark.rfc("9068 2.1 asymmetric")
@pytest.mark.rfc("9068 2.1 RS256")
@pytest.mark.rfc("9068 2.1 typ")
@pytest.mark.rfc("9068 2.2 claims")
@pytest.mark.rfc("9068 2.2 person")
@pytest.mark.rfc("9068 2.2.2 identity")
@pytest.mark.rfc("9068 2.2.3 scope")
@pytest.mark.rfc("9068 2.2.3 meaning")
@pytest.mark.rfc("9068 3 aud")
@pytest.mark.rfc("9068 4 invalid_token")
@each("algorithm", ["ES256", "RS256"])
async def test_a_jwt_says_what_introspection_says(service: Service, algorithm: str) -> None:
    shop = await jwt_shop(service, f"shop-{algorithm}", algorithm)
    tokens = await shop.tokens("openid profile read write", resource=ORDERS.identifier)
    token = tokens["access_token"]
    found = await read(service, token)
    assert (found.header["typ"], found.header["alg"]) == ("at+jwt", algorithm)
    claims = found.claims
    assert set(claims) == {
        *("iss", "aud", "sub", "client_id", "iat", "exp", "jti", "scope"),
        *("acr", "auth_time"),
    }, "nothing else about the person"
    facts = await shop.at(ORDERS, token)
    assert {"active": True, "token_type": "Bearer", **claims} == {**facts, "jti": claims["jti"]}
    assert (claims["sub"], claims["scope"], claims["aud"]) == (service.ada, "read write", ORDERS.identifier)
    assert claims["exp"] - claims["iat"] == tokens["expires_in"] == 300
    assert await shop.at(ORDERS, claims["jti"]) == facts, "the sealed token is the same token"
    assert await shop.at(BILLS, token) == {"active": False}
    assert error_of(await called(service, token)) == (401, "invalid_token")
    assert error_of(await called(service, claims["jti"])) == (401, "invalid_token"), "nor is its jti a token here"


async def test_the_id_token_s_hash_is_of_the_jwt(service: Service) -> None:
    shop = await jwt_shop(service)
    tokens = await shop.tokens("openid write")
    claims = (await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))).claims
    assert claims["at_hash"] == half_hash("RS256", tokens["access_token"])


@pytest.mark.rfc("9068 3 default")
async def test_without_a_resource_the_audience_follows_from_the_scopes(service: Service) -> None:
    shop = await jwt_shop(service)
    tokens = await shop.tokens("profile write")
    assert (await read(service, tokens["access_token"])).claims["aud"] == ORDERS.identifier
    refused = await shop.app.exchange(await service.code(shop.app, scope="write"), resource=BILLS.identifier)
    assert error_of(refused) == (400, "invalid_target")


@pytest.mark.rfc("9068 2.2.1 same")
async def test_the_sign_in_stays_the_same_through_refreshes(service: Service) -> None:
    shop = await jwt_shop(service)
    tokens = await shop.tokens("read", resource=ORDERS.identifier, acr_values="1")
    first = (await read(service, tokens["access_token"])).claims
    for _ in range(2):
        tokens = await shop.refresh(tokens)
        again = (await read(service, tokens["access_token"])).claims
        assert (again["acr"], again["auth_time"]) == (first["acr"], first["auth_time"]) == ("1", first["auth_time"])
        assert again["jti"] != first["jti"]
    ours = await shop.service.tokens(shop.app, scope="profile")
    facts = await shop.to_app(ours["access_token"])
    assert "acr" not in facts
    assert "auth_time" not in facts, "a request without openid and for no API keeps nothing of the sign-in"


async def test_a_repeated_refresh_signs_the_same_claims(service: Service) -> None:
    shop = await jwt_shop(service, refresh_retry_seconds=30)
    tokens = await shop.tokens("write")
    one, two = await shop.refresh(tokens), await shop.refresh(tokens)
    claims = [(await read(service, each["access_token"])).claims for each in (one, two)]
    assert abs(claims[0].pop("exp") - claims[1].pop("exp")) <= 1
    assert claims[0] == claims[1]


@pytest.mark.parametrize("resource", [ORDERS.identifier, None])
async def test_a_repeated_refresh_says_what_the_person_still_allows(service: Service, resource: str | None) -> None:
    shop, browser = await jwt_shop(service, refresh_retry_seconds=30), await service.signed_in()
    first, second = ("read", "write") if resource else ("profile", "credits:read")
    tokens = await shop.tokens(f"openid {first} {second}", browser, resource=resource)
    answer = await shop.refresh(tokens)
    assert answer["scope"].split()[-2:] == [first, second]
    url = shop.app.authorize_url(scope=f"openid {first} {second}", resource=resource, prompt="consent")
    await browser.consent(url, untick=(second,))
    again = await shop.refresh(tokens)
    assert again["refresh_token"] == answer["refresh_token"]
    assert again["scope"] == answer["scope"].removesuffix(f" {second}")
    if resource:
        assert (await read(service, again["access_token"])).claims["scope"] == first
        await service.store.apps.update("shop", api_scopes=())
        assert error_of(await shop.app.refresh(tokens["refresh_token"])) == (400, "invalid_target")
        await service.store.apps.update("shop", api_scopes=at(ORDERS, "write"))
    else:
        await service.store.apps.update("shop", scopes=("data:read",))
    assert error_of(await shop.app.refresh(tokens["refresh_token"])) == (400, "invalid_grant")


@pytest.mark.trap(58)
@each("way", ["by anybody", "by the app", "by its jti"])
async def test_a_revoked_jwt_is_dead_for_who_asks(service: Service, way: str) -> None:
    shop = await jwt_shop(service, f"shop-{way.replace(' ', '-')}")
    tokens = await shop.tokens("write")
    token = tokens["access_token"]
    assert (await shop.at(ORDERS, token))["active"] is True
    if way == "by its jti":
        token = str((await read(service, token)).claims["jti"])
    credentials = (
        {"client_id": shop.app.client_id, "client_secret": shop.app.secret or ""} if way == "by the app" else {}
    )
    assert (await shop.app.revoke(token, **credentials)).code == 200
    assert await shop.at(ORDERS, tokens["access_token"]) == {"active": False}
    assert (await shop.refresh(tokens))["scope"] == "write", "an access token ends alone"


@pytest.mark.trap(7)
async def test_another_app_revokes_no_jwt(service: Service) -> None:
    shop = await jwt_shop(service)
    token = (await shop.tokens("write"))["access_token"]
    response = await service.web.revoke(token, client_id="web-app", client_secret=service.web.secret or "")
    assert response.code == 200
    assert (await shop.at(ORDERS, token))["active"] is True


@pytest.mark.rfc("7662 4 signature")
@pytest.mark.trap(45)
async def test_a_jwt_that_is_not_ours_revokes_and_tells_nothing(service: Service) -> None:
    shop = await jwt_shop(service)
    token = (await shop.tokens("openid write"))["access_token"]
    claims = (await read(service, token)).claims
    signer = await service.store.signing_keys.for_signing("ES256")
    wrong = [
        signer.sign(claims, "JWT"),
        signer.sign(claims, "logout+jwt"),
        signer.sign({**claims, "iss": "https://other.example"}, "at+jwt"),
        signer.sign({name: value for name, value in claims.items() if name != "iss"}, "at+jwt"),
        token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB"),
        "a.b.c",
        "..",
        signer.sign({**claims, "jti": 7}, "at+jwt"),
    ]
    for one in wrong:
        assert await shop.at(ORDERS, one) == {"active": False}
        assert (await shop.app.revoke(one)).code == 200
    assert (await shop.at(ORDERS, token))["active"] is True


@pytest.mark.trap(58)
async def test_a_jwt_has_a_row_that_ends_with_it(service: Service) -> None:
    shop = await jwt_shop(service)
    token = (await shop.tokens("write"))["access_token"]
    claims = (await read(service, token)).claims
    opened = service.store.sealer.open(TokenKind.ACCESS, claims["jti"])
    assert opened is not None
    row = keys.token(opened.user, opened.client, opened.id, opened.generation)["access"]
    held: Any = await service.store.client.get(row)
    assert held.startswith(f"@{ORDERS.client_id} ".encode())
    ends = await service.store.client.pexpiretime(row)
    assert ends // 1000 == claims["exp"], "no sooner, and no later"


@pytest.mark.rfc("9068 6 correlation")
async def test_a_pairwise_app_s_jwt_has_the_api_s_name_for_the_person(service: Service) -> None:
    shop = await jwt_shop(service, subject_type="pairwise")
    tokens = await shop.tokens("openid write")
    sub = (await read(service, tokens["access_token"])).claims["sub"]
    mine = (await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))).claims["sub"]
    assert sub.startswith("pw_")
    assert sub != mine
    assert (await shop.at(ORDERS, tokens["access_token"]))["sub"] == sub


async def test_a_token_for_ours_is_never_a_jwt(service: Service) -> None:
    shop = await jwt_shop(service)
    tokens = await shop.tokens("profile write", resource=ORDERS.identifier)
    ours = await shop.refresh(tokens, resource=service.base_url)
    assert service.store.tokens.open_access(ours["access_token"])
    assert json_of(await called(service, ours["access_token"]))["sub"] == service.ada
