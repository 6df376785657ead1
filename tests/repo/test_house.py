"""What `make lint` asks of the shape of the tree and of its language (dev/checks/house.py)."""

from __future__ import annotations

from dev.checks.house import HABITS, LONGEST, LONGEST_PRODUCT, MOST_FILES, MOST_FOLDERS, crowded, habits, long


def test_a_folder_too_many_is_named() -> None:
    folders = [f"folder{number}/a.py" for number in range(MOST_FOLDERS)]
    assert list(crowded([*folders, ".ci/run", "server.py"])) == []
    (found,) = crowded([*folders, "one_more/a.py"])
    assert found.startswith(f"{MOST_FOLDERS + 1} folders at the top")


def test_a_module_at_the_top_is_named() -> None:
    assert list(crowded(["server.py", "manage.py", "README.md"])) == []
    assert list(crowded(["helper.py"])) == ["helper.py: a module at the top"]


def test_a_crowded_folder_is_named_unless_it_holds_data() -> None:
    files = [f"store/apps/file{number}.py" for number in range(MOST_FILES + 1)]
    assert list(crowded(files[1:])) == []
    assert list(crowded(files)) == [f"store/apps: {MOST_FILES + 1} files, not {MOST_FILES}"]
    assert list(crowded([f"templates/{number}.html" for number in range(99)])) == []


def test_a_long_module_is_named() -> None:
    assert list(long({"store/a.py": LONGEST_PRODUCT, "tests/a.py": LONGEST})) == []
    found = list(long({"store/a.py": LONGEST_PRODUCT + 1, "tests/a.py": LONGEST + 1}))
    assert found == [
        f"store/a.py: {LONGEST_PRODUCT + 1} lines, not {LONGEST_PRODUCT}",
        f"tests/a.py: {LONGEST + 1} lines, not {LONGEST}",
    ]


def test_a_habit_of_language_is_counted() -> None:
    said = "Beside it, so many are told of what is read anew, and end then.\n"  # each once
    assert sorted(habits({"a.md": said})) == ["anew", "are told", "beside", "so many", "then"]
    assert not HABITS.search("If it is so, then the store answers. The retold story lies besides.")
