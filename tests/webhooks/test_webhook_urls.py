"""Which webhook URLs an app may have, and how the registration stores them."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from store.apps.registration import Registration
from store.webhooks.urls import check_webhook_url, is_loopback_url
from tests.support.lists.offenders import each

GOOD = (
    "https://app.example/hook",
    "https://app.example",
    "https://app.example:8443/hooks/latchkey?token=a%20b&c=d",
    "https://xn--bcher-kva.example/",
    "https://203.0.113.7/hook",
    "https://[2001:db8::7]:8443/hook",
)


@pytest.mark.parametrize("url", GOOD)
def test_an_https_url_is_accepted(url: str) -> None:
    check_webhook_url(url)


@each(
    ("url", "words"),
    [
        pytest.param("http://app.example/hook", "must start with https", id="in the clear"),
        pytest.param("ftp://app.example/hook", "must look like", id="another scheme"),
        pytest.param("javascript:alert(1)", "must look like", id="a script"),
        pytest.param("HTTPS://app.example/", "must look like", id="the scheme in capitals"),
        pytest.param("https://App.example/", "lower case", id="the host in capitals"),
        pytest.param("//app.example/", "must look like", id="no scheme"),
        pytest.param("https:///hook", "must look like", id="no host"),
        pytest.param("https://ada@app.example/", "user name", id="a login"),
        pytest.param("https://app.example@evil.example/", "user name", id="a host that is none"),
        pytest.param("https://app.example/#part", "fragment", id="a fragment"),
        pytest.param("https://app.example/a b", "spaces", id="a space"),
        pytest.param("https://app.example/\r\nX: y", "spaces", id="a line break"),
        pytest.param("https://app.example\\@evil.example/", "backslash", id="a backslash"),
        pytest.param("https://bücher.example/", "xn--", id="not ASCII"),
        pytest.param("https://app.example:0/", "must look like", id="port 0"),
        pytest.param("https://app.example:70000/", "must look like", id="a port that is none"),
        pytest.param("https://-app.example/", "must look like", id="no name"),
        pytest.param("https://app..example/", "must look like", id="an empty label"),
        pytest.param("https://2130706433/", "must look like", id="an address as a number"),
        pytest.param("https://0x7f.0.0.1/", "must look like", id="an address in hex"),
        pytest.param("https://127.1/", "must look like", id="a short address"),
        pytest.param("https://[::1/", "must look like", id="half an address"),
        pytest.param("https://localhost/hook", "to itself", id="this machine by name"),
        pytest.param("https://a.localhost/hook", "to itself", id="this machine by another name"),
        pytest.param("http://127.0.0.1:9000/hook", "to itself", id="this machine by address"),
        pytest.param("https://[::1]/hook", "to itself", id="this machine by its other address"),
        pytest.param("https://app.example/" + "x" * 2000, "at most", id="endless"),
    ],
)
def test_a_forbidden_url_is_refused_with_a_reason(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_webhook_url(url)


@pytest.mark.parametrize(
    "url", ["http://localhost:9000/hook", "http://127.0.0.1/", "http://[::1]:1/", "https://localhost/"]
)
def test_on_a_developers_machine_loopback_urls_are_accepted(url: str) -> None:
    check_webhook_url(url, loopback=True)
    assert is_loopback_url(url)
    with pytest.raises(ValueError, match="must start with https"):
        check_webhook_url("http://app.example/", loopback=True)


def app(**fields: Any) -> Registration:
    return Registration("web", "Web", ("https://web.example/cb",), ("profile",), **fields)


def test_a_registration_keeps_its_webhook() -> None:
    kept = app(webhook_url=GOOD[0], webhook_secrets=(b"sealed", b"older"), webhook_rotated_at=5)
    assert Registration.unpack(kept.pack()) == kept
    assert kept.record()["webhookUrl"] == GOOD[0]
    assert b"sealed" not in repr(kept.record()).encode()
    with pytest.raises(ValueError, match="fragment"):
        app(webhook_url="https://app.example/#x")


def test_a_registration_from_before_webhooks_is_read() -> None:
    row = msgpack.unpackb(app(secrets=(b"x" * 32,)).pack())
    del row["webhookUrl"]
    assert "webhookSecrets" not in row
    assert Registration.unpack(msgpack.packb(row)) == app(secrets=(b"x" * 32,))
