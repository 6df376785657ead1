"""The examples of the documents about tests of apps, run as their readers would."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tests.testkit.test_testing_plugin import PLUGINS, ROOT, suite

__all__ = ["suite"]  # a fixture

pytestmark = pytest.mark.slow

pytest_plugins = "pytester"

DOCUMENT = ROOT / "docs" / "testing.md"
TOKENS = ROOT / "docs" / "testing-tokens.md"


def python_of(document: Path) -> str:
    (block,) = re.findall(r"^```python\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_documented_example_passes_unchanged(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_notes=python_of(DOCUMENT))
    suite.runpytest_subprocess(*PLUGINS).assert_outcomes(passed=10)


def test_the_documented_example_with_tokens_passes_unchanged(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_orders=python_of(TOKENS))
    suite.runpytest_subprocess(*PLUGINS).assert_outcomes(passed=9)


@pytest.mark.parametrize("document", [DOCUMENT, TOKENS], ids=lambda path: path.name)
def test_the_document_installs_everything_its_example_imports(document: Path) -> None:
    nodes = [*ast.walk(ast.parse(python_of(document)))]
    modules = {node.names[0].name for node in nodes if isinstance(node, ast.Import)}
    modules |= {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
    (command,) = re.findall(r"^pip install (.*)$", document.read_text("utf-8"), re.MULTILINE)
    assert modules - sys.stdlib_module_names == {"pytest", *command.split()[1:]}  # pytest comes with the extra
