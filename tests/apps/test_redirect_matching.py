"""Redirect URIs: tables of what matches a registered one."""

from __future__ import annotations

import pytest

from store.apps.redirect_uris import (
    match_redirect_uri,
)
from tests.support.lists.offenders import each

REGISTERED = ["https://app.example.com/callback", "https://app.example.com/other?tenant=1"]


@pytest.mark.spec("4.1")
@pytest.mark.parametrize("uri", REGISTERED)
def test_the_registered_string_matches(uri: str) -> None:
    assert match_redirect_uri(REGISTERED, uri)


@pytest.mark.trap(14)
@pytest.mark.spec("4.1")
@each(
    "presented",
    [
        pytest.param("https://app.example.com/callback?x=1", id="an extra query"),
        pytest.param("https://app.example.com/callback?", id="an empty query"),
        pytest.param("https://app.example.com/callback;x=1", id="path parameters"),
        pytest.param("https://app.example.com/callback#", id="an empty fragment"),
        pytest.param("https://app.example.com/callback#x", id="a fragment"),
        pytest.param("https://app.example.com/callback/", id="a trailing slash"),
        pytest.param("https://app.example.com/callback.", id="a trailing dot"),
        pytest.param("https://app.example.com./callback", id="a trailing dot after the host"),
        pytest.param("https://app.example.com/Callback", id="another case in the path"),
        pytest.param("https://APP.example.com/callback", id="another case in the host"),
        pytest.param("HTTPS://app.example.com/callback", id="another case in the scheme"),
        pytest.param("http://app.example.com/callback", id="another scheme"),
        pytest.param("https://app.example.com:443/callback", id="the default port written out"),
        pytest.param("https://app.example.com:8443/callback", id="another port"),
        pytest.param("https://appxexample.com/callback", id="another character for a dot"),
        pytest.param("https://evil.app.example.com/callback", id="a subdomain"),
        pytest.param("https://app.example.com.evil.test/callback", id="the host as a subdomain"),
        pytest.param("https://user@app.example.com/callback", id="userinfo"),
        pytest.param("https://app.example.com@evil.test/callback", id="the host as userinfo"),
        pytest.param("https://a@app.example.com@evil.test/callback", id="several @"),
        pytest.param("https://app.example.com/x/../callback", id="a dot segment"),
        pytest.param("https://app.example.com/x/..;/callback", id="..;"),
        pytest.param("https://app.example.com/%63allback", id="an escaped letter"),
        pytest.param("https://app.example.com/x/%2e%2e/callback", id="escaped dots"),
        pytest.param("https://app.example.com//callback", id="a doubled slash"),
        pytest.param("https://app.example.com\\callback", id="a backslash"),
        pytest.param("https://app.example.com/callback ", id="a space after it"),
        pytest.param(" https://app.example.com/callback", id="a space before it"),
        pytest.param("https://app.example.com/callback\n", id="a line break after it"),
        pytest.param("https://app.example.com/callback\0", id="a NUL after it"),
        pytest.param("https://app.example.com/callback%00", id="an escaped NUL after it"),
        pytest.param("https://app.example.com/other", id="the registered query left out"),
        pytest.param("https://app.example.com/other?tenant=2", id="another value in the query"),
        pytest.param("https://app.example.com/", id="a part of it"),
        pytest.param("", id="nothing"),
        pytest.param("javascript:alert(1)", id="a script"),
        pytest.param("https://app.example.com/\ud800", id="a lone surrogate"),
    ],
)
def test_anything_but_the_registered_string_does_not_match(presented: str) -> None:
    assert not match_redirect_uri(REGISTERED, presented)


@pytest.mark.trap(15)
@each(
    ("registered", "presented"),
    [
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:49152/cb", id="a port where none is registered"),
        pytest.param("http://127.0.0.1:8080/cb", "http://127.0.0.1:1/cb", id="another port"),
        pytest.param("http://127.0.0.1:8080/cb", "http://127.0.0.1/cb", id="no port"),
        pytest.param("http://[::1]/cb", "http://[::1]:65535/cb", id="IPv6 with a port"),
        pytest.param("http://127.0.0.1", "http://127.0.0.1:8080", id="no path"),
        pytest.param("http://127.0.0.1?a=1", "http://127.0.0.1:8080?a=1", id="a query and no path"),
        pytest.param("http://127.0.0.1/cb?a=1", "http://127.0.0.1:8080/cb?a=1", id="path and query"),
    ],
)
def test_a_loopback_address_matches_at_any_port(registered: str, presented: str) -> None:
    assert match_redirect_uri(["https://app.example.com/", registered], presented)


@pytest.mark.trap(15)
@each(
    ("registered", "presented"),
    [
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/CB", id="another case"),
        pytest.param("http://127.0.0.1/cb", "HTTP://127.0.0.1:8080/cb", id="another case in the scheme"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/cb/", id="a trailing slash"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/cb?x=1", id="an extra query"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/cb#x", id="a fragment"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/", id="another path"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080/cb\n", id="a line break"),
        pytest.param("http://127.0.0.1/cb", "https://127.0.0.1:8080/cb", id="https"),
        pytest.param("https://127.0.0.1/cb", "https://127.0.0.1:8080/cb", id="https on both sides"),
        pytest.param("http://127.0.0.1/cb", "http://[::1]:8080/cb", id="the other loopback address"),
        pytest.param("http://127.0.0.1/cb", "http://localhost:8080/cb", id="localhost"),
        pytest.param("http://localhost/cb", "http://localhost:8080/cb", id="localhost on both sides"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.2:8080/cb", id="another address"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1.evil.test:8080/cb", id="the address as a subdomain"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:8080@evil.test/cb", id="address and port as userinfo"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:80:90/cb", id="two ports"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:/cb", id="an empty port"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:0/cb", id="port 0"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:65536/cb", id="port 65536"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:08080/cb", id="a leading zero"),
        pytest.param("http://127.0.0.1/cb", "http://127.0.0.1:٨٠/cb", id="a port in other digits"),
        pytest.param("http://127.0.0.1/cb", "http://127x0x0x1:8080/cb", id="another character for the dots"),
        pytest.param("http://127.0.0.1", "http://127.0.0.1:8080/", id="a path where none is registered"),
        pytest.param("https://a.example/cb", "https://a.example:8080/cb", id="a port on an address elsewhere"),
    ],
)
def test_a_loopback_match_changes_the_port_and_nothing_else(registered: str, presented: str) -> None:
    assert not match_redirect_uri([registered], presented)
