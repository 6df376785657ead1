"""Other projects' files for pages are in `static/vendor` as released, with their licences."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from dev.checks.vendor import VENDOR, NotAsRecorded, Record, complaints, content_of, integrity_of, main, unpack

FOLDERS = [path for path in VENDOR.iterdir() if path.is_dir()]
FILES = {"view.js": b"view()" * 50, "LICENSE": b"Do as you please."}


def archive(files: dict[str, bytes]) -> bytes:
    """A package, as npm packs it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as members:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def record_of(files: dict[str, bytes], packed: bytes) -> Record:
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return Record("viewer", "1.2.3", integrity_of(packed), hashes)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_every_vendored_file_matches_its_record_and_has_a_licence(folder: Path) -> None:
    assert complaints(folder) == []
    record = Record.read(folder)
    assert record.integrity.startswith("sha512-")
    assert content_of(folder, "LICENSE")
    assert main([]) == 0


def test_there_are_vendored_files() -> None:
    assert [folder.name for folder in FOLDERS] == ["swagger-ui"]
    assert [path.name for path in VENDOR.iterdir() if path.is_file()] == []


def test_an_archive_is_unpacked_and_read_back(tmp_path: Path) -> None:
    packed = archive({**FILES, "not-wanted.js": b"x"})
    record = record_of(FILES, packed)
    assert unpack(tmp_path, record, packed) == record
    record.write(tmp_path)
    assert Record.read(tmp_path) == record
    assert sorted(path.name for path in tmp_path.iterdir()) == ["LICENSE", "VERSION.toml", "view.js.gz"]
    assert {name: content_of(tmp_path, name) for name in FILES} == FILES
    assert complaints(tmp_path) == []


def test_an_archive_with_another_hash_writes_nothing(tmp_path: Path) -> None:
    packed = archive(FILES)
    record = record_of(FILES, packed)
    with pytest.raises(NotAsRecorded, match="the archive"):
        unpack(tmp_path, record, archive({**FILES, "more.js": b""}))
    changed = archive({**FILES, "view.js": b"steal()"})
    with pytest.raises(NotAsRecorded, match=r"view\.js"):
        unpack(tmp_path, Record("viewer", "1.2.3", integrity_of(changed), record.files), changed)
    bare = archive({"view.js": FILES["view.js"]})
    with pytest.raises(NotAsRecorded, match="no file LICENSE"):
        unpack(tmp_path, Record("viewer", "1.2.3", integrity_of(bare), record.files), bare)
    assert list(tmp_path.iterdir()) == []


def test_a_new_version_is_recorded_on_request(tmp_path: Path) -> None:
    packed = archive(FILES)
    wanted = Record("viewer", "1.2.4", "", dict.fromkeys(FILES, ""))
    unpack(tmp_path, wanted, packed, renew=True).write(tmp_path)
    assert Record.read(tmp_path) == Record("viewer", "1.2.4", integrity_of(packed), record_of(FILES, packed).files)
    assert complaints(tmp_path) == []


def test_changed_or_added_files_are_reported(tmp_path: Path) -> None:
    packed = archive(FILES)
    unpack(tmp_path, record_of(FILES, packed), packed).write(tmp_path)
    (tmp_path / "LICENSE").write_bytes(b"Nobody may.")
    (tmp_path / "more.js").write_bytes(b"x")
    assert complaints(tmp_path) == [
        f"{tmp_path.name}: more.js is in no record",
        f"{tmp_path.name}: LICENSE is not that of viewer 1.2.3",
    ]
