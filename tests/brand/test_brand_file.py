"""The file of a brand: what it may say, and that every mistake is named with its file and key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from handlers.core.brand import images, overrides, reading
from handlers.core.brand.brand import PRODUCT, Brand
from handlers.core.brand.reading import KEYS, BrandError, load_brand
from runtime.handover import LARGEST
from tests.support.browser.pictures import drawn
from tests.support.data.brands import LOGO, ROOT, write_brand

EXAMPLE = ROOT / "examples" / "brand" / "brand.toml"


def test_without_a_file_the_brand_is_our_own() -> None:
    assert load_brand(None) == Brand()
    assert Brand().name == Brand().sender == PRODUCT


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load_brand(write_brand(tmp_path)) == Brand()


def test_the_example_has_every_key_and_loads() -> None:
    brand = load_brand(EXAMPLE)
    assert all(f"\n{key} = " in EXAMPLE.read_text() for key in KEYS)
    assert (brand.name, brand.sender, len(brand.styles)) == ("Harbo", "Harbo accounts", 2)
    assert brand.logo is not None
    assert brand.logo.wide
    assert list(brand.templates) == ["base/home.html"]


def test_a_name_alone_gets_a_mark_of_its_own(tmp_path: Path) -> None:
    brand = load_brand(write_brand(tmp_path, name="Ärger <&>"))
    assert brand.logo is not None
    assert brand.logo == brand.favicon
    assert b">\xc3\x84</text>" in brand.logo.content
    assert brand.sender == "Ärger <&>"
    assert brand.styles == ()


def test_our_own_mark_is_never_next_to_another(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(drawn())
    for table in ({"logo": "logo.png"}, {"favicon": "logo.png"}, {"name": "Acme", "favicon": "logo.png"}):
        brand = load_brand(write_brand(tmp_path, **table))
        assert brand.logo is not None
        assert brand.favicon is not None


def test_a_sign_for_a_name_is_escaped_in_its_mark(tmp_path: Path) -> None:
    brand = load_brand(write_brand(tmp_path, name="<script>"))
    assert brand.logo is not None
    assert b"<script" not in brand.logo.content


def test_a_colour_alone_keeps_our_mark_and_gets_a_dark_relative(tmp_path: Path) -> None:
    brand = load_brand(write_brand(tmp_path, color="#1f4fd8"))
    (styles,) = brand.styles
    assert (brand.logo, brand.favicon) == (None, None)
    assert styles.content.count(b"--accent:") == 2
    assert b"--accent: #1f4fd8;" in styles.content


def test_paths_start_at_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logo.png").write_bytes(drawn())
    write_brand(tmp_path, logo="logo.png")
    monkeypatch.chdir("/")
    assert load_brand(tmp_path / "brand.toml").logo is not None
    monkeypatch.chdir(tmp_path)
    assert load_brand(Path("brand.toml")).logo is not None


def test_a_stylesheet_loses_its_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "own.css").write_bytes(b"\xef\xbb\xbfbody { margin: 0; }")
    (style,) = load_brand(write_brand(tmp_path, css="own.css")).styles
    assert (style.content, style.address.rpartition(".")[2]) == (b"body { margin: 0; }", "css")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        pytest.param({"nmae": "Acme"}, "'nmae' is no key of a brand, name is", id="an unknown key"),
        pytest.param({"name": 5}, "name must be a text in quotes", id="a number for a name"),
        pytest.param({"name": ""}, "name must be 1 to 60 characters", id="no name"),
        pytest.param({"name": "x" * 61}, "name must be 1 to 60 characters", id="a long name"),
        pytest.param({"name": "a\nb"}, "name must be 1 to 60 characters", id="a name of two lines"),
        pytest.param({"name": "a\u202eb"}, "name must be 1 to 60 characters", id="a name that turns around"),
        pytest.param({"mail_from_name": "a\r\nBcc: x"}, "mail_from_name must be", id="a header in the sender"),
        pytest.param({"footer": "x" * 301}, "footer must be 1 to 300 characters", id="a long foot"),
        pytest.param({"color": "blue"}, "color must be a colour such as", id="a word for a colour"),
        pytest.param({"color": "#ffcc00"}, "color must be readable on our light surfaces", id="a pale colour"),
        pytest.param(
            {"color": "#1f4fd8", "color_dark": "#1f4fd8"}, "color_dark must be readable on our dark", id="a dark colour"
        ),
        pytest.param({"color_dark": "#8fb0ff"}, "color_dark must come with color", id="a dark colour alone"),
        pytest.param({"terms": "javascript:alert(1)"}, "terms must be an https:// address", id="a script for terms"),
        pytest.param({"terms": "//evil.example"}, "terms must be an https:// address", id="another host's path"),
        pytest.param({"privacy": "https://a.example/ b"}, "privacy must be an https://", id="a blank in an address"),
        pytest.param({"privacy": "mailto:a@b.example"}, "privacy must be an https://", id="a mail address for a page"),
        pytest.param({"help": 'https://a"b'}, "help must be an https:// address", id="a quote in an address"),
        pytest.param({"logo": "missing.png"}, "logo cannot be read", id="no such logo"),
        pytest.param({"logo": "."}, "logo must be a file", id="a folder for a logo"),
        pytest.param({"logo": ""}, "logo must be a path", id="an empty path"),
        pytest.param({"logo": "a\0b"}, "logo must be a path", id="a zero in a path"),
        pytest.param({"logo": "brand.toml"}, "logo must be a PNG, JPEG, WebP, GIF or SVG file", id="no picture"),
        pytest.param({"logo": "/dev/zero"}, "logo must be a file", id="a device"),
        pytest.param({"favicon": "big.png"}, "favicon must be a file of at most", id="a large icon"),
        pytest.param({"logo_dark": "logo.svg"}, "logo_dark must come with logo", id="a dark logo alone"),
        pytest.param({"css": "latin.css"}, "css must be a stylesheet in UTF-8", id="styles in Latin 1"),
        pytest.param({"css": "big.png"}, "css must be a file of at most", id="large styles"),
        pytest.param({"templates": "nowhere"}, "templates cannot be read", id="no such folder"),
        pytest.param({"templates": "logo.svg"}, "templates cannot be read", id="a file for a folder"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, table: dict[str, Any], words: str) -> None:
    (tmp_path / "logo.svg").write_text(LOGO)
    (tmp_path / "latin.css").write_bytes(b"/* \xe9 */")
    (tmp_path / "big.png").write_bytes(bytes(2**20 + 1))
    path = write_brand(tmp_path, **table)
    with pytest.raises(BrandError) as refused:
        load_brand(path)
    assert str(refused.value).startswith(words)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"name = ", "is not TOML", id="no TOML"),
        pytest.param(b"name = '\xff'", "is not UTF-8", id="no UTF-8"),
        pytest.param(b"a = " + b"[" * 30_000, "is not TOML", id="deep TOML"),
        pytest.param(b"#" * (reading.MOST_FILE + 1), "at most", id="a large file"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "brand.toml"
    path.write_bytes(content)
    with pytest.raises(BrandError, match=words) as refused:
        load_brand(path)
    assert str(path) in str(refused.value)


def test_a_pipe_does_not_hold_up_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "brand.toml")
    with pytest.raises(BrandError, match="must be a file"):
        load_brand(tmp_path / "brand.toml")


@pytest.mark.parametrize("address", ["https://a.example/?q=1&r=2#x", "http://intranet/terms", "/terms"])
def test_addresses_of_rules(tmp_path: Path, address: str) -> None:
    brand = load_brand(write_brand(tmp_path, terms=address, privacy=address, help=address))
    assert (brand.terms, brand.privacy, brand.help) == (address, address, address)


def test_help_may_be_a_mail_address(tmp_path: Path) -> None:
    assert load_brand(write_brand(tmp_path, help="mailto:help@a.example")).help == "mailto:help@a.example"


def test_the_keys_of_a_table_are_all_read(tmp_path: Path) -> None:
    for key in KEYS:
        with pytest.raises(BrandError, match=f"^{key} must be a text"):
            load_brand(write_brand(tmp_path, **{key: 1}))


def test_the_largest_brand_fits_in_a_handover() -> None:
    """A supervisor hands a brand to its workers."""
    parts = 3 * max(images.MOST_ENCODED, images.MOST_SVG), reading.MOST_CSS, 2 * overrides.MOST_BYTES
    assert sum(parts) + reading.MOST_FILE + 2**19 <= LARGEST
