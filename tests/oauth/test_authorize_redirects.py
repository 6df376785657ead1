"""GET /oauth/authorize over HTTP: allowed redirects. SPEC 4.1, 2.1."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest

from store.apps.redirect_uris import InvalidRedirectURI
from tests.support.http.driver import CALLBACK, App, Service, answer_of, json_of

EVIL = "https://evil.test/steal"


# Each is a change of a good request whose redirect_uri is the evil one: whatever else is wrong, nobody is sent there.
@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.6 redirect_uri")
@pytest.mark.trap(13)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="the address alone is wrong"),
        pytest.param({"client_id": "nobody"}, id="unknown app"),
        pytest.param({"client_id": None}, id="no app"),
        pytest.param({"client_id": "../../etc"}, id="an app id of another form"),
        pytest.param({"response_type": "token"}, id="wrong response_type"),
        pytest.param({"response_type": None}, id="no response_type"),
        pytest.param({"scope": "everything"}, id="unknown scope"),
        pytest.param({"scope": "openid profile"}, id="unregistered scope"),
        pytest.param({"state": None}, id="no state"),
        pytest.param({"code_challenge_method": "plain"}, id="plain PKCE"),
        pytest.param({"prompt": "none"}, id="no page wanted"),
        pytest.param({"client_id": "disabled-app"}, id="disabled app"),
    ],
)
async def test_an_unregistered_redirect_uri_gets_a_page_despite_other_errors(
    service: Service, changes: dict[str, str | None]
) -> None:
    await service.add_app("disabled-app", redirect_uris=(EVIL,), status="disabled")
    browser = await service.signed_in()
    for visitor in (browser, service.browser()):
        response = await visitor.get(service.web.authorize_url(redirect_uri=EVIL, **changes))
        assert response.code == 400
        assert "Location" not in response.headers
        assert response.headers["Content-Type"].startswith("text/html")
        assert b"evil.test" not in response.body
        assert "evil.test" not in response.headers["Content-Security-Policy"]
        as_json = await visitor.get(service.web.authorize_url(redirect_uri=EVIL, **changes), Accept="application/json")
        assert as_json.code == 400
        assert "Location" not in as_json.headers
        assert json_of(as_json)["error"] == "invalid_request"


REGISTERED = "https://app.example/callback"
VARIANTS = {
    "extra query": REGISTERED + "?x=1",
    "empty query": REGISTERED + "?",
    "path parameters": REGISTERED + ";params",
    "path parameters inside": "https://app.example/;x/callback",
    "userinfo": "https://user@app.example/callback",
    "userinfo that is the app's host": "https://app.example@evil.test/callback",
    "several @": "https://app.example@app.example@evil.test/callback",
    "userinfo with password": "https://app.example:443@evil.test/callback",
    "empty fragment": REGISTERED + "#",
    "fragment": REGISTERED + "#x",
    "host ended by a fragment": "https://evil.test#@app.example/callback",
    "..;/": "https://app.example/x/..;/callback",
    "dot segments": "https://app.example/x/../callback",
    "escaped dot segments": "https://app.example/%2e%2e/callback",
    "escaped dot segments after the path": REGISTERED + "/%2e%2e/%2e%2e/evil",
    "an escaped letter": "https://app.example/%63allback",
    "another host under the app's name": "https://app.example.evil.test/callback",
    "another host that ends like it": "https://evilapp.example/callback",
    "a subdomain": "https://www.app.example/callback",
    "host in another case": "https://APP.example/callback",
    "scheme in another case": "HTTPS://app.example/callback",
    "path in another case": "https://app.example/Callback",
    "trailing slash": REGISTERED + "/",
    "trailing dot of the path": REGISTERED + ".",
    "trailing dot of the host": "https://app.example./callback",
    "a dot that stands for another character": "https://appxexample/callback",
    "default port": "https://app.example:443/callback",
    "another port": "https://app.example:8443/callback",
    "http": "http://app.example/callback",
    "no scheme": "//app.example/callback",
    "path alone": "/callback",
    "backslash": "https://app.example\\callback",
    "backslash before @": "https://evil.test\\@app.example/callback",
    "double slash": "https://app.example//callback",
    "leading space": " " + REGISTERED,
    "trailing space": REGISTERED + " ",
    "trailing newline": REGISTERED + "\n",
    "newline and a header": REGISTERED + "\r\nSet-Cookie: a=b",
    "tab inside": "https://app.exa\tmple/callback",
    "full-width letters": "https://\uff41pp.example/callback",
    "ideographic full stop": "https://app\u3002example/callback",
    "prefix only": "https://app.example/",
    "longer path": REGISTERED + "/more",
    "javascript": "JavaScript:alert(1)//app.example/callback",
    "data": "data:text/html,https://app.example/callback",
    "the registered one twice": REGISTERED + " " + REGISTERED,
    "a comma between two": REGISTERED + "," + EVIL,
    "very long": REGISTERED + "?" + "a" * 5000,
}


@pytest.mark.gen_test
@pytest.mark.openid("core 3.1.2.1 redirect_uri")
@pytest.mark.trap(14)
@pytest.mark.spec("4.1")
@pytest.mark.spec("2.1")
async def test_no_variant_of_a_registered_redirect_uri_matches(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())  # consent is remembered: a match would redirect at once
    assert (await browser.get(service.web.authorize_url())).code == 303
    for name, uri in VARIANTS.items():
        response = await browser.get(service.web.authorize_url(redirect_uri=uri))
        assert response.code == 400, name
        assert "Location" not in response.headers, name
        assert "Refresh" not in response.headers, name
        assert b"evil.test" not in response.body, name
        assert b"http-equiv" not in response.body, name


@pytest.mark.gen_test
@pytest.mark.trap(14)
@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([("redirect_uri", CALLBACK), ("redirect_uri", EVIL)], id="the good one first"),
        pytest.param([("redirect_uri", EVIL), ("redirect_uri", CALLBACK)], id="the evil one first"),
        pytest.param([("redirect_uri", CALLBACK), ("redirect_uri", CALLBACK)], id="the good one twice"),
        pytest.param([("redirect_uri", CALLBACK), ("client_id", "native-app")], id="two apps"),
        pytest.param([], id="none at all, though one only is registered"),
        pytest.param([("redirect_uri", "")], id="an empty one"),
    ],
)
async def test_redirect_uri_must_be_given_exactly_once(service: Service, pairs: list[tuple[str, str]]) -> None:
    base = service.web.authorize_url(redirect_uri=None)
    response = await (await service.signed_in()).get(f"{base}&{urlencode(pairs)}")
    assert response.code == 400
    assert "Location" not in response.headers


@pytest.mark.gen_test
@pytest.mark.trap(15)
@pytest.mark.parametrize(
    ("presented", "fits"),
    [
        pytest.param("http://127.0.0.1/cb", True, id="as registered"),
        pytest.param("http://127.0.0.1:49152/cb", True, id="another port"),
        pytest.param("http://[::1]:1/cb", True, id="another port, IPv6"),
        pytest.param("http://127.0.0.1:8400/native?a=b", True, id="registered with a port, presented with another"),
        pytest.param("http://127.0.0.1:49152/CB", False, id="another case of the path"),
        pytest.param("http://127.0.0.1:49152/cb/", False, id="another path"),
        pytest.param("http://127.0.0.1:49152/cb?x=1", False, id="another query"),
        pytest.param("HTTP://127.0.0.1:49152/cb", False, id="another case of the scheme"),
        pytest.param("https://127.0.0.1:49152/cb", False, id="another scheme"),
        pytest.param("http://localhost:49152/cb", False, id="a name for the address"),
        pytest.param("http://127.0.0.2:49152/cb", False, id="another loopback address"),
        pytest.param("http://127.1:49152/cb", False, id="another way to write the address"),
        pytest.param("http://[0:0:0:0:0:0:0:1]:1/cb", False, id="another way to write the IPv6 address"),
        pytest.param("http://127.0.0.1:49152@evil.test/cb", False, id="the port is a password"),
        pytest.param("http://127.0.0.1:x@evil.test/cb", False, id="userinfo"),
        pytest.param("http://127.0.0.1:0/cb", False, id="port 0"),
        pytest.param("http://127.0.0.1:65536/cb", False, id="no port at all"),
        pytest.param("http://127.0.0.1:/cb", False, id="an empty port"),
        pytest.param("http://127.0.0.1.evil.test:80/cb", False, id="another host"),
        pytest.param("http://localhost.evil.test/cb", False, id="localhost.evil.test"),
        pytest.param("http://localhost:9/l", False, id="a registered localhost with another port"),
        pytest.param("http://localhost/l", True, id="a registered localhost"),
    ],
)
async def test_loopback_matches_any_port_and_nothing_else(service: Service, presented: str, fits: bool) -> None:
    uris = ("http://127.0.0.1/cb", "http://[::1]/cb", "http://127.0.0.1:1234/native?a=b", "http://localhost/l")
    app = await service.add_app("loop", public=True, redirect_uris=uris)
    browser = await service.signed_in()
    page = await browser.get(app.authorize_url(redirect_uri=presented))
    assert page.code == (200 if fits else 400)
    if fits:
        redirect = await browser.submit(page, "/api/oauth/authorize", decision="allow")
        assert redirect.headers["Location"].startswith(presented + ("&" if "?" in presented else "?") + "code=")
        # SPEC 4.3: the exchange wants the one of the request, port included.
        response = await app.exchange(answer_of(redirect)["code"], redirect_uri=presented)
        assert response.code == 200


@pytest.mark.gen_test
@pytest.mark.trap(16)
@pytest.mark.parametrize(
    "uri",
    [
        "JavaScript:alert(1)",
        "javascript:alert(1)//app.example/cb",
        "java\tscript:alert(1)",
        "data:text/html,x",
        "DATA:text/html;base64,eA==",
        "vbscript:msgbox(1)",
        "file:///etc/passwd",
        "blob:https://app.example/x",
        "https://app.example/\x00cb",
        "https://app.example/cb\r\nX: y",
        "https://app.example/\x7f",
        "https://app.example/%0d%0aX",
        "\x01https://app.example/cb",
        " https://app.example/cb",
    ],
)
async def test_script_schemes_and_control_characters_never_register_or_match(service: Service, uri: str) -> None:
    for public in (False, True):
        with pytest.raises(InvalidRedirectURI):
            await service.add_app(f"evil-{public}", public=public, redirect_uris=(uri,))
        assert await service.store.apps.find(f"evil-{public}") is None
    for app in (service.web, service.native):
        response = await (await service.signed_in()).get(app.authorize_url(redirect_uri=uri))
        assert response.code == 400
        assert "Location" not in response.headers


@pytest.mark.gen_test
async def test_the_registered_query_is_kept_and_the_answer_appended(service: Service) -> None:
    app = await service.add_app("query", redirect_uris=(CALLBACK + "?tenant=7&x=%20",))
    redirect = await (await service.signed_in()).consent(app.authorize_url())
    assert redirect.headers["Location"].startswith(CALLBACK + "?tenant=7&x=%20&code=lk_ac_")


@pytest.mark.gen_test(timeout=20)
async def test_a_disabled_or_deleted_app_gets_a_page(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    await service.store.apps.update("web-app", status="disabled")
    assert (await browser.get(service.web.authorize_url())).code == 400
    await service.store.apps.update("web-app", status="active")
    assert (await browser.get(service.web.authorize_url())).code == 303
    await service.store.apps.delete("web-app")
    response = await browser.get(service.web.authorize_url())
    assert response.code == 400
    assert "Location" not in response.headers


@pytest.mark.gen_test
async def test_parameters_in_a_post_body_are_ignored(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    response = await browser.submit(page, "/api/oauth/authorize", redirect_uri=EVIL, client_id="other", decision="deny")
    assert response.headers["Location"].startswith(CALLBACK + "?")
    wrong: App = service.web
    assert (await browser.get(f"/oauth/authorize?client_id={quote(wrong.client_id)}")).code == 400
