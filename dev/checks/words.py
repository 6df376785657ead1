"""`python -m dev.checks.words`: checks the catalogues of pages and mails; with `--write`, as `make words` runs it,
renews them.

A catalogue has exactly the messages of templates and code, its compiled form is its own, and no translation can break a
page. Every message is translated, with the terms and the form of address of the language's glossary. Templates have no
text outside the catalogue.
"""

from __future__ import annotations

import sys

from dev.words import catalogue, glossary, loose
from dev.words.sources import NoMessage, everything
from handlers.core.words.table import LANGUAGES


def main(arguments: list[str]) -> int:
    """The exit status."""
    try:
        messages = everything()
    except NoMessage as error:
        print(error, file=sys.stderr)
        return 1
    if arguments == ["--write"]:
        catalogue.write(messages)
    found = [*catalogue.wrong(messages), *loose.texts()]
    try:
        for row in LANGUAGES:
            found += glossary.wrong(row, catalogue.read(catalogue.po_path(row)))
    except glossary.BadGlossary as error:
        found.append(str(error))
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
