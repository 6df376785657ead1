"""What operators take from a person one by one: a session, the connection of an app, an account at another site."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import orjson

from store import keys
from store.accounts.identities import Identities
from store.accounts.signin.sessions import ends_of
from store.crypto.seal import fresh_epoch
from store.engine.scripts import Scripts
from store.lifetimes import GRACE
from store.moments import at
from store.oauth.grants import NOT_CONNECTED
from store.phrases import Phrase
from store.refused import Refused
from store.webhooks.relay_wakeup import RelayWakeup

ONLY_WAY_IN = Phrase("This person can sign in only this way. Send a link for a new password first.")


class PersonParts:
    """Each act is noted in the person's trail and in the security log; `PeopleActs` checks the actor's role. Every
    method raises Refused("not_found"), StoreUnavailable."""

    def __init__(self, scripts: Scripts, identities: Identities, wakeup: RelayWakeup) -> None:
        self._scripts = scripts
        self._identities = identities
        self._wakeup = wakeup

    async def end_sessions(self, user: str) -> None:
        """Ends every session of a person."""
        person = {**keys.person(user), "outbox": keys.outbox(user)}
        reply = await self._scripts.run("sign_person_out", person, **ends_of(user))
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.number("told"):
            self._wakeup.add(user)

    async def end_session(self, user: str, session_id: str) -> None:
        """Ends one session of a person; one that has ended already is no error."""
        known = {**keys.person(user), "outbox": keys.outbox(user), "other": keys.session(user, session_id)}
        reply = await self._scripts.run("end_person_session", known, other_id=session_id, **ends_of(user))
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.number("told"):
            self._wakeup.add(user)

    async def disconnect(self, user: str, client: str) -> datetime:
        """Ends every token of an app for a person; returns when the hosted data ends, in 30 days."""
        known = {**keys.person(user), **keys.hosted(user, client), **keys.outbox_keys(user[:3])}
        reply = await self._scripts.run(
            "end_person_grant",
            {**known, "grant": keys.grant(user, client)},
            client=client,
            member=keys.member(user),
            fresh_epoch=fresh_epoch(),
            grace=GRACE,
        )
        if reply.word == "not_found":
            raise Refused("not_found", NOT_CONNECTED)
        self._wakeup.add(user)
        return at(reply.number("until"))

    async def unlink(self, user: str, name: str, others: Sequence[str] = ()) -> None:
        """Unlinks the identity of this name; `others`: the names of identities that can sign the person in. Raises
        Refused("invalid_request") if nothing else can."""
        reply = await self._scripts.run("unlink_person", keys.person(user), name=name, others=orjson.dumps([*others]))
        if reply.word == "not_found":
            raise Refused("not_found", Phrase("That account is already disconnected."))
        if reply.word == "last":
            raise Refused("invalid_request", ONLY_WAY_IN)
        await self._identities.release(name, user)
