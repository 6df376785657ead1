"""Every Redis key, spelt here and nowhere else.

The keys of a person share the hash tag of the person's shard, `{<first 3 hex digits of the user id>}`, so every
operation on one person is one script on one node. Other keys have tags of their own.
"""

from __future__ import annotations

APPS, APPS_SWEPT, APIS, DELETIONS = "{apps}:all", "{apps}:sweep", "{apis}:all", "{leaving}:all"
UNUSED_APPS, USED_APPS, INITIAL_TOKENS = "{apps}:unused", "{apps}:used", "{apps}:tokens"
"""Apps that registered themselves, before and after their first consent; and the tokens with which they may."""
ROLE_HOLDERS, OPERATOR_JOBS = "{operators}:people", "{operators}:job:"
"""The roles of people who operate the server, by user id; the prefix of long work of operators."""
KEYRING, SIGNING, APPS_CHANNEL = "{keyring}:state", "{keyring}:signing", "latchkey:apps"
DIRECTORY_REBUILD, DIRECTORY_SWEPT = "{directory}:rebuild", "{directory}:sweep"
"""How far a rebuild of the index of people has come; and the mark of a sweep of its relay."""
RELAYED, DELIVERIES_DUE, DELIVERY_PREFIX = "{webhooks}:sweep", "{webhooks}:due", "{webhooks}:delivery:"
DELIVERIES_NEWEST, ENDPOINTS_FAILING, HASH_PRICES = "{webhooks}:newest", "{webhooks}:failing", "{import}:prices"
"""HASH_PRICES: what checks of imported password hashes cost, and how many have each price."""
_STREAMS = {"strangers": "strangers", "people": "events", "sensitive": "sensitive", "operator": "operator"}
OLD_TRAIL = {stream: f"{{audit}}:{noun}" for stream, noun in _STREAMS.items()}
"""The streams of the security log that servers of earlier releases write, by their names in scripts."""
TRAIL_SHARDS, TRAIL_SWEPT, TRAIL_WRITER = 4, "{audit}:sweep", "{audit}:writer:"
AUDIT_EXPORT = {noun: f"{{audit}}:{noun}" for noun in ("exporter", "exported")}
"""Of the security log: its shards, the marks of a sweep and of a process that lives, the turn of its export."""
_OF_AN_APP = ("days", "people", "refusals", "logo", "invitations")
_OF_A_PERSON = ("user", "sessions", "leaving", "undos", "apps", "teams", "activity", "picture", "identities", "audit")
_FACTORS = ("factors", "passkeys", "recovery", "guesses")
SHARDS = tuple(f"{number:03x}" for number in range(4096))


def app(client: str) -> str:
    """A registration."""
    return f"{{app:{client}}}"


def api(client: str) -> str:
    """The registration of an API."""
    return f"{{api:{client}}}"


def api_apps(client: str) -> str:
    """The apps that registered scopes of an API."""
    return f"{api(client)}:apps"


def app_stats(client: str) -> dict[str, str]:
    """A registration, and in its slot the app's figures, log, logo and invitations to its team."""
    name = app(client)
    return {"app": name, **{noun: f"{name}:{noun}" for noun in _OF_AN_APP}}


def assertion(client: str, digest: str) -> str:
    """The mark of a used client assertion, in the slot of its app."""
    return f"{app(client)}:jti:{digest}"


def fetching(client: str) -> str:
    """The mark of a document that is being fetched, or could not be fetched a moment ago."""
    return f"{app(client)}:fetch"


def pushed(client: str, one: str) -> dict[str, str]:
    """A pushed authorization request, and the list of those of its app, in the slot of the app."""
    return {"pushed": f"{app(client)}:par:{one}", "all_pushed": f"{app(client)}:pars"}


def device_request(name: str) -> str:
    """A device's authorization request. `name`: a digest of its user code, in hex."""
    return f"{{device:{name}}}"


def operator_key(key_id: str) -> dict[str, str]:
    """The row of an operator key, and the ids of all."""
    return {"key": f"{{operators}}:key:{key_id}", "all": "{operators}:keys"}


def operator_reply(name: str) -> str:
    """The reply to an operator's write, under its idempotency key. `name`: a digest of the key and of who sent it."""
    return f"{{operators}}:reply:{name}"


def email(address: str) -> str:
    """The entry of an e-mail address in the index."""
    return f"{{email:{address}}}"


def invite(address: str) -> str:
    """The open invitation of an e-mail address, in the slot of its index entry."""
    return f"{{email:{address}}}:invite"


def identity(name: str, tag: str = "identity") -> str:
    """An entry of the index of identities at other servers, or with the tag `external` of external ids, by a digest."""
    return f"{{{tag}:{name}}}"


def importing(name: str) -> str:
    """How far an import has come. `name`: a digest of the beginning of its input."""
    return f"{{import:{name}}}"


