"""`manage.py credits`: amounts are granted and taken once per key, and the ledger shows them."""

from __future__ import annotations

import re
from argparse import Namespace
from typing import Any

import pytest

from cli.commands.context import Context
from cli.commands.credits import grant_credits, show_credits
from runtime.wiring import open_store
from settings.declared import Settings
from store import keys as spell
from store.credits.credits import exact_dollars
from store.crypto.keyring import KeyFile, Keys
from store.errors import StoreUnavailable
from store.wiring import Store
from tests.support.processes.engines import Engine
from tests.support.processes.operator_commands import URI, Home, child
from tests.support.store.charges import DOLLAR, charge, hold
from tests.support.store.lost_answers import losing

EMAIL = "ada@example.com"
LARGEST = 10**12


@pytest.fixture
def ada(home: Home) -> str:
    """A person; returns the user id."""
    sub: str = home.user(EMAIL)["sub"]
    return sub


def grant(home: Home, *words: str) -> Any:
    return home.json("credits", "grant", EMAIL, *words)


def test_a_grant_answers_with_the_balance(home: Home, ada: str) -> None:
    assert grant(home, "5000000", "--reason", "Payment 17") == {
        "sub": ada,
        "email": EMAIL,
        "amount": 5_000_000,
        "paid": 5_000_000,
        "held": 0,
        "spendable": 5_000_000,
        "currency": "USD",
        "scale": 6,
        "replayed": False,
    }
    assert grant(home, "5000000")["paid"] == 10_000_000, "without a key each is another one"
    assert home.json("credits", "grant", ada, "1")["email"] == EMAIL
    assert (grant(home, "0.25usd")["paid"], grant(home, "-0.250001usd")["paid"]) == (10_250_001, 10_000_000)
    events = [entry["event"] for entry in home.json("user", "show", EMAIL)["activity"]]
    assert events[1:4] == ["credit_added"] * 3


def test_a_negative_amount_takes_at_most_the_available_credits(home: Home, ada: str) -> None:
    grant(home, "500")
    taken = grant(home, "-499")
    assert (taken["amount"], taken["paid"]) == (-499, 1)
    refused = (1, "insufficient_credits", "The balance is too low to take that much.")
    assert home.error("credits", "grant", EMAIL, "-2") == refused
    assert grant(home, "-1")["paid"] == 0
    assert home.error("credits", "grant", EMAIL, "-1") == refused


def test_a_repeated_key_counts_once(home: Home, ada: str) -> None:
    first = grant(home, "700", "--key", "payment-1", "--reason", "Top-up")
    again = grant(home, "700", "--key", "payment-1", "--reason", "Top-up")
    assert (first["replayed"], again) == (False, {**first, "replayed": True})
    # An option may come before the amount. A child process gets it as from a shell.
    said = child(home.data_dir, "credits", "grant", "--key", "payment-1", EMAIL, "-700", "--json")
    assert said.error[:2] == (1, "idempotency_mismatch")
    assert home.error("credits", "grant", EMAIL, "700", "--key", "payment-1")[1] == "idempotency_mismatch"
    assert (
        "did the same before"
        in home.words("credits", "grant", EMAIL, "700", "--key", "payment-1", "--reason", "Top-up").out
    )
    assert home.json("credits", "show", EMAIL)["paid"] == 700


