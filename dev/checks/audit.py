"""`python -m dev.checks.audit`: looks for known vulnerabilities in the packages of the lock files.

pip-audit checks the Python packages against advisory databases; npm checks the packages that tests use. If a database
is unreachable, or misses well-known advisories, nothing was checked: the output says so, and the audit neither passes
nor fails, because a build may have no network. Any finding fails, unless `dev/checks/ignored.toml` lists it with a
reason and an expiry date.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from dev.checks.lock import EVERYTHING, ROOT, Pin, read_lock

IGNORED = ROOT / "dev" / "checks" / "ignored.toml"
NODE = ROOT / "tests" / "support" / "node"

# Both have had known vulnerabilities for years. A service that reports none for them proves nothing about others.
KNOWN = Pin("django", "3.2", "", 0)
KNOWN_OF_NPM = ("minimist", "0.0.8")

QUICK, SLOW = 20.0, 60.0
"""Timeouts in seconds: for one package, and for all."""

LONGEST = 120
"""Characters of a reason that are shown: libraries write long ones."""


class NotChecked(Exception):
    """The packages could not be checked; the message says why."""


@dataclass(frozen=True)
class Weakness:
    """One advisory on one package; `ids` are its names."""

    package: str
    ids: frozenset[str]
    text: str


@dataclass(frozen=True)
class Ignored:
    """An advisory that does not affect this project, the reason, and the date until which that holds."""

    advisory: str
    reason: str
    until: date


def read_ignored(path: Path = IGNORED) -> list[Ignored]:
    """The ignored advisories. Raises ValueError for an entry without a reason or a date."""
    rows = tomllib.loads(path.read_text("utf-8")).get("ignored", [])
    for row in rows:
        if set(row) != {"advisory", "reason", "until"} or not row["reason"] or not isinstance(row["until"], date):
            raise ValueError(f"{path.name}: an entry has an advisory, a reason and the day until which it holds: {row}")
    return [Ignored(**row) for row in rows]


def of_python(service: Sequence[str], pins: Iterable[Pin]) -> list[Weakness]:
    """The vulnerabilities that a service of pip-audit reports. Raises NotChecked."""
    if not _ask_pip_audit(service, [KNOWN], QUICK):
        raise NotChecked(f"{service[-1]} reports no weaknesses of {KNOWN.name} {KNOWN.version}")
    left, found = list(pins), []
    while left:  # a lock may hold several versions of a package, for several platforms; pip-audit takes one
        once = {pin.name: pin for pin in left}
        found += _ask_pip_audit(service, list(once.values()), SLOW)
        left = [pin for pin in left if once[pin.name] != pin]
    return found


def _ask_pip_audit(service: Sequence[str], pins: list[Pin], seconds: float) -> list[Weakness]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{pin.name}=={pin.version}\n" for pin in pins))
        file.flush()
        command = [sys.executable, "-m", "pip_audit", "-r", file.name, "--no-deps", "--disable-pip"]
        command += ["--progress-spinner", "off", "--format", "json", "--timeout", "5", *service]
        report = _json_of(command, ROOT, seconds)
    answers = report.get("dependencies")
    if not isinstance(answers, list) or len(answers) != len(pins):
        raise NotChecked("pip-audit answered something else than it was asked")
    passed_over = [row for row in answers if "vulns" not in row]
    if passed_over:
        raise NotChecked(f"{len(passed_over)} of {len(pins)} packages, {passed_over[0].get('skip_reason', '')}")
    return [
        Weakness(
            f"{row['name']} {row['version']}",
            frozenset((one["id"], *one.get("aliases", ()))),
            f"better: {', '.join(one['fix_versions']) or 'no version yet'}",
        )
        for row in answers
        for one in row["vulns"]
    ]


def of_npm(folder: Path = NODE) -> list[Weakness]:
    """The vulnerabilities that npm's registry reports for a folder's lock file. Raises NotChecked."""
    name, version = KNOWN_OF_NPM
    with tempfile.TemporaryDirectory() as made:
        asks = {"dependencies": {name: version}}
        locked = {"": asks, f"node_modules/{name}": {"version": version}}
        known = {"name": "known", "lockfileVersion": 3, "requires": True, "packages": locked}
        (Path(made) / "package-lock.json").write_text(json.dumps(known))
        (Path(made) / "package.json").write_text(json.dumps({"name": "known", **asks}))
        if not _ask_npm(Path(made)):
            raise NotChecked(f"npm's registry reports no weaknesses of {name} {version}")
    return _ask_npm(folder)


def _ask_npm(folder: Path) -> list[Weakness]:
    command = ["npm", "audit", "--json", "--package-lock-only", "--fetch-retries", "0", "--fetch-timeout", "5000"]
    report = _json_of(command, folder, QUICK)
    rows = report.get("vulnerabilities")
    if not isinstance(rows, dict):
        raise NotChecked(f"npm audit: {report.get('message') or report.get('error') or 'no answer'}")
    found = []
    for name, row in rows.items():
        # A plain text names another package that makes this one vulnerable.
        for one in row["via"]:
            if isinstance(one, dict):
                advisory = str(one["url"]).rpartition("/")[2]
                found.append(Weakness(f"{name} {row['range']}", frozenset((advisory,)), one["title"]))
    return found


def _json_of(command: list[str], folder: Path, seconds: float) -> dict[str, Any]:
    """The JSON object that a program prints. Raises NotChecked if it prints none in time."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        answer = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise NotChecked(f"no answer within {seconds:g} seconds") from None
    except OSError as error:
        raise NotChecked(f"{command[0]}: {error.strerror}") from None
    except ValueError:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise NotChecked(last[0].strip() if last else f"{command[0]} said nothing") from None
    if not isinstance(answer, dict):
        raise NotChecked(f"{command[0]} answered something else than it was asked")
    return answer


