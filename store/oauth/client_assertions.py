"""Client assertions: how an app proves itself with its key, `private_key_jwt`. RFC 7523 2.2, 3, RFC 7521 4.2, 5.2."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from store import keys
from store.apps.profiles import NONE, PROFILES, ProfileRules
from store.crypto.jose import claims as checks
from store.crypto.jose import jws
from store.crypto.jose.algorithms import ED25519, EDDSA, ES256, PS256, RS256
from store.crypto.jose.jwk import PublicKey
from store.crypto.jose.refusal import JoseError
from store.crypto.seal import fingerprint
from store.engine.scripts import Scripts
from store.refused import Refused

CLIENT_ALGORITHMS = (RS256, PS256, ES256, EDDSA, ED25519)
"""What apps may sign with. RFC 9864 gave Ed25519 its own name, which newer programs send."""
TYPES = (None, "JWT", "client-authentication+jwt")
LONGEST_LIFE = 600
"""How far away, in seconds, the end of an assertion may be."""
LEEWAY = 30
"""How far, in seconds, an app's clock and ours may differ."""
KEPT_LONGER = 60
"""How much longer, in seconds, than an assertion its mark is kept: hosts' clocks differ."""
LONGEST_JTI = 256


class Proof(NamedTuple):
    """A valid assertion, which counts once. `digest` is of its `jti`; `kept` is how long its mark is kept, in ms."""

    digest: str
    kept: int


def check_assertion(
    text: str,
    known: Sequence[PublicKey],
    client: str,
    audiences: Collection[str],
    now: float,
    rules: ProfileRules = PROFILES[NONE],
) -> Proof:
    """Checks an assertion of the app with these keys, at `now` (s). Every audience in it must be one of `audiences`: an
    assertion that names another server too could have been replayed by that server. `rules`: of the app's profile.
    Raises JoseError."""
    claims = jws.verify(text, known, algorithms=rules.among(CLIENT_ALGORITHMS), types=TYPES).claims
    if claims.get("iss") != client or claims.get("sub") != client:
        raise JoseError("sender")
    if not set(checks.audiences(claims)) <= set(audiences):
        raise JoseError("aud")
    # FAPI 2.0 5.3.2.1: a string, never a list of one
    if rules.issuer_alone and not isinstance(claims["aud"], str):
        raise JoseError("aud")
    checks.check_time(claims, now, leeway=LEEWAY, longest=LONGEST_LIFE)
    jti = checks.text(claims, "jti", LONGEST_JTI)
    return Proof(fingerprint(jti), math.ceil((claims["exp"] - now + LEEWAY + KEPT_LONGER) * 1000))


class ClientAssertions:
    """Uses assertions up. The marks are the app's: a back end has one key for all its people."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def use(self, client: str, proof: Proof) -> None:
        """Raises Refused("invalid_client") if the assertion was used before, StoreUnavailable."""
        reply = await self._scripts.run(
            "use_assertion", {"assertion": keys.assertion(client, proof.digest)}, kept=proof.kept
        )
        if reply.word == "used":
            raise Refused("invalid_client", USED)


USED = "The assertion was used before: make a new one, with a new jti, for each request."
