"""The notes of an owner's acts on apps and APIs: in the person's trail, before each act."""

from __future__ import annotations

from store import keys
from store.accounts.signin.sessions import Session
from store.engine.scripts import Scripts
from store.lifetimes import CHANGE_APP, PROOF
from store.refused import let_in, refuse_signed_out, refuse_unproved
from store.results import Profile, Visitor, profile_of
from store.security_events import is_ordinary


class OwnerNotes:
    """Notes acts of signed-in people. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, idle: int) -> None:
        self._scripts = scripts
        self._idle = idle

    async def profile(self, session: Session) -> Profile:
        """The signed-in person. Raises SignedOut."""
        reply = await self._scripts.run("read_session", session.keys(), idle=self._idle)
        refuse_signed_out(reply)
        return profile_of(session.user, reply)

    async def note(
        self,
        session: Session,
        client_id: str,
        event: str,
        visitor: Visitor,
        *,
        reauthenticated: bool = True,
        counted: bool = True,
    ) -> None:
        """Notes a change before it is made, so that no change goes unseen. `reauthenticated`: requires
        re-authentication within 10 minutes; `counted`: requires a place in the window. Ending something needs no place,
        because beginning it took one. Raises SignedOut, Unproved, Refused("rate_limited")."""
        known = session.keys()
        known["audit"] = known["activity" if is_ordinary(event) else "audit"]
        reply = await self._scripts.run(
            "note_app",
            {**known, "window": keys.limit(session.user, CHANGE_APP.name)},
            event=event,
            client=client_id,
            idle=self._idle,
            proof=PROOF if reauthenticated else "",
            limit=CHANGE_APP.limit if counted else "",
            period=CHANGE_APP.period,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "rate_limited":
            let_in(CHANGE_APP, reply)
