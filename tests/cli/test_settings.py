"""Settings: sources of values, exclusions, secrets that are never shown, and current documentation."""

from __future__ import annotations

import argparse
import dataclasses
from ipaddress import ip_network
from pathlib import Path

import pytest

from runtime.arguments import load
from settings.declared import SETTINGS, Settings
from settings.page import rendered
from settings.reading import add_arguments, from_namespace
from settings.types import Command, SettingsError
from tests.support.lists.offenders import each

ROOT = Path(__file__).resolve().parent.parent.parent
SECRET = "correct-horse-battery"
OPERATOR_KEY = f"{SECRET}-0123456789"


def load_for_manage(argv: list[str], environ: dict[str, str]) -> Settings:
    """The settings of `manage.py`."""
    parser = argparse.ArgumentParser()
    add_arguments(parser, "manage")
    return from_namespace(parser.parse_args(argv), environ, "manage")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "latchkey.toml"


def test_defaults_without_anything() -> None:
    found = load([], {})
    assert found == Settings()
    assert (found.host, found.port, found.workers, found.redis_url) == ("localhost", 8080, 1, "embedded")
    assert (found.data_dir, found.seed, found.demo, found.trusted_proxies) == (Path("data"), None, False, ())
    assert (found.session_idle, found.session_lifetime) == (1_209_600, 2_592_000)
    assert (found.redis_timeout, found.redis_connections, found.max_body) == (5.0, 64, 65_536)
    assert (found.password_memory, found.password_iterations) == (19_456, 2)
    assert (found.password_workers, found.password_queue, found.drain_timeout) == (2, 32, 10.0)
    assert (found.ops_port, found.ops_host, found.operator_keys, found.ledger_days) == (None, "localhost", (), 400)
    assert (found.signup, found.log_level, found.base_url, found.secret_keys) == ("open", "info", "", "")


def test_flag_then_environment_then_file_then_default(config: Path) -> None:
    config.write_text("port = 3\nworkers = 3\nmax_body = 3000")
    found = load(["--config", str(config), "--port", "1"], {"LATCHKEY_PORT": "2", "LATCHKEY_WORKERS": "2"})
    assert (found.port, found.workers, found.max_body, found.redis_connections) == (1, 2, 3000, 64)


def test_config_file_from_the_environment_yields_to_the_flag(config: Path, tmp_path: Path) -> None:
    config.write_text("port = 3")
    other = tmp_path / "other.toml"
    other.write_text("port = 4")
    assert load([], {"LATCHKEY_CONFIG": str(config)}).port == 3
    assert load([f"--config={other}"], {"LATCHKEY_CONFIG": str(config)}).port == 4


def test_an_empty_environment_variable_is_unset(config: Path) -> None:
    config.write_text("port = 3")
    assert load(["--config", str(config)], {"LATCHKEY_PORT": "", "LATCHKEY_DEMO": ""}).port == 3


def test_empty_flag_overrides(config: Path) -> None:
    assert load(["--base-url="], {"LATCHKEY_BASE_URL": "https://id.test"}).base_url == ""


def test_every_toml_type_is_read(config: Path) -> None:
    config.write_text(
        'port = 0\nredis_timeout = 0.5\ndemo = true\nseed = "seed.json"\ntrusted_proxies = ["10.0.0.0/8", "::1"]\n'
        f'secret_keys = ["2:{SECRET}", "1:old"]\n'
        f'ops_port = 0\noperator_keys = ["{OPERATOR_KEY}", "{OPERATOR_KEY[::-1]}"]'
    )
    found = load(["--config", str(config)], {})
    assert (found.port, found.redis_timeout, found.demo, found.seed) == (0, 0.5, True, Path("seed.json"))
    assert found.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert found.secret_keys == f"2:{SECRET},1:old"
    assert (found.ops_port, found.operator_keys) == (0, (OPERATOR_KEY, OPERATOR_KEY[::-1]))


def test_no_demo_flag_overrides_the_environment() -> None:
    assert load(["--demo"], {}).demo is True
    assert load(["--no-demo"], {"LATCHKEY_DEMO": "1"}).demo is False


