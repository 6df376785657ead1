"""Every event that scripts and Python record is declared, has a cause, and is on the page of events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands.acts import ACTS, READS
from cli.commands_parser import build_parser
from store.engine.security_outcomes import OUTCOMES, WORDS
from store.security_events import EVENTS, is_ordinary
from tests.support.lists.offenders import each

ROOT = Path(__file__).resolve().parent.parent.parent.parent
CODE = [path for folder in ("store", "handlers", "cli", "testkit") for path in (ROOT / folder).glob("**/*.py")]


def recorded(lua: str) -> Iterator[tuple[str, str]]:
    """Each trail that a script writes, with an event that the script may record there."""
    for trail, event in re.findall(r"record\((?:prefix \.\. ')?(\w+)'?, ([^\n]*?), \S+, \S+, \S+\)", lua):
        for name in re.findall(r"(?:^|and |or )'(\w+)'", event):
            yield trail, name


@each("path", [pytest.param(path, id=path.stem) for path in (ROOT / "lua").glob("**/*.lua")])
def test_every_event_that_a_script_records_is_declared_for_that_trail(path: Path) -> None:
    for trail, name in recorded(path.read_text()):
        assert name in EVENTS, f"{name} is not declared in store/security_events.py"
        assert trail == ("activity" if is_ordinary(name) else "audit"), f"{name} is in the other trail"


def test_every_event_that_python_names_is_declared() -> None:
    named = {name for name, _ in OUTCOMES.values()} | {name for name in ACTS.values() if name}
    for path in CODE:
        text = path.read_text()
        named |= set(re.findall(r'\b(?:event|refused)(?:: str)? ?= ?"(\w+)"', text))
        named |= set(re.findall(r'\.note\((?:[\w.]+, )?"(\w+)"', text))
        named |= set(re.findall(r'note\(session, [\w.]+, "(\w+)"', text))
    assert {"signed_up", "sign_in_refused", "client_refused", "account_downloaded", "app_secret_made"} <= named
    assert named <= EVENTS.keys()


def test_every_event_has_a_cause() -> None:
    paths = (*CODE, *(ROOT / "lua").glob("**/*.lua"))
    words = set(WORDS.values()) | {name for name, _ in OUTCOMES.values()}
    for path in paths:
        if path.stem != "security_events":
            words |= set(re.findall(r"['\"](\w+)['\"]", path.read_text()))
    assert EVENTS.keys() - words == set()


def test_every_command_is_either_audited_or_read_only() -> None:
    runs = {str(run) for run in commands_of(build_parser()) if run}
    assert runs == ACTS.keys() | READS
    assert not ACTS.keys() & READS


def commands_of(parser: object) -> Iterator[str]:
    for action in getattr(parser, "_actions", ()):
        choices = getattr(action, "choices", None)
        if isinstance(choices, dict):
            for one in choices.values():
                run = one.get_default("run")
                if run is not None:
                    yield run
                yield from commands_of(one)


def test_the_page_has_every_event() -> None:
    rows = "".join(
        f"| `{one.name}` | {one.result} | {one.stream} | {one.detail} | {one.sentence} |\n"
        for one in EVENTS.values()
        if one.logged
    )
    assert rows in (ROOT / "docs" / "operations.md").read_text()
