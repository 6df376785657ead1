"""Reloaded settings: what changes at once, what needs a restart, and that a mistake changes nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from email.message import EmailMessage
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from handlers.core.brand.reading import BrandError
from handlers.core.site import Site
from outbound.ai.config import ConfigError
from outbound.ai.echo import EchoUpstream, echo_model
from outbound.ai.failure import UpstreamFailed
from outbound.ai.models import Models, OldModels, Timeouts
from outbound.mail.mailer import SmtpServer
from runtime.reload import read_checked
from settings.declared import SETTINGS, Settings
from settings.types import SettingsError
from store.crypto.keyring import KeyRing, KeyRingError
from store.errors import StartupError
from tests.ai.test_ai_processes import CONFIG
from tests.support.browser.mailbox import MAIL, Mailbox, mailer
from tests.support.data.brands import write_brand
from tests.support.http.driver import Service, send
from tests.support.http.self_registered import PROBES_OF_CLIENTS
from tests.support.http.upstream import TEXT, Plan, ScriptedUpstream
from tests.support.processes import reloaded_service
from tests.support.processes.reloaded_service import NEW_RING, OF_STORE, OLD_RING, Reloading, http_limits, sends_to
from tests.support.store.ai_spender import MODEL, OpenStream, Spender, text_of

LIVE = {item.name for item in SETTINGS if item.live}
OPERATOR_KEY = "k" * 40

logging_kept, reloading = reloaded_service.logging_kept, reloaded_service.reloading

PROBES: dict[str, tuple[Any, Callable[[Reloading], Any]]] = {
    **(PROBES_OF_CLIENTS | OF_STORE),
    "trusted_proxies": ((ip_network("10.0.0.0/8"),), lambda r: r.site.trusted_proxies),
    "hsts_include_subdomains": (True, lambda r: r.site.hsts_subdomains),
    "connections": (77, lambda r: vars(r.main.server)["_most"] if http_limits(r) else 77),
    "drain_timeout": (3.0, lambda r: r.runtime.settings.drain_timeout),
    "drain_delay": (3.0, lambda r: r.runtime.settings.drain_delay),
    "max_head": (5000, lambda r: r.main.server.conn_params.max_header_size),
    "max_body": (2**21, lambda r: r.site.max_body),
    "idle_timeout": (33.0, lambda r: http_limits(r).idle_seconds if http_limits(r) else 33.0),
    "head_timeout": (3.5, lambda r: http_limits(r).head_seconds if http_limits(r) else 3.5),
    "body_timeout": (4.5, lambda r: r.main.server.conn_params.body_timeout),
    "write_timeout": (5.5, lambda r: http_limits(r).stall_seconds if http_limits(r) else 5.5),
    "slow_memory": (2**21, lambda r: r.main.server.slow.most if http_limits(r) else 2**21),  # type: ignore[attr-defined]  # of the fast one
    "requests": (9, lambda r: r.main.application.bound),
    "ai_calls": (8, lambda r: vars(r.site.ai_calls)["_most"]),
    "ai_calls_per_person": (6, lambda r: min(vars(r.site.ai_calls)["_each"] or 0, r.store.calls.most_each)),
    "downloads_per_person": (3, lambda r: vars(r.site.downloads)["_each"]),
    "downloads": (7, lambda r: vars(r.site.downloads)["_most"]),
    "operator_keys": ((OPERATOR_KEY,), lambda r: (OPERATOR_KEY,) * len(vars(r.ops.application)["keys"])),
    "signup": ("off", lambda r: r.site.signup),
    "languages": (("de", "en"), lambda r: tuple(r.site.languages.by_code)),
    "allowed_domains": (("example.org",), lambda r: r.site.allowed_domains),
    "app_registration": ("operator", lambda r: r.site.app_registration),
    "dpop_nonce": ("required", lambda r: "required" if r.site.dpop_nonce_required else "optional"),
    "require_pkce": (True, lambda r: r.site.require_pkce),
    "apps_per_person": (6, lambda r: r.site.apps_per_person),
    "smtp_url": ("smtp://127.0.0.1:1", lambda r: sends_to(r)),
    "mail_from": ("me@example.org", lambda r: vars(r.site.mail)["_sender"]),
    "smtp_timeout": (2.5, lambda r: r.runtime.settings.smtp_timeout),
    "password_ranges": ("http://localhost/range/", lambda r: r.site.breaches.url),
    "document_size": (4096, lambda r: r.store.documents.quotas.document_bytes),
    "document_limit": (5, lambda r: r.store.documents.quotas.documents),
    "collection_limit": (4, lambda r: r.store.documents.quotas.collections),
    "storage_limit": (4096, lambda r: r.store.documents.quotas.bytes),
    "person_document_limit": (6, lambda r: r.store.documents.quotas.person_documents),
    "person_storage_limit": (8192, lambda r: r.store.documents.quotas.person_bytes),
    "person_grant_limit": (7, lambda r: r.store.bounds.grants),
    "person_session_limit": (9, lambda r: r.store.bounds.sessions),
    "person_family_limit": (11, lambda r: r.store.bounds.families),
    "owner_document_limit": (8, lambda r: r.store.hosting.limits.documents),
    "owner_storage_limit": (6000, lambda r: r.store.hosting.limits.bytes),
    "second_step_scopes": (("data:read",), lambda r: r.store.apis.stepped),
    "app_calls_per_minute": (50, lambda r: r.store.client_windows.group.limit),
    "public_app_calls_per_minute": (20, lambda r: r.store.limits.public_clients.limit),
    "ai_calls_per_minute": (40, lambda r: r.store.rates.ai.limit),
    "ai_spend_per_person_day": (5_000_000, lambda r: r.store.calls.daily.per_person),
    "ai_spend_per_app_day": (6_000_000, lambda r: r.store.calls.daily.per_app),
    "purchase_least": (6_000_000, lambda r: r.site.purchases[0]),
    "purchase_most": (600_000_000, lambda r: r.site.purchases[1]),
    "low_credits": (7_000_000, lambda r: r.store.calls.notices.low),
    "data_reads_per_minute": (41, lambda r: r.store.rates.data_read.limit),
    "data_writes_per_minute": (42, lambda r: r.store.rates.data_write.limit),
    "data_lists_per_minute": (43, lambda r: r.store.rates.data_list.limit),
    "oauth_per_minute": (44, lambda r: r.store.rates.oauth.limit),
    "introspections_per_minute": (50, lambda r: r.store.introspection_windows.group.limit),
    "signing_key_days": (30, lambda r: r.store.signing_keys.days),
    "ai_body_memory": (2**26, lambda r: r.site.long_bodies.memory.most),
    "ai_request_size": (2048, lambda r: r.site.max_ai_request),
}
"""Another value, and what has it then."""
ELSEWHERE = {"stripe_key", "stripe_webhook_secret", "log_level", "log_format", "secret_keys"}
ELSEWHERE |= {"trace_otlp_header"}  # tests/runtime/test_request_spans.py
ELSEWHERE |= {"audit_otlp_header", "ai_config", "assertion_issuers", "brand", "identity_config"}
"""Settings with tests of their own."""


def test_every_reloadable_setting_is_tested() -> None:
    assert PROBES.keys() | ELSEWHERE == LIVE


@pytest.mark.gen_test
@pytest.mark.parametrize("name", PROBES)
async def test_a_changed_setting_is_reloaded(reloading: Reloading, name: str, caplog: pytest.LogCaptureFixture) -> None:
    value, probe = PROBES[name]
    caplog.set_level("INFO")
    before = probe(reloading)
    assert before == value or not (name == "operator_keys" and before)
    await reloading.take(**{name: value})
    assert probe(reloading) == value
    assert f"changed: {name}" in caplog.text
    assert "need a restart" not in caplog.text
    assert (await send(reloading.site.base_url + "/healthz")).code == 200


@pytest.mark.gen_test
async def test_unchanged_settings_are_kept(reloading: Reloading, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    mail, models = reloading.site.mail, reloading.site.models
    await reloading.take()
    assert (reloading.site.mail, reloading.site.models) == (mail, models)
    assert "changed: none" in caplog.text


class Unreachable(SmtpServer):
    """A server that nobody reaches. `tried` is set after each try."""

    def __init__(self) -> None:
        super().__init__("smtp://127.0.0.1:1")
        self.tried = asyncio.Event()

    async def send(self, message: EmailMessage) -> None:
        """Fails."""
        try:
            await super().send(message)
        finally:
            self.tried.set()


@pytest.mark.gen_test(timeout=20)
async def test_a_mail_waiting_for_an_unreachable_server_goes_to_its_replacement(reloading: Reloading) -> None:
    mailbox = await Mailbox.open()
    server = Unreachable()
    away = mailer(server, retries=(1.0,))
    reloading.main.application.site = replace(reloading.site, mail=away)
    away.post(MAIL)
    await server.tried.wait()
    assert away.queue == 1
    await reloading.take(smtp_url=mailbox.url, mail_from="me@example.org")
    assert (await mailbox.mail())["Subject"] == MAIL.subject
    reloading.site.mail.post(MAIL)
    assert (await mailbox.mail(1))["From"].addresses[0].addr_spec == "me@example.org"
    await reloading.site.mail.close(5)
    await mailbox.close()


@pytest.mark.gen_test
async def test_the_log_is_reconfigured(reloading: Reloading, logging_kept: list[tuple[str, str]]) -> None:
    await reloading.take(log_level="warning", log_format="json")
    assert logging_kept == [("warning", "json")]


@pytest.mark.gen_test
async def test_settings_that_need_a_restart_are_named_and_kept(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    await reloading.take(port=9, workers=3, redis_url="redis://h", secret_keys=OLD_RING, signup="off")
    assert "need a restart: port, workers, redis_url, secret_keys" in caplog.text
    assert (reloading.runtime.settings.port, reloading.runtime.settings.workers) == (8080, 1)
    assert (reloading.runtime.settings.redis_url, reloading.runtime.settings.secret_keys) == ("embedded", "")
    assert reloading.site.signup == "off"
    assert OLD_RING not in caplog.text


BEFORE = Settings(ops_port=1, operator_keys=(OPERATOR_KEY,))


def fails(error: Exception) -> Callable[[], Settings]:
    """Settings that cannot be read."""

    def read() -> Settings:
        raise error

    return read


@pytest.mark.parametrize(
    ("reread", "error"),
    [
        pytest.param(fails(SettingsError("no")), SettingsError, id="a file that is wrong"),
        pytest.param(lambda: replace(BEFORE, ai_config=Path("/nowhere")), ConfigError, id="no file of models"),
        pytest.param(lambda: Settings(redis_url="redis://h"), SettingsError, id="a store for which keys are missing"),
        pytest.param(lambda: Settings(ops_port=1, stripe_key="sk_1"), SettingsError, id="settings that exclude others"),
    ],
)
def test_invalid_settings_are_refused(reread: Callable[[], Settings], error: type[Exception]) -> None:
    with pytest.raises(error):
        read_checked(BEFORE, reread)


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        pytest.param(Settings(redis_url="memory"), ("trusted_proxies",), id="in the hands of tests"),
        pytest.param(Settings(), ("trusted_proxies",), id="that posts events to its own machine"),
        pytest.param(Settings(host="0.0.0.0"), (), id="that others reach"),
        pytest.param(Settings(trusted_proxies=(ip_network("10.0.0.1"),)), (), id="behind another proxy"),
    ],
)
def test_proxy_settings_reload_only_on_a_server_that_others_reach(before: Settings, kept: tuple[str, ...]) -> None:
    wanted = replace(before, trusted_proxies=(ip_network("127.0.0.1"),), signup="off")
    fresh = read_checked(before, lambda: wanted)
    assert fresh.kept == kept
    assert set(fresh.changed) == {"signup", "trusted_proxies"} - set(kept)
    assert (fresh.settings.here_alone, fresh.settings.testable) == (before.here_alone, before.testable)


@pytest.mark.gen_test
async def test_a_loopback_server_logs_that_proxy_settings_need_a_restart(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    reloading.runtime.settings = reloading.wanted = Settings()
    await reloading.take(trusted_proxies=(ip_network("127.0.0.1"),), signup="off")
    assert "need a restart: trusted_proxies" in caplog.text
    assert (reloading.site.here_alone, reloading.site.trusted_proxies) == (True, ())
    assert reloading.site.signup == "off"


def test_malformed_keys_are_refused() -> None:
    before = Settings(redis_url="redis://h", secret_keys=OLD_RING)
    with pytest.raises(KeyRingError):
        read_checked(before, lambda: replace(before, secret_keys="1:short"))


@pytest.mark.gen_test
async def test_another_stores_keys_change_nothing(reloading: Reloading) -> None:
    ring = reloading.runtime.keys.ring
    await reloading.store.key_state.check(ring)
    reloading.runtime.settings = reloading.wanted = replace(Settings(), secret_keys=ring.render())
    with pytest.raises(StartupError):
        await reloading.take(secret_keys=NEW_RING, signup="off")
    assert reloading.runtime.keys.ring is ring
    assert (reloading.site.signup, reloading.runtime.settings.signup) == ("open", "open")


@pytest.mark.gen_test
async def test_a_new_front_key_seals_after_the_reload(reloading: Reloading, service: Service) -> None:
    old = reloading.runtime.keys.ring.render()
    tokens = await service.tokens()
    reloading.runtime.settings = reloading.wanted = replace(Settings(), secret_keys=old)
    new = KeyRing.generate(9)
    await reloading.take(secret_keys=f"{new},{old}")
    assert reloading.runtime.keys.ring.front.id == 9
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    assert (await service.tokens())["access_token"] != tokens["access_token"]


@pytest.mark.gen_test
async def test_a_brand_is_reloaded_and_a_wrong_one_changes_nothing(
    reloading: Reloading, service: Service, tmp_path: Path
) -> None:
    path = write_brand(tmp_path, name="Acme", color="#1f4fd8", mail_from_name="Acme mail")
    await reloading.take(brand=path)
    page = (await service.browser().get("/signin")).body.decode()
    assert "<title>Sign in · Acme</title>" in page
    (styles,) = re.findall(r'href="(/brand/[0-9a-f]{32}\.css)"', page)
    assert vars(reloading.site.mail)["_name"] == "Acme mail"
    # The same file, which says something else now.
    write_brand(tmp_path, name="Ajax")
    await reloading.take()
    assert "Ajax" in (await service.browser().get("/signin")).body.decode()
    assert vars(reloading.site.mail)["_name"] == "Ajax"
    assert (await service.browser().get(styles)).code == 200
    # A reload that changes no brand forgets nothing.
    await reloading.take(signup="off")
    assert (await service.browser().get(styles)).code == 200
    write_brand(tmp_path, name="Atlas", color="#ffcc00")
    with pytest.raises(BrandError, match=r"1\.37:1"):
        await reloading.take()
    assert "Ajax" in (await service.browser().get("/signin")).body.decode()
    await reloading.take(brand=None)
    assert "Latchkey" in (await service.browser().get("/signin")).body.decode()


class TestModels:
    """The file of models."""

    @pytest.fixture
    def site(self, ai_site: Site) -> Site:
        """The model runs on the scripted upstream."""
        return ai_site

    @pytest.mark.gen_test(timeout=20)
    async def test_a_call_in_progress_continues_and_the_next_uses_the_new_file(
        self, reloading: Reloading, service: Service, upstream: ScriptedUpstream, tmp_path: Path
    ) -> None:
        spender = await Spender.make(service)
        gate = asyncio.Semaphore(4)
        upstream.plan = Plan(gate=gate)
        stream = await (await OpenStream.open(spender)).begin()
        events = await stream.read(3)
        models = tmp_path / "models.toml"
        models.write_text(CONFIG.replace("PORT", upstream.url.rpartition(":")[2]).replace(MODEL, "another-model"))
        await reloading.take(ai_config=models)
        for _ in range(100):
            gate.release()
        events += await stream.rest()
        assert text_of(events) == TEXT
        stream.cut()
        assert (await spender.ask()).code == 404
        assert [model.model_id for model in reloading.site.models.all()] == ["another-model"]
        # The same file, which says something else now.
        models.write_text(models.read_text().replace("another-model", "third-model"))
        await reloading.take()
        assert [model.model_id for model in reloading.site.models.all()] == ["third-model"]
        (server,) = reloading.site.models.upstreams()
        server.health.fail(UpstreamFailed("overloaded", "status 429", retry_after=60))
        await reloading.take()
        assert reloading.site.models.upstreams() != [server]
        assert reloading.site.models.upstreams()[0].health.rests_for > 0, "it still wants its pause"
        models.write_text("nonsense")
        with pytest.raises(ConfigError):
            await reloading.take()
        assert [model.model_id for model in reloading.site.models.all()] == ["third-model"]


class Closing(EchoUpstream):
    """Notes that it was closed."""

    def __init__(self, total: float) -> None:
        super().__init__()
        self.limits, self.closed = Timeouts(total=total), asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


@pytest.mark.gen_test
async def test_old_models_close_after_their_longest_call_or_at_the_end() -> None:
    short, long = Closing(0.0), Closing(3600.0)
    old = OldModels()
    for upstream in (short, long):
        old.add(Models((replace(echo_model(), upstream=upstream),)), 0.0)
    await short.closed.wait()
    assert not long.closed.is_set()
    await old.close()
    assert long.closed.is_set()


@pytest.mark.gen_test
async def test_a_defect_during_a_reload_changes_nothing_and_the_next_reload_works(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> Settings:
        raise RuntimeError("secret")

    requested = asyncio.Event()
    following = asyncio.ensure_future(reloading.reloads.follow(requested))
    reloading.runtime.reread = fails
    requested.set()
    while "reload failed, configuration unchanged: RuntimeError" not in caplog.text:
        await asyncio.sleep(0)
    reloading.runtime.reread = lambda: replace(Settings(), signup="off")
    requested.set()
    while reloading.site.signup != "off":
        await asyncio.sleep(0)
    following.cancel()
