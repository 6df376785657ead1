"""GitHub, Google, Microsoft and Apple, as their pages document them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from handlers.core.site import Site
from outbound.identity.metadata import of_github, read_metadata
from outbound.identity.providers import APPLE, CONSUMERS, GITHUB, GOOGLE, MICROSOFT, Provider
from store.crypto.jose import base64url
from tests.support.elsewhere import journeys
from tests.support.elsewhere.double import CLIENT_ID, SECRET, ProviderDouble
from tests.support.elsewhere.journeys import goes_and_comes, leaves
from tests.support.http.driver import Service
from tests.support.http.key_app import key_for

pytestmark = pytest.mark.gen_test(timeout=60)

idp, mails, options, site = journeys.idp, journeys.mails, journeys.options, journeys.site
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
EMAIL = "octocat@elsewhere.example"


def configured(**facts: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("options", [{"by_address": True, "create": True, **facts}])


def speaks(idp: ProviderDouble, user: Any, emails: Any) -> None:
    idp.answers["/api/v3/user"] = (200, json.dumps(user).encode())
    idp.answers["/api/v3/user/emails"] = (200, json.dumps(emails).encode())


@configured(type=GITHUB, scopes=("read:user", "user:email"))
async def test_github_names_people_by_number_and_its_primary_verified_address(
    service: Service, idp: ProviderDouble, options: Any
) -> None:
    address = {"email": EMAIL, "primary": True, "verified": True, "visibility": "public"}
    speaks(idp, {"id": 583231, "login": "octocat", "name": "The Octocat", "email": "public@evil.example"}, [address])
    browser = service.browser()
    sent = dict(parse_qsl(urlsplit(await leaves(browser)).query))
    assert "nonce" not in sent
    assert sent["scope"] == "read:user user:email"
    assert (await goes_and_comes(browser, idp)).code == 303
    user = await service.store.people.find(EMAIL)
    assert user
    [one] = (await service.store.operator.security(user)).identities
    assert (one.identity.issuer, one.identity.subject) == (idp.issuer, "583231")
    assert idp.forms[-1]["client_secret"] == SECRET
    speaks(idp, {"id": 583231, "login": "renamed"}, [])
    assert (await goes_and_comes(service.browser(), idp)).code == 303, "whatever the address is now"


@configured(type=GITHUB)
@pytest.mark.parametrize(
    "emails",
    [
        [{"email": EMAIL, "primary": True, "verified": False}],
        [{"email": EMAIL, "primary": False, "verified": True}],
        [{"email": EMAIL, "primary": True, "verified": "true"}],
        {"message": "Not Found"},
    ],
)
async def test_github_addresses_that_are_unverified_make_nothing(
    service: Service, idp: ProviderDouble, options: Any, emails: Any
) -> None:
    speaks(idp, {"id": 1, "login": "a", "email": EMAIL}, emails)
    assert (await goes_and_comes(service.browser(), idp)).code == 403
    for number in (True, "1", 0, None):
        speaks(idp, {"id": number, "login": "a"}, [])
        assert (await goes_and_comes(service.browser(), idp)).code == 400


@configured(type=GITHUB)
async def test_github_answers_200_with_an_error(service: Service, idp: ProviderDouble, options: Any) -> None:
    idp.answers["/login/oauth/access_token"] = (200, b'{"error":"bad_verification_code"}')
    assert (await goes_and_comes(service.browser(), idp)).code == 400


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"email": "ada@gmail.com"}, 303),
        ({"email": "ada@company.example", "hd": "company.example"}, 303),
        ({"email": "ada@company.example"}, 403),
        ({"email": "ada@company.example", "hd": "another.example"}, 403),
        ({"email": "ada@gmail.com", "email_verified": False}, 403),
    ],
)
@configured(type=GOOGLE)
async def test_google_speaks_for_its_own_addresses_and_an_organizations(
    service: Service, idp: ProviderDouble, options: Any, claims: dict[str, Any], code: int
) -> None:
    idp.claims = {"email_verified": True, **claims}
    assert (await goes_and_comes(service.browser(), idp)).code == code


MINE, OTHER = TENANT, TENANT.replace("7", "8")


@pytest.mark.parametrize(
    ("tenant", "theirs", "said", "code"),
    [
        (TENANT, MINE, MINE, 303),
        (TENANT, OTHER, OTHER, 400),
        (TENANT, MINE, OTHER, 400),
        ("common", OTHER, OTHER, 303),
        ("common", OTHER, MINE, 400),
        ("organizations", OTHER, OTHER, 303),
        ("organizations", CONSUMERS, CONSUMERS, 400),
        ("consumers", CONSUMERS, CONSUMERS, 303),
        ("consumers", OTHER, OTHER, 400),
        ("common", "{tenantid}", "{tenantid}", 400),
    ],
)
@configured(type=MICROSOFT)
async def test_microsofts_issuer_is_the_persons_tenant(
    service: Service, site: Site, idp: ProviderDouble, options: Any, tenant: str, theirs: str, said: str, code: int
) -> None:
    [provider] = site.providers
    object.__setattr__(provider, "tenant", tenant)
    named = tenant if tenant == TENANT else "{tenantid}"
    idp.metadata["issuer"] = f"{idp.origin}/{named}/v2.0"
    idp.claims = {"email": EMAIL, "xms_edov": True, "iss": f"{idp.origin}/{theirs}/v2.0", "tid": said}
    assert (await goes_and_comes(service.browser(), idp)).code == code


@pytest.mark.parametrize(("verified", "code"), [(True, 303), ("1", 303), (None, 403), (False, 403), ("false", 403)])
@configured(type=MICROSOFT, tenant=TENANT)
async def test_microsofts_address_counts_with_a_verified_domain_alone(
    service: Service, idp: ProviderDouble, options: Any, verified: Any, code: int
) -> None:
    issuer = f"{idp.origin}/{TENANT}/v2.0"
    idp.metadata["issuer"] = issuer
    idp.claims = {"email": EMAIL, "email_verified": True, "iss": issuer, "tid": TENANT, "xms_edov": verified}
    assert (await goes_and_comes(service.browser(), idp)).code == code


APPLE_FACTS: dict[str, Any] = {
    **{"type": APPLE, "secret": "", "team_id": "TEAM123456", "key_id": "KEY1234567", "scopes": ("name", "email")},
    "key": key_for("ES256", 3),
}


@configured(**APPLE_FACTS)
async def test_apple_posts_its_answer_and_the_name_once(service: Service, idp: ProviderDouble, options: Any) -> None:
    idp.claims = {"email": EMAIL, "email_verified": "true"}
    browser = service.browser()
    url = await leaves(browser)
    assert dict(parse_qsl(urlsplit(url).query))["response_mode"] == "form_post"
    back = urlsplit(idp.allows(url))
    form = dict(parse_qsl(back.query))
    form["user"] = json.dumps({"name": {"firstName": "Ada", "lastName": "Lovelace"}, "email": "evil@evil.example"})
    # The page of Apple's posts without our cookies.
    posted = await service.browser().send(back.path, "POST", form=form, headers={"Origin": idp.origin})
    assert posted.code == 303
    place = posted.headers["Location"]
    assert place.startswith("/signin/with/idp/callback?")
    assert "evil" not in place
    assert (await browser.get(place)).code == 303
    user = await service.store.people.find(EMAIL)
    assert user
    assert (await service.store.operator.find(user)).name == "Ada Lovelace"
    secret = idp.forms[-1]["client_secret"]
    header, claims = (json.loads(base64url.decode(part)) for part in secret.split(".")[:2])
    assert (header["alg"], header["kid"]) == ("ES256", "KEY1234567")
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("TEAM123456", CLIENT_ID, idp.issuer)
    assert 0 < claims["exp"] - claims["iat"] <= 15_777_000
    idp.claims["email_verified"] = "false"
    idp.subject, idp.claims["email"] = "another", "other@elsewhere.example"
    assert (await goes_and_comes(service.browser(), idp)).code == 403


@configured(**APPLE_FACTS)
@pytest.mark.parametrize("user", ["", "{", "[]", '{"name":7}', '{"name":{"firstName":7}}', "x" * 3000, "[" * 500])
async def test_a_strange_name_is_left_out(service: Service, idp: ProviderDouble, options: Any, user: str) -> None:
    posted = await service.browser().send(
        "/signin/with/idp/callback", "POST", form={"code": "c", "state": "s", "user": user}
    )
    assert posted.headers["Location"] == "/signin/with/idp/callback?code=c&state=s"


def test_documents_are_read_strictly() -> None:
    provider = Provider("idp", "Elsewhere", "oidc", "https://id.example", CLIENT_ID)
    document: dict[str, Any] = {
        "issuer": "https://id.example",
        **{name: f"https://id.example/{name}" for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")},
    }
    found = read_metadata(provider, json.dumps(document).encode())
    assert (found.basic, found.names_itself, found.userinfo_endpoint) == (True, False, "")
    for wrong in (
        {"issuer": "https://id.example/"},
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://id.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": None},
        {"id_token_signing_alg_values_supported": ["HS256", "none"]},
    ):
        with pytest.raises(ValueError, match=r"it |is missing"):
            read_metadata(provider, json.dumps({**document, **wrong}).encode())
    for raw in (b"", b"[]", b"{", b"[" * 100_000):
        with pytest.raises(ValueError, match="it "):
            read_metadata(provider, raw)
    github = of_github(Provider("github", "GitHub", GITHUB, "https://github.com", CLIENT_ID))
    assert github.userinfo_endpoint == "https://api.github.com/user"
