"""The settings that name an OpenTelemetry collector."""

from __future__ import annotations

import pytest

from runtime.arguments import load
from settings.collectors import ratio
from settings.in_force import in_force
from settings.types import SettingsError
from tests.support.lists.offenders import each

AT = "LATCHKEY_AUDIT_OTLP"


@each(
    ("given", "url"),
    [
        ("https://collector.example", "https://collector.example/v1/logs"),
        ("https://collector.example:4318/", "https://collector.example:4318/v1/logs"),
        ("https://collector.example/otlp/logs", "https://collector.example/otlp/logs"),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/logs"),
        ("http://[::1]:4318/x", "http://[::1]:4318/x"),
        ("http://localhost", "http://localhost/v1/logs"),
        ("", ""),
    ],
)
def test_a_collector_is_named_by_its_url(given: str, url: str) -> None:
    assert load(["--audit-otlp", given], {}).audit_otlp == url


@each(
    "given",
    [
        *("http://collector.example", "http://127.0.0.1.example", "http://10.0.0.1:4318", "ftp://collector.example"),
        *("https://", "https://user@collector.example", "https://collector.example/?key=1", "collector.example"),
        *("https://collector.example/#x", "https://collector.example:0", "https://collector.example:port"),
        *(
            "https://[::1",
            "https://a b",
            "https://a.example/\r\nX: y",
            "https://a.example\\@b.example",
            "https://é.example",
        ),
        "https://a.example/" + "x" * 2000,
    ],
)
def test_other_urls_are_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="audit_otlp must be"):
        load([], {AT: given})


def test_the_header_is_a_secret() -> None:
    environment = {AT: "https://a.example", AT + "_HEADER": " Authorization:  Bearer to:ken "}
    found = load([], environment)
    assert found.audit_otlp_header == ("Authorization", "Bearer to:ken")
    assert "to:ken" not in repr(found) + repr(in_force(found))
    with pytest.raises(SystemExit):
        load(["--audit-otlp-header", "A: b"], {})
    with pytest.raises(SettingsError, match="must come with audit_otlp"):
        load([], {AT + "_HEADER": "A: b"})


@each(
    "given",
    [
        "a token",
        ": x",
        "A:",
        "A b: c",
        "A: b\r\nC: d",
        "A: b\nC",
        "Host: x",
        "content-length: 1",
        "Cookie: a",
        "Ä: b",
        "A: ö",
    ],
)
def test_other_headers_are_refused_and_not_shown(given: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load([], {AT: "https://a.example", AT + "_HEADER": given})
    assert given not in str(caught.value)


@each(("text", "value"), [("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("1.0", 1.0)])
def test_a_ratio_is_a_number_from_0_to_1(text: str, value: float) -> None:
    assert ratio(text) == value


@each("text", ["", "2", "-0.1", "1.1", "nan", "1e-3", ".5", "0." + "1" * 10])
def test_other_numbers_are_no_ratio(text: str) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        ratio(text)
