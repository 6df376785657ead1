"""What `testkit/fakeredis_private.py` relies on, tested against the installed fakeredis."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fakeredis
import pytest

from store.clock import wall
from testkit import fakeredis_private
from testkit.clock import Clock

FOLDER = Path(fakeredis.__file__).parent
HOUR = 3600
OF_NO_LIFETIME = {
    "_core/_server.py": "when the data was last saved",
    "commands_mixins/connection_mixin.py": "idle time of a connection, and CLIENT PAUSE",
    "model/_client_info.py": "age of a connection",
    "model/_topk.py": "a seed for random numbers",
    "stack/_timeseries_mixin.py": "a type of data that the store does not use",
}


def reads_the_time(tree: ast.Module) -> bool:
    return any(ast.unparse(node) == "time.time" for node in ast.walk(tree) if isinstance(node, ast.Attribute))


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    yield clock
    clock.back_to_the_present()
    fakeredis_private.follow()


def test_no_other_module_reads_a_clock() -> None:
    trees = {path.relative_to(FOLDER).as_posix(): ast.parse(path.read_text()) for path in FOLDER.rglob("*.py")}
    readers = {Path(str(module.__file__)).relative_to(FOLDER).as_posix() for module in fakeredis_private.READERS}
    assert {name for name, tree in trees.items() if reads_the_time(tree)} == readers | OF_NO_LIFETIME.keys()
    imports = {ast.unparse(node) for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Import)}
    found = {ast.unparse(n) for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert {line for line in imports | found if line.split()[1] in ("time", "datetime")} == {"import time"}


def test_the_store_in_memory_follows_the_wall_clock(clock: Clock) -> None:
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer(version=(7,)))
    client.set("k", "v", ex=2 * HOUR)
    client.xgroup_create("s", "group", mkstream=True)
    first: Any = client.xadd("s", {"f": "v"})
    client.xreadgroup("group", "reader", {"s": ">"})
    clock.forward(HOUR)
    assert client.time()[0] == pytest.approx(time.time() + HOUR, abs=2)
    assert client.eval("return redis.call('TIME')[1]", 0) == str(client.time()[0]).encode()
    assert client.ttl("k") == pytest.approx(HOUR, abs=2)
    (waiting,) = client.xpending_range("s", "group", "-", "+", 1)
    assert waiting["time_since_delivered"] == pytest.approx(HOUR * 1000, abs=2000)
    second: Any = client.xadd("s", {"f": "v"})
    passed = int(second.partition(b"-")[0]) - int(first.partition(b"-")[0])
    assert passed == pytest.approx(HOUR * 1000, abs=2000)
    clock.forward(HOUR)
    assert client.get("k") is None


def test_the_present_is_the_hosts_time(clock: Clock) -> None:
    clock.forward(HOUR)
    assert clock.now() == pytest.approx(time.time() + HOUR, abs=2)
    assert wall.utc().timestamp() == pytest.approx(time.time() + HOUR, abs=2)
    clock.back_to_the_present()
    assert wall.time() == pytest.approx(time.time(), abs=2)
