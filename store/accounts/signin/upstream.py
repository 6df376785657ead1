"""Sign-in with an identity at another server: its account here, a link by an address that both verified, a new account.

The index of identities is in another slot than the person's list, so a link takes three steps: reserve the identity
(60 s), write the list, make the entry permanent (`store/accounts/identities.py`). Of two first sign-ins at once one
reserves the identity; the other waits for it, so there is one account.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import orjson

from store import keys
from store.accounts.identities import MOST_IDENTITIES, Identities, UpstreamIdentity
from store.accounts.links import NEW_IDENTITY, Link
from store.accounts.people import People
from store.accounts.signin.devices import Device
from store.accounts.signin.factors import MOST_UNDOS
from store.accounts.signin.sessions import SecondStepNeeded, Session, Sessions, SignedIn
from store.crypto.seal import Sealer, Token, TokenKind, new_id, new_user_id
from store.engine.scripts import Reply, Scripts
from store.errors import StoreError
from store.lifetimes import PROOF, UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused, Suspended, refuse_signed_out, refuse_unproved
from store.results import NO_WARNING, Visitor, Warned, warned_of

FIRST = "up"
"""How a session says that it began at another server."""
TRIES, PAUSE = 40, 0.05
"""How often, and how many seconds apart, a first sign-in looks whether the other one at once has made the account."""
TAKEN = Phrase("That account is already connected to another account here.")
BUSY = Phrase("You're signing in somewhere else at the same moment. Try again.")


class Arrival(NamedTuple):
    """A person who comes from another server, as checked. `email`: normalised, and verified there, or empty; `label`:
    what the page of security calls the identity; `method`: `up`, or `up+mfa` if its second step counts here."""

    identity: UpstreamIdentity
    email: str
    name: str
    label: str
    method: str = FIRST


class Admission(NamedTuple):
    """What the operator allows an arrival. `by_address`: an account with the same verified address may be linked;
    `create`: an account may be made."""

    by_address: bool = False
    create: bool = False


class NewLink(NamedTuple):
    """A link that was just made: whom to warn, and the link that undoes it, if the address is confirmed."""

    warned: Warned = NO_WARNING
    undo: Link | None = None


class Arrived(NamedTuple):
    """How an arrival was let in. `user`; `link`: if the account was linked just now; `created`: if it was made just
    now."""

    user: str
    link: NewLink | None = None
    created: bool = False


class NotLinked(Exception):
    """Nobody here has this identity, and the operator allows nothing else."""


class UpstreamSignIn:
    """Signs people in with identities at other servers, and links these."""

    def __init__(
        self, scripts: Scripts, sealer: Sealer, people: People, identities: Identities, sessions: Sessions
    ) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._people = people
        self._identities = identities
        self._sessions = sessions

    async def admit(self, arrival: Arrival, admission: Admission, visitor: Visitor) -> Arrived:
        """Finds, links or makes the account of an arrival. Raises NotLinked, Refused("temporarily_unavailable")."""
        user = await self._identities.find(arrival.identity)
        if user is not None:
            return Arrived(user)
        if not arrival.email:
            raise NotLinked
        known = await self._people.find(arrival.email)
        if known is None:
            return await self._created(arrival, admission, visitor)
        if await self._identities.restore(arrival.identity, known):
            return Arrived(known)
        # The sign-in that made the account may have been interrupted a moment ago: its rest is done here.
        made = admission.create and await self._identities.reserved(arrival.identity) == known
        if not made and not admission.by_address:
            raise NotLinked
        if not await self._identities.reserve(arrival.identity, known):
            return Arrived(await self._other(arrival))
        link = await self._write_by_address(arrival, known, visitor)
        return Arrived(known, link)

    async def _created(self, arrival: Arrival, admission: Admission, visitor: Visitor) -> Arrived:
        if not admission.create:
            raise NotLinked
        user = new_user_id()
        if not await self._identities.reserve(arrival.identity, user):
            return Arrived(await self._other(arrival))
        try:
            await self._people.create(
                arrival.email, arrival.name, None, verified=True, event="signed_up", visitor=visitor, user=user
            )
        except Refused:
            await self._identities.release(arrival.identity.name, user)
            raise NotLinked from None
        await self._write_by_address(arrival, user, visitor, fresh=True)
        return Arrived(user, created=True)

    async def _write_by_address(self, arrival: Arrival, user: str, visitor: Visitor, *, fresh: bool = False) -> NewLink:
        undo_id = new_id()
        reply = await self._scripts.run(
            "link_by_address",
            keys.person(user),
            **_linked(arrival, undo_id),
            email=arrival.email,
            fresh="1" if fresh else "0",
            **visitor.fields(),
        )
        if reply.word != "ok":
            await self._identities.release(arrival.identity.name, user)
            raise NotLinked
        await self._keep(arrival.identity, user)
        return self._new_link(user, undo_id, reply)

    async def _keep(self, identity: UpstreamIdentity, user: str) -> None:
        """Makes the reservation permanent. Raises Refused("temporarily_unavailable") if it was lost meanwhile."""
        if not await self._identities.keep(identity, user):
            await self._identities.drop(identity.name, user)
            raise Refused("temporarily_unavailable", BUSY)

    async def _other(self, arrival: Arrival) -> str:
        """The person whom another sign-in at the same time links the identity to."""
        for _ in range(TRIES):
            user = await self._identities.find(arrival.identity)
            if user is not None:
                return user
            await asyncio.sleep(PAUSE)
        raise Refused("temporarily_unavailable", BUSY)

    def _new_link(self, user: str, undo_id: str, reply: Reply) -> NewLink:
        email = reply.text("undo")
        sealed = self._sealer.seal(Token(TokenKind.UNDO, user, email, undo_id, NEW_IDENTITY)) if email else ""
        return NewLink(warned_of(reply), Link(sealed, email) if email else None)

    async def sign_in(
        self,
        user: str,
        arrival: Arrival,
        own_step: bool,
        visitor: Visitor,
        device: Device | None = None,
        *,
        kept: bool = True,
        must: bool = False,
    ) -> SignedIn:
        """Starts a session for the person with this identity. `own_step`: a second step here is asked for, if the
        person has one; `must`: whoever has none sets one up. Raises NotLinked if it was unlinked meanwhile, Suspended,
        SecondStepNeeded."""
        session = Session(user, new_id(), kept)
        reply = await self._scripts.run(
            "sign_in_with_identity",
            session.keys(),
            session_id=session.session_id,
            name=arrival.identity.name,
            text=arrival.identity.text,
            label=arrival.label,
            own_step="1" if own_step else "0",
            required=await self._sessions.required.of(user, must=must),
            method=arrival.method,
            idle=self._sessions.idle,
            lifetime=self._sessions.lasts(session),
            **self._sessions.room(user),
            **visitor.fields(),
        )
        match reply.word:
            case "unknown":
                raise NotLinked
            case "suspended":
                raise Suspended(reply.text("suspended_reason"))
            case "second_step" | "setup":
                born = f"{reply.text('session_epoch')} {reply.number('at')} {reply.text('devices_since')} {FIRST}"
                sealed = self._sealer.seal(Token(TokenKind.SECOND_STEP, user, born, new_id(), 0))
                raise SecondStepNeeded(sealed, setup=reply.word == "setup")
        return self._sessions.signed_in(session, reply, reply.text("session_epoch"), device)

    async def link(self, session: Session, arrival: Arrival, visitor: Visitor) -> NewLink:
        """Links an identity to the account of a session. Raises Refused("access_denied") if somebody else has it,
        Refused("invalid_request") if the person has it or has too many, SignedOut, Unproved."""
        identity, user, undo_id = arrival.identity, session.user, new_id()
        held = await self._identities.entry(identity)
        if not await self._identities.reserve(identity, user):
            raise Refused("access_denied", TAKEN)
        reply = await self._scripts.run(
            "link_identity",
            session.keys(),
            **_linked(arrival, undo_id),
            idle=self._sessions.idle,
            proof=PROOF,
            **visitor.fields(),
        )
        if reply.word == "ok":
            await self._keep(identity, user)
            return self._new_link(user, undo_id, reply)
        if reply.word == "present":
            await self._identities.keep(identity, user)
            raise Refused("invalid_request", Phrase("That account is already connected."))
        if held != user:
            await self._identities.release(identity.name, user)
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "full":
            most = Phrase("You have %(most)s connected accounts, and that's the limit.", most=MOST_IDENTITIES)
            raise Refused("invalid_request", most)
        raise StoreError(f"link_identity answered {reply.word}")

    async def unlink(self, session: Session, name: str, others: list[str], visitor: Visitor) -> None:
        """Unlinks an identity; `others`: the names of identities that the person can sign in with. Raises
        Refused("not_found"), Refused("invalid_request") if nothing else signs the person in, SignedOut, Unproved."""
        reply = await self._scripts.run(
            "unlink_identity",
            session.keys(),
            name=name,
            others=orjson.dumps(others),
            idle=self._sessions.idle,
            proof=PROOF,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        refuse_unproved(reply)
        if reply.word == "not_found":
            raise Refused("not_found", Phrase("That account is already disconnected."))
        if reply.word == "last":
            raise Refused("invalid_request", LAST)
        await self._identities.release(name, session.user)


LAST = Phrase("This is your only way to sign in. Set a password or add a passkey first.")


def _linked(arrival: Arrival, undo_id: str) -> dict[str, str | int]:
    """The arguments of scripts that link an identity."""
    return {
        "name": arrival.identity.name,
        "text": arrival.identity.text,
        "label": arrival.label,
        "most": MOST_IDENTITIES,
        "undo_id": undo_id,
        "undo_lasts": UNDO_LINK,
        "undo_most": MOST_UNDOS,
    }
