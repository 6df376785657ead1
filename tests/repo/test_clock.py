"""Product code reads the wall clock in `store/clock.py`, which tests of apps can move. Who doesn't, has a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = ("cli", "handlers", "latchkey", "observability", "outbound", "runtime", "settings", "store", "testkit")
ON_THE_HOSTS_CLOCK = {
    "store/clock.py": "it is the clock",
    "testkit/fakeredis_private.py": "fakeredis is on the host's clock until a test moves it",
    "runtime/http/tornado_private.py": "Tornado compares the start of a request and the age of an XSRF token with it",
    "outbound/webhooks/posting.py": "an app that did not travel writes the date in Retry-After by its own clock",
    "outbound/webhooks/channels.py": "an app that did not travel compares the stamp of an event with its own clock",
    "observability/metrics/keeping.py": "Prometheus compares the last tick with its own clock",
    "cli/commands/keys.py": "it is compared with the time of a file",
}
CLOCKS = {
    "time.time",
    "time.time_ns",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "time.ctime",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
}
ARGUMENTS_WITHOUT_CLOCK = {
    "time.gmtime": 1,
    "time.localtime": 1,
    "time.strftime": 2,
    "time.asctime": 1,
    "email.utils.localtime": 1,
    "email.utils.formatdate": 1,
}
"""Functions that read the clock if they get fewer arguments than these."""


def origins(tree: ast.Module) -> dict[str, str]:
    """What each imported name of a module is, dotted."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def readings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where a module reads the host's wall clock, or passes on a function that does: the line, and the function."""
    known = origins(tree)

    def origin(node: ast.AST) -> str:
        if isinstance(node, ast.Attribute):
            return known.get(ast.unparse(node)) or f"{origin(node.value)}.{node.attr}"
        return known.get(node.id, "") if isinstance(node, ast.Name) else ""

    enough = {
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) >= ARGUMENTS_WITHOUT_CLOCK.get(origin(node.func), 99)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)):
            name = origin(node)
            if name in CLOCKS or (name in ARGUMENTS_WITHOUT_CLOCK and node not in enough):
                yield node.lineno, name


def test_the_wall_clock_is_read_in_one_module() -> None:
    paths = [*ROOT.glob("*.py"), *(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): sorted(readings(ast.parse(path.read_text()))) for path in paths}
    assert {name: some for name, some in found.items() if some and name not in ON_THE_HOSTS_CLOCK} == {}
    assert [name for name in ON_THE_HOSTS_CLOCK if not found[name]] == [], "these need no exception"


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.time()",
        "from time import time as now; now()",
        "import datetime as dt; dt.datetime.now(dt.UTC)",
        "from datetime import datetime; datetime.utcnow()",
        "from datetime import date; field(default_factory=date.today)",
        "import time; time.strftime('%Y')",
        "import email.utils; email.utils.localtime()",
        "def late():\n    import time\n    return time.time_ns()",
    ],
)
def test_a_reading_is_found_however_it_is_written(code: str) -> None:
    assert len(list(readings(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.monotonic()",
        "import time; time.gmtime(0)",
        "from datetime import datetime; datetime.fromtimestamp(0)",
        "from store.clock import wall; wall.time()",
        "from email.utils import localtime; localtime(moment)",
    ],
)
def test_durations_and_conversions_are_no_readings(code: str) -> None:
    assert list(readings(ast.parse(code))) == []
