"""Every Redis key, spelt here and nowhere else.

The keys of a person share the hash tag of the person's shard, `{<first 3 hex digits of the user id>}`, so whatever
concerns one person is one script on one node. Registrations, the e-mail index and address windows have tags of
their own.
"""

from __future__ import annotations

APPS = "{apps}:all"
LEAVING = "{leaving}:all"
KEYRING = "{keyring}:state"
APPS_CHANNEL = "latchkey:apps"
SHARDS = tuple(f"{number:03x}" for number in range(4096))


def app(client: str) -> str:
    """A registration."""
    return f"{{app:{client}}}"


def numbers(client: str) -> dict[str, str]:
    """A registration, and in its slot the numbers of the app: by day, and how many people have connected it."""
    return {"app": app(client), "days": f"{app(client)}:days", "people": f"{app(client)}:people"}


def email(address: str) -> str:
    """The entry of an e-mail address in the index."""
    return f"{{email:{address}}}"


def invite(address: str) -> str:
    """The open invitation of an e-mail address, in the slot of its index entry."""
    return f"{{email:{address}}}:invite"


def window(kind: str, what: str) -> str:
    """A window that stands alone: of an address, a sign-in name, an invented token."""
    return f"{{window:{kind}:{what}}}"


def shard_prefix(user: str) -> str:
    """What stands before everything in the shard of a person."""
    return f"{{{user[:3]}}}:"


def shard_users(shard: str) -> str:
    """The people of a shard, each as `member` has them."""
    return f"{{{shard}}}:users"


def member(user: str) -> str:
    """A person in the lists of their shard: the user id without the shard, whose 29 characters fit in 32 bytes."""
    return user[3:]


def user_of(shard: str, listed: bytes) -> str:
    """The user id of a member of a list of this shard."""
    return shard + listed.decode()


def member_prefix(shard: str) -> str:
    """What stands before a member of a list of this shard in the keys of that person."""
    return f"{{{shard}}}:{shard}"


def shard_app_users(shard: str, client: str) -> str:
    """The people of a shard who have connected an app, each as `member` has them."""
    return f"{{{shard}}}:app:{client}:users"


def prefix(user: str) -> str:
    """What stands before a noun in the keys of a person."""
    return f"{{{user[:3]}}}:{user}:"


def grant_prefix(user: str) -> str:
    """What stands before a client id in the keys of a person's grants."""
    return f"{prefix(user)}grant:"


def person(user: str) -> dict[str, str]:
    """The fixed keys of a person."""
    base = prefix(user)
    return {
        **credits(user),
        "user": base + "user",
        "users": shard_users(user[:3]),
        "sessions": base + "sessions",
        "leaving": base + "leaving",
        "apps": base + "apps",
        "audit": audit(user),
        "factors": base + "factors",
        "passkeys": base + "passkeys",
        "recovery": base + "recovery",
        "picture": base + "picture",
    }


def audit(user: str) -> str:
    """The audit trail of a person."""
    return f"{prefix(user)}audit"


def session(user: str, session_id: str) -> str:
    """A browser session."""
    return f"{session_prefix(user)}{session_id}"


def session_prefix(user: str) -> str:
    """What stands before a session id in the keys of a person's sessions."""
    return f"{prefix(user)}session:"


def used_challenge(user: str, challenge_id: str) -> str:
    """The mark of a passkey's challenge that was answered."""
    return f"{prefix(user)}challenge:{challenge_id}"


def link(user: str, purpose: str) -> str:
    """The newest link of a purpose that was mailed to a person: `confirm`, `reset` or `change`."""
    return f"{prefix(user)}link:{purpose}"


def request(user: str, request_id: str) -> str:
    """A pending authorization request."""
    return f"{prefix(user)}request:{request_id}"


def code(user: str, code_id: str) -> str:
    """An authorization code."""
    return f"{prefix(user)}code:{code_id}"


def grant(user: str, client: str) -> str:
    """The grant of a (user, app) pair."""
    return f"{grant_prefix(user)}{client}"


def usage_prefix(user: str) -> str:
    """What stands before a client id in the keys of what apps keep for a person."""
    return f"{prefix(user)}usage:"


def hosted(user: str, client: str) -> dict[str, str]:
    """The four keys of the hosted data of a (user, app) pair."""
    base = prefix(user)
    return {
        "docs": f"{base}docs:{client}",
        "meta": f"{base}meta:{client}",
        "index": f"{base}index:{client}",
        "usage": f"{base}usage:{client}",
    }


def credits(user: str) -> dict[str, str]:
    """The credits of a person, and the list of replies that are kept."""
    base = prefix(user)
    return {noun: base + noun for noun in ("balance", "holds", "ledger", "replies")}


def reply_prefix(user: str) -> str:
    """What stands before `client:fingerprint` in the key of a kept reply."""
    return f"{prefix(user)}reply:"


def idempotency(user: str, client: str, key: str) -> dict[str, str]:
    """The record of an idempotency key, given as its fingerprint, and the reply kept under it. The operator's own
    have an empty client."""
    return {"idem": f"{prefix(user)}idem:{client}:{key}", "reply": f"{reply_prefix(user)}{client}:{key}"}


def limit(user: str, group: str, client: str = "") -> str:
    """The window of a group, per person, or per (user, app) pair when a client is named."""
    return f"{prefix(user)}limit:{group}" + (f":{client}" if client else "")


def presented(user: str, fingerprint: str) -> str:
    """The window of a presented token that opens, in the slot of its person."""
    return f"{prefix(user)}limit:presented:{fingerprint}"


def token(user: str, client: str, family: str, generation: int) -> dict[str, str]:
    """What decides whether an access token lives: user, grant, family and access row."""
    base = prefix(user)
    return {
        "user": base + "user",
        "grant": f"{base}grant:{client}",
        "family": f"{base}family:{family}",
        "access": f"{base}access:{family}:{generation}",
    }
