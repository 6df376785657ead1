"""How a call to a model's server fails, in the codes of the error catalogue."""

from __future__ import annotations

from typing import Literal

Code = Literal["upstream_error", "upstream_timeout", "overloaded", "invalid_request"]


class UpstreamFailed(Exception):
    """The call came to nothing. `code` is the catalogue's; `detail`, for our log, never holds what was said or a key;
    `description` is for the app: what the server found wrong with the request itself."""

    def __init__(self, code: Code, detail: str, description: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.description = description