@pytest.mark.parametrize(
    ("words", "status", "code", "message"),
    [
        pytest.param((EMAIL, "0"), 1, "invalid_request", "amount is 1 to", id="nothing"),
        pytest.param((EMAIL, str(LARGEST + 1)), 1, "invalid_request", "amount is 1 to", id="too much at once"),
        pytest.param((EMAIL, str(-LARGEST - 1)), 1, "invalid_request", "amount is 1 to", id="too little at once"),
        pytest.param((EMAIL, "1", "--reason", "a\nb"), 1, "invalid_request", "printable", id="a reason of two lines"),
        pytest.param((EMAIL, "1", "--reason", "x" * 201), 1, "invalid_request", "printable", id="an endless reason"),
        pytest.param((EMAIL, "1", "--key", ""), 1, "invalid_request", "idempotency key", id="an empty key"),
        pytest.param((EMAIL, "1", "--key", "x" * 256), 1, "invalid_request", "idempotency key", id="an endless key"),
        pytest.param(("nobody@example.com", "1"), 1, "not_found", "No such person.", id="nobody"),
        pytest.param(("0" * 32, "1"), 1, "not_found", "No such person.", id="nobody's user id"),
        pytest.param(("nobody", "1"), 1, "invalid_request", "one @", id="no e-mail address"),
        *(
            pytest.param((EMAIL, text), 2, "invalid_request", "an amount such as 5usd", id=f"amount {text!a}")
            for text in ("5.0", "1e6", "5_000", "$5", "", "\u0665", "0x5", "9" * 19)
        ),
        pytest.param((EMAIL,), 2, "invalid_request", "AMOUNT", id="no amount"),
    ],
)
def test_a_refused_command_changes_nothing(
    home: Home, ada: str, words: tuple[str, ...], status: int, code: str, message: str
) -> None:
    failed, error, description = home.error("credits", "grant", *words)
    assert (failed, error) == (status, code)
    assert message in description
    assert home.json("credits", "show", EMAIL)["entries"] == []


def test_the_ledger_is_shown_newest_first(home: Home, ada: str) -> None:
    home.json(
        "app", "create", "--client-id", "web", "--name", "Web", "--redirect-uri", URI, "--scopes", "credits:spend"
    )
    grant(home, "5000000", "--reason", "Payment 17")

    async def spend(store: Store) -> None:
        app = await store.apps.find("web")
        assert app is not None
        await charge(store, ada, app, 21)
        await hold(store, ada, app, 300)

    home.with_store(spend)
    shown = home.json("credits", "show", EMAIL)
    [standing], [charged, granted] = shown.pop("holds"), shown.pop("entries")
    assert shown == {
        "sub": ada,
        "email": EMAIL,
        "paid": 4_999_979,
        "held": 300,
        "spendable": 4_999_679,
        "currency": "USD",
        "scale": 6,
        "opening": 0,
        "openingAt": None,
    }
    moment = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ")
    assert moment.fullmatch(standing.pop("endsAt"))
    assert standing == {"client_id": "web", "amount": 300}
    assert charged["at"] >= granted["at"]
    assert moment.fullmatch(granted.pop("at"))
    assert granted == {
        "kind": "grant",
        "amount": 5_000_000,
        "paid": 5_000_000,
        "reason": "Payment 17",
        "client_id": "",
        "model": "",
        "inputTokens": 0,
        "outputTokens": 0,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "cacheWrite1hTokens": 0,
        "webSearches": 0,
        "priceVersion": "",
        "hold": "",
        "payment": "",
        "cause": "",
    }
    del charged["at"]
    assert len(charged.pop("hold")) > 10
    assert charged == {
        "kind": "charge",
        "amount": -21,
        "paid": 4_999_979,
        "reason": "",
        "client_id": "web",
        "model": "echo-1",
        "inputTokens": 1,
        "outputTokens": 20,
        "cacheReadTokens": 0,
        "cacheWriteTokens": 0,
        "cacheWrite1hTokens": 0,
        "webSearches": 0,
        "priceVersion": "v1",
        "payment": "",
        "cause": "",
    }
    words = home.words("credits", "show", EMAIL).out
    assert "spendable  4.999679 USD\n" in words
    assert re.search(r"amount +client_id +endsAt\n0\.000300 +web +20", words)
    assert re.search(r"\n20\S+Z +charge +-0\.000021 +4\.999979 +web +echo-1 +1 +20\n", words)
    assert re.search(r"\n20\S+Z +grant +5\.000000 +5\.000000 .* Payment 17\n", words)


