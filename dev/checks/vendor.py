"""`python -m dev.checks.vendor`: checks the vendored files of other projects against their record.

A folder of `static/vendor` holds files of one npm package, including its licence. Its `VERSION.toml` has the package,
the version, the hash of the registry's archive, and the SHA-256 of each file. Scripts and stylesheets are stored
compressed, ready to send. `--fetch` downloads that archive with npm, checks its hash, and writes the files again. With
`--record` it downloads the recorded version and writes new hashes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENDOR = ROOT / "static" / "vendor"
RECORD = "VERSION.toml"
PACKED = (".js", ".css")


class NotAsRecorded(Exception):
    """A file or an archive differs from the record; the message says which."""


@dataclass(frozen=True)
class Record:
    """The record of a folder: an npm package, its version, the hash of its archive in npm's form, and each file's
    SHA-256 in hex."""

    package: str
    version: str
    integrity: str
    files: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Record:
        """The record of a folder. Raises OSError, KeyError, tomllib.TOMLDecodeError."""
        found = tomllib.loads((folder / RECORD).read_text("utf-8"))
        return cls(found["package"], found["version"], found["integrity"], dict(found["files"]))

    def write(self, folder: Path) -> None:
        """Writes the record into a folder."""
        lines = [f"{name} = {json.dumps(getattr(self, name))}" for name in ("package", "version", "integrity")]
        lines += ["", "[files]", *(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in self.files.items())]
        (folder / RECORD).write_text("\n".join(lines) + "\n", "utf-8")


def place_of(folder: Path, name: str) -> Path:
    """The path of a stored file."""
    return folder / (f"{name}.gz" if name.endswith(PACKED) else name)


def content_of(folder: Path, name: str) -> bytes:
    """The content of a file as the package has it. Raises OSError."""
    content = place_of(folder, name).read_bytes()
    return gzip.decompress(content) if name.endswith(PACKED) else content


def complaints(folder: Path) -> list[str]:
    """Differences between a folder and its record. Raises OSError."""
    record = Record.read(folder)
    known = {place_of(folder, name).name for name in record.files} | {RECORD}
    found = [f"{path.name} is in no record" for path in sorted(folder.iterdir()) if path.name not in known]
    for name, recorded in record.files.items():
        if hashlib.sha256(content_of(folder, name)).hexdigest() != recorded:
            found.append(f"{name} is not that of {record.package} {record.version}")
    return [f"{folder.name}: {one}" for one in found]


def integrity_of(archive: bytes) -> str:
    """The hash of an archive as npm writes it (W3C Subresource Integrity)."""
    return "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()


def unpack(folder: Path, record: Record, archive: bytes, *, renew: bool = False) -> Record:
    """Extracts the record's files from the archive and returns the record; with `renew`, a record with the hashes of
    this archive. Writes nothing unless everything matches. Raises NotAsRecorded."""
    integrity = integrity_of(archive)
    if not renew and integrity != record.integrity:
        raise NotAsRecorded(f"the archive of {record.package} {record.version} is {integrity}, not {record.integrity}")
    contents: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for name in record.files:
            try:
                member = members.extractfile(f"package/{name}")
            except KeyError:
                member = None
            if member is None:
                raise NotAsRecorded(f"{record.package} {record.version} has no file {name}")
            contents[name] = member.read()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    for name, recorded in record.files.items():
        if not renew and hashes[name] != recorded:
            raise NotAsRecorded(f"{name} of {record.package} {record.version} is {hashes[name]}, not {recorded}")
    for name, content in contents.items():
        packed = gzip.compress(content, 9, mtime=0) if name.endswith(PACKED) else content
        place_of(folder, name).write_bytes(packed)
    return Record(record.package, record.version, integrity, hashes)


def fetch(record: Record) -> bytes:
    """The archive, from the registry that npm is set to. Raises OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        package = f"{record.package}@{record.version}"
        subprocess.run(["npm", "pack", "--silent", "--ignore-scripts", package], cwd=folder, check=True, timeout=300)
        (archive,) = Path(folder).iterdir()
        return archive.read_bytes()


def main(arguments: list[str]) -> int:
    """Checks all folders, or downloads their files."""
    renew = "--record" in arguments
    found: list[str] = []
    for folder in sorted(path for path in VENDOR.iterdir() if path.is_dir()):
        if renew or "--fetch" in arguments:
            record = Record.read(folder)
            unpack(folder, record, fetch(record), renew=renew).write(folder)
        found += complaints(folder)
    for one in found:
        print(one, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
