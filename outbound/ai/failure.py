"""Failures of a call to a model's server, in the codes of the error catalogue."""

from __future__ import annotations

from typing import Literal

Code = Literal["upstream_error", "upstream_timeout", "overloaded", "invalid_request"]


class UpstreamFailed(Exception):
    """The call failed. `code` is the catalogue's. `detail`, for our log, never contains messages or keys.
    `description`, for the app: the server's error about the request itself, and `param` the field that it names.
    `retry_after`: the seconds for which the server wants no further call."""

    def __init__(
        self,
        code: Code,
        detail: str,
        description: str = "",
        *,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.description = description
        self.param = param
        self.retry_after = retry_after


class Elsewhere(UpstreamFailed):
    """A failure of this server: another one may answer, if no part of the answer was sent."""


class Passing(Elsewhere):
    """A failure that may pass: another attempt at the same server may work, too."""
