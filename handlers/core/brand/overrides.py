"""Templates: ours, and those of a brand's folder in place of ours.

A template is code: it runs with all that the server may do. So nobody else may write the files.
"""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tornado.template import Loader, ParseError, Template

from handlers.core.words.html import AUTOESCAPE

ROOT = Path(__file__).resolve().parent.parent.parent.parent / "templates"
ORIGINAL = "original/"
"""What a brand's template writes before the path of ours, to extend or include ours."""
OWN = "brand/"
"""The folder of parts that a brand's templates include."""
MOST_FILES, MOST_FILE, MOST_BYTES = 200, 128 * 1024, 1024 * 1024
_ENDINGS = (".html", ".txt")


class WrongTemplates(ValueError):
    """A folder of templates that cannot be used. The message completes "must be ..."."""


class TemplateLoader(Loader):
    """Loads a brand's templates, and ours for all others."""

    def __init__(self, overrides: Mapping[str, str], **options: Any) -> None:
        super().__init__(str(ROOT), **options)
        self._overrides = overrides

    def resolve_path(self, name: str, parent_path: str | None = None) -> str:
        """The path of a template that another names. What ours names may be the brand's."""
        return super().resolve_path(name, (parent_path or "").removeprefix(ORIGINAL) or None)

    def load(self, name: str, parent_path: str | None = None) -> Template:
        """The template. Raises ParseError, SyntaxError, FileNotFoundError."""
        name = self.resolve_path(name, parent_path)
        found: Template | None = self.templates.get(name)
        if found is None:
            source = self._overrides.get(name)
            if source is None:
                source = (ROOT / name.removeprefix(ORIGINAL)).read_text("utf-8")
            found = self.templates[name] = Template(source, name=name, loader=self)
        return found


class Templates:
    """The templates of a server: `pages`, whose values are escaped, and `mails`, which are plain text."""

    def __init__(self, overrides: Mapping[str, str]) -> None:
        self._overrides = overrides
        self.pages = TemplateLoader(overrides, autoescape=AUTOESCAPE)
        self.mails = TemplateLoader(overrides, autoescape=None, whitespace="all")

    def check(self) -> None:
        """Raises WrongTemplates if one of the brand's templates is no template."""
        for name in self._overrides:
            try:
                (self.mails if name.endswith(".txt") else self.pages).load(name)
            except ParseError as error:
                raise WrongTemplates(f"a folder of templates: {error}") from None
            except SyntaxError as error:
                raise WrongTemplates(
                    f"a folder of templates: in {name} is an expression that Python refuses: {error.msg}"
                ) from None
            except FileNotFoundError as error:
                raise WrongTemplates(
                    f"a folder of templates: {name} names {_missing(error)}, which is missing"
                ) from None
            except RecursionError:
                raise WrongTemplates(
                    f"a folder of templates: {name} extends or includes itself; for ours, write {ORIGINAL}{name}"
                ) from None


def _missing(error: FileNotFoundError) -> str:
    return os.path.relpath(str(error.filename), ROOT)


@cache
def ours() -> Templates:
    """Our templates, compiled once for all that use them."""
    return Templates({})


def templates_of(overrides: Mapping[str, str]) -> Templates:
    """The templates of a server with these in place of ours."""
    return Templates(overrides) if overrides else ours()


def read_overrides(folder: Path) -> dict[str, str]:
    """The templates in a brand's folder, by their paths. Raises WrongTemplates, OSError."""
    known = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.suffix in _ENDINGS}
    found: dict[str, str] = {}
    total = 0
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if name not in known and not (name.startswith(OWN) and name.endswith(_ENDINGS)):
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; {near[0]} is" if near else ""
            raise WrongTemplates(
                f"a folder of templates that replace ours: {name} is none of them{hint} (parts of your own go to {OWN})"
            )
        if path.stat().st_size > MOST_FILE:
            raise WrongTemplates(f"a folder of templates of at most {MOST_FILE} bytes each: {name} is larger")
        try:
            found[name] = path.read_text("utf-8")
        except UnicodeDecodeError:
            raise WrongTemplates(f"a folder of templates in UTF-8: {name} is not") from None
        total += len(found[name].encode())
        if len(found) > MOST_FILES or total > MOST_BYTES:
            raise WrongTemplates(f"a folder of at most {MOST_FILES} templates and {MOST_BYTES} bytes")
    if not found:
        raise WrongTemplates("a folder of templates: there are none in it")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """The files in a folder and its folders, without hidden ones and copies that editors leave."""
    check_private(folder)
    seen = 0
    for place, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            check_private(Path(place) / name)
        for name in sorted(names):
            seen += 1
            if seen > 5 * MOST_FILES:
                raise WrongTemplates(f"a folder of at most {MOST_FILES} templates")
            if not name.startswith(".") and not name.endswith("~"):
                path = Path(place) / name
                check_private(path)
                yield path


def _raise(error: OSError) -> None:
    raise error


def check_private(path: Path) -> None:
    """Raises WrongTemplates if everybody on this machine can write here, or if this is neither a file nor a folder."""
    status = path.stat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        raise WrongTemplates(f"a folder of files: {path} is none")
    # Nobody can write to a volume that is mounted for reading, whatever its bits say.
    if status.st_mode & stat.S_IWOTH and not os.statvfs(path).f_flag & os.ST_RDONLY:
        raise WrongTemplates(
            f"private, because templates run as code: everybody on this machine can write to {path}; chmod o-w helps"
        )
