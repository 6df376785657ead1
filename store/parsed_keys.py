"""Redis keys read back: what kind a key is, and the ids in it."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from store import keys


@dataclass(frozen=True, slots=True)
class ParsedKey:
    """A parsed key: its kind and the ids in it. The kind is the name of the function in `store/keys.py`, or the noun of
    a person's key. `name` is the id of a row, the address, the group of a window or, for some kinds, the client id."""

    kind: str
    user: str = ""
    shard: str = ""
    client: str = ""
    name: str = ""
    rest: str = ""


def read(key: str) -> ParsedKey | None:
    """Parses a key; None for one that `store/keys.py` doesn't spell."""
    if match := _PERSONS.fullmatch(key):
        return _read_persons(match)
    tag = _TAG.match(key)
    for kind, pattern in _BY_TAG.get(tag[1] if tag else "", _IN_SHARDS_ALONE):
        if match := pattern.fullmatch(key):
            return ParsedKey(kind, **match.groupdict())
    return None


def _read_persons(match: re.Match[str]) -> ParsedKey | None:
    user, noun = match["shard"] + match["member"], match["noun"]
    if noun in _NOUNS:
        return ParsedKey(noun, user=user, shard=match["shard"])
    for kind, pattern in _ROWS_BY_NOUN.get(noun.partition(":")[0], ()):
        if row := pattern.fullmatch(noun):
            return ParsedKey(kind, user=user, shard=match["shard"], **{k: v or "" for k, v in row.groupdict().items()})
    return None


def owner(key: str) -> str:
    """The user id in a key of a person; "" for any other key."""
    return key[6:38] if key[4:6] == "}:" and _PERSONS.fullmatch(key) else ""


