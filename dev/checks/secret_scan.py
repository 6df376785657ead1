"""`python -m dev.checks.secret_scan`: looks for secrets in the files of the project.

detect-secrets searches the files that git tracks for secrets of other services and for Latchkey's own: tokens, client
secrets, secret keys. `dev/checks/allowed.toml` lists the made-up ones of tests and examples, each with a reason. An
entry that matches nothing fails too. A file in which nothing was found is not searched again: `build/secret_scan.json`
keeps the digests of such contents.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

from dev.checks.own_secrets import LatchkeyDetector

ROOT = Path(__file__).resolve().parent.parent.parent
ALLOWED = ROOT / "dev" / "checks" / "allowed.toml"
OURS = Path(__file__).resolve().parent / "own_secrets.py"
KEPT = ROOT / "build" / "secret_scan.json"

# Only detectors of known formats. Detectors of randomness, or of words such as "password" before a text, would report
# every hash and every test's password.
DETECTORS = (
    *("ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "CloudantDetector"),
    *("DiscordBotTokenDetector", "GitHubTokenDetector", "IbmCloudIamDetector", "IbmCosHmacDetector"),
    *("JwtTokenDetector", "MailchimpDetector", "NpmDetector", "PrivateKeyDetector", "SendGridDetector"),
    *("SlackDetector", "SoftlayerDetector", "SquareOAuthDetector", "StripeDetector", "TwilioKeyDetector"),
)


@dataclass(frozen=True)
class Found:
    """A possible secret: where it is, its kind, and the text, of which only the beginning is printed."""

    file: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.text[:10]}…"


@dataclass(frozen=True)
class Allowed:
    """A text allowed in the files of a pattern, and why; `*` matches any text."""

    files: str
    text: str
    reason: str

    def covers(self, found: Found) -> bool:
        """Whether this entry allows the finding."""
        return fnmatch(found.file, self.files) and fnmatch(found.text, self.text)


def read_allowed(path: Path = ALLOWED) -> list[Allowed]:
    """The allowed entries. Raises ValueError for an entry without a reason."""
    rows = tomllib.loads(path.read_text("utf-8")).get("allowed", [])
    for row in rows:
        if set(row) != {"files", "texts", "reason"} or not all(row.values()):
            raise ValueError(f"{path.name}: an entry has files, texts and a reason: {row}")
    return [Allowed(row["files"], text, row["reason"]) for row in rows for text in row["texts"]]


def tracked(root: Path) -> list[str]:
    """The files that git tracks. Raises CalledProcessError where there is no repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True).stdout
    return [name for name in listed.decode().split("\0") if name and (root / name).is_file()]


def scan(root: Path, files: Iterable[str], kept: Path | None = None) -> Iterator[Found]:
    """Possible secrets in files under `root`. `kept`: the file that keeps digests of what has none."""
    asked = repr((DETECTORS, version("bc-detect-secrets"), [one.pattern for one in LatchkeyDetector.denylist]))
    before, now = _read(kept) if kept else set(), set()
    plugins: list[dict[str, Any]] = [{"name": name} for name in DETECTORS]
    plugins.append({"name": "LatchkeyDetector", "path": OURS.as_uri()})
    with transient_settings({"plugins_used": plugins, "filters_used": []}):
        for name in files:
            digest = _digest(root / name, f"{asked} {name} ")  # a detector may look at the name, too
            if digest in before:
                now.add(digest)
                continue
            secrets = list(scan_file(str(root / name)))
            if digest and not secrets:
                now.add(digest)
            for secret in secrets:
                yield Found(name, secret.line_number, secret.type, secret.secret_value or "")
    if kept and now != before:
        with suppress(OSError):  # the next run searches everything again
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(json.dumps(sorted(now)))


def _digest(file: Path, asked: str) -> str:
    """The digest of a content and of what is searched for in it; "" for a file that can't be read."""
    try:
        return hashlib.sha256(asked.encode() + file.read_bytes()).hexdigest()
    except OSError:
        return ""


def _read(kept: Path) -> set[str]:
    """The digests of an earlier run, if there are any."""
    try:
        found = json.loads(kept.read_bytes())
    except (OSError, ValueError):
        return set()
    return {one for one in found if isinstance(one, str) and one} if isinstance(found, list) else set()


def complaints(root: Path, allowed: list[Allowed], kept: Path | None = None) -> list[str]:
    """Findings that are not allowed, and entries that match nothing, a line each."""
    found = sorted(set(scan(root, tracked(root), kept)), key=lambda one: (one.file, one.line, one.text))
    wrong = [str(one) for one in found if not any(entry.covers(one) for entry in allowed)]
    wrong += [
        f"dev/checks/allowed.toml: {entry.files} holds no {entry.text}: remove the entry"
        for entry in allowed
        if not any(entry.covers(one) for one in found)
    ]
    return wrong


def main() -> int:
    """Prints the findings. Returns 1 if there are any."""
    try:
        wrong = complaints(ROOT, read_allowed(), KEPT)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"secret scan: not done ({error})")
        return 0
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"secret scan: {len(wrong)} to be seen to")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
