"""Each mark that silences mypy or ruff has its reason, as `make lint` checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev.checks import silenced
from tests.support.lists.offenders import each


@each(
    ("line", "explained"),
    [
        ("f(1)  # type: ignore[arg-type]", False),
        ("f(1)  # type: ignore", False),
        ("f(1)  # type: ignore[arg-type, misc] # ", False),
        ("f(1)  # noqa", False),
        ("f(1)  # noqa: S310, E402", False),
        ("f(1)  # type: ignore[misc]  # noqa: SIM115", False),
        ("# ruff: noqa: RUF001", False),
        ("f(1)  # type: ignore [arg-type]", False),
        ("f(1)  #\ttype: ignore", False),
        ("f(1)  # noqa : S310", False),
        ("f(1)  # pragma: no cover  # noqa: F401", False),
        ("# mypy: ignore-errors", False),
        ('# mypy: disable-error-code="misc, arg-type"', False),
        ("# ruff: disable[S310]", False),
        ("f(1)  # type: ignore[arg-type]  # wrong on purpose", True),
        ("f(1)  # noqa: S310  # our own server", True),
        ("f(1)  # type: ignore[misc]  # noqa: SIM115  # as above", True),
        ("# ruff: noqa: RUF001 - the letters are the data", True),
        ("f('# noqa: S310')", True),
        ("# mypy: ignore-errors  # a copy of another project", True),
        ("f(1)  # says what noqa does", True),
    ],
)
def test_a_mark_needs_a_reason(line: str, explained: bool) -> None:
    assert silenced.unexplained(f"g(\n    2\n)\n{line}\n") == ([] if explained else [4])


def test_a_mark_without_a_reason_fails_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("f(1)\nf(2)  # noqa: S310\n")
    (tmp_path / "a.md").write_text("f(2)  # noqa: S310\n")
    monkeypatch.setattr(silenced, "ROOT", tmp_path)
    monkeypatch.setattr(silenced, "tracked", lambda: ["a.md", "a.py"])
    assert silenced.main() == 1
    assert capsys.readouterr().err == f"a.py:2: {silenced.ADVICE}\n"
