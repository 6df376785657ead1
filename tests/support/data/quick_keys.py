"""Makes signing keys faster: an RSA key takes a tenth of a second, and many tests need any. A process makes a dozen and
gives them out in turn, so a store that has fewer never gets one twice."""

from __future__ import annotations

import itertools
from functools import cache

from store.crypto.jose import private
from store.crypto.jose.algorithms import RS256, Private

DOZEN = 12
_random = private._random
_turns = itertools.cycle(range(DOZEN))


@cache
def _rsa(_turn: int) -> Private:
    return _random(RS256)


def _quick(algorithm: str) -> Private:
    return _rsa(next(_turns)) if algorithm == RS256 else _random(algorithm)


def install() -> None:
    """Lets this process use them."""
    private._random = _quick
