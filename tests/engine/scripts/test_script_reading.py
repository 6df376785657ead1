"""When the files of `lua/` are read: a script with its first call, or all at a server's start."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.engine import script_source
from store.engine.script_source import Script, ScriptError, ScriptFolder
from store.engine.scripts import Scripts
from store.wiring import Store


@pytest.mark.gen_test
async def test_a_script_is_read_once_and_only_when_it_is_needed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command reads the scripts that it calls; a server reads and checks all at its start."""
    (tmp_path / "good.lua").write_text("--- KEYS[1] user\n--- @reply ok\nreturn {'ok'}")
    (tmp_path / "bad.lua").write_text("return {}")
    read: list[str] = []
    load = script_source._load

    def counted(path: Path, include: script_source.FindInclude) -> Script:
        read.append(path.stem)
        return load(path, include)

    monkeypatch.setattr(script_source, "_load", counted)
    scripts = Scripts(store.client, ScriptFolder(tmp_path))
    for _ in range(2):
        assert (await scripts.run("good", {"user": "{0}"})).word == "ok"
    assert read == ["good"]
    with pytest.raises(ScriptError, match="no @reply"):
        scripts.read_all()
