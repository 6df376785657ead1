"""Discovery documents, and that they are true; operations endpoints. RFC 8414, SPEC 4."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

import pytest

from handlers.core.auth.challenges import ALGS
from store.names import ADVERTISED
from tests.support.http.driver import CALLBACK, Service, answer_of, json_of, query_of, send

ADDRESS = "/.well-known/oauth-authorization-server"


@pytest.mark.gen_test
@pytest.mark.spec("2.4")
@pytest.mark.spec("5.2")
async def test_the_metadata_has_what_rfc_8414_requires(service: Service) -> None:
    response = await send(service.base_url + ADDRESS)
    assert response.code == 200
    assert response.headers["Content-Type"] == "application/json"
    document = json_of(response)
    assert document["issuer"] == service.base_url
    assert document["scopes_supported"] == list(ADVERTISED)
    assert document["response_types_supported"] == ["code"]
    known = ["authorization_code", "refresh_token", "client_credentials"]
    urns = [f"urn:ietf:params:oauth:grant-type:{name}" for name in ("device_code", "token-exchange")]
    assert document["grant_types_supported"] == [*known, *urns]
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    methods = {"client_secret_basic", "client_secret_post", "private_key_jwt", "none"}
    assert set(document["token_endpoint_auth_methods_supported"]) == methods
    assert set(document["revocation_endpoint_auth_methods_supported"]) == methods
    assert set(document["introspection_endpoint_auth_methods_supported"]) == methods - {"none"}


@pytest.mark.rfc("9728 2 resource")
@pytest.mark.rfc("9728 2 authorization_servers")
@pytest.mark.rfc("9728 2 scopes_supported")
@pytest.mark.rfc("9728 2 bearer_methods")
@pytest.mark.rfc("9728 3.2 response")
@pytest.mark.rfc("9728 5.1 challenge")
@pytest.mark.gen_test
async def test_the_resource_is_described_and_named_by_a_401(service: Service) -> None:
    address = service.base_url + "/.well-known/oauth-protected-resource"
    response = await send(address)
    document = json_of(response)
    assert document["resource"] == service.base_url
    assert document["authorization_servers"] == [json_of(await send(service.base_url + ADDRESS))["issuer"]]
    assert document["scopes_supported"] == list(ADVERTISED)
    assert document["bearer_methods_supported"] == ["header"]
    assert response.headers["Content-Type"] == "application/json"
    refused = await send(service.base_url + "/api/oauth/userinfo")
    assert refused.code == 401
    assert refused.headers["WWW-Authenticate"] == f'Bearer realm="latchkey", resource_metadata="{address}", DPoP {ALGS}'
    tokens = await service.tokens(scope="data:read")
    lacking = await service.web.userinfo(tokens["access_token"])
    said = f'Bearer realm="latchkey", error="insufficient_scope", scope="openid profile", resource_metadata="{address}"'
    assert (lacking.code, lacking.headers["WWW-Authenticate"]) == (403, said)


@pytest.mark.rfc("9728 2 resource_name")
@pytest.mark.rfc("9728 3 path")
@pytest.mark.rfc("9728 3.1 GET")
@pytest.mark.rfc("9728 3.2 empty")
@pytest.mark.rfc("9728 3.3 identical")
@pytest.mark.rfc("9728 7.10 caching")
@pytest.mark.gen_test
async def test_the_metadata_of_the_resource_lie_where_its_identifier_says(service: Service) -> None:
    response = await send(service.base_url + "/.well-known/oauth-protected-resource")
    document = json_of(response)
    origin = urlsplit(document["resource"])
    assert (f"{origin.scheme}://{origin.netloc}", origin.path, origin.fragment) == (service.base_url, "", "")
    assert [name for name, value in document.items() if value in ("", [], None)] == []
    assert document["resource_name"] == "Latchkey"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    for path in ("/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource/other"):
        assert (await send(service.base_url + path)).code == 404, "there is no such resource"
    assert (await send(document["resource"] + "/.well-known/oauth-protected-resource", "POST")).code == 405


@pytest.mark.gen_test
@pytest.mark.spec("4.1")
@pytest.mark.spec("4.3")
@pytest.mark.spec("4.4")
@pytest.mark.spec("4.5")
@pytest.mark.spec("9")
async def test_a_client_can_work_from_the_metadata_alone(service: Service) -> None:
    document = json_of(await send(service.base_url + ADDRESS))
    browser = await service.signed_in()
    url = document["authorization_endpoint"] + "?" + urlencode(query_of(service.web.authorize_url()), doseq=True)
    answer = answer_of(await browser.consent(url))
    assert answer["iss"] == document["issuer"]
    form = {"client_id": "web-app", "client_secret": service.web.secret or ""}
    exchange = {"grant_type": "authorization_code", "code": answer["code"], "redirect_uri": CALLBACK}
    tokens = json_of(
        await send(document["token_endpoint"], "POST", form={**form, **exchange, "code_verifier": "v" * 43})
    )
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert json_of(await send(document["userinfo_endpoint"], headers=headers))["sub"] == service.ada
    introspected = await send(
        document["introspection_endpoint"], "POST", form={**form, "token": tokens["access_token"]}
    )
    assert json_of(introspected)["sub"] == service.ada
    assert (await send(document["revocation_endpoint"], "POST", form={"token": tokens["access_token"]})).code == 200
    assert (await send(document["userinfo_endpoint"], headers=headers)).code == 401
    for name, value in document.items():
        if name.endswith("_endpoint"):
            assert value.startswith(service.base_url + "/")
            assert "/v1/" not in value


@pytest.mark.rfc("9068 4 metadata")
@pytest.mark.rfc("9068 4 consistent")
@pytest.mark.gen_test
@pytest.mark.openid("discovery 3 RS256")
async def test_openid_discovery_answers_the_same_document(service: Service) -> None:
    documents = [
        await send(f"{service.base_url}/.well-known/{name}")
        for name in ("openid-configuration", "oauth-authorization-server")
    ]
    assert documents[0].body == documents[1].body
    found = json_of(documents[0])
    assert found["issuer"] == service.base_url
    assert json_of(await send(found["jwks_uri"]))["keys"]
    # Discovery 3: what the defaults would say otherwise.
    assert found["request_uri_parameter_supported"] is False
    assert "RS256" in found["id_token_signing_alg_values_supported"]


@pytest.mark.gen_test
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_endpoints_report_a_healthy_server(service: Service, path: str) -> None:
    response = await send(service.base_url + path)
    assert response.code == 200
    assert json_of(response) == {"status": "ok"}
    assert response.headers["Cache-Control"] == "no-store"
    head = await send(service.base_url + path, "HEAD")
    assert head.code == 200
    assert head.body == b""


@pytest.mark.gen_test
async def test_the_stylesheet_is_cached_by_its_version(service: Service) -> None:
    page = (await service.browser().get("/")).body.decode()
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    assert address.startswith("/static/latchkey.css?v=")
    response = await send(service.base_url + address)
    assert response.code == 200
    assert response.headers["Content-Type"].startswith("text/css")
    assert "max-age=" in response.headers["Cache-Control"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
