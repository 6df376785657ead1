"""Why an event was not delivered, in words for the app's owner. The store keeps the English text."""

from __future__ import annotations

from functools import lru_cache

from outbound.guarded_http import ERRORS as OF_CALLS
from store.phrases import Phrase, StoredMessages

NO_CONNECTION_IN_TIME = Phrase("No connection within %(seconds)s seconds.")
NO_ANSWER_IN_TIME = Phrase("No answer within %(seconds)s seconds.")
GONE_FOR_GOOD = Phrase("The answer was 410: the receiver wants no more events, so this one isn't sent again.")
TOKEN_REFUSED = Phrase("The answer was 400: the app refused the token, so it isn't sent again.")
NO_SUCCESS = Phrase("The answer was %(status)s: only 200 and 204 are success.")
OWN_ERROR = Phrase("An error of this server. Its operator finds the reason in the log.")
NOT_SIGNED = Phrase("The event could not be signed. The operator of this server finds the reason in the log.")
NO_TARGET = Phrase("The app was not active, named no URL, or does not want events of this type.")
ERRORS = (
    *OF_CALLS,
    *(NO_CONNECTION_IN_TIME, NO_ANSWER_IN_TIME, GONE_FOR_GOOD, TOKEN_REFUSED, NO_SUCCESS, OWN_ERROR, NOT_SIGNED),
    NO_TARGET,
)
_STORED = StoredMessages(ERRORS, "[0-9.]{1,10}")


@lru_cache(maxsize=256)
def as_message(text: str) -> str:
    """The message that an error of the store was written from, so that a page can say it in its language. A text of
    another release stays unchanged."""
    return _STORED.find(text)
