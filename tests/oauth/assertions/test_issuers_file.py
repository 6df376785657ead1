"""The file of `--assertion-issuers`: what it may say, and that a reload takes it up or changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from outbound.assertion_issuers import LARGEST, IssuersError, load_issuers
from store.oauth.assertions.issuers import TrustedIssuer, TrustedIssuers
from store.oauth.client_assertions import CLIENT_ALGORITHMS
from tests.support.processes import reloaded_service
from tests.support.processes.reloaded_service import Reloading

logging_kept, reloading = reloaded_service.logging_kept, reloaded_service.reloading
PAGE = Path(__file__).parents[3] / "docs" / "agents" / "enterprise.md"
LEAST = """
[[issuer]]
issuer = "https://acme.idp.example"
domains = ["acme.example"]
clients = ["wiki"]
[issuer.resources]
"https://id.example" = ["profile"]
"""


def read(folder: Path, text: str) -> TrustedIssuers:
    """The issuers in a file with this text."""
    file = folder / "issuers.toml"
    file.write_text(text)
    return load_issuers(file)


def test_a_short_file_has_safe_defaults(tmp_path: Path) -> None:
    assert not load_issuers(None).all
    [found] = read(tmp_path, LEAST)
    resources = (("https://id.example", ("profile",)),)
    assert found == TrustedIssuer(
        "https://acme.idp.example", "acme.idp.example", ("acme.example",), ("wiki",), resources
    )
    assert (found.algorithms, found.implied, found.jwks_uri) == (CLIENT_ALGORITHMS, True, "")


def test_the_file_of_the_page_is_right(tmp_path: Path) -> None:
    [text] = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [found] = read(tmp_path, text)
    assert (found.name, len(found.clients), len(found.resources)) == ("Acme", 2, 2)


def test_a_whole_file(tmp_path: Path) -> None:
    whole = LEAST.replace(
        "[issuer.resources]",
        """
        name = "Acme"
        jwks_uri = "https://acme.idp.example/keys"
        algorithms = ["RS256"]
        tenant = "t1"
        consent = "person"
        spend_limit = 5_000_000
        [issuer.resources]
        "https://id.example/mcp" = ["credits:spend", "*"]
        """,
    )
    [found] = read(tmp_path, whole)
    assert (found.name, found.tenant, found.implied, found.spend_limit) == ("Acme", "t1", False, 5_000_000)
    assert (found.jwks_uri, found.algorithms) == ("https://acme.idp.example/keys", ("RS256",))
    assert dict(found.resources)["https://id.example/mcp"] == ("credits:spend", "*")


WRONG = {
    "issuer.issuer": ('"https://acme.idp.example"', '"http://acme.idp.example"'),
    "a query": ('"https://acme.idp.example"', '"https://acme.idp.example?a"'),
    "issuer.domains": ('["acme.example"]', '["*.example"]'),
    "no domains": ('["acme.example"]', "[]"),
    "domains that are no list": ('["acme.example"]', '"acme.example"'),
    "no clients": ('clients = ["wiki"]', ""),
    "a number as client": ('["wiki"]', "[1]"),
    "no scopes": ('["profile"]', "[]"),
    "openid": ('["profile"]', '["openid"]'),
    "spending without a limit": ('["profile"]', '["credits:spend"]'),
    "a limit without spending": ("clients =", "spend_limit = 1\nclients ="),
    "an unknown key": ("clients =", "client = []\nclients ="),
    "an unknown algorithm": ("clients =", 'algorithms = ["HS256"]\nclients ='),
    "no algorithm": ("clients =", "algorithms = []\nclients ="),
    "an unknown consent": ("clients =", 'consent = "none"\nclients ='),
    "a hidden name": ("clients =", 'name = "\\u202e"\nclients ='),
    "twice": ("", LEAST),
    "no TOML": ("[[issuer]]", "[[issuer"),
    "an unknown table": ("[[issuer]]", "[[provider]]"),
    "too long": ("[[issuer]]", f"#{'a' * LARGEST}\n[[issuer]]"),
}


@pytest.mark.parametrize(("old", "new"), [pytest.param(*case, id=what) for what, case in WRONG.items()])
def test_a_wrong_file_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = LEAST.replace(old, new, 1) if old else LEAST + new
    with pytest.raises(IssuersError, match=r"issuers\.toml") as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IssuersError, match="cannot be read"):
        load_issuers(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    with pytest.raises(IssuersError, match="not TOML"):
        load_issuers(tmp_path / "binary.toml")


@pytest.mark.gen_test
async def test_a_reload_takes_the_file_up_or_changes_nothing(reloading: Reloading, tmp_path: Path) -> None:
    file = tmp_path / "issuers.toml"
    file.write_text(LEAST)
    await reloading.take(assertion_issuers=file)
    assert [one.issuer for one in reloading.site.issuers] == ["https://acme.idp.example"]
    # The same name, and other content.
    file.write_text(LEAST.replace("acme.idp", "new.idp"))
    await reloading.take()
    assert [one.issuer for one in reloading.site.issuers] == ["https://new.idp.example"]
    file.write_text("[[issuer]]")
    with pytest.raises(IssuersError):
        await reloading.take()
    assert [one.issuer for one in reloading.site.issuers] == ["https://new.idp.example"]
    await reloading.take(assertion_issuers=None)
    assert not reloading.site.issuers.all
