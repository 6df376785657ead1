"""The order in which the servers of a model are asked: by rendezvous hash, so that a conversation stays with one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from hashlib import blake2b

from outbound.ai.models import Model

_BITS = 64


def ranked(candidates: Iterable[Model], person: str, app: str) -> list[Model]:
    """The candidates, best first. Each comes first for a share of all (person, app, model) in proportion to its weight;
    a candidate that joins or leaves moves only its own share. A weight of 0 comes behind all others."""
    return sorted(candidates, key=lambda model: -score(model, person, app))


def score(model: Model, person: str, app: str) -> float:
    """The weighted score of a candidate: weight / -ln(h), with a hash h between 0 and 1."""
    name = "\0".join((person, app, model.model_id, model.upstream.name)).encode()
    h = (int.from_bytes(blake2b(name, digest_size=_BITS // 8).digest()) + 0.5) / 2**_BITS
    # Rounded, h may be 1. Candidates without a weight are in the order of their hashes.
    return model.weight / -math.log(min(h, 1 - 2**-53)) if model.weight else h - 1
