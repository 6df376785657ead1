"""The address of an authorization request, on its way through sign-in, sign-up and the choice of an account."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from urllib.parse import urlencode, urlsplit

from handlers.core.params import parse_pairs
from store.phrases import Phrase
from store.refused import Refused

Pairs = list[tuple[str, str]]

PATH = "/oauth/authorize"
PROGRESS = "progress"
"""Our parameter for what this request has led to so far (`store/oauth/progress.py`)."""
LOGIN_HINT = "login_hint"
MAX_ADDRESS = 15_000
"""The longest address of a request, in bytes. With a mark it still fits where pages keep the address to go on to."""
SURELY_SHORT = MAX_ADDRESS // 4
"""A form of so many bytes is not too long, however it is written: a byte takes three at most."""
_PROVES = frozenset({"prompt", "max_age", "claims", "request", "request_uri"})
"""Parameters by which a request may demand its own sign-in, or a certain person."""
_SHOWS = _PROVES | {"acr_values", "id_token_hint"}
"""Parameters by which a request may send people who are signed in to the sign-in page."""


def address_of(pairs: Pairs, mark: str = "") -> str:
    """The address of a request, with this mark instead of an earlier one."""
    kept = [pair for pair in pairs if pair[0] != PROGRESS]
    return f"{PATH}?{urlencode([*kept, (PROGRESS, mark)] if mark else kept)}"


def check_length(pairs: Pairs) -> None:
    """Refuses a request whose address would not fit where pages keep it. Raises Refused("invalid_request")."""
    if len(address_of(pairs)) > MAX_ADDRESS:
        raise Refused("invalid_request", Phrase("The request is too long."))


def pairs_of(target: str) -> Pairs:
    """The parameters of the authorization request at an address; none for any other address."""
    parts = urlsplit(target)
    if parts.path == PATH:
        with suppress(Refused):
            return parse_pairs(parts.query)
    return []


def pairs_at(target: str) -> Pairs:
    """The parameters of any address of ours; none if they can't be read."""
    with suppress(Refused):
        return parse_pairs(urlsplit(target).query)
    return []


def hinted(pairs: Pairs, email: str) -> Pairs:
    """The parameters, with this person's address for the sign-in page if they name nobody."""
    return pairs if any(name == LOGIN_HINT for name, _ in pairs) else [*pairs, (LOGIN_HINT, email)]


def request_print(pairs: Pairs) -> str:
    """What a mark says of its request: a digest of its parameters, so no other request can use the mark. Without the
    `login_hint`, which decides nothing: the page for a stronger sign-in adds one."""
    return sha256(address_of([pair for pair in pairs if pair[0] != LOGIN_HINT]).encode()).hexdigest()


def wants_proof(pairs: Pairs) -> bool:
    """Whether a sign-in on the way to this request must leave a mark."""
    return any(name in _PROVES for name, _ in pairs)


def shows_sign_in(pairs: Pairs) -> bool:
    """Whether a request may send people who are signed in to the sign-in page."""
    return any(name in _SHOWS for name, _ in pairs)
