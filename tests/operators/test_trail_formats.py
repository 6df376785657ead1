"""The forms in which the security log leaves, read by the programs that they are for."""

from __future__ import annotations

import json
import re

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from latchkey import __version__
from store.accounts.audit import security_reading
from store.accounts.audit.logged_event import AuditEvent
from store.operators.trail_formats import FORMATS, cef_lines, cef_severity, exported, otlp_lines
from store.security_events import EVENTS
from store.wiring import Store
from tests.operators.conftest import Desk, refused
from tests.support.lists.offenders import each

HOSTILE = AuditEvent(
    "signed_in",
    "ok",
    "info",
    "person",
    "0123abcd1",
    "people",
    1_764_201_600_123,
    person="0" * 32,
    client="an=app",
    address="2001:db8::1",
    agent="Fire|fox \\ Linux",
    detail="a=b\r\nCEF:0|x|y",
    request_id="r1",
    count=3,
)


def read_cef(line: str) -> tuple[list[str], dict[str, str]]:
    """The header and the extension of a CEF event, by the rules of the format."""
    *head, tail = re.split(r"(?<!\\)(?:\\\\)*\|", line, maxsplit=7)
    pairs = re.findall(r"([A-Za-z0-9]+)=((?:\\.|[^\\=])*?)(?= [A-Za-z0-9]+=|$)", tail)
    escapes = {"\\\\": "\\", "\\=": "=", "\\n": "\n"}
    return head, {name: re.sub(r"\\[\\=n]", lambda found: escapes[found[0]], value) for name, value in pairs}


def test_cef_keeps_every_value_in_its_place() -> None:
    (line,) = cef_lines([HOSTILE]).decode().splitlines()
    head, fields = read_cef(line)
    assert head == ["CEF:0", "Latchkey", "Latchkey", __version__, "signed_in", "Signed in", "2"]
    assert (fields["requestClientApplication"], fields["reason"]) == ("Fire|fox \\ Linux", "a=b\nCEF:0|x|y")
    assert (fields["rt"], fields["c6a2"], fields["cs2"], fields["cs2Label"]) == (
        "1764201600123",
        "2001:db8::1",
        "an=app",
        "clientId",
    )
    assert "src" not in fields
    later = AuditEvent("a|b\\c\nd", "ok", "info", "server", "2", address="192.0.2.1")
    (line,) = cef_lines([later]).decode().splitlines()
    assert line.startswith(rf"CEF:0|Latchkey|Latchkey|{__version__}|a\|b\\c d|a\|b\\c d|2|")
    assert "src=192.0.2.1" in line


@each("name", sorted(EVENTS))
def test_every_kind_of_event_has_a_severity(name: str) -> None:
    one = EVENTS[name]
    event = AuditEvent(name, one.result, one.severity, one.actor, "1", one.stream)
    assert 2 <= cef_severity(event) <= 8
    assert (cef_severity(event) == 8) == (one.severity == "warning")


def test_a_collector_reads_otlp_logs() -> None:
    failed = AuditEvent("events_lost", "failed", "warning", "server", "2", at_ms=1)
    request = Parse(otlp_lines([HOSTILE, failed]), ExportLogsServiceRequest())
    (logs,) = request.resource_logs
    assert {one.key: one.value.string_value for one in logs.resource.attributes}["service.name"] == "latchkey"
    first, second = logs.scope_logs[0].log_records
    assert (first.time_unix_nano, first.severity_number, second.severity_number) == (1_764_201_600_123_000_000, 9, 17)
    assert (first.event_name, first.body.string_value) == ("latchkey.signed_in", "Signed in")
    named = {one.key: one.value for one in first.attributes}
    assert named["latchkey.detail"].string_value == HOSTILE.detail
    assert (named["user.id"].string_value, named["latchkey.count"].int_value) == (HOSTILE.person, 3)
    assert otlp_lines([]) == b""


@pytest.mark.gen_test
async def test_an_export_reads_piece_by_piece(memory_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security_reading, "PAGE", 10)
    for number in range(100):
        memory_store.security.note("signed_up", person=f"{number:032x}", detail=str(number))
    await memory_store.security.flush()
    pieces = [piece async for piece in exported(memory_store.security_events, "jsonl", 0, None)]
    assert max(piece.count(b"\n") for piece in pieces) <= 40
    found = [json.loads(line)["detail"] for piece in pieces for line in piece.splitlines()]
    assert found == [str(number) for number in range(100)]


@pytest.mark.gen_test(timeout=60)
async def test_programs_export_the_log(desk: Desk) -> None:
    for number in range(5):
        desk.store.security.note("signed_up", person=f"{number:032x}")
    await desk.store.security.flush()
    for form in FORMATS:
        response = await desk.ask("GET", f"/audit/export?event=signed_up&format={form}", role="auditor")
        assert response.code == 200
        assert response.body.count(b"signed_up") == 5
    for amount in (5_000_000, -250_000):
        key = {"Idempotency-Key": f"payment{amount}"}
        await desk.ask("POST", f"/people/{desk.ada}/credits", {"amount": amount, "reason": "Card"}, headers=key)
    await desk.store.security.flush()
    for form in FORMATS:
        body = (await desk.ask("GET", f"/audit/export?event=credit_added,credit_taken&format={form}")).body
        assert re.findall(rb"-?[0-9.]+ USD", body) == [b"5.000000 USD", b"-0.250000 USD"]
    assert (await desk.ask("GET", "/audit/export?until=2020-01-01", role="auditor")).body == b""
    for wrong in ("format=xml", "since=soon", "limit=5"):
        refused(await desk.ask("GET", f"/audit/export?{wrong}", role="auditor"), 400, "invalid_request")
    exports = [one for one in desk.events if one.event == "trail_exported_by_operator"]
    assert [one.detail for one in exports][:3] == list(FORMATS)
    assert "The auditor" in exports[0].by
