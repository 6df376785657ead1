"""Forms of the console with several fields: which of them has the error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from handlers.admin.console.base import ConsolePage
from handlers.core.params import Params
from store.names import check_reason
from store.operations import GIVE_REASON, Suspension, suspended_until
from store.phrases import Phrase
from store.refused import Refused


class FieldsPage(ConsolePage):
    """A page with such forms."""

    wrong = ""
    """The name of the field with the error; "" for the first one of its form."""

    @contextmanager
    def in_field(self, name: str) -> Iterator[None]:
        """Notes that a check inside is of this field."""
        try:
            yield
        except (Refused, ValueError):
            self.wrong = name
            raise

    def suspension(self, params: Params) -> Suspension:
        """The suspension in a form: `reason`, `note` and `until`. Raises ValueError."""
        reason, note, until = ((params.get(name) or "").strip() for name in ("reason", "note", "until"))
        with self.in_field("reason"):
            check_reason(reason)
            if not reason:
                raise ValueError(GIVE_REASON)
        with self.in_field("note"):
            check_reason(note)
        with self.in_field("until"):
            ends = suspended_until(until, Phrase("End")) if until else None
        return Suspension(reason, note, ends)
