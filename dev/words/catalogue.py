"""Writes and reads the catalogues of `templates/locale`: `latchkey.po` for people, and `latchkey.mo` for the server.

The catalogue of English has every message and no translation: it is what translators start from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileError, read_po, write_po

from dev.words.markup import complaints, differences
from dev.words.sources import Found
from handlers.core.words.languages import DOMAIN, FOLDER
from handlers.core.words.table import ENGLISH, LANGUAGES, LanguageRow

_HEAD = """# The words of Latchkey in {name}.
#
# Messages come from `make words`, which keeps the translations that are here. Placeholders such as %(name)s and tags
# stay as they are; their order is free."""
# What would differ from one run, or one release of Babel, to the next.
_UNSTEADY = re.compile(
    rb'^"(?:POT-Creation-Date|PO-Revision-Date|Generated-By|Last-Translator|Report-Msgid-Bugs-To|Language-Team|'
    rb"Project-Id-Version): .*\n",
    re.MULTILINE,
)
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def po_path(row: LanguageRow, folder: Path = FOLDER) -> Path:
    """The file of a language for people."""
    return folder / row.code / "LC_MESSAGES" / f"{DOMAIN}.po"


def mo_path(row: LanguageRow, folder: Path = FOLDER) -> Path:
    """The file of a language for the server."""
    return po_path(row, folder).with_suffix(".mo")


class _Ruled(Catalog):
    """A catalogue with a rule of plurals of its own, in place of CLDR's."""

    rule = ""

    @property
    def plural_forms(self) -> str:
        """The rule, as gettext reads it."""
        return self.rule or super().plural_forms


def catalogue_of(
    messages: Iterable[Found], row: LanguageRow = ENGLISH, known: Mapping[str, Any] | None = None
) -> Catalog:
    """The catalogue of these messages, with the translations that are `known` by the text for one."""
    made = _Ruled(row.numbers, DOMAIN, header_comment=_HEAD.format(name=row.name), charset="utf-8", fuzzy=False)
    made.rule = row.plural
    made.creation_date = made.revision_date = _LONG_AGO
    for found in messages:
        text = (found.one, found.many) if found.many else found.one
        made.add(text, (known or {}).get(found.one, ""), locations=[(found.file, 0)])
    return made


def po_of(catalogue: Catalog) -> bytes:
    """The file for people."""
    file = BytesIO()
    write_po(file, catalogue, width=110, include_lineno=False, sort_by_file=True)
    return _UNSTEADY.sub(b"", file.getvalue())


class _Compiled(_Ruled):
    """A catalogue whose head says only what gettext reads, so it is the same in each run."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        """The lines of the head."""
        kept = ("Language", "Plural-Forms", "MIME-Version", "Content-Type", "Content-Transfer-Encoding")
        return [(name, value) for name, value in super().mime_headers if name in kept]


def mo_of(catalogue: Catalog) -> bytes:
    """The file for the server."""
    made = _Compiled(catalogue.locale, charset="utf-8", fuzzy=False)
    made.rule = catalogue.plural_forms
    for message in catalogue:
        if message.id:
            made.add(message.id, message.string)
    file = BytesIO()
    write_mo(file, made)
    return file.getvalue()


def read(path: Path) -> Catalog:
    """The catalogue in a file for people. Raises OSError, PoFileError."""
    with path.open("rb") as file:
        return read_po(file, domain=DOMAIN, charset="utf-8", abort_invalid=True)


def translations(row: LanguageRow, folder: Path = FOLDER) -> dict[str, Any]:
    """What is translated, by the text for one; nothing for a new language."""
    path = po_path(row, folder)
    if not path.exists():
        return {}
    return {texts_of(message)[0]: message.string for message in read(path) if message.id and any(forms_of(message))}


def texts_of(message: Message) -> tuple[str, str]:
    """The text for one, and the text for several or ""."""
    return (message.id, "") if isinstance(message.id, str) else (message.id[0], message.id[1])


def forms_of(message: Message) -> tuple[str, ...]:
    """The translations of a message, one for each form of the plural."""
    return (message.string,) if isinstance(message.string, str) else tuple(message.string or ())


def write(messages: list[Found], folder: Path = FOLDER, rows: Iterable[LanguageRow] = LANGUAGES) -> None:
    """Renews all catalogues, and keeps their translations."""
    for row in rows:
        made = catalogue_of(messages, row, translations(row, folder))
        po_path(row, folder).parent.mkdir(parents=True, exist_ok=True)
        po_path(row, folder).write_bytes(po_of(made))
        mo_path(row, folder).write_bytes(mo_of(read(po_path(row, folder))))


def wrong(messages: list[Found], folder: Path = FOLDER, rows: Iterable[LanguageRow] = LANGUAGES) -> Iterator[str]:
    """Complaints about messages and catalogues, a line each."""
    html = {found.one for found in messages if found.html}
    for found in messages:
        for text in filter(None, (found.one, found.many)):
            yield from (f"{found.file}: {text!r}: {what}" for what in complaints(text, html=found.html))
    for row in rows:
        po, mo = po_path(row, folder), mo_path(row, folder)
        try:
            catalogue = read(po)
        except (OSError, PoFileError) as error:
            yield f"{po}: {error}"
            continue
        if po.read_bytes() != po_of(catalogue_of(messages, row, translations(row, folder))):
            yield f"{po}: not what the sources say: run `make words`"
        if not mo.is_file() or mo.read_bytes() != mo_of(catalogue):
            yield f"{mo}: not its .po: run `make words`"
        for message in catalogue:
            if message.id:
                yield from (f"{po}: {what}" for what in _wrong_translation(message, html))
    named = {row.code for row in rows}
    yield from (f"{path}: no row in the table of languages" for path in folder.iterdir() if path.name not in named)


def _wrong_translation(message: Message, html: set[str]) -> Iterator[str]:
    one, many = texts_of(message)
    for form in filter(None, forms_of(message)):
        found = [*complaints(form, html=one in html), *differences(many or one, form, counted=bool(many))]
        yield from (f"{form!r}: {what}" for what in found)
