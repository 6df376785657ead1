"""What the Python examples keep of a person."""

# [show]
from dataclasses import dataclass, field
from threading import Lock
from typing import Any


@dataclass
class Account:
    """A person as your app knows them: here in memory, in your app a row of its database."""

    token: dict[str, Any]
    lock: Lock = field(default_factory=Lock)  # between processes: a lock of your database

    def save(self, token: dict[str, Any], **_: Any) -> None:
        """Keeps the tokens of the last answer in place of those before."""
        self.token = dict(token)


# [/show]
