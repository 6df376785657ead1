"""Failures of a call to a model's server, in the codes of the error catalogue."""

from __future__ import annotations

from typing import Literal

Code = Literal["upstream_error", "upstream_timeout", "overloaded", "invalid_request"]


class UpstreamFailed(Exception):
    """The call failed. `code` is the catalogue's. `detail`, for our log, never contains messages or keys.
    `description`, for the app: the server's error about the request itself."""

    def __init__(self, code: Code, detail: str, description: str = "") -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.description = description
