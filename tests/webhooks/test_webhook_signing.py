"""The posted form of an event, compared with the Standard Webhooks library."""

from __future__ import annotations

import base64
import json
import subprocess
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbound.webhooks.signing import body_of, signed
from store.apps.webhooks import check_webhook_secret, new_webhook_secret
from tests.support.processes.npm import NODE, packages

BODY = body_of("grant.revoked", 1_700_000_000_007, "web", "0" * 32, {"reason": "by_person"})


def test_the_body_says_what_happened_when_and_to_whom() -> None:
    assert json.loads(BODY) == {
        "type": "grant.revoked",
        "timestamp": "2023-11-14T22:13:20.007Z",
        "data": {"client_id": "web", "sub": "0" * 32, "reason": "by_person"},
    }
    assert json.loads(body_of("ping", 0, "web", "", {}))["data"] == {"client_id": "web"}


def test_the_standard_webhooks_library_verifies_it() -> None:
    secret = new_webhook_secret()
    headers = signed("an-id", int(time.time()), BODY, [secret])
    assert Webhook(secret).verify(BODY, headers) == json.loads(BODY)
    for other in (BODY + b" ", BODY.replace(b"web", b"wob")):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(other, headers)
    for changed in ({"webhook-id": "another"}, {"webhook-timestamp": str(int(time.time()) - 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(BODY, {**headers, **changed})


@pytest.mark.parametrize("change", ["nothing", "body", "secret"])
def test_the_npm_library_verifies_it(change: str) -> None:
    packages()
    secrets = [new_webhook_secret(), new_webhook_secret()]
    given = {
        "secret": new_webhook_secret() if change == "secret" else secrets[1],
        "headers": signed("an-id", int(time.time()), BODY, secrets),
        "body": BODY.decode() + (" " if change == "body" else ""),
    }
    done = subprocess.run(
        ["node", str(NODE / "webhook.mjs")], input=json.dumps(given), text=True, capture_output=True, timeout=60
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == (json.loads(BODY) if change == "nothing" else "WebhookVerificationError")


def test_either_of_two_signing_secrets_verifies_and_a_third_does_not() -> None:
    newer, older = new_webhook_secret(), new_webhook_secret()
    headers = signed("an-id", int(time.time()), BODY, [newer, older])
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (newer, older):
        Webhook(secret).verify(BODY, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_webhook_secret()).verify(BODY, headers)


def test_the_signature_matches_the_librarys() -> None:
    from datetime import UTC, datetime

    secret, moment = new_webhook_secret(), datetime(2026, 3, 5, tzinfo=UTC)
    expected = Webhook(secret).sign("an-id", moment, BODY.decode())
    assert signed("an-id", int(moment.timestamp()), BODY, [secret])["webhook-signature"] == expected


def test_a_secret_is_long_and_of_letters_and_digits() -> None:
    made = {new_webhook_secret() for _ in range(100)}
    assert len(made) == 100
    for secret in made:
        assert secret.removeprefix("whsec_").isalnum()
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 33
        check_webhook_secret(secret)


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("whsec_" + base64.b64encode(bytes(23)).decode(), id="too short"),
        pytest.param("whsec_" + base64.b64encode(bytes(65)).decode(), id="too long"),
        pytest.param(base64.b64encode(bytes(32)).decode(), id="without its prefix"),
        pytest.param("whsec_not base64 at all, whoever wrote it", id="no base64"),
        pytest.param("whsec_ü" + "A" * 43, id="not ASCII"),
    ],
)
def test_malformed_webhook_secrets_are_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="24 to 64 bytes") as refused:
        check_webhook_secret(secret)
    assert secret not in str(refused.value)
