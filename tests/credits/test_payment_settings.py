"""Settings of payments: what they take, what they need of each other, and their reload."""

from __future__ import annotations

import argparse

import pytest

from outbound.payments.stripe_checkout import StripeCheckout
from settings.reading import add_arguments, from_namespace
from settings.types import SettingsError
from tests.runtime import test_reload
from tests.support.http.stripe_double import KEY, SECRET
from tests.support.processes.reloaded_service import Reloading

reloading, logging_kept = test_reload.reloading, test_reload.logging_kept
NAMES = {"key": "LATCHKEY_STRIPE_KEY", "secret": "LATCHKEY_STRIPE_WEBHOOK_SECRET"}
NEXT = "whsec_" + "n" * 32


def loaded(**environment: str) -> tuple[str, tuple[str, ...], int, int]:
    """The settings of payments from these variables."""
    parser = argparse.ArgumentParser()
    add_arguments(parser, "server")
    found = from_namespace(parser.parse_args([]), environment, "server")
    return found.stripe_key, found.stripe_webhook_secret, found.purchase_least, found.purchase_most


def test_the_secrets_are_read_from_the_environment() -> None:
    both = {NAMES["key"]: KEY, NAMES["secret"]: f"{SECRET}, {NEXT}"}
    assert loaded(**both, LATCHKEY_PURCHASE_LEAST="0.50usd") == (KEY, (SECRET, NEXT), 500_000, 500_000_000)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({NAMES["key"]: KEY}, id="a key alone"),
        pytest.param({NAMES["secret"]: SECRET}, id="a secret alone"),
        pytest.param({NAMES["key"]: "pk_test_" + "a" * 24, NAMES["secret"]: SECRET}, id="a publishable key"),
        pytest.param({NAMES["key"]: KEY, NAMES["secret"]: "a" * 32}, id="another secret"),
        pytest.param({NAMES["key"]: KEY, NAMES["secret"]: ",".join([SECRET] * 5)}, id="too many secrets"),
        pytest.param({"LATCHKEY_PURCHASE_LEAST": "5.001usd"}, id="a part of a cent"),
        pytest.param({"LATCHKEY_PURCHASE_LEAST": "0.49usd"}, id="less than the provider takes"),
        pytest.param({"LATCHKEY_PURCHASE_LEAST": "600usd"}, id="a least above the most"),
    ],
)
def test_other_settings_of_payments_are_refused_without_the_secret(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(**given)
    assert not [value for name, value in given.items() if name in NAMES.values() and value in str(refused.value)]


@pytest.mark.gen_test
async def test_the_provider_is_replaced_only_with_its_settings(
    reloading: Reloading, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    sold = {"stripe_key": KEY, "stripe_webhook_secret": (SECRET,)}
    await reloading.take(**sold)
    before = reloading.site.payments
    assert isinstance(before, StripeCheckout)
    await reloading.take(**sold, signup="off")
    assert reloading.site.payments is before
    await reloading.take(**{**sold, "stripe_webhook_secret": (SECRET, NEXT)})
    after = reloading.site.payments
    assert isinstance(after, StripeCheckout)
    assert after.account.secrets == (SECRET, NEXT)
    assert KEY not in caplog.text + repr(after.account)
    assert SECRET not in caplog.text + repr(after.account)
