"""Which test files a run must read, by its markers. Each process of a run collects for itself, and all files take it 15
seconds."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

APART = {"browser": ("test_browser",), "bench": ("test_bench", "test_timing")}
"""What files begin with whose tests have a target of `make` of their own: what drives Chromium, and the programs that
measure. A file of long tests says so by the marker `slow`."""

WIRE = {
    "ai": ("test_ai_bounds", "test_ai_connections", "test_ai_cut", "test_ai_upstream_midway", "test_refused_bodies"),
    "accounts": ("test_profile_http",),
    "browser": ("test_browser.py", "test_docs_page"),
    "documents": ("test_account_data", "test_documents_http"),
    "frozen": ("test_",),
    "live": ("test_live_apps",),
    "oauth": ("test_clients.py", "test_cors_errors", "test_error_pages", "test_flow"),
    "runtime": ("test_",),
}
"""Tests of how requests arrive and answers leave, by folder and the beginnings of names: streams, answers that are cut,
uploads, downloads, errors before a handler runs, real clients, the snapshots, and all of the runtime. Tests that send
bytes of their own belong to them too."""

KNOWN = (*APART, "slow", "engines", "wire", "protocol")
"""The markers that `make` targets select by."""
_NAMED = {
    "slow": r"\bmark\.slow\b",
    "engines": r"\bstores?: (list\[)?Store\b|\bengine_url\b|\btwo_servers\b|\bmark\.engines\b",
    "wire": r"\b(http_servers|raw_http|steady_clients|send_raw)\b|\bmark\.wire\b",
    "protocol": r"\bmark\.protocol\b",
}
"""What is in the text of every file with such tests, unless its name says so."""
_ALL_SLOW = re.compile(r"^pytestmark = (.*|\[[^\]]*)\bpytest\.mark\.slow\b", re.MULTILINE)
_ONE, _NONE = re.compile(r"\w+( or \w+)*|\w+( and not \w+)*"), re.compile(r"not \w+( and not \w+)*")
_WORDS = {"and", "or", "not"}


def about_wire(path: Path) -> bool:
    """Whether the name of a file says that its tests are about how requests arrive and answers leave."""
    return path.name.startswith(WIRE.get(path.parent.name, "-"))


def about_protocol(path: Path) -> bool:
    """Whether the name of a file says that its tests are about the fast HTTP server or the connections to the store."""
    return path.parent.name == "http" or path.name.startswith("test_pipeline")


@cache
def reads(path: Path, marker: str) -> bool:
    """Whether a file may have tests with one of the `KNOWN` markers. conftest.py fails if another file has one."""
    if marker in APART:
        return path.name.startswith(APART[marker])
    if (marker == "wire" and about_wire(path)) or (marker == "protocol" and about_protocol(path)):
        return True
    return bool(re.search(_NAMED[marker], path.read_text("utf-8")))


def must_read(path: Path, expression: str) -> bool:
    """Whether a file may have tests that pytest's `-m` selects. Everything is read for an expression of another form
    than those of the `make` targets."""
    markers = [word for word in re.findall(r"\w+", expression) if word not in _WORDS]
    if _NONE.fullmatch(expression):
        text = path.read_text("utf-8") if "slow" in markers else ""
        return not (_ALL_SLOW.search(text) or any(reads(path, one) for one in markers if one in APART))
    if not _ONE.fullmatch(expression):
        return True
    wanted = markers[:1] if " and " in expression else markers
    return any(one not in KNOWN or reads(path, one) for one in wanted)


def load_first(folder: Path, expression: str, number: int, processes: int) -> None:
    """Imports this process's share of the test files, if pytest has kept none of what it makes of them: to rewrite the
    assertions of all takes 13 seconds. Meanwhile the other processes of the run do the other shares, and then each
    finds what all have kept."""
    share = [path for path in _files(folder) if must_read(path, expression)][number::processes]
    new = [path for path in share if not any((path.parent / "__pycache__").glob(f"{path.stem}.*-pytest-*.pyc"))]
    for path in new if len(new) > len(share) // 2 else ():
        with contextlib.suppress(Exception, pytest.skip.Exception):  # to collect the file will say what is wrong
            importlib.import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts))


def _files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - {"__pycache__", "node_modules"})
        yield from (Path(place, name) for name in sorted(names) if name.startswith("test_") and name.endswith(".py"))
