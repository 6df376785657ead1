"""Downloads of documents: a zip archive or JSON lines, written piece by piece in constant memory."""

from __future__ import annotations

import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from store.documents.documents import Metadata, document_record

COMPRESSION = 3
_CHUNK = 64 * 2**10
# APPNOTE.TXT 4.3.7, 4.3.12, 4.3.14 to 4.3.16: the records of a zip archive; 4.5.3: the 64-bit offset of an entry.
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")
_OFFSET64 = struct.Struct("<2HQ")
_MOST16, _MOST32 = 0xFFFF, 0xFFFFFFFF
_UNIX_ZIP64 = 3 << 8 | 45
_DEFLATED = 8
_PRIVATE_FILE = 0o100600 << 16


def document_path(found: Metadata) -> str:
    """The path of a document in an archive. Windows allows no colon in file names, so a colon is percent-encoded. No
    document name has a percent sign, so no two paths collide."""
    return f"{found.collection}/{found.document_id}.json".replace(":", "%3A")


def json_line(fields: Mapping[str, Any], data: bytes | None = None) -> bytes:
    """One line of JSON lines. `data` is a JSON text, inserted unchanged except for line breaks: these are white space
    outside strings and cannot occur inside strings."""
    text = json.dumps(fields, ensure_ascii=False).encode()
    if data is not None:
        text = text[:-1] + b', "data": ' + data.replace(b"\r", b" ").replace(b"\n", b" ") + b"}"
    return text + b"\n"


class Packed:
    """The content of a file in an archive, compressed as it arrives; holds only the compressed bytes."""

    def __init__(self, content: bytes = b"") -> None:
        self._deflater = zlib.compressobj(COMPRESSION, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._pieces: list[bytes] = []
        self.crc, self.size = 0, 0
        self.add(content)

    def add(self, content: bytes) -> None:
        """Adds the next piece of the content."""
        self._pieces.append(self._deflater.compress(content))
        self.crc, self.size = zlib.crc32(content, self.crc), self.size + len(content)

    def end(self) -> bytes:
        """The whole compressed content."""
        return b"".join([*self._pieces, self._deflater.flush()])


class ZipWriter:
    """Writes a zip archive for a reader that cannot seek. A temporary file holds the directory, which is the archive's
    last part. Always call `close`, even without `end`."""

    def __init__(self) -> None:
        self._directory = tempfile.SpooledTemporaryFile(max_size=_CHUNK)  # noqa: SIM115  # closed by `close`
        self._offset = 0
        self._entries = 0

    def add(self, path: str, content: bytes | Packed, modified: datetime) -> bytes:
        """The bytes of one more file; `path` is ASCII, and the time is in UTC, precise to two seconds."""
        name = path.encode("ascii")
        file = content if isinstance(content, Packed) else Packed(content)
        packed = file.end()
        facts = (0, _DEFLATED, *_dos_time(modified), file.crc, len(packed), file.size, len(name))
        local = _LOCAL.pack(b"PK\x03\x04", 20, *facts, 0) + name + packed
        far = self._offset >= _MOST32
        extra = _OFFSET64.pack(1, 8, self._offset) if far else b""
        offset = min(self._offset, _MOST32)
        need = 45 if far else 20
        self._directory.write(
            _CENTRAL.pack(b"PK\x01\x02", _UNIX_ZIP64, need, *facts, len(extra), 0, 0, 0, _PRIVATE_FILE, offset)
            + name
            + extra
        )
        self._offset += len(local)
        self._entries += 1
        return local

    def end(self) -> Iterator[bytes]:
        """Yields the last bytes of the archive."""
        size = self._directory.tell()
        self._directory.seek(0)
        while chunk := self._directory.read(_CHUNK):
            yield chunk
        entries, start = self._entries, self._offset
        if entries >= _MOST16 or max(size, start) >= _MOST32:
            yield _END64.pack(b"PK\x06\x06", _END64.size - 12, _UNIX_ZIP64, 45, 0, 0, entries, entries, size, start)
            yield _LOCATOR.pack(b"PK\x06\x07", 0, start + size, 1)
        few = min(entries, _MOST16)
        yield _END.pack(b"PK\x05\x06", 0, 0, few, few, min(size, _MOST32), min(start, _MOST32), 0)

    def close(self) -> None:
        """Gives back the temporary file."""
        self._directory.close()


class Archive(Protocol):
    """A format for downloading the documents of an app."""

    extension: str
    media_type: str

    def add(self, found: Metadata, content: bytes) -> bytes:
        """The bytes that hold one more document."""

    def end(self) -> Iterator[bytes]:
        """Yields the bytes after the last document."""

    def close(self) -> None:
        """Frees its resources."""


class ZipOfDocuments:
    """A zip archive with a folder for each collection and a file for each document, byte for byte as sent."""

    extension = "zip"
    media_type = "application/zip"

    def __init__(self) -> None:
        self._writer = ZipWriter()

    def add(self, found: Metadata, content: bytes) -> bytes:
        """The bytes that hold one more document."""
        return self._writer.add(document_path(found), content, found.updated_at)

    def end(self) -> Iterator[bytes]:
        """Yields the directory of the archive."""
        return self._writer.end()

    def close(self) -> None:
        """Gives back the temporary file."""
        self._writer.close()


class LinesOfDocuments:
    """JSON lines: one for each document, with its metadata and the document under `data`."""

    extension = "jsonl"
    media_type = "application/x-ndjson"

    def add(self, found: Metadata, content: bytes) -> bytes:
        """The line of one more document."""
        return json_line(document_record(found), content)

    def end(self) -> Iterator[bytes]:
        """Yields nothing: the last line is the end."""
        return iter(())

    def close(self) -> None:
        """Does nothing: it holds no resources."""


ARCHIVES: dict[str, Callable[[], Archive]] = {"zip": ZipOfDocuments, "jsonl": LinesOfDocuments}


def _dos_time(moment: datetime) -> tuple[int, int]:
    """A time from 1980 on, precise to two seconds (APPNOTE.TXT 4.4.6)."""
    utc = max(moment.astimezone(UTC), datetime(1980, 1, 1, tzinfo=UTC))
    return utc.hour << 11 | utc.minute << 5 | utc.second // 2, (utc.year - 1980) << 9 | utc.month << 5 | utc.day
