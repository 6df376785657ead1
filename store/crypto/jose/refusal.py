"""The one error of tokens and keys that somebody else wrote."""

from __future__ import annotations


class JoseError(ValueError):
    """A token or key is refused. `reason` is one word for logs: it never holds a part of the token or key."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
