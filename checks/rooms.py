"""Moves files by `rooms.tsv` and rewrites what names them: imports, dotted names in strings, and paths in text.

`python -m checks.rooms` does it in the checkout, once, for the arrangement of the folders by noun; `ruff check --fix`
and `ruff format` follow. `rooms.md` is the plan, with what is left to do by hand. All three go when the move is done.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

TABLE = Path(__file__).with_name("rooms.tsv")
TEXT = {".cfg", ".toml", ".md", ".yml", ".yaml", ".html", ".txt", ".service"}
Edit = tuple[int, int, list[str]]
"""First and last line of an import, and the lines that stand for them."""


EXAMPLES = Path("examples")
"""Programs, of which each is started as a file."""


def dotted(path: str) -> str:
    """The name by which a Python file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def tracked() -> list[str]:
    """Files that git knows or could know."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return [name for name in subprocess.check_output(command, text=True).splitlines() if Path(name).is_file()]


class Mover:
    """`moves`: new path by old path, of those that change."""

    def __init__(self, moves: dict[str, str]) -> None:
        self.moves = moves
        self.modules = {dotted(old): dotted(new) for old, new in moves.items() if old.endswith(".py")}
        paths = "|".join(map(re.escape, sorted(moves, key=len, reverse=True)))
        names = "|".join(re.escape(name) for name in sorted(self.modules, key=len, reverse=True) if "." in name)
        self._path = re.compile(rf"(?<![\w/.-])({paths})(?![\w/])")
        self._name = re.compile(rf"(?<![\w./])({names})(?![\w/]|\.py\b)")

    def move(self) -> None:
        """Moves the files, by way of names of their own: one may go where another was."""
        for step, (old, new) in enumerate(self.moves.items()):
            Path(new).parent.mkdir(parents=True, exist_ok=True)
            subprocess.check_call(["git", "mv", old, f"{new}.moving{step}"])
        for step, new in enumerate(self.moves.values()):
            subprocess.check_call(["git", "mv", f"{new}.moving{step}", new])
        for old, new in self.moves.items():
            if new.endswith(".py"):
                _deepen(Path(new), len(Path(new).parents) - len(Path(old).parents))
                for folder in list(Path(new).parents)[:-1]:
                    if folder != EXAMPLES:
                        (folder / "__init__.py").touch()

    def rewrite(self, path: Path) -> None:
        """Sets right what a file says of others."""
        try:
            before = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return
        text = self._imports(before) if path.suffix == ".py" else before
        text = self._path.sub(lambda found: self.moves[found[1]], text)
        if path.suffix == ".py":
            text = re.sub(r"(?<=[\"'`])[\w.]+(?=[\"'`:])", lambda found: self._names(found[0]), text)
        elif path.suffix in TEXT or path.name == "Makefile":
            text = self._names(text)
        text = re.sub(r"(?<=-m )(\w+)(?=[ .\n\"'`)])", lambda found: self.modules.get(found[1], found[1]), text)
        if text != before:
            path.write_text(text, encoding="utf-8")

    def _names(self, text: str) -> str:
        return self._name.sub(lambda found: self.modules[found[1]], text)

    def _imports(self, text: str) -> str:
        renamed: dict[str, str] = {}
        lines = text.split("\n")
        for first, last, new in sorted(self._edits(ast.parse(text), lines, renamed), reverse=True):
            lines[first - 1 : last] = new
        return _used("\n".join(lines), renamed)

    def _edits(self, tree: ast.Module, lines: list[str], renamed: dict[str, str]) -> Iterator[Edit]:
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                new = self._from(node, renamed)
            elif isinstance(node, ast.Import) and any(alias.name in self.modules for alias in node.names):
                new = [self._import(alias) for alias in node.names]
            else:
                continue
            last = node.end_lineno or node.lineno
            comment = lines[last - 1][node.end_col_offset :].strip()
            new[0] += f"  {comment}" if comment.startswith("#") else ""
            yield node.lineno, last, [" " * node.col_offset + line for line in new]

    def _from(self, node: ast.ImportFrom, renamed: dict[str, str]) -> list[str]:
        module, groups = node.module or "", dict[str, list[str]]()
        for alias in node.names:
            package, _, name = self.modules.get(f"{module}.{alias.name}", "").rpartition(".")
            if name and name != alias.name and not alias.asname:
                renamed[alias.name] = name
            said = (name or alias.name) + (f" as {alias.asname}" if alias.asname else "")
            groups.setdefault(package or self.modules.get(module, module), []).append(said)
        return [f"from {package} import {', '.join(names)}" for package, names in groups.items()]

    def _import(self, alias: ast.alias) -> str:
        new = self.modules.get(alias.name, alias.name)
        package, _, name = new.rpartition(".")
        if package and "." not in alias.name:
            return f"from {package} import {name} as {alias.asname or alias.name}"
        return f"import {new}" + (f" as {alias.asname}" if alias.asname else "")


def _deepen(path: Path, by: int) -> None:
    """Sets right how a file finds the top of the tree: it lies so many folders deeper now."""
    depth = len(path.parents) - by
    text = path.read_text(encoding="utf-8")
    top = re.compile(rf"(Path\(__file__\)(?:\.resolve\(\))?(?:\.parent){{{depth}}})(?!\.parent)")
    path.write_text(top.sub(rf"\1{'.parent' * by}", text), encoding="utf-8")


def _used(text: str, renamed: dict[str, str]) -> str:
    """A text in which modules that go by another name are used by it."""
    lines = text.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        elsewhere = before.string in (".", "import", "as") or (after.string == "=" and before.string in ("(", ","))
        if token.type == tokenize.NAME and token.string in renamed and not elsewhere:
            row, column = token.start
            end = column + len(token.string)
            lines[row - 1] = lines[row - 1][:column] + renamed[token.string] + lines[row - 1][end:]
    return "\n".join(lines)


def main() -> None:
    """Does it all in the working directory."""
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines())
    known = set(tracked())
    mover = Mover({old: new for old, new in rows if old != new and old in known})
    mover.move()
    for name in tracked():
        mover.rewrite(Path(name))


if __name__ == "__main__":
    main()
