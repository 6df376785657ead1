"""Client ids that Latchkey makes."""

from __future__ import annotations

import secrets
import string


def new_client_id() -> str:
    """A new random client id."""
    return client_id_of(secrets.token_bytes(32))


def client_id_of(seed: bytes) -> str:
    """A client id of 15 letters and digits, 89 bits, from 32 random bytes. It has no hyphens, because a command line
    reads an id with a leading hyphen as an option. It is short, because it is in keys of everybody who connects the
    app. Registration checks whether it is taken."""
    number, digits = int.from_bytes(seed), string.ascii_letters + string.digits
    return "".join(digits[number // len(digits) ** place % len(digits)] for place in range(15))
