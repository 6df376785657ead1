"""Archives as written, read back by Python's own readers."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handlers.documents.pretty import MAX_CHARACTERS, indented
from store.documents.archive import ZipWriter, document_path, json_line
from store.documents.documents import Metadata, document_record
from tests.support.lists.offenders import each

NOW = datetime(2026, 3, 5, 14, 7, 9, 250_000, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


def document(collection: str = "notes", document_id: str = "n1", size: int = 2) -> Metadata:
    return Metadata(collection, document_id, "17", size, NOW_MS, NOW_MS)


def test_a_zip_returns_its_content() -> None:
    files = {f"notes/{n}.json": b'{"n":%d}' % n * n for n in range(50)}
    with closing(ZipWriter()) as writer:
        written = b"".join([*(writer.add(path, content, NOW) for path, content in files.items()), *writer.end()])
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == files
        assert {info.date_time for info in archive.infolist()} == {(2026, 3, 5, 14, 7, 8)}
        assert {info.external_attr >> 16 for info in archive.infolist()} == {0o100600}


def test_an_empty_zip_is_valid() -> None:
    with closing(ZipWriter()) as writer:
        assert zipfile.ZipFile(io.BytesIO(b"".join(writer.end()))).namelist() == []


def test_a_zip_holds_65535_files_and_more() -> None:
    with closing(ZipWriter()) as writer:
        pieces = [writer.add(f"{n}", b"", NOW) for n in range(65_535)]
        written = b"".join([*pieces, *writer.end()])
    assert b"PK\x06\x06" in written[-200:]
    assert len(zipfile.ZipFile(io.BytesIO(written)).namelist()) == 65_535


def test_a_zip_grows_beyond_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "far.zip"
    with closing(ZipWriter()) as writer, path.open("wb") as file:
        file.write(writer.add("near.json", b"1", NOW))
        writer._offset = 5 * 2**30  # a hole in the file stands for what lies between
        file.seek(writer._offset)
        file.write(writer.add("far.json", b"2", NOW))
        for piece in writer.end():
            file.write(piece)
    with zipfile.ZipFile(path) as archive:
        assert [archive.read(name) for name in ("near.json", "far.json")] == [b"1", b"2"]


def test_paths_are_valid_file_names_on_every_system() -> None:
    assert document_path(document("notes", "a.b@c~d-e_f")) == "notes/a.b@c~d-e_f.json"
    assert document_path(document("notes", "user:1")) == "notes/user%3A1.json"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{\n  "a": [1.0,\r\n 2]\n}\n', id="laid out over several lines"),
        pytest.param(b"null", id="null"),
        pytest.param('"ä\\n😀\\u2028\u2028"'.encode(), id="a string with breaks that are no line breaks"),
    ],
)
def test_a_document_is_one_line_with_the_same_value(content: bytes) -> None:
    line = json_line(document_record(document(size=len(content))), content)
    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")
    assert b"\r" not in line
    read = json.loads(line)
    assert read.pop("data") == json.loads(content)
    assert read == {"collection": "notes", **document_record(document(size=len(content)))}


def test_a_number_is_written_as_it_was_sent() -> None:
    assert b'"data": 1.50e+1000}' in json_line({"id": "n"}, b"1.50e+1000")


@each(
    ("text", "laid_out"),
    [
        pytest.param("[]", "[]", id="an empty list"),
        pytest.param(" { } ", "{}", id="an empty object"),
        pytest.param("1.50e+1000", "1.50e+1000", id="a number keeps its form"),
        pytest.param('"a\\u0041 [,:]{}"', '"a\\u0041 [,:]{}"', id="a string keeps its form"),
        pytest.param('{"a":[1,{}],"b":null}', '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": null\n}', id="nested"),
        pytest.param('{"a":1,"a":2}', '{\n  "a": 1,\n  "a": 2\n}', id="a repeated key stays repeated"),
        pytest.param('["\\"]\\\\"]', '[\n  "\\"]\\\\"\n]', id="escaped quotes"),
    ],
)
def test_json_is_formatted_without_a_change(text: str, laid_out: str) -> None:
    assert indented(text) == laid_out


def test_json_that_would_grow_too_long_is_not_formatted() -> None:
    deep = "[" * 199 + ",".join(["[]"] * 20_000) + "]" * 199
    assert len(deep) < MAX_CHARACTERS / 4
    assert indented(deep) is None


def test_a_document_with_very_many_values_is_shown_as_sent() -> None:
    assert indented("[" + "1," * 9_998 + "1]") is not None
    assert indented("[" + "1," * 9_999 + "1]") is None