def window(kind: str, what: str) -> str:
    """A window outside the shards: of an address, a sign-in name or an invented token."""
    return f"{{window:{kind}:{what}}}"


def network(kind: str, wide: str, what: str) -> str:
    """The window of a network, in the slot of the wide network around it."""
    return window(kind, wide) if what == wide else f"{window(kind, wide)}:{what}"


def shard_prefix(user: str) -> str:
    """The prefix of all keys in the shard of a person."""
    return f"{{{user[:3]}}}:"


def shard_users(shard: str) -> str:
    """The people of a shard, each in the form of `member`."""
    return f"{{{shard}}}:users"


def member(user: str) -> str:
    """A person in the lists of their shard: the user id without the shard: 29 characters, which fit in 32 bytes."""
    return user[3:]


def user_of(shard: str, listed: bytes) -> str:
    """The user id of a member of a list of this shard."""
    return shard + listed.decode()


def member_prefix(shard: str) -> str:
    """The prefix of a person's keys, up to the member in the lists of this shard."""
    return f"{{{shard}}}:{shard}"


def shard_app_users(shard: str, client: str) -> str:
    """The people of a shard who have connected an app, each in the form of `member`."""
    return f"{{{shard}}}:app:{client}:users"


def lease(user: str, client: str) -> dict[str, str]:
    """What a person's shard may spend of an app's daily limit; and in the slot of the app, what all shards may."""
    return {"lease": f"{{{user[:3]}}}:app:{client}:lease", "spending": f"{app(client)}:spending"}


def outbox_keys(shard: str) -> dict[str, str]:
    """The outbox of a shard, and its due list: when whose hosted data ends."""
    return {"outbox": f"{{{shard}}}:outbox", "due": f"{{{shard}}}:due"}


def directory_family(family: str) -> str:
    """The sections of a family of the index of people (`store/directory/entries.py`), in hex."""
    return f"{{directory}}:{family}"


def directory_section(family: str, section: str) -> dict[str, str]:
    """A section of the index of people: where its buckets begin, and the prefix of the buckets' keys. `section`: the
    bytes with which its texts begin, in hex."""
    listed = f"{{directory:{family}:{section}}}"
    return {"listed": listed, "bucket": f"{listed}:"}


def directory_relay(shard: str) -> dict[str, str]:
    """The people of a shard whom the index of people may not fit, and the relay that is writing about them."""
    return {"changed": f"{{{shard}}}:changed", "relaying": f"{{{shard}}}:relaying"}


def changed(user: str) -> dict[str, str]:
    """The notes in the shard of a person on changes that the index of people lacks."""
    return {"changed": directory_relay(user[:3])["changed"]}


def changed_shard(key: str) -> str:
    """The shard of a key of `changed`."""
    return key[1:4]


def app_field(client: str) -> str:
    """The field of an app in the row of a person who has connected it."""
    return f"app:{client}"


def outbox(user: str) -> str:
    """The outbox in the shard of a person: events that wait to be sent to apps."""
    return f"{{{user[:3]}}}:outbox"


def account_deletion(user: str) -> dict[str, str]:
    """The keys that a person's deletion removes, and the keys where it announces itself."""
    return {**person(user), **outbox_keys(user[:3]), **changed(user)}


def deliveries(client: str) -> dict[str, str]:
    """The list of an app's deliveries, and the stream of its attempts."""
    return {"listed": f"{{webhooks}}:app:{client}", "attempts": f"{{webhooks}}:app:{client}:attempts"}


def delivery(delivery_id: str) -> dict[str, str]:
    """A delivery, and the list of when each is tried next."""
    return {"delivery": DELIVERY_PREFIX + delivery_id, "due": DELIVERIES_DUE}


def prefix(user: str) -> str:
    """The prefix of a person's keys, up to the noun."""
    return f"{{{user[:3]}}}:{user}:"


def grant_prefix(user: str) -> str:
    """The prefix of the keys of a person's grants, up to the client id."""
    return f"{prefix(user)}grant:"


def person(user: str) -> dict[str, str]:
    """The fixed keys of a person."""
    base, found = prefix(user), {**credits(user), "users": shard_users(user[:3])}
    return found | {noun: base + noun for noun in (*_OF_A_PERSON, *_FACTORS)}


def audit(user: str) -> str:
    """The trail of a person's security events. `activity` of `person` is the trail of ordinary events."""
    return f"{prefix(user)}audit"


def trail(shard: int) -> dict[str, str]:
    """A shard of the security log: the indexes of the days of its streams, by their names in scripts, what they take,
    and figures. The key of a day's log is that of the index, a colon, and the days since 1970; that of figures too."""
    base = f"{{audit:{shard}}}:"
    return {stream: base + stream for stream in (*_STREAMS, "sizes", "figures", "active")}


def recorded(shard: str) -> str:
    """The events that scripts recorded in a shard, and that are not in the security log yet."""
    return f"{{{shard}}}:recorded"


