"""Errors of webhook deliveries are stored in English, and pages say them in the language of their reader."""

from __future__ import annotations

import re
from datetime import date

import orjson
import pytest

from dev.words.pseudo import LONGER, languages
from handlers.developer.app_keys import check_keys
from outbound.webhooks.errors import ERRORS, as_message
from outbound.webhooks.posting import PostResult
from store.apps.api_record import ApiScope
from store.apps.registration import InvalidRegistration
from store.phrases import Phrase, packed, plural, unpacked
from store.refused import reason_of
from store.webhooks.urls import InvalidWebhookUrl, check_webhook_url

SPOKEN = next(one for one in languages(LONGER).all if one.code == LONGER.code)


@pytest.mark.parametrize("message", ERRORS, ids=str)
def test_a_stored_error_is_said_in_the_language_of_the_page(message: Phrase) -> None:
    names = re.findall(r"%\((\w+)\)s", message.text)
    stored = str(message.filled(**dict.fromkeys(names, "0.5")))
    found = as_message(PostResult(None, stored).error)
    assert (found, type(found)) == (stored, Phrase)
    assert SPOKEN.say(found) not in ("", stored)


@pytest.mark.parametrize(
    "message",
    [
        Phrase("There is nothing here."),
        Phrase("Nobody called %(name)s in %(count)s years.", name=Phrase("A name"), count=1000),
        plural("%(count)s code left", "%(count)s codes left", 2, name=Phrase("A name")),
    ],
    ids=str,
)
def test_a_message_in_json_is_the_same_message_again(message: Phrase) -> None:
    found = unpacked(orjson.loads(orjson.dumps(packed(message))))
    assert (type(found), found) == (Phrase, message)
    assert SPOKEN.say(found) == SPOKEN.say(message)
    assert unpacked(packed(str(message))) == str(message)


@pytest.mark.parametrize("value", [date(2026, 1, 1), 1.5, ["a", "b"], 2**70], ids=str)
def test_a_message_with_a_value_that_json_does_not_keep_becomes_plain_text(value: object) -> None:
    message = Phrase("There is %(value)s.", value=value)
    found = unpacked(orjson.loads(orjson.dumps(packed(message))))
    assert (type(found), found) == (str, str(message))


def test_an_error_of_another_release_stays_unchanged() -> None:
    for text in ("", "The moon was in the way.", "The answer was 500. And more.", f"The answer was {'5' * 400}."):
        assert as_message(text) == text
        assert type(as_message(text)) is str


@pytest.mark.parametrize(
    "url",
    ["https://a.example/#x", "https://a.example/ x", "https://me@a.example/", "nowhere", "http://a.example/",
     "http://localhost/", "https://a.example/" + "x" * 2000],
)  # fmt: skip
def test_what_is_wrong_with_a_url_is_a_message(url: str) -> None:
    with pytest.raises(InvalidWebhookUrl) as refused:
        check_webhook_url(url)
    assert type(reason_of(refused.value)) is Phrase


def test_what_is_wrong_with_keys_and_scopes_is_a_message() -> None:
    for typed in ("nonsense", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'):
        _, errors = check_keys("private_key_jwt", typed, "", loopback=False)
        assert type(errors["jwks"][0]) is Phrase
    for wrong in (("a b", "Title"), ("profile", "Title"), ("read", "\n"), ("read", "Title", " ")):
        with pytest.raises(InvalidRegistration) as refused:
            ApiScope(*wrong)
        assert type(reason_of(refused.value)) is Phrase
