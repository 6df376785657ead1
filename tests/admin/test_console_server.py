"""The console's pages about the server itself, and what the store says of its replicas, files and keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import ResponseError

from handlers.core.application import Latchkey
from handlers.core.site import ServerFacts
from runtime.arguments import load
from settings.in_force import explained, in_force
from store import keys
from store.operators.health import DAY_MS, OLD_KEY_DAYS, replicas_in, saved_in
from store.operators.memory_sample import SAMPLED, MemorySample
from store.results import Visitor
from store.wiring import Store
from tests.admin.conftest import Console
from tests.admin.test_console_people import shown

pytestmark = pytest.mark.gen_test(timeout=60)

HIDDEN = "hunter2hunter2"


async def test_settings_show_their_source_and_no_secret(console: Console, app: Latchkey) -> None:
    environ = {
        "LATCHKEY_REDIS_URL": "redis://user:" + HIDDEN + "@store.example:6379/1",
        "LATCHKEY_OPERATOR_KEYS": "k" * 32,
    }
    settings = load(["--workers", "3"], environ)
    facts = ServerFacts("1.2.3", settings.workers, in_force(settings), explained())
    app.site = replace(app.site, facts=lambda: facts)
    auditor = await console.operator("auditor")
    page = await auditor.open("/admin/settings")
    assert HIDDEN not in page
    assert "kkkk" not in page
    text = shown(page)
    for part in ("workers", "--workers", "LATCHKEY_REDIS_URL", "redis://store.example:6379/1", "hidden"):
        assert part in text, part
    assert "hsts_include_subdomains" not in text
    assert "hsts_include_subdomains" in shown(await auditor.open("/admin/settings?show=all"))
    assert "hsts_include_subdomains" in shown(await auditor.open("/admin/settings?query=HSTS"))
    by_variable = shown(await auditor.open("/admin/settings?query=latchkey_port"))
    assert "port restart TCP port; 0 picks a free one. --port · LATCHKEY_PORT" in by_variable
    by_flag = shown(await auditor.open("/admin/settings?query=--drain-timeout"))
    assert ("--drain-timeout · LATCHKEY_DRAIN_TIMEOUT" in by_flag, "drain_timeout restart" in by_flag) == (True, False)
    assert "No settings found" in shown(await auditor.open("/admin/settings?query=nonsense"))


async def test_every_setting_is_on_one_of_the_pages(console: Console, app: Latchkey) -> None:
    settings = load([], {})
    facts = ServerFacts("", 1, in_force(settings), explained())
    app.site = replace(app.site, facts=lambda: facts)
    auditor = await console.operator("auditor")
    page, seen = "/admin/settings?show=all", set[str]()
    while page:
        text = await auditor.open(page)
        assert len(text) < 40_000
        seen |= {item["name"] for item in facts.settings if f"<code>{item['name']}</code>" in text}
        _, found, rest = text.partition('href="/admin/settings?query=&amp;show=all&amp;after=')
        page = f"/admin/settings?show=all&after={rest.partition(chr(34))[0]}" if found else ""
    assert seen == {item["name"] for item in facts.settings}


async def test_the_checklist_names_backups_and_old_keys(console: Console) -> None:
    auditor = await console.operator("auditor")
    now = int((await console.store.client.time())[0]) * 1000
    front = console.store.keys.ring.front.id
    assert await console.store.key_state.since() == {}
    await console.store.key_state.check(console.store.keys.ring)
    assert abs((await console.store.key_state.since())[front] - now) < 10_000
    assert "latchkey store backup" in shown(await auditor.open("/admin"))
    assert "keys rotate" not in shown(await auditor.open("/admin"))
    old = now - (OLD_KEY_DAYS + 1) * DAY_MS
    await console.store.client.hset(keys.KEYRING, f"known_at:{front}", old)
    assert "keys rotate" in shown(await auditor.open("/admin"))
    assert "keys reencrypt" in shown(await auditor.open("/admin/health"))


def test_replicas_and_files_are_read_from_what_the_store_says() -> None:
    node: dict[str, Any] = {
        **{"connected_slaves": 2, "master_repl_offset": 1000, "rdb_last_save_time": 50, "rdb_saves": 3},
        **{"slave0": {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 900, "lag": 1}},
        **{"slave1": {"ip": "10.0.0.3", "port": 6379, "state": "wait_bgsave", "offset": 2000, "lag": 0}},
    }
    assert [(one.address, one.behind, one.seen) for one in replicas_in(node)] == [
        ("10.0.0.2:6379", 100, 1),
        ("10.0.0.3:6379", 0, 0),
    ]
    saved = saved_in([node])
    assert saved
    assert (saved.snapshot_at, saved.log, saved.failing) == (50_000, False, False)
    never = saved_in([{**node, "rdb_saves": 0, "aof_enabled": 1, "aof_last_write_status": "err"}])
    assert never
    assert (never.snapshot_at, never.log, never.failing) == (0, True, True)
    assert saved_in([{"redis_version": "7"}]) is None


async def test_a_sample_says_what_fills_the_store(store: Store) -> None:
    sample = MemorySample(store.client)
    await store.people.create("ada@example.com", "Ada", None, verified=True, event="signed_up", visitor=Visitor())
    try:
        await store.client.memory_usage("x")
    except ResponseError:
        await sample.take()
        assert sample.last is None, "a store that does not say is no error"
        return
    await sample.take()
    assert sample.last
    assert sample.last.sampled + 50 >= SAMPLED
    assert sample.last.keys > 0
    kinds = {one.kind: one for one in sample.last.kinds}
    assert "user" in kinds
    assert kinds["user"].bytes > 50
    assert abs(sum(one.keys for one in sample.last.kinds) - sample.last.keys) <= len(kinds)


async def test_a_sample_is_due_once_in_ten_minutes(memory_store: Store) -> None:
    now = [1000.0]
    sample = MemorySample(memory_store.client, lambda: now[0])
    assert [sample.due(), sample.due()] == [True, False]
    now[0] += 601
    assert [sample.due(), sample.due()] == [True, False]
