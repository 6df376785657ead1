"""Keys are parsed as they are spelt; other strings are no keys."""

from __future__ import annotations

from store import keys, parsed_keys
from store.fsck.reading import tag_of
from tests.support.lists.offenders import each

USER, CLIENT, ONE = "ab0" + "9f" * 14 + "1", "an-App_1", "A-_" * 7 + "z"
KEYS = [
    *((noun, key) for noun, key in keys.person(USER).items() if noun != "users"),
    *keys.hosted(USER, CLIENT).items(),
    *keys.idempotency(USER, CLIENT, ONE).items(),
    ("idem", keys.idempotency(USER, "", ONE)["idem"]),
    *keys.token(USER, CLIENT, ONE, 0).items(),
    ("access", keys.token(USER, CLIENT, ONE, 2**32 - 1)["access"]),
    ("session", keys.session(USER, ONE)),
    ("ended", f"{keys.session(USER, ONE)}:ended"),
    ("challenge", keys.used_challenge(USER, ONE)),
    ("dpop", keys.dpop(ONE, "k" * 43, USER)),
    ("dpop-token", keys.dpop(ONE, "k" * 43)),
    ("request", keys.request(USER, ONE)),
    ("settled", keys.settled(USER, ONE)),
    ("code", keys.code(USER, ONE)),
    ("link", keys.link(USER, "confirm")),
    ("limit", keys.limit(USER, "oauth")),
    ("limit", keys.limit(USER, "data-read", CLIENT)),
    ("presented", keys.presented(USER, ONE)),
    ("users", keys.shard_users(USER[:3])),
    ("app-users", keys.shard_app_users(USER[:3], CLIENT)),
    *keys.outbox_keys(USER[:3]).items(),
    ("outbox", keys.outbox(USER)),
    ("relayed", keys.RELAYED),
    *keys.directory_relay(USER[:3]).items(),
    ("directory-family", keys.directory_family("name")),
    ("directory-section", keys.directory_section("name", "6a6f")["listed"]),
    ("directory-section", keys.directory_section("domain", "ff")["listed"]),
    ("directory-bucket", keys.directory_section("name", "6a")["bucket"]),
    ("directory-bucket", keys.directory_section("address", "6a6f")["bucket"] + "686e00ff"),
    ("directory-rebuild", keys.DIRECTORY_REBUILD),
    ("directory-swept", keys.DIRECTORY_SWEPT),
    ("trail-swept", keys.TRAIL_SWEPT),
    *((f"audit-{noun}", key) for noun, key in keys.AUDIT_EXPORT.items()),
    ("trail-writer", keys.TRAIL_WRITER + "0123abcd"),
    ("trail-days", keys.trail(3)["people"]),
    ("trail", keys.trail(0)["operator"] + ":20783"),
    ("trail-sizes", keys.trail(0)["sizes"]),
    ("trail-figures", keys.trail(0)["figures"] + ":20783"),
    ("trail-active", keys.trail(0)["active"] + ":20783"),
    ("recorded", keys.recorded(USER[:3])),
    ("apps-swept", keys.APPS_SWEPT),
    ("delivery", keys.delivery(ONE)["delivery"]),
    ("deliveries-due", keys.delivery(ONE)["due"]),
    ("operator-job", keys.OPERATOR_JOBS + ONE),
    ("deliveries-newest", keys.DELIVERIES_NEWEST),
    ("endpoints-failing", keys.ENDPOINTS_FAILING),
    ("deliveries", keys.deliveries(CLIENT)["listed"]),
    ("attempts", keys.deliveries(CLIENT)["attempts"]),
    ("registration", keys.app(CLIENT)),
    ("api", keys.api(CLIENT)),
    ("api-apps", keys.api_apps(CLIENT)),
    ("all-apis", keys.APIS),
    ("days", keys.app_stats(CLIENT)["days"]),
    ("people", keys.app_stats(CLIENT)["people"]),
    ("refusals", keys.app_stats(CLIENT)["refusals"]),
    ("logo", keys.app_stats(CLIENT)["logo"]),
    ("email", keys.email("o'neil{}|@xn--bcher-kva.example")),
    ("email", keys.email("jörg@example.com")),
    ("invite", keys.invite("a}b@example.com")),
    ("window", keys.window("address", "2001:db8::/64")),
    ("window", keys.network("signin-address", "2001:db8::/48", "2001:db8::/64")),
    ("window", keys.network("signin-address", "192.0.2.0/24", "192.0.2.0/24")),
    ("window", keys.window("signin-account", "what somebody typed\n}:x")),
    ("all-apps", keys.APPS),
    ("unused-apps", keys.UNUSED_APPS),
    ("used-apps", keys.USED_APPS),
    ("initial-tokens", keys.INITIAL_TOKENS),
    ("fetching", keys.fetching(CLIENT)),
    ("all-leaving", keys.DELETIONS),
    ("keyring", keys.KEYRING),
]


