"""The mails that the server sends, by the names of their templates."""

from __future__ import annotations

from pathlib import Path

MAILS = Path(__file__).parents[3] / "templates" / "mail"


def mail_templates() -> dict[str, Path]:
    """The template of each mail, by name, without parts of mails."""
    paths = (path for path in sorted(MAILS.rglob("*.txt")) if path.parent.name != "parts")
    return {path.relative_to(MAILS).with_suffix("").as_posix(): path for path in paths}
