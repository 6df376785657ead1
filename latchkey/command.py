"""The command `latchkey`: the server and the operator's commands, from the application's folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import latchkey

PROGRAM = "latchkey"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `latchkey ARGUMENTS` and returns the exit status.

    The application's folder comes first on the path. Otherwise a foreign `settings` or `store`, in the working
    directory or in site-packages, could replace its own.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    sys.path.insert(0, str(latchkey.tree()))
    import manage

    return manage.start(words, PROGRAM)
