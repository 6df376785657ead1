"""The file of identity providers: what it takes, and what it says of mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from outbound.identity.config import MOST_PROVIDERS, ProvidersError, ProvidersFile, load_providers, parse_providers
from store.accounts.identities import UpstreamIdentity

SECRETS = {"A_SECRET": "hush-hush"}
KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
OIDC = '[[provider]]\nname = "idp"\nissuer = "https://id.example"\nclient_id = "us"\nsecret_env = "A_SECRET"\n'


def parsed(text: str, **more: str) -> Any:
    return parse_providers(Path("providers.toml"), ProvidersFile(text), {**SECRETS, **more})


def test_each_type_is_read_with_what_it_needs() -> None:
    text = OIDC + 'trust_email = true\ncreate = true\ndomains = ["example.org"]\nsecond_step = "provider"\n'
    for kind in ("github", "google"):
        text += f'[[provider]]\ntype = "{kind}"\nname = "{kind}"\nclient_id = "us"\nsecret_env = "A_SECRET"\n'
    text += '[[provider]]\ntype = "microsoft"\nname = "work"\ntenant = "organizations"\nclient_id = "us"\n'
    text += 'secret_env = "A_SECRET"\n'
    text += '[[provider]]\ntype = "apple"\nname = "apple"\nclient_id = "us"\nsecret_env = "APPLE_KEY"\n'
    text += 'team_id = "TEAM123456"\nkey_id = "KEY1234567"\n'
    found = parsed(text, APPLE_KEY=KEY.replace("\n", "\\n"))
    assert [one.title for one in found] == ["Idp", "GitHub", "Google", "Microsoft", "Apple"]
    first = found.find("idp")
    assert (first.by_address, first.create, first.domains, first.own_step) == (True, True, ("example.org",), False)
    assert "hush" not in repr(first)
    assert found.of(UpstreamIdentity("https://github.com", "1")) is found.find("github")
    assert found.of(UpstreamIdentity("https://elsewhere.example", "1")) is None
    assert load_providers(None).find("idp") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = 1", "is unknown"),
        ("[[provider]]\n", "name is missing"),
        (OIDC.replace('"idp"', '"Id P"'), "1 to 32 of a-z"),
        (OIDC.replace("https://id.example", "http://id.example"), "must be an https URL"),
        (OIDC.replace("https://id.example", "https://id.example?a=b"), "must be|has no query"),
        (OIDC.replace("A_SECRET", "NOT_SET"), "which is not set"),
        (OIDC.replace("A_SECRET", "hush-hush"), "name of an environment variable"),
        (OIDC + "create = true", "needs trust_email"),
        (OIDC + 'trust_email = "yes"', "true or false"),
        (OIDC + 'domains = ["Example.org"]', "lower-case"),
        (OIDC + 'tenant = "common"', "for microsoft alone"),
        (OIDC + 'scopes = "email"', "needs openid"),
        (OIDC + 'second_step = "none"', "own or provider"),
        (OIDC + 'networks = ["10.0.0.1/8"]', "must be networks"),
        (OIDC + OIDC, "is there twice"),
        (OIDC + OIDC.replace('"idp"', '"idq"'), "issuer is there twice"),
        (OIDC + 'type = "microsoft"', "tenant is missing"),
        (OIDC + 'type = "apple"\nteam_id = "TEAM123456"\nkey_id = "KEY1234567"', "no private key"),
        ("[[provider]]\n" * (MOST_PROVIDERS + 1), "more than"),
        ("[" * 1000, "is not TOML"),
    ],
)
def test_mistakes_are_named_without_secrets(text: str, said: str) -> None:
    with pytest.raises(ProvidersError, match=said) as error:
        parsed(text)
    assert "\n" not in str(error.value)
    assert "PRIVATE" not in str(error.value)
    assert SECRETS["A_SECRET"] not in str(error.value) or "secret_env" in str(error.value)
