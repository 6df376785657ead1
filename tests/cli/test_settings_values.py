"""Values of settings: how each is written, and what is refused."""

from __future__ import annotations

import pytest

from runtime.arguments import load
from settings.declared import Settings
from settings.types import SettingsError
from tests.support.lists.offenders import each


@each(
    ("text", "value"),
    [*((text, True) for text in ("1", "true", "YES", "on")), *((text, False) for text in ("0", "False", "no", "off"))],
)
def test_boolean_words(text: str, value: bool) -> None:
    assert load([], {"LATCHKEY_DEMO": text}).demo is value


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        pytest.param("https://id.example.org", "https://id.example.org", id="an origin stays as it is"),
        pytest.param("HTTPS://ID.Example.org:443/", "https://id.example.org", id="case and default port go"),
        pytest.param("http://id.example.org:8443", "http://id.example.org:8443", id="http and another port"),
        pytest.param("https://[2001:DB8:0::1]:8443", "https://[2001:db8::1]:8443", id="an IPv6 address is shortened"),
        pytest.param("http://192.0.2.1:80", "http://192.0.2.1", id="an IPv4 address"),
        pytest.param("", "http://localhost:8080", id="none is localhost with the port"),
    ],
)
def test_the_base_url_is_normalised_to_the_browsers_origin(given: str, origin: str) -> None:
    assert load(["--base-url", given], {}).origin(8080) == origin


def test_default_origin_drops_the_default_port() -> None:
    assert Settings().origin(80) == "http://localhost"


