"""Redirect URIs: tables of what registers, what matches, and what is built from one."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.apps.redirect_uris import (
    InvalidRedirectURI,
    check_redirect_uri,
    display_origin,
    form_action_source,
    is_interceptable,
    match_redirect_uri,
    with_params,
)
from tests.support.lists.offenders import each

WEB = [
    "https://app.example.com/callback",
    "https://app.example.com",
    "https://app.example.com/",
    "https://app.example.com:8443/callback",
    "https://app.example.com/callback?tenant=1&next=%2Fhome",
    "https://app.example.com/callback?",
    "https://app.example.com/a//b",
    "https://app.example.com/a;b=c/d",
    "https://app.example.com/.well-known/callback",
    "https://app.example.com/a..b/...",
    "https://app.example.com/%C3%A9t%C3%A9",
    "https://app.example.com/it's(ok)!$&+,=~:@",
    "https://xn--bcher-kva.example/callback",
    "https://intranet/callback",
    "https://192.0.2.7/callback",
    "https://[2001:db8::1]:8443/callback",
    "https://a.example:65535/",
    "https://a.example:1/",
    "http://127.0.0.1/callback",
    "http://127.0.0.1:49152/callback",
    "http://[::1]/callback",
    "http://[::1]:49152/callback",
    "http://localhost:3000/callback",
    "http://localhost",
    "https://localhost/callback",
]
NATIVE = [
    "com.example.app:/callback",
    "com.example.app://callback",
    "com.example.app://oauth/callback?x=1",
    "com.example.app:///callback",
    "com.example-app.v2:/",
]


@pytest.mark.spec("2.1")
@each("public", [True, False])
@each("uri", WEB)
def test_web_and_loopback_uris_are_allowed_for_every_app(uri: str, public: bool) -> None:
    check_redirect_uri(uri, public)


@pytest.mark.parametrize("uri", NATIVE)
def test_a_reversed_domain_scheme_is_allowed_for_public_apps_only(uri: str) -> None:
    check_redirect_uri(uri, public=True)
    with pytest.raises(InvalidRedirectURI, match="Only public apps"):
        check_redirect_uri(uri, public=False)


@pytest.mark.trap(16)
@each(
    "uri",
    [
        pytest.param("javascript:alert(1)", id="javascript"),
        pytest.param("JavaScript:alert(1)", id="javascript in another case"),
        pytest.param("javascript://app.example.com/%0aalert(1)", id="javascript with a host and a comment"),
        pytest.param("javascript:/callback", id="javascript with a path"),
        pytest.param("java\tscript:alert(1)", id="javascript with a tab, which browsers drop"),
        pytest.param("java\nscript:alert(1)", id="javascript with a line break, which browsers drop"),
        pytest.param("\x01javascript:alert(1)", id="javascript behind a control character, which browsers drop"),
        pytest.param(" javascript:alert(1)", id="javascript behind a space"),
        pytest.param("data:text/html,x", id="data"),
        pytest.param("DATA:text/html,x", id="data in capitals"),
        pytest.param("data:/callback", id="data with a path"),
        pytest.param("vbscript:msgbox", id="vbscript"),
        pytest.param("VbScript:/msgbox", id="vbscript in another case"),
        pytest.param("file:///etc/passwd", id="file"),
        pytest.param("FILE:///etc/passwd", id="file in capitals"),
        pytest.param("blob:https://app.example.com/x", id="blob"),
        pytest.param("about:blank", id="about"),
        pytest.param("view-source:https://app.example.com/", id="view-source"),
        pytest.param("filesystem:https://app.example.com/x", id="filesystem"),
        pytest.param("mailto:someone@example.com", id="mailto"),
        pytest.param("ws://app.example.com/", id="ws"),
        pytest.param("ftp://app.example.com/", id="ftp"),
        pytest.param("intent://app#Intent;end", id="intent"),
        pytest.param("myapp://callback", id="a scheme without a dot"),
        pytest.param("myapp:/callback", id="a scheme without a dot, with a path"),
        pytest.param("com.Example.app:/callback", id="a scheme with a capital"),
        pytest.param("com..app:/callback", id="a scheme with an empty label"),
        pytest.param(".com.app:/callback", id="a scheme that begins with a dot"),
        pytest.param("com.:/callback", id="a scheme that ends with a dot"),
        pytest.param("com.example.app:", id="a scheme and nothing else"),
        pytest.param("com.example.app:callback", id="a scheme without a slash"),
        pytest.param("com.example.app://user@host/", id="a native app's address with userinfo"),
        pytest.param("com.example.app:/a/../b", id="a native app's address with a dot segment"),
        pytest.param("https:app.example.com", id="https without slashes"),
        pytest.param("https:/app.example.com", id="https with one slash"),
        pytest.param("https:///callback", id="https without a host"),
        pytest.param("https://", id="https and nothing else"),
        pytest.param("https://:443/callback", id="https with a port and no host"),
        pytest.param("https://?x=1", id="https with a query and no host"),
        pytest.param("//app.example.com/callback", id="no scheme"),
        pytest.param("/callback", id="only a path"),
        pytest.param("app.example.com/callback", id="no scheme and no slashes"),
        pytest.param("", id="nothing"),
        pytest.param("HTTPS://app.example.com/", id="https in capitals"),
        pytest.param("Http://127.0.0.1/", id="http in another case"),
        pytest.param("https://app.example.com/" + "a" * 2000, id="too long"),
        pytest.param("https://app.example.com/\0", id="a NUL"),
        pytest.param("https://app.example.com/\r\nSet-Cookie:a=b", id="a line break"),
        pytest.param("https://app.example.com/a b", id="a space"),
        pytest.param("https://app.example.com/\n", id="a line break at the end"),
        pytest.param("https://app.example.com/\x7f", id="a DEL"),
        pytest.param("https://app.example.com/\x85", id="a C1 control character"),
        pytest.param("https://app.example.com/\u2028", id="a Unicode line separator"),
        pytest.param("https://app.example.com/\ud800", id="a lone surrogate"),
        pytest.param("https://bücher.example/", id="a domain that is not ASCII"),
        pytest.param("https://app.example.com/é", id="a path that is not ASCII"),
        pytest.param("https://app.example.com。/", id="an ideographic full stop"),
        pytest.param("https://app.example.com/%0d%0aSet-Cookie:a=b", id="an escaped line break"),
        pytest.param("https://app.example.com/?x=%00", id="an escaped NUL in the query"),
        pytest.param("https://app.example.com/%7f", id="an escaped DEL"),
        pytest.param("https://app.example.com/%zz", id="a percent sign that begins no escape"),
        pytest.param("https://app.example.com/%", id="a percent sign at the end"),
        pytest.param('https://app.example.com/"onload=', id="a quote"),
        pytest.param("https://app.example.com/<script>", id="angle brackets"),
    ],
)
def test_dangerous_schemes_and_characters_never_register(uri: str) -> None:
    for public in (True, False):
        with pytest.raises(InvalidRedirectURI):
            check_redirect_uri(uri, public)


@pytest.mark.trap(14)
@each(
    ("uri", "reason"),
    [
        ("localhost:3000/callback", "start with its scheme"),
        ("app.example.com:8443", "start with its scheme"),
        ("https://a.example/1, https://a.example/2", "more than one address"),
        ("https://a.example/1 https://a.example/2", "more than one address"),
        pytest.param("https://user@app.example.com/", "user name", id="userinfo"),
        pytest.param("https://user:pass@app.example.com/", "user name", id="userinfo with a password"),
        pytest.param("https://app.example.com@evil.test/", "user name", id="a host that looks like another"),
        pytest.param("https://a@b@c.test/", "user name", id="several @"),
        pytest.param("https://@app.example.com/", "user name", id="empty userinfo"),
        pytest.param("http://localhost@evil.test/", "user name", id="localhost as userinfo"),
        pytest.param("http://127.0.0.1:80@evil.test/", "user name", id="loopback and port as userinfo"),
        pytest.param("https://app.example.com/#", "fragment", id="an empty fragment"),
        pytest.param("https://app.example.com/#x", "fragment", id="a fragment"),
        pytest.param("https://app.example.com#@evil.test/", "fragment", id="a fragment in place of a path"),
        pytest.param("com.example.app:/x#y", "fragment", id="a native app's address with a fragment"),
        pytest.param("https://*.example.com/", "wildcard", id="a wildcard host"),
        pytest.param("https://app.example.com/*", "wildcard", id="a wildcard path"),
        pytest.param("https://app.example.com\\@evil.test/", "backslashes", id="a backslash before an @"),
        pytest.param("https:\\\\app.example.com", "backslashes", id="backslashes for slashes"),
        pytest.param("https://app.example.com/..", "segment", id="a .. segment at the end"),
        pytest.param("https://app.example.com/a/../b", "segment", id="a .. segment"),
        pytest.param("https://app.example.com/./b", "segment", id="a . segment"),
        pytest.param("https://app.example.com/a/..;/b", "segment", id="..; which some servers read as .."),
        pytest.param("https://app.example.com/a/..;x=y/b", "segment", id="..;x=y"),
        pytest.param("https://app.example.com/%2e%2e/b", "escaped dot", id="escaped dots"),
        pytest.param("https://app.example.com/.%2E/b", "escaped dot", id="a dot and an escaped one in capitals"),
        pytest.param("https://app.example.com/a%2fb", "escaped dot", id="an escaped slash"),
        pytest.param("https://app.example.com/a%5Cb", "escaped dot", id="an escaped backslash"),
        pytest.param("https://app.example.com/%252e%252e/b", "escaped dot", id="dots escaped twice"),
        pytest.param("http://app.example.com/callback", "loopback", id="http that is not loopback"),
        pytest.param("http://localhost.evil.test/", "loopback", id="localhost as a subdomain"),
        pytest.param("http://127.0.0.1.evil.test/", "loopback", id="an address as a subdomain"),
        pytest.param("http://127.0.0.2/", "loopback", id="another address of the loopback network"),
        pytest.param("http://0.0.0.0/", "loopback", id="the unspecified address"),
        pytest.param("http://[::]/", "loopback", id="the unspecified IPv6 address"),
        pytest.param("http://[::ffff:127.0.0.1]/", "loopback", id="loopback mapped into IPv6"),
        pytest.param("http://[0:0:0:0:0:0:0:1]/", "loopback", id="::1 written out"),
        pytest.param("http://app.localhost/", "loopback", id="a subdomain of localhost"),
        pytest.param("http://127.1/", "IPv4", id="loopback cut short"),
        pytest.param("http://2130706433/", "IPv4", id="loopback as a number"),
        pytest.param("https://0x7f000001/", "IPv4", id="an address in hexadecimal"),
        pytest.param("https://0177.0.0.1/", "IPv4", id="an address in octal"),
        pytest.param("https://1.2.3.4.5/", "IPv4", id="an address of five numbers"),
        pytest.param("https://256.1.1.1/", "IPv4", id="a number above a byte"),
        pytest.param("http://localhost./", "domain name", id="a dot after localhost"),
        pytest.param("http://LOCALHOST/", "domain name", id="localhost in capitals"),
        pytest.param("https://app.example.com./", "domain name", id="a dot after the host"),
        pytest.param("https://app..example.com/", "domain name", id="an empty label"),
        pytest.param("https://.example.com/", "domain name", id="a dot before the host"),
        pytest.param("https://App.example.com/", "domain name", id="a capital in the host"),
        pytest.param("https://-app.example.com/", "domain name", id="a hyphen before the host"),
        pytest.param("https://app_1.example.com/", "domain name", id="an underscore in the host"),
        pytest.param("https://app%2eexample.com/", "domain name", id="an escape in the host"),
        pytest.param("https://app.example.com;x/", "domain name", id="parameters after the host"),
        pytest.param("https://a,b.example/", "domain name", id="a comma in the host"),
        pytest.param("https://" + "a" * 64 + ".example/", "domain name", id="a label of 64 characters"),
        pytest.param("https://" + "a." * 127 + "aa/", "domain name", id="a host of 256 characters"),
        pytest.param("https://[::1/", "host isn.t.* valid", id="an open bracket"),
        pytest.param("https://::1/", "host isn.t.* valid", id="an IPv6 address without brackets"),
        pytest.param("https://[::1]x/", "host isn.t.* valid", id="letters after the bracket"),
        pytest.param("https://[fe80::1%25eth0]/", "IPv6", id="an IPv6 zone"),
        pytest.param("https://[fe80::1%eth0]/", "percent|IPv6", id="an IPv6 zone unescaped"),
        pytest.param("https://[127.0.0.1]/", "IPv6", id="an IPv4 address in brackets"),
        pytest.param("https://[]/", "IPv6", id="empty brackets"),
        pytest.param("https://a.example:/", "port", id="an empty port"),
        pytest.param("https://a.example:0/", "port", id="port 0"),
        pytest.param("https://a.example:65536/", "port", id="port 65536"),
        pytest.param("https://a.example:0443/", "port", id="a port with a leading zero"),
        pytest.param("https://a.example:80:80/", "port", id="two ports"),
        pytest.param("https://a.example:-1/", "port", id="a negative port"),
        pytest.param("https://a.example:8a/", "port", id="a port with a letter"),
        pytest.param("https://a.example/?code=1", "code", id="a query with a parameter of the response"),
        pytest.param("https://a.example/?x=1&state", "state", id="a query with state"),
        pytest.param("https://a.example/?%69ss=1", "iss", id="a query with an escaped iss"),
        pytest.param("https://a.example/?" + "%20&" * 50, "50 parameters", id="a query of 51 parameters"),
    ],
)
def test_ambiguous_uris_never_register(uri: str, reason: str) -> None:
    for public in (True, False):
        with pytest.raises(InvalidRedirectURI, match=reason):
            check_redirect_uri(uri, public)


@pytest.mark.trap(16)
@given(st.text(max_size=40), st.booleans())
def test_every_registered_uri_is_safe_to_redirect_to(text: str, public: bool) -> None:
    for uri in (text, f"https://{text}", f"https://a.example/{text}", f"com.example.app:/{text}"):
        try:
            check_redirect_uri(uri, public)
        except InvalidRedirectURI:
            continue
        assert re.fullmatch(r"[!-~]+", uri)
        assert (split := urlsplit(uri)).username is None
        assert not split.fragment
        assert split.scheme == "https" or (public and "." in split.scheme)
        assert re.fullmatch(r"[a-z0-9.-]+:|", form_action_source(uri) or "")


@each("uri", [*WEB, *NATIVE])
def test_every_registered_uri_matches_itself(uri: str) -> None:
    assert match_redirect_uri(iter([uri]), uri)
    assert not match_redirect_uri([], uri)


@pytest.mark.trap(33)
@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("https://app.example.com/callback?x=1", None),
        ("http://127.0.0.1:49152/cb", None),
        ("com.example.app:/cb", "com.example.app:"),
        ("com.example.app://host/cb", "com.example.app:"),
    ],
)
def test_form_action_source(uri: str, source: str | None) -> None:
    assert form_action_source(uri) == source


@each("function", [form_action_source, is_interceptable, display_origin])
@each("uri", ["https://a.example;script-src/x", "https://a.example /", "javascript:x", "x\r\ny"])
def test_invalid_uris_produce_nothing(function: object, uri: str) -> None:
    assert callable(function)
    with pytest.raises(InvalidRedirectURI):
        function(uri)


@each(
    ("uri", "interceptable"),
    [
        ("https://app.example.com/cb", False),
        ("https://localhost.example/cb", False),
        ("https://192.0.2.7/cb", False),
        ("http://127.0.0.1:49152/cb", True),
        ("http://[::1]:49152/cb", True),
        ("http://localhost/cb", True),
        ("https://localhost/cb", True),
        ("https://app.localhost/cb", True),
        ("https://127.0.0.2/cb", True),
        ("https://[0:0:0:0:0:0:0:1]/cb", True),
        ("com.example.app:/cb", True),
    ],
)
def test_uris_that_another_program_could_receive(uri: str, interceptable: bool) -> None:
    assert is_interceptable(uri) is interceptable


@pytest.mark.spec("4.1")
@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("https://a.example/cb", "https://a.example/cb?code=a%26b&state=x+y"),
        ("https://a.example", "https://a.example?code=a%26b&state=x+y"),
        ("https://a.example/cb?", "https://a.example/cb?code=a%26b&state=x+y"),
        ("https://a.example/cb?t=%2F&&u", "https://a.example/cb?t=%2F&&u&code=a%26b&state=x+y"),
        ("https://a.example/cb?t=1&", "https://a.example/cb?t=1&code=a%26b&state=x+y"),
        ("com.example.app:/cb", "com.example.app:/cb?code=a%26b&state=x+y"),
    ],
)
def test_parameters_are_appended_to_the_registered_query(uri: str, expected: str) -> None:
    assert with_params(uri, {"code": "a&b", "state": "x y"}) == expected
    assert with_params(uri, {}) == uri


@given(st.dictionaries(st.text(min_size=1), st.text(), min_size=1), st.sampled_from([*WEB, *NATIVE]))
def test_appended_parameters_arrive_unchanged(params: dict[str, str], uri: str) -> None:
    result = with_params(uri, params)
    assert re.fullmatch(r"[!-~]+", result)
    assert result.startswith(uri)
    before = parse_qsl(urlsplit(uri).query, keep_blank_values=True)
    assert parse_qsl(urlsplit(result).query, keep_blank_values=True) == before + list(params.items())


@pytest.mark.parametrize(
    ("uri", "origin"),
    [
        ("https://app.example.com/callback", "app.example.com"),
        ("https://app.example.com:8443/callback", "app.example.com:8443"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("com.example.app://bank.example/", "com.example.app"),
    ],
)
def test_the_displayed_target_is_the_host_or_the_scheme(uri: str, origin: str) -> None:
    assert display_origin(uri) == origin
