"""Everything that runs in a thread or waits for a place: one person's, owner's or stranger's share."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from handlers.core.pictures.image_upload import ImageUpload
from store.refused import Refused

HERE = Path(__file__).resolve().parent.parent.parent
MAKERS = {
    "ThreadPoolExecutor",
    "Threads",
    "ConcurrencyLimit",
    "Readers",
    "Semaphore",
    "FairSemaphore",
    "KeyedSemaphore",
    "Queue",
    "Line",
    "to_thread",
}
FOLDERS = ("handlers", "observability", "outbound", "runtime", "store")

BOUNDS = {
    "handlers/core/site.py ConcurrencyLimit": "for one person, by the settings: test_overload_ai.py, test_overload.py",
    "handlers/core/live/watches.py ConcurrencyLimit": "for one person: test_live_apps.py",
    "runtime/site_wiring.py ConcurrencyLimit": "the same",
    "runtime/demo.py to_thread": "nobody's: the demo app starts once",
    "runtime/processes.py to_thread": "nobody's: the embedded store is started again, one start at a time",
    "handlers/core/reading.py ConcurrencyLimit": "for one person: test_reading.py",
    "handlers/core/reading.py Threads": "one body of a person: test_reading.py",
    "handlers/core/pictures/image_upload.py ThreadPoolExecutor": "one picture of a person: here",
    "handlers/ai/call.py to_thread": "AI calls of a person under way, by the settings: test_overload_ai.py",
    "outbound/ai/tokens.py to_thread": "the same",
    "outbound/ai/meter.py to_thread": "the same",
    "store/credits/daily.py KeyedSemaphore": "the same; people of a shard take turns: test_daily_limits.py",
    "handlers/guides/pages.py to_thread": "nobody's: two pages, read with the first requests for them",
    "outbound/ai/server_keys.py to_thread": "nobody's: one reading for each server of models at a time",
    "handlers/ops/inbox.py to_thread": "nobody's: a demo, for the person at its machine",
    "handlers/ops/metrics.py ThreadPoolExecutor": "nobody's: the operator's own port",
    "store/crypto/hash_pool.py ThreadPoolExecutor": "by address and account: test_passwords.py, test_known_devices.py",
    "store/crypto/signing_store.py to_thread": "nobody's: one key is made at a time, a few in a quarter of a year",
    "store/parts/people.py Threads": "by address before: test_passkeys_hostile.py",
    "store/limits.py KeyedSemaphore": "one form of a person that verifies a password: test_own_passwords.py",
    "store/threads.py KeyedSemaphore": "one passkey answer of a person: test_passkeys_hostile.py",
    "store/threads.py ThreadPoolExecutor": "by whoever makes one",
    "outbound/payments/stripe_checkout.py Threads": "orders of one person; Stripe's own events: test_payments_http.py",
    "outbound/fetching.py FairSemaphore": "a share for each person: test_fetching.py",
    "outbound/identity/calling.py FairSemaphore": "a share for each address: tests/accounts/elsewhere",
    "outbound/identity/ldap/directory.py FairSemaphore": "the same: test_ldap.py",
    "outbound/mail/mailer.py Line": "by account and by the network that asks: test_mail_queue.py",
    "outbound/mail/mailer.py to_thread": "the same: test_mail_queue.py",
    "outbound/address_policy.py FairSemaphore": "a share for each owner: test_webhook_fairness.py",
    "store/keyed_semaphore.py FairSemaphore": "by whoever makes one: test_keyed_semaphore.py",
    "outbound/webhooks/poster.py FairSemaphore": "a share for each owner: test_webhook_fairness.py",
    "outbound/webhooks/poster.py KeyedSemaphore": "each app; each host, a share of an owner: test_webhook_fairness.py",
    "handlers/core/brand/mail_dress.py to_thread": "one logo for each mail that is being sent: test_mail_queue.py",
    "handlers/core/long/bodies.py KeyedSemaphore": "one long body of a person: test_helper.py",
    "handlers/core/long/bodies.py Semaphore": "the same",
    "handlers/core/long/bodies.py to_thread": "the same",
    "handlers/core/reading.py KeyedSemaphore": "one body of a person: test_reading.py",
}
"""Each place that creates one, with its bound for one person and the test of that."""


def made() -> set[str]:
    """The places that create one: the file and the call."""
    found = set()
    for folder in FOLDERS:
        for file in sorted((HERE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call):
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                    if name in MAKERS:
                        found.add(f"{file.relative_to(HERE)} {name}")
    return found


def test_every_queue_names_its_bound_per_person() -> None:
    assert made() == set(BOUNDS)


def test_the_named_tests_of_queues_exist() -> None:
    known = {path.name for path in (HERE / "tests").rglob("test_*.py")}
    named = {word for words in BOUNDS.values() for word in words.replace(",", " ").split() if word.endswith(".py")}
    assert named - known == set()


def test_a_person_has_one_picture_in_progress() -> None:
    image_upload = ImageUpload()
    image_upload.enter("ada")
    with pytest.raises(Refused):
        image_upload.enter("ada")
    image_upload.enter("bea")
