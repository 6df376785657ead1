"""The person's profile, for an app with the scope. SPEC 4.4."""

from __future__ import annotations

from store import keys
from store.engine.scripts import Scripts
from store.oauth.guard import admitted
from store.rates import Rates
from store.results import Caller, Profile, Window, profile_of


class Identity:
    """The userinfo of the person a token acts for."""

    def __init__(self, scripts: Scripts, rates: Rates) -> None:
        self._scripts = scripts
        self._rates = rates

    async def read(self, caller: Caller, needed: str) -> tuple[Profile, frozenset[str], Window]:
        """The person's profile, and the scopes that say how much of it the app sees. `needed`: the token must carry one
        of these scopes. Raises Refused("invalid_token", "insufficient_scope" or "rate_limited")."""
        group = self._rates.oauth
        reply = await self._scripts.run(
            "read_userinfo",
            {
                **keys.token(caller.user, caller.client, caller.family, caller.generation),
                "window": keys.limit(caller.user, group.name),
            },
            needed=caller.demands(needed),
            limit=group.limit,
            period=group.period,
            proof=caller.proof,
        )
        window = admitted(reply, group, needed)
        return profile_of(caller.user, reply), frozenset(reply.text("scope").split()), window
