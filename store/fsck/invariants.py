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
    Invariant("key", "every key has a name that Latchkey uses", ERROR),
    Invariant("type", "every key has the right type", ERROR),
    Invariant("lifetime", "temporary keys expire within their longest lifetime", ERROR, "sets the longest lifetime"),
    Invariant("lasting", "permanent keys have no expiry", ERROR, "removes the expiry"),
    Invariant("row", "a row has all its fields in the right form", ERROR),
    Invariant("owner", "a person's keys belong to an existing person", ERROR, "removes empty lists"),
    Invariant("listed", "a shard's list has exactly the people of the shard", ERROR, "corrects the list"),
    Invariant(
        "address",
        "the address in a person's row leads to the person",
        ERROR,
        "adds the address if it is free",
        apart=True,
    ),
    Invariant(
        "address-begun",
        "an account without sign-ins has its address, unless its creation was interrupted",
        NOTE,
        "adds the address if it is free",
        apart=True,
    ),
    Invariant(
        "identity",
        "an identity at another server in a person's list leads to the person",
        ERROR,
        "adds the entry if it is free",
        apart=True,
    ),
    Invariant(
        "identity-begun",
        "the identities of an account without sign-ins lead to it, unless its creation was interrupted",
        NOTE,
        "adds the entries if they are free",
        apart=True,
    ),
    Invariant(
        "identity-left",
        "an identity at another server in the index is in its person's list",
        NOTE,
        "frees the entry",
        apart=True,
    ),
    Invariant(
        "external-id",
        "the id from an outside directory in a person's row leads to the person",
        ERROR,
        "adds the entry if it is free",
        apart=True,
    ),
    Invariant(
        "external-id-left",
        "an id from an outside directory in the index is in its person's row",
        NOTE,
        "frees the entry",
        apart=True,
    ),
    Invariant(
        "directory",
        "the index of people has everybody under address, domain and each word of the name",
        ERROR,
        "adds what is missing",
        apart=True,
    ),
    Invariant(
        "directory-left",
        "an entry of the index of people is what its person's row says, once and in its bucket",
        ERROR,
        "removes it",
        apart=True,
    ),
    Invariant(
        "directory-bucket",
        "a bucket of the index of people is in its section, and the section on the list of its family",
        ERROR,
        "lists the section; writes the people of a lost bucket again",
        apart=True,
    ),
    Invariant("groups", "the groups of a person are valid names, in one order", ERROR),
    Invariant(
        "reservation",
        "a reserved address expires in a minute, or with the undo link that can restore it",
        ERROR,
        "lets it expire in a minute",
        apart=True,
    ),
    Invariant("address-left", "an address in the index belongs to its person", NOTE, "frees the address", apart=True),
    Invariant(
        "undo",
        "an address that an undo link can restore is reserved for its person",
        NOTE,
        "reserves it if it is free",
        apart=True,
    ),
    Invariant("deletion", "a started deletion is on the list of deletions to finish", ERROR, "adds it", apart=True),
    Invariant("deletion-unlisted", "a planned deletion is on the list of deletions", ERROR, "adds it", apart=True),
    Invariant(
        "deletion-open",
        "a started deletion has finished; the next start of a server continues that of an account",
        NOTE,
        apart=True,
    ),
    Invariant("sessions", "a live session is on its person's list", ERROR, "adds it"),
    Invariant("sessions-left", "a listed session exists; the next listing drops others", NOTE, "drops it"),
    Invariant("picture", "a person's row names exactly the stored picture", ERROR, "drops leftovers"),
    Invariant(
        "factors", "passkeys are complete, and recovery codes exist only with a second step", ERROR, "drops the codes"
    ),
    Invariant("family", "an access token has its family", ERROR, "removes the token's row, which lets nobody in"),
    Invariant(
        "connected",
        "the person's row and the shard's lists name exactly the apps with a grant",
        ERROR,
        "follows the grants",
    ),
    Invariant(
        "connected-left", "an app in a person's row has a grant; the next listing drops others", NOTE, "drops it"
    ),
    Invariant(
        "connected-lasts",
        "a registered app's list in a shard does not expire",
        ERROR,
        "removes the expiry",
        apart=True,
    ),
    Invariant("app", "a grant belongs to a registered app", ERROR, apart=True),
    Invariant(
        "grace",
        "a live grant and its data are permanent; a revoked one and its data expire together within 30 days",
        ERROR,
        "gives the data the grant's expiry",
    ),
    Invariant(
        "due",
        "the due list has exactly the data of disconnected apps, with its end",
        ERROR,
        "follows the documents",
    ),
    Invariant("granted", "an app's data for a person has a grant", ERROR),
    Invariant(
        "documents",
        "documents, metadata and index have the same names and sizes",
        ERROR,
        "rebuilds index and metadata from the documents; a missing document cannot be restored",
    ),
    Invariant("usage", "usage matches a recount of the documents", ERROR, "recounts"),
    Invariant(
        "stored",
        "a person's total is the sum of all apps' usage",
        ERROR,
        "drops the total; the next write recounts",
    ),
    Invariant("etags", "no ETag is beyond the sequence", ERROR, "advances the sequence"),
    Invariant("content", "encrypted content opens with a configured key and has the recorded size", ERROR),
    Invariant("operator-key", "an operator key is on the list of all", ERROR, "adds it"),
    Invariant("role-left", "a role of operators belongs to an existing person", ERROR, "drops it", apart=True),
    Invariant("balance", "the balance is the opening balance plus the ledger, after every entry", ERROR),
    Invariant(
        "holds",
        "a hold has an amount and an end; all live until the last one ends, and the balance covered them",
        ERROR,
        "drops invalid holds and corrects the expiry of the others",
    ),
    Invariant("payments", "refunds and disputes took back what they should, and the ledger has booked it", ERROR),
    Invariant("spending", "an app's spending this month is the sum of its charges", ERROR, "adds the charges up"),
    Invariant(
        "budgets",
        "what a budget or a delegated token counts is the sum of the charges that count for it",
        ERROR,
        "adds them up",
    ),
    Invariant(
        "day-spending",
        "a person's spending today is not more than today's charges",
        ERROR,
        "adds the charges up",
    ),
    Invariant("lease", "a shard has leased what it has spent of an app's daily limit", ERROR, "raises the lease"),
    Invariant(
        "idempotency",
        "the key of a call in progress has a hold, that of a finished call a charge",
        ERROR,
        "frees the key",
    ),
    Invariant(
        "replies", "the list of kept replies has exactly those that exist, and their total bytes", ERROR, "recounts"
    ),
    Invariant(
        "registration",
        "a registration is readable and on its list",
        ERROR,
        "adds it",
        apart=True,
    ),
    Invariant("registration-left", "an app on a list of registrations is registered", NOTE, "drops it", apart=True),
    Invariant("owned", "an app is on the list of each person in its team", ERROR, "adds it", apart=True),
    Invariant(
        "owned-left",
        "a person is in the team of each app on their lists; the next listing drops others",
        NOTE,
        "drops it",
        apart=True,
    ),
    Invariant("team", "everybody in a team but its first owner has an account; owners remove others", NOTE, apart=True),
    Invariant("at-api", "an app is on the list of each API whose scopes it registered", ERROR, "adds it", apart=True),
    Invariant(
        "at-api-left",
        "an app on the list of an API registered scopes of it; the next reading drops others",
        NOTE,
        "drops it",
        apart=True,
    ),
    Invariant("numbers", "statistics belong to a registered app", ERROR, "removes them"),
    Invariant("logo", "a logo is that of its app's registration", NOTE, "removes it if there is no app", apart=True),
    Invariant("numbers-drift", "the approximate count of an app's people is close", NOTE, "recounts"),
    Invariant("delivery", "a delivery is on its app's list, and due while it waits", ERROR, "adds it"),
    Invariant("delivery-left", "due and listed deliveries exist; the next read drops others", NOTE, "drops it"),
    Invariant("keyring", "the keys that wrote the store match their check values", ERROR),
    Invariant(
        "signing",
        "a signing key is whole; its private half opens under a configured key and fits the public half",
        ERROR,
    ),
    Invariant("keyring-salt", "the salt of pairwise ids opens under a configured key", ERROR),
    Invariant("keyring-missing", "every key that sealed something alive is configured", ERROR),
    Invariant("keyring-unknown", "every key that wrote the store is configured", NOTE),
    Invariant(
        "deletion-left",
        "people on the list of deletions are being deleted; others leave it after an hour",
        NOTE,
        "drops it",
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