def test_a_person_without_credits_is_shown_as_such(home: Home, ada: str) -> None:
    shown = home.json("credits", "show", EMAIL)
    assert (shown["spendable"], shown["holds"], shown["entries"]) == (0, [], [])
    assert home.words("credits", "show", EMAIL).out.endswith("\nno holds\n\nno entries\n")
    assert home.error("credits", "show", "nobody@example.com")[:2] == (1, "not_found")
    assert home.error("credits", "show", EMAIL, "--limit", "0")[0] == 2


@pytest.mark.parametrize(("limit", "expected"), [(None, 100), (1, 1), (100, 100), (101, 101), (230, 230), (999, 230)])
def test_pages_are_joined_without_a_gap(home: Home, ada: str, limit: int | None, expected: int) -> None:
    async def fill(store: Store) -> None:
        for number in range(230):
            await store.credits.grant(ada, number + 1, reason=f"number {number}")

    home.with_store(fill)
    shown = home.json("credits", "show", EMAIL, *(["--limit", str(limit)] if limit else []))
    assert [entry["reason"] for entry in shown["entries"]] == [f"number {229 - n}" for n in range(expected)]
    assert shown["paid"] == sum(range(231)) == shown["entries"][0]["paid"]


@pytest.mark.gen_test(timeout=60)
async def test_a_grant_with_an_unknown_outcome_says_how_to_retry(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        context = Context(Settings(), world.store, keys.ring, False)
        words = {"email": world.email, "amount": 500, "reason": ""}
        armed.arm("grant_credit", 9)
        with pytest.raises(StoreUnavailable, match=r"with --key [0-9a-f]{32}, the command does it once$") as lost:
            await grant_credits(context, Namespace(**words, key=None))
        armed.times = 0
        key = re.search(r"--key (\w+)", str(lost.value))
        assert key
        done = (await grant_credits(context, Namespace(**words, key=key[1]))).record
        assert (done["paid"], done["replayed"]) == (500, True)  # it had been done both times


@pytest.mark.gen_test
@pytest.mark.parametrize(("days", "left"), [("1", 1), ("400", 2)])
async def test_entries_older_than_the_setting_says_are_folded(home: Home, ada: str, days: str, left: int) -> None:
    settings = Settings(ledger_days=int(days), data_dir=home.data_dir)
    async with open_store(settings, home.url, Keys(KeyFile(home.data_dir / "keys"))) as store:
        ledger = spell.credits(ada)["ledger"]
        two_days_ago = int((await store.client.time())[0]) * 1000 - 2 * 86_400_000
        await store.client.xadd(
            ledger, {"kind": "grant", "amount": 900, "paid": 900, "reason": "old"}, id=f"{two_days_ago}-0"
        )
        await store.client.hset(spell.credits(ada)["balance"], "paid", 900)
        await store.credits.grant(ada, 100)
        context = Context(settings, store, store.keys.ring, True)
        shown = (await show_credits(context, Namespace(email=EMAIL, limit=100))).record
    assert (shown["paid"], len(shown["entries"])) == (1000, left)
    assert shown["opening"] + sum(entry["amount"] for entry in shown["entries"]) == shown["paid"]
    assert (shown["openingAt"] is None) is (left == 2)


def test_dollars_are_exact() -> None:
    amounts = {0: "0.000000", 1: "0.000001", -1: "-0.000001", 10**15 - 1: "999999999.999999", -5 * DOLLAR: "-5.000000"}
    assert {amount: exact_dollars(amount) for amount in amounts} == amounts


def test_an_amount_below_a_cent_asks_whether_dollars_were_meant(home: Home, ada: str) -> None:
    assert "If you meant dollars, write 5usd." in home.words("credits", "grant", EMAIL, "5").out
    assert "If you meant" not in home.words("credits", "grant", EMAIL, "0.01usd").out