def without_input(key: str) -> str:
    """The key, with a digest in place of an e-mail address or anything else that somebody typed."""
    digest = f"#{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    if key.startswith("{email:"):
        return keys.email(digest)
    if key.startswith("{directory:"):
        return keys.directory_section("", digest)["listed"]
    return keys.window("", digest) if key.startswith("{window:") else key


_CLIENT, _ID = r"(?P<client>[A-Za-z0-9_-]{1,64})", r"(?P<name>[A-Za-z0-9_-]{22})"
_PERSONS = re.compile(r"\{(?P<shard>[0-9a-f]{3})\}:(?P=shard)(?P<member>[0-9a-f]{29}):(?P<noun>.+)", re.S)
_NOUNS = frozenset(key.rpartition(":")[2] for noun, key in keys.person("0" * 32).items() if noun != "users")
_ONE_OF_A_KIND = {
    "all-apps": keys.APPS,
    "all-apis": keys.APIS,
    "all-leaving": keys.DELETIONS,
    "keyring": keys.KEYRING,
    "signing": keys.SIGNING,
    "hash-prices": keys.HASH_PRICES,
}
_ONE_OF_A_KIND |= {"unused-apps": keys.UNUSED_APPS, "used-apps": keys.USED_APPS, "initial-tokens": keys.INITIAL_TOKENS}
_ONE_OF_A_KIND |= {"relayed": keys.RELAYED, "apps-swept": keys.APPS_SWEPT, "deliveries-due": keys.DELIVERIES_DUE}
_ONE_OF_A_KIND |= {"deliveries-newest": keys.DELIVERIES_NEWEST, "endpoints-failing": keys.ENDPOINTS_FAILING}
_ONE_OF_A_KIND |= {"role-holders": keys.ROLE_HOLDERS, "operator-keys": keys.operator_key("")["all"]}
_ONE_OF_A_KIND |= {"directory-rebuild": keys.DIRECTORY_REBUILD, "directory-swept": keys.DIRECTORY_SWEPT}
_ONE_OF_A_KIND |= {"trail-swept": keys.TRAIL_SWEPT}
_ONE_OF_A_KIND |= {f"audit-{noun}": key for noun, key in keys.AUDIT_EXPORT.items()}
_AT_APPS = {
    "registration": "",
    **{noun: f":{noun}" for noun in keys.app_stats("") if noun != "app"},
    "assertion": f":jti:{_ID}",
}
_AT_APPS |= {"fetching": ":fetch", "pushed": f":par:{_ID}", "all-pushed": ":pars", "app-spending": ":spending"}
_IN_SHARDS = {noun: noun for noun in ("users", "outbox", "due", "changed", "relaying", "recorded")}
_IN_SHARDS |= {"app-users": f"app:{_CLIENT}:users", "lease": f"app:{_CLIENT}:lease"}
_BY_DIGEST = {"identity": "identity", "external-id": "external", "importing": "import"}
_FAMILY, _HEX = "(?P<name>address|name|domain)", "(?:[0-9a-f]{2})"
_STREAMS = "|".join(key.rpartition(":")[2] for key in keys.OLD_TRAIL.values())
_NAMED, _AUDIT = "|".join(keys.OLD_TRAIL), r"\{audit:[0-9]\}:"
_ALONE = tuple(
    (kind, re.compile(pattern, re.S))
    for kind, pattern in (
        *((kind, rf"\{{app:{_CLIENT}\}}{rest}") for kind, rest in _AT_APPS.items()),
        *((kind, re.escape(key)) for kind, key in _ONE_OF_A_KIND.items()),
        *((kind, rf"\{{api:{_CLIENT}\}}{to}") for kind, to in (("api", ""), ("api-apps", ":apps"))),
        *((kind, rf"\{{email:(?P<name>[^:]+)\}}{to}") for kind, to in (("invite", ":invite"), ("email", ""))),
        *((kind, rf"\{{{tag}:{_ID}\}}") for kind, tag in _BY_DIGEST.items()),
        ("window", r"\{window:(?P<name>[a-z-]+):(?P<rest>.+)\}(?::[0-9a-f.:/]+)?"),
        ("device-request", r"\{device:(?P<name>[0-9a-f]{16})\}"),
        ("dpop-token", r"\{dpop:[A-Za-z0-9_-]{43}\}:[A-Za-z0-9_-]{22}"),
        *((kind, rf"\{{(?P<shard>[0-9a-f]{{3}})\}}:{rest}") for kind, rest in _IN_SHARDS.items()),
        *((f"operator-{noun}", rf"\{{operators\}}:{noun}:{_ID}") for noun in ("key", "reply", "job")),
        ("directory-family", rf"\{{directory\}}:{_FAMILY}"),
        ("directory-section", rf"\{{directory:{_FAMILY}:(?P<rest>{_HEX}{{1,2}})\}}"),
        ("directory-bucket", rf"\{{directory:{_FAMILY}:(?P<rest>{_HEX}{{1,2}}\}}:{_HEX}*)"),
        ("delivery", re.escape(keys.DELIVERY_PREFIX) + _ID),
        *((kind, rf"\{{webhooks\}}:app:{_CLIENT}{to}") for kind, to in (("deliveries", ""), ("attempts", ":attempts"))),
        ("security-events", rf"\{{audit\}}:(?P<name>{_STREAMS})"),
        ("trail-writer", r"\{audit\}:writer:[0-9a-f]{8}"),
        ("trail-days", rf"{_AUDIT}(?P<name>{_NAMED})"),
        ("trail", rf"{_AUDIT}(?P<name>{_NAMED}):(?P<rest>[0-9]{{1,6}})"),
        ("trail-sizes", rf"{_AUDIT}sizes"),
        *((f"trail-{noun}", rf"{_AUDIT}{noun}:(?P<rest>[0-9]{{1,6}})") for noun in ("figures", "active")),
    )
)
_WITH_IDS = ("session", "challenge", "request", "code", "family", "dpop", "settled", "redeemed")
_ROWS = tuple(
    (kind, re.compile(pattern, re.S))
    for kind, pattern in (
        *((noun, f"{noun}:{_ID}") for noun in _WITH_IDS),
        ("ended", rf"session:{_ID}:ended"),
        ("access", f"access:{_ID}:(?P<rest>0|[1-9][0-9]{{0,9}})"),
        *((noun, f"{noun}:{_CLIENT}") for noun in ("grant", "docs", "meta", "index", "usage")),
        ("link", r"link:(?P<name>[a-z]+)"),
        ("presented", f"limit:presented:{_ID}"),
        ("limit", f"limit:(?P<name>[a-z-]+)(?::{_CLIENT})?"),
        ("idem", f"idem:(?:{_CLIENT})?:{_ID}"),
        ("reply", f"reply:{_CLIENT}:{_ID}"),
    )
)


def _by_begin(
    patterns: Iterable[tuple[str, re.Pattern[str]]], begin: re.Pattern[str]
) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Patterns by the word with which all their keys begin; "" for those that begin otherwise."""
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = defaultdict(list)
    for kind, pattern in patterns:
        word = begin.match(pattern.pattern)
        found[word[1] if word else ""].append((kind, pattern))
    return dict(found)


# A key is tried against the few patterns that begin as it does.
_TAG = re.compile(r"\{([a-z]+)[:}]")
_BY_TAG = _by_begin(_ALONE, re.compile(r"\\\{([a-z]+)"))
_IN_SHARDS_ALONE = _BY_TAG.pop("")
_ROWS_BY_NOUN = _by_begin(_ROWS, re.compile("([a-z]+)"))