def test_source_is_the_flag_or_the_file(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"^port must be .*, not 'x' \(from --port\)$"):
        load(["--port", "x"], {})
    config.write_text('port = "x"')
    with pytest.raises(SettingsError) as caught:
        load(["--config", str(config)], {})
    assert str(caught.value).endswith(f"not 'x' (from {config})")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("prot = 1", "'prot' is no setting, port is", id="a misspelt key"),
        pytest.param("zzz = 1", "'zzz' is no setting (from", id="a key like no other"),
        pytest.param("[listening]\nport = 1", "'listening' is no setting", id="a table"),
        pytest.param("port = [1]", "port must be a single value", id="an array where one value belongs"),
        pytest.param("trusted_proxies = [1]", "trusted_proxies must be an array of strings", id="an array of numbers"),
        pytest.param("port = true", "port must be a whole number", id="a boolean where a number belongs"),
        pytest.param("port = 1979-05-27", "port must be a single value", id="a date"),
        pytest.param("port", "config is not TOML", id="no TOML"),
        pytest.param("port = 1\nport = 2", "config is not TOML", id="a key twice"),
    ],
)
def test_bad_config_file(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load(["--config", str(config)], {})
    assert message in str(caught.value)
    assert str(config) in str(caught.value)


def test_config_file_that_is_missing_or_not_text(config: Path) -> None:
    with pytest.raises(SettingsError, match=r"^config cannot be read: .*No such file"):
        load(["--config", str(config)], {})
    config.write_bytes(b"port = \xff")
    with pytest.raises(SettingsError, match=r"^config is not UTF-8: "):
        load(["--config", str(config)], {})


@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("secret_keys", SECRET, id="keys"),
        pytest.param("operator_keys", f"{SECRET},short", id="operator keys"),
        pytest.param("redis_url", f"http://:{SECRET}@host", id="password of a store with a wrong scheme"),
        pytest.param("redis_url", f"redis://:{SECRET}@host:port", id="password of a store with a wrong port"),
        pytest.param("redis_url", f"redis+cluster://:{SECRET}@host,:1", id="password of a cluster"),
    ],
)
def test_errors_never_show_a_secret(config: Path, name: str, text: str) -> None:
    config.write_text(f'{name} = "{text}"')
    for environ in ({f"LATCHKEY_{name.upper()}": text}, {"LATCHKEY_CONFIG": str(config)}):
        with pytest.raises(SettingsError) as caught:
            load([], environ)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


@pytest.mark.trap(24)
@pytest.mark.parametrize(
    ("name", "text", "command"),
    [
        pytest.param("redis_url", f"redis://:{SECRET}@host", "server", id="a store"),
        pytest.param("redis_url", f"rediss://ada:{SECRET}/x@host/1", "manage", id="a store, of a command"),
        pytest.param("redis_url", f"unix:///socket?password={SECRET}", "server", id="a socket"),
        pytest.param("redis_url", f"redis+sentinel://a,b/s?sentinel_password={SECRET}", "server", id="sentinels"),
        pytest.param("smtp_url", f"smtps://ada:{SECRET}@mail.test", "server", id="a mail server"),
    ],
)
def test_a_password_in_a_flag_is_refused_without_showing_it(name: str, text: str, command: Command) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, command)
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(SettingsError, match=f"use LATCHKEY_{name.upper()}") as caught:
        from_namespace(parser.parse_args([flag, text]), {}, command)
    assert SECRET not in str(caught.value)
    without = text.partition("?")[0].replace(f":{SECRET}/x@", "@").replace(f":{SECRET}@", "@")
    from_namespace(parser.parse_args([flag, without]), {}, command)


@pytest.mark.trap(24)
def test_repr_never_shows_a_secret() -> None:
    environ = {"LATCHKEY_SECRET_KEYS": f"1:{SECRET}", "LATCHKEY_REDIS_URL": f"redis://:{SECRET}@host"}
    found = load([], environ | {"LATCHKEY_OPERATOR_KEYS": OPERATOR_KEY})
    assert found.operator_keys == (OPERATOR_KEY,)
    assert SECRET in found.secret_keys
    assert SECRET in found.redis_url
    assert SECRET not in repr(found)


