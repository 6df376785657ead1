"""The shape and the language of the tree, as `make lint` checks them, and the words of docs/contributing/words.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from dev.checks.house import HABITS, LONGEST, LONGEST_PRODUCT, MOST_FILES, MOST_FOLDERS, ROOT, crowded, habits, long

SERVER = ("cli", "handlers", "observability", "outbound", "runtime", "settings", "store", "testkit")
FOLDERS = (*SERVER, "deploy", "dev", "examples", "latchkey", "tests")
ONE_LEFT = {
    "AppsHandler": "handlers/account/connected_apps.py",
    "Call": "handlers/ai/call.py",
    "Client": "store/engine/client.py",
    "Command": "settings/types.py",
    "CreditsHandler": "handlers/credits/pages.py",
    "ResetHandler": "handlers/account/email_links.py",
    "Stream": "runtime/http/exchange.py",
    "Target": "store/apps/webhooks.py",
    "Wanted": "store/webhooks/outbox.py",
    "Webhooks": "store/apps/webhooks.py",
}
"""Words that had several meanings, and the class that keeps each."""
DEFINED = re.compile(r"^[ \t]*class (\w+)|^([A-Z][a-z]\w*) = ", re.MULTILINE)
"""A class, or a name at the top of a module that may be an alias of one. To parse all modules would take seconds."""


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without backticks."""
    words = (ROOT / "docs" / "contributing" / "words.md").read_text("utf-8")
    text = words.partition(f"### {heading}\n")[2].partition("\n#")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return rows[2:]


def classes(folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every class and type alias of these folders: its file and its name."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in DEFINED.findall(file.read_text("utf-8")):
                yield file.relative_to(ROOT).as_posix(), "".join(name)


def test_no_replaced_word_names_a_class_or_a_module() -> None:
    replaced = [(file, old) for file, old, _ in table("Classes")]
    old_words = {old for _, old in replaced}
    found = [f"{file}: {name}" for file, name in classes(FOLDERS) if (file, name) in replaced]
    found += [f"{file}: {name}" for file, name in classes(SERVER) if name in old_words and ONE_LEFT.get(name) != file]
    modules = [path.strip() for old, _ in table("Modules") for path in old.split(",")]
    found += [path for path in modules if (ROOT / path).exists()]
    assert len(replaced) > 50, "the table of classes was not found"
    assert len(modules) > 50, "the table of modules was not found"
    assert not found, f"docs/contributing/words.md has the words for these: {sorted(set(found))}"


def test_no_two_classes_of_the_server_have_one_name() -> None:
    seen: dict[str, str] = {}
    twice = []
    for file, name in classes(SERVER):
        if name != "Network" and not name.startswith("_") and seen.setdefault(name, file) != file:
            twice.append(f"{name}: {seen[name]}, {file}")
    assert not twice


def test_too_many_folders_are_reported() -> None:
    folders = [f"folder{number}/a.py" for number in range(MOST_FOLDERS)]
    assert list(crowded([*folders, ".ci/run", "server.py"])) == []
    (found,) = crowded([*folders, "one_more/a.py"])
    assert found.startswith(f"{MOST_FOLDERS + 1} folders at the top")


def test_a_module_at_the_root_is_reported() -> None:
    assert list(crowded(["server.py", "manage.py", "README.md"])) == []
    assert list(crowded(["helper.py"])) == ["helper.py: a module at the top"]


def test_a_crowded_folder_is_reported_unless_it_holds_data() -> None:
    files = [f"store/apps/file{number}.py" for number in range(MOST_FILES + 1)]
    assert list(crowded(files[1:])) == []
    assert list(crowded(files)) == [f"store/apps: {MOST_FILES + 1} files, not {MOST_FILES}"]
    assert list(crowded([f"static/{number}.svg" for number in range(99)])) == []


@pytest.mark.parametrize("folder", ["templates/account", "docs"])
def test_a_crowded_folder_of_pages_is_reported(folder: str) -> None:
    files = [f"{folder}/page{number}" for number in range(MOST_FILES + 1)]
    assert list(crowded(files)) == [f"{folder}: {MOST_FILES + 1} files, not {MOST_FILES}"]


def test_a_long_module_is_reported() -> None:
    assert list(long({"store/a.py": LONGEST_PRODUCT, "tests/a.py": LONGEST})) == []
    found = list(long({"store/a.py": LONGEST_PRODUCT + 1, "tests/a.py": LONGEST + 1}))
    assert found == [
        f"store/a.py: {LONGEST_PRODUCT + 1} lines; a product module has at most {LONGEST_PRODUCT}: split it",
        f"tests/a.py: {LONGEST + 1} lines; a module has at most {LONGEST}: split it",
    ]


def test_a_habit_of_language_is_counted() -> None:
    said = "Beside it, so many are told of what is read anew, and end then.\n"  # each once
    assert sorted(habits({"a.md": said})) == ["anew", "are told", "beside", "so many", "then"]
    assert not HABITS.search("If it is so, then the store answers. The retold story lies besides.")