@each(("kind", "key"), KEYS, ids=[f"{kind} {key[:40]!a}" for kind, key in KEYS])
def test_keys_are_parsed_as_they_are_spelt(kind: str, key: str) -> None:
    at = parsed_keys.read(key)
    assert at is not None
    assert at.kind == kind
    assert at.user in ("", USER)
    assert at.client in ("", CLIENT)
    assert at.shard in ("", USER[:3])
    assert key.startswith(tag_of(key))


def test_a_parsed_key_has_its_owner() -> None:
    def of(key: str) -> parsed_keys.ParsedKey:
        at = parsed_keys.read(key)
        assert at is not None
        return at

    assert of(keys.grant(USER, CLIENT)) == parsed_keys.ParsedKey("grant", USER, USER[:3], CLIENT)
    assert of(keys.session(USER, ONE)).name == ONE
    assert (of(keys.limit(USER, "ai", CLIENT)).name, of(keys.limit(USER, "ai", CLIENT)).client) == ("ai", CLIENT)
    assert of(keys.email("a}b@example.com")).name == "a}b@example.com"
    access = of(keys.token(USER, CLIENT, ONE, 7)["access"])
    assert (access.name, access.rest) == (ONE, "7")


@each(
    "key",
    [
        *("", "x", "{", "{}", "{app:}", "{app:a b}", "{apps}", "{apps}:all:", "{email:}", "{window:address}"),
        *("{ab0}:user", "{ab0}:users:", "{AB0}:users", "{ab0}:app::users", "{keyring}:states", "{email:a:b}"),
        keys.person(USER)["user"].replace("{ab0}", "{ab1}"),
        keys.person(USER.upper())["user"],
        keys.person(USER + "0")["user"],
        keys.person(USER)["user"] + "\n",
        keys.session(USER, ONE[:-1]),
        keys.session(USER, ONE + "x"),
        keys.token(USER, CLIENT, ONE, 7)["access"].replace(":7", ":07"),
        keys.grant(USER, "a b"),
        keys.grant(USER, "a" * 65),
        keys.prefix(USER) + "nonsense",
        keys.prefix(USER) + "docs",
        keys.app(CLIENT) + ":weeks",
        keys.shard_app_users("ab0", CLIENT) + "\n",
    ],
)
def test_other_strings_are_no_keys(key: str) -> None:
    assert parsed_keys.read(key) is None


def test_typed_text_is_left_out_of_parsed_keys() -> None:
    for key in (keys.email("ada@example.com"), keys.invite("ada@example.com"), keys.window("address", "192.0.2.1")):
        hidden = parsed_keys.without_input(key)
        assert "example" not in hidden
        assert "192" not in hidden
        assert hidden == parsed_keys.without_input(key) != parsed_keys.without_input(key.replace("a", "b"))
    assert parsed_keys.without_input(keys.grant(USER, CLIENT)) == keys.grant(USER, CLIENT)


def test_the_keys_of_a_call_are_those_of_its_parts() -> None:
    lease = {"lease": keys.lease(USER, CLIENT)["lease"]}
    parts = {**keys.token(USER, CLIENT, ONE, 7), **keys.credits(USER), **keys.idempotency(USER, CLIENT, "k"), **lease}
    parts |= {"window": keys.limit(USER, "ai"), "settled": keys.settled(USER, "h")}
    for found in (keys.hold(USER, CLIENT, ONE, 7, "ai", "k"), keys.settlement(USER, CLIENT, "h", "k")):
        assert found == {noun: parts[noun] for noun in found}