def session(user: str, session_id: str) -> str:
    """A browser session."""
    return f"{session_prefix(user)}{session_id}"


def session_prefix(user: str) -> str:
    """The prefix of the keys of a person's sessions, up to the session id."""
    return f"{prefix(user)}session:"


def used_challenge(user: str, challenge_id: str) -> str:
    """The mark of an answered passkey challenge."""
    return f"{prefix(user)}challenge:{challenge_id}"


def link(user: str, purpose: str) -> str:
    """The newest link mailed to a person for a purpose: `confirm`, `reset` or `change`."""
    return f"{prefix(user)}link:{purpose}"


def request(user: str, request_id: str) -> str:
    """A pending authorization request."""
    return f"{prefix(user)}request:{request_id}"


def code(user: str, code_id: str) -> str:
    """An authorization code."""
    return f"{prefix(user)}code:{code_id}"


def redeemed(user: str, digest: str) -> str:
    """The mark of an identity provider's assertion that was used for a person."""
    return f"{prefix(user)}redeemed:{digest}"


def grant(user: str, client: str) -> str:
    """The grant of a (user, app) pair."""
    return f"{grant_prefix(user)}{client}"


def usage_prefix(user: str) -> str:
    """The prefix of the keys of a person's hosted data, up to the client id."""
    return f"{prefix(user)}usage:"


def hosted(user: str, client: str) -> dict[str, str]:
    """The four keys of the hosted data of a (user, app) pair."""
    return {noun: f"{prefix(user)}{noun}:{client}" for noun in ("docs", "meta", "index", "usage")}


def credits(user: str) -> dict[str, str]:
    """The credits of a person, and the list of kept replies."""
    base, nouns = prefix(user), ("balance", "holds", "ledger", "replies", "used", "searches", "payments")
    return {noun: base + noun for noun in nouns}


def settled(user: str, hold: str) -> str:
    """The mark of a settled hold."""
    return f"{prefix(user)}settled:{hold}"


def reply_prefix(user: str) -> str:
    """The prefix of the key of a kept reply, up to `client:fingerprint`."""
    return f"{prefix(user)}reply:"


def idempotency(user: str, client: str, key: str) -> dict[str, str]:
    """The record and the reply of an idempotency key, given as its fingerprint. The operator's have an empty client."""
    return {"idem": f"{prefix(user)}idem:{client}:{key}", "reply": f"{reply_prefix(user)}{client}:{key}"}


def limit(user: str, group: str, client: str = "") -> str:
    """The window of a group, per person, or per (user, app) pair when a client is named."""
    return f"{prefix(user)}limit:{group}" + (f":{client}" if client else "")


def presented(user: str, fingerprint: str) -> str:
    """The window of a presented token that opens, in the slot of the token's person."""
    return f"{prefix(user)}limit:presented:{fingerprint}"


def token(user: str, client: str, family: str, generation: int) -> dict[str, str]:
    """The keys that decide whether an access token is live: user, grant, family and access row."""
    base = prefix(user)
    return {
        "user": base + "user",
        "grant": f"{base}grant:{client}",
        "family": f"{base}family:{family}",
        "access": f"{base}access:{family}:{generation}",
    }


def dpop(mark: str, jkt: str, user: str = "") -> str:
    """The mark of a DPoP proof: of a call for a person, or else in a slot of its key's thumbprint."""
    return f"{prefix(user)}dpop:{mark}" if user else f"{{dpop:{jkt}}}:{mark}"


def hold(user: str, client: str, family: str, generation: int, group: str, key: str) -> dict[str, str]:
    """The keys of a call's hold, in one go: of `token`, of `limit`, credits, the key's fingerprint, and the lease."""
    base, lease = prefix(user), f"{{{user[:3]}}}:app:{client}:lease"
    found = {"user": base + "user", "balance": base + "balance", "holds": base + "holds", "lease": lease}
    found |= {"grant": f"{base}grant:{client}", "family": f"{base}family:{family}", "window": f"{base}limit:{group}"}
    found |= {"idem": f"{base}idem:{client}:{key}", "reply": f"{base}reply:{client}:{key}"}
    return found | {"access": f"{base}access:{family}:{generation}"}


def settlement(user: str, client: str, hold_id: str, key: str) -> dict[str, str]:
    """The keys of a call's settlement, in the same way."""
    base, lease = prefix(user), f"{{{user[:3]}}}:app:{client}:lease"
    found = {"user": base + "user", "balance": base + "balance", "holds": base + "holds", "ledger": base + "ledger"}
    found |= {"replies": base + "replies", "used": base + "used", "searches": base + "searches", "lease": lease}
    found |= {"grant": f"{base}grant:{client}", "settled": f"{base}settled:{hold_id}"}
    return found | {"idem": f"{base}idem:{client}:{key}", "reply": f"{base}reply:{client}:{key}"}