def report(weaknesses: list[Weakness], ignored: list[Ignored], today: date) -> list[str]:
    """Findings to act on, a line each."""
    lines = []
    for weakness in weaknesses:
        excuses = [entry for entry in ignored if entry.advisory in weakness.ids]
        if not any(entry.until >= today for entry in excuses):
            was = "".join(f" (ignored until {entry.until}: {entry.reason})" for entry in excuses)
            lines.append(f"{weakness.package}: {', '.join(sorted(weakness.ids))}; {weakness.text}{was}")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the findings, or that nothing was checked. Returns 1 if there is something to act on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lock", type=Path, default=ROOT / EVERYTHING, help="the lock file to check")
    parser.add_argument("--ignored", type=Path, default=IGNORED, help="the advisories to ignore")
    parser.add_argument("--osv-url", help="ask only this service, which must answer like OSV")
    args = parser.parse_args(argv)
    pins, ignored = read_lock(args.lock), read_ignored(args.ignored)
    services = [("-s", "osv", "--osv-url", args.osv_url)] if args.osv_url else [("-s", "pypi"), ("-s", "osv")]
    wrong = _python(services, pins, ignored)
    if not args.osv_url:
        wrong += _npm(ignored)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def _python(services: Sequence[Sequence[str]], pins: list[Pin], ignored: list[Ignored]) -> list[str]:
    reasons = []
    for service in services:
        try:
            found = of_python(service, pins)
        except NotChecked as reason:
            reasons.append(str(reason)[:LONGEST])
            continue
        wrong = report(found, ignored, date.today())
        print(f"dependency audit: {len(pins)} Python packages checked, {len(wrong)} to be seen to")
        return wrong
    print(f"dependency audit: not checked ({'; '.join(reasons)})")
    return []


def _npm(ignored: list[Ignored]) -> list[str]:
    try:
        wrong = report(of_npm(), ignored, date.today())
    except NotChecked as reason:
        print(f"dependency audit of npm's packages: not checked ({str(reason)[:LONGEST]})")
        return []
    print(f"dependency audit: npm's packages checked, {len(wrong)} to be seen to")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
