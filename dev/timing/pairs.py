"""Pairs of request kinds that must get the same answer in the same time."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from math import inf
from time import sleep

from dev.bench.measure import Unexpected
from dev.timing.stage import Stage
from store.apps.client_ids import new_client_id

Make = Callable[[], bytes]

HASH, CALL = 100.0, 50.0
"""Largest allowed difference in µs: with a password hash, and without. Over a network an attacker needs hundreds of
tries to measure so little, even on an idle server; the windows of accounts and addresses allow 20 to 80 an hour."""
PAUSE, MOST_PAUSES = 10.0, 9
"""Seconds until a form that sends mail is tried again, and how often. The server gives up a mail after its retries,
some 20 seconds."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`first` and `second` make the requests; both get the answer `status`. `bound` is in µs. None marks a control pair
    that must differ, which shows that the measurement can tell."""

    what: str
    first: Make
    second: Make
    status: int
    bound: float | None
    share: float = 1.0
    """Factor for the number of samples."""
    tries: int = 3
    """Each sample is the shortest of this many tries, because other work only adds time."""
    mails: bool = False
    """Whether the requests ask for mails. The server answers 429 while too many wait; no window counts that request."""

    def measure(self, stage: Stage, number: int) -> list[tuple[float, float]]:
        """Samples in µs. Raises Unexpected for a wrong answer, or if the two answers differ."""
        samples: list[tuple[float, float]] = []
        pauses = 0
        while len(samples) < max(1, int(number * self.share)):
            makes = [(0, self.first), (1, self.second)]
            if random.getrandbits(1):
                makes.reverse()
            times, sizes = [inf, inf], [0, 0]
            for kind, make in makes * self.tries:
                answer = stage.ask(make())
                if self.mails and answer.status == 429 and pauses < MOST_PAUSES:
                    break
                if answer.status != self.status:
                    raise Unexpected(f"{self.what}: {answer.status} {answer.body[:300]!r}")
                times[kind], sizes[kind] = min(times[kind], answer.micros), len(answer.body)
            else:
                if sizes[0] != sizes[1]:
                    raise Unexpected(f"{self.what}: the answers are {sizes[0]} and {sizes[1]} bytes long")
                samples.append((times[0], times[1]))
                pauses = 0
                continue
            pauses += 1
            sleep(PAUSE)
        return samples


def pairs_of(stage: Stage) -> list[Pair]:
    """All pairs."""
    cast = stage.cast
    known, invented = cycle(cast.known), cycle(cast.invented)
    client = {"grant_type": "refresh_token", "refresh_token": "x"}
    no_app = new_client_id()
    near = cast.secret[:-1] + ("A" if cast.secret[-1] != "A" else "B")
    far = "lk_cs_" + secrets.token_urlsafe(32)

    def sign_in(emails: Iterator[str]) -> Make:
        return lambda: stage.form("/signin", email=next(emails), password="not the password", next="/")

    def forms(path: str) -> tuple[Make, Make]:
        return (
            lambda: stage.form(path, email=next(known)),
            lambda: stage.form(path, email=next(invented)),
        )

    def token(client_id: str, secret: str) -> Make:
        return lambda: stage.post("/api/oauth/token", client_id=client_id, client_secret=secret, **client)

    def forged() -> str:
        """A token with one character changed."""
        made = cast.rowless()
        place = random.randrange(8, len(made) - 1)
        return made[:place] + ("A" if made[place] != "A" else "B") + made[place + 1 :]

    def userinfo(access: Callable[[], str]) -> Make:
        return lambda: stage.userinfo(access())

    def revocation(access: Callable[[], str]) -> Make:
        return lambda: stage.post("/api/oauth/revoke", token=access())

    def introspection(access: Callable[[], str]) -> Make:
        credentials = {"client_id": cast.client_id, "client_secret": cast.secret}
        return lambda: stage.post("/api/oauth/introspect", token=access(), **credentials)

    foreign = introspection(partial(next, cycle(cast.foreign)))
    ended = introspection(partial(next, cycle(cast.revoked)))
    none, dead = userinfo(cast.rowless), userinfo(partial(next, cycle(cast.revoked)))
    sign_ins = sign_in(known), sign_in(invented)
    near_one, far_one, no_one = (token(*one) for one in ((cast.client_id, near), (cast.client_id, far), (no_app, far)))
    return [
        Pair("sign-in: an account and a wrong password, no account", *sign_ins, 400, HASH, 0.75, 5),
        Pair("forgotten password: an account, none", *forms("/forgot"), 200, CALL, tries=1, mails=True),
        Pair("sign-up by mail: an account, none", *forms("/signup"), 200, CALL, tries=1, mails=True),
        Pair("client: an app and a wrong secret, no such app", far_one, no_one, 401, CALL),
        Pair("client: a secret right but for its last character, one all wrong", near_one, far_one, 401, CALL),
        Pair("access token: revoked, never stored", dead, none, 401, CALL),
        Pair("access token: forged, forged at another place", userinfo(forged), userinfo(forged), 401, CALL),
        Pair("revocation: a token that is dead, one invented", revocation(cast.rowless), revocation(forged), 200, CALL),
        Pair("introspection: a token that is dead, one invented", ended, introspection(forged), 200, CALL),
        Pair("introspection: another app's live token, one invented", foreign, introspection(forged), 200, CALL),
        Pair("control: two dead tokens", none, none, 401, CALL),
        Pair("control: a dead token, a forged one (no call of the store)", none, userinfo(forged), 401, None),
    ]
