"""The measurement of finding people runs, over few of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dev.bench import directory


def test_the_measurement_fills_searches_and_signs_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(directory, "SIGN_UPS", 2)
    monkeypatch.setattr(directory, "ROUNDS", 1)
    file = tmp_path / "figures.json"
    assert directory.main(["--people", "300", "--json", str(file)]) == 0
    shown, measured = capsys.readouterr().out, json.loads(file.read_text())
    assert measured["filled"]["people"] == 300
    assert {"address, first page", "name, first page", "domain, first page"} <= measured["pages"].keys()
    assert all(cost > 0 for one in measured["sign_up"].values() for cost in one.values())
    assert "index of a person" in shown
    assert f"{measured['filled']['address']:.1f} characters" in shown
