"""The invariants of a store, as data: a name, a sentence, a severity, and the repair."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

ERROR, NOTE = "error", "note"


@dataclass(frozen=True, slots=True)
class Invariant:
    """An invariant. `says` is the rule. A `note` is a leftover by design, which goes by itself or harms nobody. `mends`
    is what a repair does, empty if nothing can be derived. `apart`: the invariant covers several slots, so it is
    reported only after a second look, when changes in progress have ended."""

    name: str
    says: str
    severity: str
    mends: str = ""
    apart: bool = False


INVARIANTS = (
    Invariant("key", "every key is one that Latchkey spells", ERROR),
    Invariant("type", "every key is of its type", ERROR),
    Invariant("lifetime", "what must end has an expiry within its lifetime", ERROR, "sets the longest it may have"),
    Invariant("lasting", "what must last has no expiry", ERROR, "takes the expiry off"),
    Invariant("row", "a row has its fields, each in its form", ERROR),
    Invariant("owner", "what belongs to a person belongs to one there is", ERROR, "removes lists that name nothing"),
    Invariant(
        "listed", "the list of a shard has the people of the shard, and nobody else", ERROR, "puts the list right"
    ),
    Invariant(
        "address",
        "a person is found by the address in the row",
        ERROR,
        "enters the address where it is free",
        apart=True,
    ),
    Invariant(
        "address-begun",
        "an account that nobody has signed in to has its address, unless its making broke off",
        NOTE,
        "enters the address where it is free",
        apart=True,
    ),
    Invariant("address-left", "an address in the index is that of its person", NOTE, "frees the address", apart=True),
    Invariant(
        "undo",
        "an old address that a link brings back is kept for its person",
        NOTE,
        "keeps it where it is free",
        apart=True,
    ),
    Invariant(
        "deletion", "a deletion that was begun is among those to be finished", ERROR, "enters it there", apart=True
    ),
    Invariant(
        "deletion-open",
        "a deletion that was begun has ended; that of an account goes on with the next start of a server",
        NOTE,
        apart=True,
    ),
    Invariant("sessions", "a session that lives stands in the list of its person", ERROR, "enters it there"),
    Invariant("sessions-left", "a session that is listed is there; the next listing drops others", NOTE, "drops it"),
    Invariant(
        "picture", "a person's row names the picture that is kept, and no other", ERROR, "drops what is left over"
    ),
    Invariant(
        "factors", "a passkey is whole, and recovery codes go with the last second step", ERROR, "drops the codes"
    ),
    Invariant("family", "an access token has its family", ERROR, "removes the token's row, which lets nobody in"),
    Invariant(
        "connected",
        "person's row and list of the shard name exactly the apps with a grant",
        ERROR,
        "follows the grants",
    ),
    Invariant(
        "connected-left", "an app in a person's row has a grant; the next listing drops others", NOTE, "drops it"
    ),
    Invariant(
        "connected-lasts",
        "the list of a registered app in a shard does not end",
        ERROR,
        "takes the expiry off",
        apart=True,
    ),
    Invariant("app", "a grant is of an app that is registered", ERROR, apart=True),
    Invariant(
        "grace",
        "a live grant and its data last; a revoked one and its data end together, in 30 days at most",
        ERROR,
        "lets the data follow the grant",
    ),
    Invariant(
        "due",
        "what is kept for a disconnected app stands in the due list with its end, and nothing else does",
        ERROR,
        "follows the documents",
    ),
    Invariant("granted", "what an app keeps for a person has its grant", ERROR),
    Invariant(
        "documents",
        "documents, their metadata and their index name the same, and agree on sizes",
        ERROR,
        "derives index and metadata from what is there; a document that is gone cannot be derived",
    ),
    Invariant("usage", "usage is a recount of the documents", ERROR, "counts again"),
    Invariant(
        "stored",
        "what all apps keep for a person is the sum of their usage",
        ERROR,
        "drops the sum; the next write counts",
    ),
    Invariant("etags", "no ETag is beyond the sequence", ERROR, "moves the sequence on"),
    Invariant("content", "what is encrypted opens under a configured key, and has the size that is noted", ERROR),
    Invariant("balance", "the balance is the opening balance and the sum of the ledger, entry for entry", ERROR),
    Invariant(
        "holds",
        "a hold has an amount and an end; all are kept until the last ends, and the balance covers them",
        ERROR,
        "drops what is no hold, keeps the others as long as they stand",
    ),
    Invariant("spending", "what an app has spent this month is the sum of its charges", ERROR, "adds the charges up"),
    Invariant(
        "idempotency",
        "the key of a call under way has its hold, that of one that is done its charge",
        ERROR,
        "frees the key",
    ),
    Invariant(
        "replies", "the list of kept replies names those there are, and their bytes in all", ERROR, "counts again"
    ),
    Invariant(
        "registration",
        "a registration can be read, and stands in the list of all",
        ERROR,
        "enters it there",
        apart=True,
    ),
    Invariant("registration-left", "an app in the list of all is registered", NOTE, "drops it", apart=True),
    Invariant("owned", "an app stands in the list of its owner", ERROR, "enters it there", apart=True),
    Invariant(
        "owned-left", "an app in a person's list is theirs; the next listing drops others", NOTE, "drops it", apart=True
    ),
    Invariant("numbers", "numbers are of an app that is registered", ERROR, "removes them"),
    Invariant(
        "numbers-drift", "the count of people of an app, which is about right, is about right", NOTE, "counts again"
    ),
    Invariant("delivery", "a delivery is listed with its app, and due while it waits", ERROR, "enters it there"),
    Invariant("delivery-left", "what is due or listed is a delivery; the next look drops others", NOTE, "drops it"),
    Invariant("keyring", "the keys that the store was written with can be told by their check values", ERROR),
    Invariant("keyring-unknown", "every key that the store was written with is configured", NOTE),
    Invariant(
        "deletion-left", "whom the list of deletions names is being deleted; an hour later others go", NOTE, "drops it"
    ),
)
NAMED = {invariant.name: invariant for invariant in INVARIANTS}

Mend = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken invariant: its name, the key, the problem there, and the repair, if any."""

    invariant: Invariant
    key: str
    what: str
    mend: Mend | None = None

    @property
    def name(self) -> tuple[str, str, str]:
        """Identifies the finding when it is found again."""
        return self.invariant.name, self.key, self.what


def found(name: str, key: str, what: str, mend: Mend | None = None) -> Finding:
    """A finding about the invariant of this name."""
    return Finding(NAMED[name], key, what, mend)
