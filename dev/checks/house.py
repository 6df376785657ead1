"""Checks the shape of the tree: folders, files in each, lines in each file, and habits of language.

`python -m dev.checks.house` prints everything over its bound, a line each, and fails if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_FOLDERS = 17
TOP_MODULES = {"server.py", "manage.py"}
MOST_FILES = 25
"""Files in a folder. Data of a test or a program is not code and does not count."""
DATA = ("tests/frozen/snapshots", "static", "dev/bench/results")
LONGEST_PRODUCT, LONGEST = 350, 400
"""Lines of a product module, and of any other module."""
OWN = ("dev/", "tests/", "deploy/")
"""Folders that are not part of the product."""
HABITS = re.compile(
    r"\b(?:beside|anew|so many|as it is|by which|(?:is|are) told|nothing of)\b|\bthen(?=\.(?:\s|$))", re.IGNORECASE
)
"""Phrases that read translated. Each may be right somewhere; their total has a bound."""
MOST_HABITS = 120
FROZEN = ("templates/", "tests/frozen/snapshots/", "docs/settings.md", "docs/contributing/words.md")
"""Not counted: texts that people see, the help, and the list of replaced words."""
PROSE = {".py", ".lua", ".md", ".html", ".txt", ".toml", ".cfg"}


def tracked() -> list[str]:
    """The tracked files, as paths relative to the root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def crowded(names: list[str]) -> Iterator[str]:
    """Complaints about folders: too many at the top, or too many files in one."""
    top = {name.partition("/")[0] for name in names if "/" in name and not name.startswith(".")}
    if len(top) > MOST_FOLDERS:
        yield f"{len(top)} folders at the top, not {MOST_FOLDERS}: {', '.join(sorted(top))}"
    for name in sorted(set(names) - TOP_MODULES):
        if "/" not in name and name.endswith(".py"):
            yield f"{name}: a module at the top"
    held = Counter(name.rpartition("/")[0] for name in names if not name.startswith(DATA))
    del held[""]
    yield from (f"{folder}: {count} files, not {MOST_FILES}" for folder, count in held.items() if count > MOST_FILES)


def long(lines: Mapping[str, int]) -> Iterator[str]:
    """Complaints about Python modules with too many lines."""
    for name, count in sorted(lines.items()):
        most = LONGEST if name.startswith(OWN) else LONGEST_PRODUCT
        if count > most:
            kind = "module" if name.startswith(OWN) else "product module"
            yield f"{name}: {count} lines; a {kind} has at most {most}: split it"


def habits(texts: Mapping[str, str]) -> Counter[str]:
    """The number of times each phrase occurs."""
    return Counter(found[0].lower() for text in texts.values() for found in HABITS.finditer(text))


def complaints() -> list[str]:
    """Everything in the tree that is over its bound."""
    names = tracked()
    own = Path(__file__).relative_to(ROOT).as_posix()
    texts = {name: (ROOT / name).read_text("utf-8") for name in names if Path(name).suffix in PROSE and name != own}
    lines = {name: len(text.splitlines()) for name, text in texts.items() if name.endswith(".py")}
    found = [*crowded(names), *long(lines)]
    spoken = habits({name: text for name, text in texts.items() if not name.startswith(FROZEN)})
    if spoken.total() > MOST_HABITS:
        found.append(f"{spoken.total()} habits of language, not {MOST_HABITS}: {dict(spoken.most_common())}")
    return found


def main() -> int:
    """The exit status."""
    found = complaints()
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