@each(
    ("name", "text"),
    [
        pytest.param("host", "localhost:80", id="host with a port"),
        pytest.param("host", "[::1]", id="host in brackets"),
        pytest.param("host", "a b", id="host with a blank"),
        pytest.param("host", "http://localhost", id="host with a scheme"),
        pytest.param("port", "65536", id="port too high"),
        pytest.param("port", "-1", id="port below zero"),
        pytest.param("port", "tcp://10.0.0.1:80", id="port as Kubernetes sets it"),
        pytest.param("port", "8_080", id="port in Python's notation"),
        pytest.param("port", "\u0661\u0662", id="port in other digits"),
        pytest.param("port", "9" * 5000, id="port of 5,000 digits"),
        pytest.param("base_url", "id.example.org", id="origin without scheme"),
        pytest.param("base_url", "ftp://id.example.org", id="origin of another scheme"),
        pytest.param("base_url", "https://id.example.org/auth", id="origin with a path"),
        pytest.param("base_url", "https://id.example.org?x", id="origin with a query"),
        pytest.param("base_url", "https://id.example.org#x", id="origin with a fragment"),
        pytest.param("base_url", "https://me@id.example.org", id="origin with user information"),
        pytest.param("base_url", "https://id.example.org:0", id="origin with port 0"),
        pytest.param("base_url", "https://id.example.org:", id="origin with an empty port"),
        pytest.param("base_url", "https://id.example.org:65536", id="origin with a port too high"),
        pytest.param("base_url", "https://127.1", id="origin with half an IPv4 address"),
        pytest.param("base_url", "https://[::g]", id="origin with a broken IPv6 address"),
        pytest.param("base_url", "https://id.example.org\n", id="origin with a line feed"),
        pytest.param("base_url", "https://\u212aelvin.test", id="origin with a letter that only looks like k"),
        pytest.param("redis_url", "embeded", id="store unknown"),
        pytest.param("redis_url", "http://localhost", id="store of another scheme"),
        pytest.param("redis_url", "redis://", id="store without a host"),
        pytest.param("redis_url", "redis://localhost:x", id="store with a broken port"),
        pytest.param("redis_url", "unix://redis.sock", id="store without an absolute socket path"),
        pytest.param("redis_url", "redis+sentinel://a,b", id="store behind sentinels that is not named"),
        pytest.param("redis_url", "redis+sentinel://a,/main", id="store behind sentinels of which one is missing"),
        pytest.param("redis_url", "redis+cluster://a,b:x", id="cluster with a broken port"),
        pytest.param("redis_url", "redis+cluster://a,b/1", id="database of a cluster"),
        pytest.param("redis_url", "redis+cluster://", id="cluster without a node"),
        pytest.param("redis_url", "redis+nonsense://a", id="store of a kind that does not exist"),
        pytest.param("redis_url", "unix+cluster:///a", id="cluster on a socket"),
        pytest.param("data_dir", "~no-such-user-here/x", id="home of nobody"),
        pytest.param("workers", "0", id="no worker"),
        pytest.param("workers", "two", id="workers in words"),
        pytest.param("signup", "closed", id="signup unknown"),
        pytest.param("trusted_proxies", "10.0.0.1/8", id="network with bits beyond the mask"),
        pytest.param("trusted_proxies", "10.0.0.1,,10.0.0.2", id="network left out"),
        pytest.param("trusted_proxies", "proxy.local", id="network by name"),
        pytest.param("demo", "maybe", id="boolean in other words"),
        pytest.param("secret_keys", "no-colon", id="key without id"),
        pytest.param("secret_keys", "1:", id="key empty"),
        pytest.param("secret_keys", "1:a,1:b", id="key id twice"),
        pytest.param("secret_keys", "1:a,", id="key left out"),
        pytest.param("ops_port", "65536", id="operations port too high"),
        pytest.param("ops_port", "tcp://10.0.0.1:80", id="operations port as Kubernetes sets it"),
        pytest.param("ops_host", "[::1]", id="operations host in brackets"),
        pytest.param("operator_keys", "k" * 31, id="operator key too short"),
        pytest.param("operator_keys", "k" * 257, id="operator key too long"),
        pytest.param("operator_keys", "k" * 32 + "+", id="operator key with a character that is none of it"),
        pytest.param("operator_keys", "k" * 32 + ",", id="operator key left out"),
        pytest.param("operator_keys", "\u0661" * 32, id="operator key in other digits"),
        pytest.param("ledger_days", "0", id="ledger of no day"),
        pytest.param("ledger_days", "3651", id="ledger of more than ten years"),
        pytest.param("redis_timeout", "nan", id="timeout not a number"),
        pytest.param("redis_timeout", "inf", id="timeout without end"),
        pytest.param("redis_timeout", "0", id="timeout of nothing"),
        pytest.param("redis_connections", "0", id="no connection"),
        pytest.param("session_lifetime", "2592001", id="session over 30 days"),
        pytest.param("password_memory", "8191", id="password memory too small"),
        pytest.param("password_memory", "1048577", id="password memory too large"),
        pytest.param("password_workers", "0", id="no password worker"),
        pytest.param("max_body", "1e5", id="bytes in another notation"),
        pytest.param("drain_timeout", "-1", id="drain below zero"),
        pytest.param("log_level", "loud", id="log level unknown"),
    ],
)
def test_bad_value_names_the_setting_and_its_source_in_one_line(name: str, text: str) -> None:
    variable = f"LATCHKEY_{name.upper()}"
    with pytest.raises(SettingsError) as caught:
        load([], {variable: text})
    message = str(caught.value)
    assert message.startswith(f"{name} must be ")
    assert message.endswith(f"(from {variable})")
    assert message.isprintable()
    assert len(message) < 300


@each(
    "url",
    [
        *("redis://h", "redis://:pw@[::1]:6380/2", "rediss://u:p@h/0", "unix:///run/redis.sock?db=1", "memory"),
        *("redis+sentinel://u:p@a:26379,[::1]:26380/main?db=1", "rediss+sentinel://a/main?ssl_ca_certs=/c.pem"),
        *("redis+cluster://a", "rediss+cluster://u:p@a:7000,[::1]:7001,c"),
    ],
)
def test_store_urls_are_kept_unchanged(url: str) -> None:
    assert load([], {"LATCHKEY_REDIS_URL": url}).redis_url == url


def test_operator_keys_are_separated_by_commas() -> None:
    one, other = "a" * 32, "B_-9" * 8
    assert load([], {"LATCHKEY_OPERATOR_KEYS": f" {one} , {other}"}).operator_keys == (one, other)
    assert load(["--ops-port="], {"LATCHKEY_OPS_PORT": "9"}).ops_port is None