@pytest.mark.trap(24)
@pytest.mark.parametrize("option", ["--secret-keys", "--operator-keys"])
@pytest.mark.parametrize("rest", [[f"1:{SECRET}"], [f"=1:{SECRET}"], []], ids=["a word", "joined", "nothing"])
def test_secret_keys_are_refused_as_a_flag(option: str, rest: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    argv = [option + rest[0]] if rest and rest[0].startswith("=") else [option, *rest]
    with pytest.raises(SystemExit) as caught:
        load(argv, {})
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert f"LATCHKEY_{option[2:].replace('-', '_').upper()}" in said
    assert SECRET not in said


@each(
    ("argv", "environ", "message"),
    [
        pytest.param(
            ["--redis-url=memory"],
            {"LATCHKEY_WORKERS": "2"},
            r"^workers must be 1 .*\(workers from LATCHKEY_WORKERS, redis_url from --redis-url\)$",
            id="two processes cannot share the memory store",
        ),
        pytest.param(
            ["--demo"],
            {"LATCHKEY_HOST": "0.0.0.0"},
            r"^demo needs .*\(demo from --demo, host from LATCHKEY_HOST\)$",
            id="the demo is never open to the network",
        ),
        pytest.param(
            ["--session-lifetime=3600"],
            {},
            r"^session_lifetime must be .*\(session_lifetime from --session-lifetime, session_idle from its default\)$",
            id="a session cannot idle for longer than it lives",
        ),
        pytest.param(
            ["--wait-replicas=1"],
            {},
            r"^wait_replicas must be 0 here: the embedded store has none \(wait_replicas from --wait-replicas, ",
            id="the embedded store has no replicas to wait for",
        ),
        pytest.param(
            ["--reuse-port"],
            {},
            r"^reuse_port needs a store that both servers use, which embedded is not: .*\(reuse_port from --reuse",
            id="the embedded store has one owner",
        ),
        pytest.param(
            ["--reuse-port", "--redis-url=memory"],
            {},
            r"^reuse_port needs a store that both servers use, which memory is not",
            id="two servers with a store of their own each are not one",
        ),
        pytest.param(
            ["--wait-replicas=1", "--redis-url=redis://h", "--redis-timeout=0.5"],
            {},
            r"^wait_timeout must be below redis_timeout \(wait_timeout from its default, redis_timeout from ",
            id="replicas are given up before the store is",
        ),
    ],
)
def test_settings_that_exclude_each_other(argv: list[str], environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(argv, environ)


def test_waiting_for_replicas_doubles_the_call_timeout() -> None:
    shared = ["--redis-url=redis://h", "--redis-timeout=3"]
    assert load(shared, {}).call_seconds == 3
    assert load([*shared, "--wait-replicas=1"], {}).call_seconds == 6
    found = load_for_manage([*shared, "--wait-replicas=2", "--wait-timeout=0.25"], {})
    assert (found.wait_replicas, found.wait_timeout) == (2, 0.25)


def test_the_idle_limit_may_equal_the_lifetime() -> None:
    assert load(["--session-lifetime=3600", "--session-idle=3600"], {}).session_idle == 3600


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "::1"])
def test_demo_on_a_loopback_host(host: str) -> None:
    assert load(["--demo", "--host", host], {}).demo


def test_shared_store_requires_keys() -> None:
    for read in (load, load_for_manage):
        shared = read(["--redis-url=redis://h"], {})
        assert shared.shared_store
        with pytest.raises(SettingsError, match=r"LATCHKEY_SECRET_KEYS.*latchkey keys generate"):
            shared.require_keys()
        read(["--redis-url=redis://h"], {"LATCHKEY_SECRET_KEYS": "1:abc"}).require_keys()
    for url in ("embedded", "memory"):
        private = load(["--redis-url", url], {})
        assert not private.shared_store
        private.require_keys()


def test_manage_refuses_memory() -> None:
    with pytest.raises(SettingsError, match=r"inside one server process \(redis_url from LATCHKEY_REDIS_URL\)$"):
        load_for_manage([], {"LATCHKEY_REDIS_URL": "memory"})


def test_manage_ignores_server_only_settings(config: Path) -> None:
    config.write_text('data_dir = "elsewhere"\nport = 9')
    found = load_for_manage(["--config", str(config)], {"LATCHKEY_WORKERS": "nonsense"})
    assert (found.data_dir, found.port, found.workers) == (Path("elsewhere"), 8080, 1)
    with pytest.raises(SystemExit):
        load_for_manage(["--port", "1"], {})


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["--data-dir=x", "app", "list"], id="before the subcommand"),
        pytest.param(["app", "list", "--data-dir=x"], id="after the subcommand"),
    ],
)
def test_settings_on_both_sides_of_a_subcommand(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, "manage")
    inner = parser.add_subparsers().add_parser("app")
    add_arguments(inner, "manage")
    inner.add_argument("action")
    namespace = parser.parse_args(argv)
    assert from_namespace(namespace, {"LATCHKEY_DATA_DIR": "y"}, "manage").data_dir == Path("x")


def test_help_names_every_setting_and_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load(["--help"], {})
    assert caught.value.code == 0
    said = capsys.readouterr().out
    for item in SETTINGS:
        assert (item.option in said) is item.flag
        assert (f"[{item.environment}]" in said) is item.flag


def test_abbreviated_flags_are_refused() -> None:
    with pytest.raises(SystemExit):
        load(["--data=x"], {})


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]  # it is frozen


def test_documentation_is_current() -> None:
    current = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert current == rendered(SETTINGS), "run `make docs`"
