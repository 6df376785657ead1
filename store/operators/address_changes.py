"""Changes of people's e-mail addresses by operators. The steps are those of `Links.change`, without a link."""

from __future__ import annotations

from store import keys
from store.accounts.addresses import Addresses
from store.accounts.links import MOST_UNDOS, AddressChange, Link
from store.accounts.people import TAKEN
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.scripts import Scripts
from store.lifetimes import UNDO_LINK
from store.phrases import Phrase
from store.refused import Refused
from store.results import warned_of

OWN_ALREADY = Phrase("That is this person’s address already.")
LOST_ANSWER = 600_000
"""How long (ms) the same change counts as a repeat."""
TOO_OFTEN = Phrase("This address was changed too often this week. Wait a few days, or change it without a way back.")


class AddressChanges:
    """Changes addresses; the new one counts as confirmed. Raises StoreUnavailable."""

    def __init__(self, scripts: Scripts, addresses: Addresses, sealer: Sealer) -> None:
        self._scripts = scripts
        self._addresses = addresses
        self._sealer = sealer

    async def change(self, user: str, new: str, *, way_back: bool) -> AddressChange:
        """Gives a person the address `new`, in its normal form. `way_back`: a link, to be mailed to the old address if
        that was confirmed, brings it back for 7 days; without, the old address is free at once. The same change within
        10 minutes returns the same link, for a caller whose answer was lost. The present address without a way back
        ends the links to earlier ones. Raises Refused("not_found"), and Refused("invalid_request") for an address that
        has an account."""
        undo_id = new_id() if way_back else ""
        if not await self._addresses.claim(new, user):
            raise Refused("invalid_request", TAKEN)
        reply = await self._scripts.run(
            "change_person_address",
            {**keys.person(user), **keys.changed(user)},
            email=new,
            undo_id=undo_id,
            lasts=UNDO_LINK,
            most=MOST_UNDOS,
            member=keys.member(user),
            lost=LOST_ANSWER,
        )
        if reply.word in ("not_found", "full"):
            await self._addresses.free_stale(new)
        if reply.word == "not_found":
            raise Refused("not_found", "No such person.")
        if reply.word == "full":
            raise Refused("invalid_request", TOO_OFTEN)
        if reply.word == "same":
            raise Refused("invalid_request", OWN_ALREADY)
        if reply.word == "closed":
            for email in reply.rows("emails"):
                await self._addresses.release(email.decode(), user)
            return AddressChange(new, new, False, None, warned_of(reply))
        if reply.word == "again":
            undo_id = reply.text("id")
        old, ends = reply.text("old"), reply.number("ends")
        await self._addresses.hold(old, user, ends)
        undo = Link(self._sealer.seal(Token(TokenKind.UNDO, user, old, undo_id, 0)), old) if undo_id and ends else None
        return AddressChange(old, new, False, undo, warned_of(reply))
