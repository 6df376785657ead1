"""`import` and `export` on the command line."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from tests.support.moving.movers import HASH, line, lines
from tests.support.processes.forked import Forked
from tests.support.processes.operator_commands import Home, child, clean_environment, everything

ADA = "ada@example.com"


def _file(folder: Path, *given: bytes) -> str:
    path = folder / "people.jsonl"
    path.write_bytes(b"\n".join(given) + b"\n")
    return str(path)


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_an_import_prints_one_line_and_its_status_tells_of_refused_lines(
    home: Home, tmp_path: Path, words: tuple[str, ...]
) -> None:
    good = home.words("import", _file(tmp_path, line(ADA), line("bob@example.com")), *words)
    assert (good.status, good.out) == (0, '{"created": 2, "updated": 0, "refused": []}\n')
    bad = home.words("import", _file(tmp_path, line(ADA), b"x", line("eve@example.com")), *words)
    assert bad.status == 1
    assert json.loads(bad.out) == {
        "created": 1,
        "updated": 0,
        "refused": [
            {"line": 1, "reason": "There's already an account with this e-mail address."},
            {"line": 2, "reason": "The line is no JSON object: the mistake is at column 1."},
        ],
    }
    again = home.words("import", _file(tmp_path, line(ADA, name="Countess")), "--update", *words)
    assert (again.status, json.loads(again.out)) == (0, {"created": 0, "updated": 1, "refused": []})
    assert home.json("user", "show", ADA)["name"] == "Countess"


def test_an_import_is_one_act_in_the_trail_and_each_person_has_it_in_theirs(home: Home, tmp_path: Path) -> None:
    secret = "JBSWY3DPEHPK3PXP"
    given = [line(ADA, password_hash=HASH, totp_secret=secret), b'{"secret": "of a bad line"}']
    dry = home.words("import", _file(tmp_path, *given), "--dry-run")
    assert (dry.status, json.loads(dry.out)["dryRun"]) == (1, True)
    assert home.json("audit")["events"] == []
    assert home.words("import", _file(tmp_path, *given)).status == 1
    (event,) = home.json("audit")["events"]
    assert (event["event"], event["actor"]) == ("people_imported_by_operator", "operator")
    assert event["detail"] == "created 1 updated 0 refused 1"
    assert [one["event"] for one in home.json("user", "show", ADA)["activity"]] == ["imported"]
    with home.client() as client:
        kept = everything(client)
    assert not any(one in kept for one in (secret.encode(), b"Hello!", b"of a bad line"))


def test_more_refusals_than_are_listed_are_counted(home: Home, tmp_path: Path) -> None:
    said = home.words("import", _file(tmp_path, *[b"x"] * 1200))
    found = json.loads(said.out)
    assert (len(found["refused"]), found["refused_more"]) == (1000, 200)


def test_an_import_reads_standard_input(home: Home) -> None:
    said = child(home.data_dir, "import", "-", stdin=(line(ADA) + b"\n").decode())
    assert (said.status, said.err) == (0, "")
    assert home.json("user", "show", ADA)["email"] == ADA


def test_a_missing_file_and_a_folder_are_errors(home: Home, tmp_path: Path) -> None:
    assert home.error("import", str(tmp_path / "none"))[0] == 1
    assert home.error("import", str(tmp_path))[0] == 1
    assert home.error("export", str(tmp_path / "none" / "people"))[0] == 1
    assert home.error("export", "-")[1] == "invalid_request"


def test_an_export_is_private_and_can_be_imported(home: Home, tmp_path: Path) -> None:
    home.words("import", _file(tmp_path, line(ADA, password_hash=HASH)))
    path = tmp_path / "export.jsonl"
    assert home.json("export", str(path), "--hashes") == {"people": 1, "output": str(path)}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (found,) = map(json.loads, path.read_text().splitlines())
    assert found["password_hash"] == f"$2b${HASH[4:]}"
    assert home.json("user", "delete", ADA, "--yes")["deleted"]
    assert home.words("import", str(path)).out == '{"created": 1, "updated": 0, "refused": []}\n'
    plain = child(home.data_dir, "export", "-").out
    assert json.loads(plain).keys() == found.keys() - {"password_hash"}
    events = [(one["event"], one["detail"]) for one in home.json("audit")["events"]]
    assert ("people_exported_by_operator", "1 people with secrets") in events
    assert ("people_exported_by_operator", "1 people without secrets") in events


def test_an_import_killed_at_half_continues_and_leaves_a_sound_store(home: Home, tmp_path: Path) -> None:
    given = lines(1500, password_hash=HASH, email_verified=True)
    reader, writer = os.pipe()
    with (tmp_path / "out").open("w+b") as out:
        command = ["--data-dir", str(home.data_dir), "import", "-"]
        process = Forked(
            "manage.py", command, env=clean_environment(), stdin=reader, stdout=out.fileno(), stderr=out.fileno()
        )
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe, home.client() as client:
            pipe.write(b"\n".join(given[:1100]) + b"\n")
            pipe.flush()
            # The command waits for more lines: two batches are written, or one and a part.
            deadline = time.monotonic() + 60
            while sum(1 for _ in client.scan_iter("*:user", count=5000)) < 512:
                assert time.monotonic() < deadline
            process.kill()
        assert process.wait(10) != 0
        assert out.tell() == 0
    killed = home.json("fsck")
    assert killed["errors"] == 0, killed["findings"]
    said = home.words("import", _file(tmp_path, *given))
    assert said.out == '{"created": 1500, "updated": 0, "refused": []}\n'
    found = home.json("fsck")
    assert (found["clean"], found["people"], found["findings"]) == (True, 1500, [])
