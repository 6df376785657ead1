"""What users and programs see of Latchkey does not change while its code is moved and renamed.

Each test looks from outside, at help, answers, pages, logs, metrics and keys, and compares what it sees with a file in
`snapshots/`. `make frozen` writes these files, for a change that users are meant to see.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tornado.web import Application

from store import keys
from store.wiring import Store
from tests.frozen import answers, command_line, interface, kit, running, source, stored
from tests.frozen.compare import agree, hold, snapshot
from tests.support.processes.engines import valkey
from tests.support.store.checked_store import Furnished, few_shards, one_store

__all__ = ["few_shards", "one_store"]  # fixtures


NO_WORDS = {
    "client_id",
    "http",
    "loop",
    "method",
    "model",
    "python",
    "route",
    "script",
    "status",
    "version",
    "what",
    "worker",
}
"""Labels whose values are numbers or ids, those of other tables, or what is chosen when a server starts."""


@dataclass
class World:
    """Two servers that were used, and what was seen of them."""

    port: int
    document: dict[str, Any]
    operator: answers.Operator
    seen: running.Seen
    trouble: list[str]
    """Where a step of the people and apps that use the servers failed."""
    measured: running.Measured = field(default_factory=dict)
    logged: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Both servers, once they have done their work."""
    ring = json.loads(command_line.run("keys", "generate", "--json", environ={}).out)["key"]
    late = ("--wait-replicas", "1", "--wait-timeout", "0.01")
    with (
        valkey() as engine,
        running.started("--redis-url", "memory") as whole,
        running.started("--redis-url", engine.url, *late, LATCHKEY_SECRET_KEYS=ring) as broken,
    ):
        operator, password = answers.begin(engine.url, ring)
        seen = running.Seen()
        document = running.get(whole.ready().port, "/openapi.json")
        broken.ready()
        trouble = []
        for steps in (running.use(whole, seen), running.break_(broken, engine, password, seen)):
            try:
                asyncio.run(steps)
            except Exception:  # what was seen until then is compared all the same
                trouble.append(traceback.format_exc())
        made = World(whole.port, json.loads(document), operator, seen, trouble, running.measured(whole, broken))
        made.logged = set(running.logged(whole, broken))
        yield made


def test_programs_can_use_the_server_as_before(world: World) -> None:
    assert world.trouble == [], "\n".join(["A step failed that programs rely on:", *world.trouble])


def test_settings(tmp_path: Path) -> None:
    found = command_line.settings()
    names = {one.environment.removeprefix("LATCHKEY_").lower() for one in found} | {*command_line.HIDDEN}
    lines = [f"{one.flag}  {one.environment}  default {one.default}" for one in found]
    lines += [f"key {name} of a configuration file" for name in command_line.toml_keys(names, tmp_path)]
    declared = hold(
        "settings", "Settings: flags of the server, environment variables, defaults, keys of a TOML file.", lines
    )
    words = [f"{one.group}: {one.flag}: {one.help}" for one in found]
    described = hold(
        "settings_help", "What help says of settings. Words may be made better; names may not change.", words
    )
    agree(declared, described)


def test_commands() -> None:
    names, words = command_line.of_commands()
    offered = hold("commands", "Commands of the operator with their arguments and options.", names)
    described = hold(
        "commands_help", "What help says of commands. Words may be made better; names may not change.", words
    )
    agree(offered, described)


def test_answers_of_commands(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The ids of people are random: the few shards that are walked must be theirs.
    monkeypatch.setattr(keys, "SHARDS", tuple(user[:3] for user in world.operator.people))
    answers.go_on(world.operator, tmp_path)
    lines = world.operator.seen | answers.on_a_directory(tmp_path).seen
    agree(hold("answers", "What commands print under --json: fields and their types.", lines))


@pytest.mark.usefixtures("http_server")
def test_routes(app: Application, world: World) -> None:
    about = "Routes: pattern, methods, name (which the label `route` and the field `route` of the log have)."
    agree(hold("routes", about, interface.routes(app, world.port)))


def test_interface(world: World) -> None:
    document = hold("interface", "The OpenAPI document without its words.", interface.operations(world.document))
    lines = world.seen.errors | set(interface.catalogue(world.document))
    errors = hold("errors", "Error codes with the statuses that they go out with, or in a redirect.", lines)
    operations = hold("operations", "The operations port: fields and their types.", world.seen.operations)
    secrets = hold(
        "secrets", "Names of cookies, and what tokens and other sealed strings begin with.", world.seen.secrets
    )
    agree(document, errors, operations, secrets)


def test_forms() -> None:
    agree(hold("forms", "Forms of pages: template, method, address, field.", interface.forms()))


def test_webhooks(world: World) -> None:
    about = "What is posted to apps: headers, fields of the body with their types, types of events, reasons."
    agree(hold("webhooks", about, world.seen.webhooks, source.quoted()))


def test_metrics(world: World) -> None:
    lines = [f"{name} ({kind}) {', '.join(sorted(labels))}".strip() for name, (kind, labels) in world.measured.items()]
    metrics = hold("metrics", "Metrics: name, type, labels.", lines)
    about = "Values of labels. Those that are ids, numbers or what an operator chose are left out."
    values = hold("labels", about, labels(world), source.quoted())
    agree(metrics, values)


def labels(world: World) -> Iterator[str]:
    """A line for each value of a label that is a word of ours: those that the servers showed, and those of scripts,
    routes and mails that there are."""
    replies = source.scripts()
    answers_of_scripts = set().union(*replies.values())
    yield from (f"script={script} answer={reply}" for script, words in replies.items() for reply in words)
    yield from (f"route={line.rpartition(' ')[2]}" for line in snapshot("routes"))
    yield from (f"what={name}" for name in source.mails())
    for metric, (_, found) in world.measured.items():
        yield from (f"route={name}" for name in found.get("route", ()) if name)
        yield from (f"script={name} answer=" for name in found.get("script", ()) if name not in replies)
        for label in found.keys() - NO_WORDS:
            values = found[label] - (answers_of_scripts if label == "answer" else set())
            yield from (f"{metric} {label}={value}" for value in values)


def test_log(world: World) -> None:
    lines = world.logged | {f"logger {name}" for name in source.loggers()}
    about = "Lines of the log in JSON: fields with their types, by logger; and the loggers."
    agree(hold("log", about, lines, source.quoted()))


@pytest.mark.gen_test
async def test_keys(one_store: Store, world: World) -> None:
    await Furnished.make(one_store)
    lines = {line async for line in stored.layout(one_store.client)}
    lines |= {f"channel {name}" for name in world.seen.channels}
    about = "Keys of Redis with their types and fields, channels, and the number of the layout."
    agree(hold("keys", about, lines, source.quoted()))


def test_kit(world: World) -> None:
    python = hold("kit", "What Python imports: names, signatures, fields, fixtures, entry points.", kit.names())
    over_http = hold("testing", "What tests send to /testing/* and get: fields and their types.", world.seen.testing)
    agree(python, over_http)
