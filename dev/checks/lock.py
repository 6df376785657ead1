"""`python -m dev.checks.lock`: checks that the lock files satisfy setup.cfg, with a version and hashes for every
package.

Servers run on `requirements.lock`. `requirements-dev.lock` adds what tests and measurements need. `make lock` writes
both, for every platform and every Python version that setup.cfg supports.
"""

from __future__ import annotations

import configparser
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent.parent
SERVER, EVERYTHING = "requirements.lock", "requirements-dev.lock"
SERVER_EXTRAS = ("fast",)

_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;]+)(?: ; ([^\\]+?))?(?: \\)?$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


class BadLock(Exception):
    """A malformed lock file; the message says where and why."""


@dataclass(frozen=True)
class Pin:
    """A package of a lock file: its normalised name, its version, and the platforms and Pythons it applies to."""

    name: str
    version: str
    marker: str
    hashes: int


def read_lock(path: Path) -> list[Pin]:
    """The packages of a lock file. Raises OSError, and BadLock for a line that is no pin, hash or comment."""
    pins: list[Pin] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _PIN.match(line):
            name, version, marker = found.groups()
            pins.append(Pin(canonicalize_name(name), version, marker or "", 0))
        elif _HASH.match(line) and pins:
            last = pins.pop()
            pins.append(Pin(last.name, last.version, last.marker, last.hashes + 1))
        else:
            raise BadLock(f"{path.name}:{number}: neither a pinned package nor a hash: {line}")
    return pins


def asked_for(extras: tuple[str, ...] | None = None) -> list[Requirement]:
    """The requirements in setup.cfg, with these extras or with all of them."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    texts = [config["options"]["install_requires"]]
    section = config["options.extras_require"]
    texts += [section[extra] for extra in (section if extras is None else extras)]
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def complaints(lock: Path, requirements: list[Requirement]) -> list[str]:
    """Complaints about a lock file. Raises BadLock, OSError."""
    pins = read_lock(lock)
    found = [f"{lock.name}: {pin.name} {pin.version} has no hash" for pin in pins if not pin.hashes]
    for requirement in requirements:
        versions = [Version(pin.version) for pin in pins if pin.name == canonicalize_name(requirement.name)]
        if not versions:
            found.append(f"{lock.name}: {requirement.name} is not in it")
        found += [
            f"{lock.name}: {requirement.name} {version} is not {requirement.specifier}, which setup.cfg asks for"
            for version in versions
            if version not in requirement.specifier
        ]
    return found


def differences(server: Path, everything: Path) -> list[str]:
    """Packages that a server would run on and no test has seen. Raises BadLock, OSError."""
    tested = {(pin.name, pin.version) for pin in read_lock(everything)}
    return [
        f"{server.name}: {pin.name} {pin.version} is not in {everything.name}"
        for pin in read_lock(server)
        if (pin.name, pin.version) not in tested
    ]


def main() -> int:
    """Prints the complaints. Returns 1 if there are any."""
    try:
        wrong = complaints(ROOT / SERVER, asked_for(SERVER_EXTRAS)) + complaints(ROOT / EVERYTHING, asked_for())
        wrong += differences(ROOT / SERVER, ROOT / EVERYTHING)
    except (BadLock, OSError) as error:
        wrong = [str(error)]
    for line in sorted(wrong):
        print(line, file=sys.stderr)
    if wrong:
        print("Run `make lock` to write the lock files again.", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
