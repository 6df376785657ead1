"""Why sign-ins failed, in the words of the metrics: few, whatever the details of events say."""

from __future__ import annotations

import pytest

from store.accounts.audit.sign_in_failures import REASONS, sign_in_failure
from store.security_events import EVENTS
from store.wiring import Store
from tests.support.lists.offenders import each


@each(
    ("event", "detail", "reason"),
    [
        ("sign_in_refused", "password", "password"),
        ("sign_in_refused", "unknown", "unknown"),
        ("sign_in_refused", "disabled", "disabled"),
        ("second_step_refused", "code", "code"),
        ("passkey_refused", "answer", "passkey"),
        ("passkey_refused", "unknown", "passkey_unknown"),
        ("passkey_refused", "used", "passkey_used"),
        ("provider_refused", "disabled", "disabled"),
        ("provider_refused", "corp away: no whole answer within 10 seconds", "provider_away"),
        ("provider_refused", "corp id_token iss", "provider"),
        ("limited", "signin-account", "limited"),
        ("limited", "oauth", None),
        ("signed_in", "", None),
    ],
)
def test_failed_sign_ins_have_a_reason(event: str, detail: str, reason: str | None) -> None:
    assert sign_in_failure(event, detail) == reason


@each("event", sorted(EVENTS))
def test_whatever_a_detail_says_there_are_few_reasons(event: str) -> None:
    for detail in ("", "another", "signin-", "x away: y", "a" * 200):
        assert sign_in_failure(event, detail) in (None, *REASONS)


@pytest.mark.gen_test
async def test_refused_sign_ins_are_counted_by_reason(memory_store: Store) -> None:
    counted: list[str] = []
    memory_store.security.watch_failure = counted.append
    for number in range(4):
        memory_store.security.note("sign_in_refused", person="0" * 32, detail="password")
        memory_store.security.note("provider_refused", detail=f"p{number} away: status 503")
    memory_store.security.note("signed_in", person="0" * 32)
    assert sorted(counted) == ["password"] * 4 + ["provider_away"] * 4
