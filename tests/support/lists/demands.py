"""What a standard demands: the form that the tables of clauses share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """A MUST, or a SHOULD that matters, in one line; `without` says why no test holds it."""

    summary: str
    without: str = ""


TLS = "a proxy in front ends TLS; with an https base URL cookies are Secure, and answers carry HSTS"
