"""The dashboard, the alerts and the metrics page: everything they name is exported with the right labels."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handlers.core.errors import CATALOGUE
from observability.metrics import rows as of
from observability.metrics.declared import BUILD, BUILD_LABELS, METRICS
from observability.metrics.page import table
from store.accounts.audit.sign_in_failures import REASONS
from store.engine.script_source import load_scripts
from store.security_events import EVENTS
from tests.support.lists.offenders import each

ROOT = Path(__file__).resolve().parent.parent.parent
DASHBOARD = ROOT / "deploy" / "grafana" / "latchkey.json"
RULES = ROOT / "deploy" / "prometheus" / "latchkey.rules.yml"
SCRAPING = ROOT / "deploy" / "prometheus" / "prometheus.yml"
PAGE = ROOT / "docs" / "metrics.md"

# What Prometheus adds to every sample.
ADDED = {"job", "instance"}
NAME = re.compile(r"\b(up|latchkey_\w+)(?:\{([^}]*)\})?")


def exported() -> dict[str, set[str]]:
    """The samples of a scrape, and their labels."""
    found = {f"{BUILD}_info": set(BUILD_LABELS), "up": set()}
    for metric in METRICS:
        if metric.kind == "histogram":
            found[f"{metric.name}_bucket"] = {*metric.labels, "le"}
            found |= {f"{metric.name}_{end}": set(metric.labels) for end in ("sum", "count")}
        else:
            found[metric.name] = set(metric.labels)
    return found


def dashboard() -> Any:
    """The dashboard."""
    return json.loads(DASHBOARD.read_text("utf-8"))


def panels() -> list[Any]:
    """Its panels, rows left out."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def alerts() -> list[Any]:
    """The rules."""
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[Any] = group["rules"]
    return found


def expressions() -> Iterator[tuple[str, str, str]]:
    """Where an expression stands, the expression, and the words that are filled with its labels."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for annotation in dashboard()["annotations"]["list"]:
        yield annotation["name"], annotation["expr"], annotation["titleFormat"]
    for rule in alerts():
        yield rule["alert"], rule["expr"], rule["annotations"]["summary"].replace("$labels.", "")


CASES = [pytest.param(expression, words, id=place) for place, expression, words in expressions()]


@each(("expression", "words"), CASES)
def test_expressions_name_exported_metrics(expression: str, words: str) -> None:
    known, used = exported(), set[str]()
    for name, matchers in NAME.findall(expression):
        assert name in known, name
        named = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
        assert named <= known[name] | ADDED, name
        used |= known[name]
    assert NAME.search(expression)
    grouped = [set(part.replace(" ", "").split(",")) for part in re.findall(r"by \(([^)]*)\)", expression)]
    for labels in grouped:
        assert labels <= used | ADDED
    # What a sum leaves is what words can name; a quantile takes `le` away.
    left = set.union(*grouped) - {"le"} if grouped else used | ADDED if "sum(" not in expression else set()
    assert set(re.findall(r"\{\{ ?([a-z_]+) ?\}\}", words)) <= left


def test_expressions_use_possible_label_values() -> None:
    answers = {word for script in load_scripts().values() for word in script.replies}
    answers |= {"unavailable", "unconfirmed", "failed"}
    events = {labels[0] for one in METRICS if one.name == "latchkey_holds_total" for labels in one.only.values()}
    causes = next(one.help for one in METRICS if one.name == "latchkey_unavailable_total")
    known = {
        "answer": answers,
        "event": events | EVENTS.keys(),
        "code": set(CATALOGUE),
        "cause": set(re.findall(r"(\w+) \(", causes)),
        "outcome": {*CATALOGUE, "sent", "refused", "failed", "dropped"},
        "reason": set(REASONS),
    }
    found = 0
    for _, expression, _ in expressions():
        for label, values in re.findall(r'(\w+)=~?"([^"]*)"', expression):
            if label in known:
                found += 1
                assert set(values.split("|")) <= known[label], expression
    assert found > 6


def test_the_dashboard_is_valid_for_grafana() -> None:
    whole = dashboard()
    assert whole["schemaVersion"] >= 36
    assert (whole["uid"], whole["title"]) == ("latchkey", "Latchkey")
    variables = {one["name"]: one for one in whole["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    assert "latchkey_build_info" in variables["job"]["definition"]
    ids = [panel["id"] for panel in whole["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[Any] = set()
    for panel in whole["panels"]:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24, panel["title"]
        squares = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not squares & taken, f"{panel['title']} lies over another panel"
        taken |= squares
    for panel in panels():
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert 'job=~"$job"' in target["expr"], panel["title"]
            # Rates need as many samples as the data source has in a step; windows that a title names are as it says.
            window = re.findall(r"\[([^\]]*)\]", target["expr"])
            assert set(window) <= {"$__rate_interval", "5m", "10m", "1h"}, panel["title"]


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for panel in panels() for target in panel["targets"] for name, _ in NAME.findall(target["expr"])}
    left = {one.name for one in METRICS} - {re.sub("_bucket$", "", name) for name in shown}
    assert left == set()


def test_every_alert_has_a_severity_and_an_explanation() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    text = PAGE.read_text("utf-8")
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"]
        assert f"`{rule['alert']}`" in text, f"{rule['alert']} is not in docs/metrics.md"
    assert set(re.findall(r"`(Latchkey\w+)`", text)) == set(names)


@pytest.mark.spec("8.1")
def test_an_app_above_ten_thousand_requests_a_minute_raises_an_alert() -> None:
    (rule,) = [rule for rule in alerts() if "latchkey_app_requests_total" in rule["expr"]]
    assert rule["expr"].strip().endswith("* 60 > 10000")
    assert "sum by (job, client_id)" in rule["expr"]  # of all its users, at all hosts


def promtool(*words: str, cwd: Path = ROOT) -> None:
    """Prometheus's own tool accepts them."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on this machine")
    done = subprocess.run(["promtool", *words], cwd=cwd, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_rules_and_the_configuration() -> None:
    promtool("check", "rules", str(RULES))
    promtool("check", "config", str(SCRAPING))


def test_alerts_fire_as_expected_on_given_numbers() -> None:
    promtool("test", "rules", str(ROOT / "tests" / "support" / "data" / "latchkey.rules.test.yml"))


def test_prometheus_accepts_every_dashboard_expression(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "1m").replace("$job", ".*")}
        for number, (_, expression, _) in enumerate(expressions())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_the_page_matches_the_metrics_in_the_code() -> None:
    """`python -m observability.metrics` prints it."""
    assert table() in PAGE.read_text("utf-8")


def test_the_examples_use_one_metrics_port() -> None:
    (port,) = set(re.findall(r"localhost:(\d+)", SCRAPING.read_text("utf-8")))
    assert f"--metrics-port {port}" in SCRAPING.read_text("utf-8")
    assert f"--metrics-port {port}" in PAGE.read_text("utf-8")
    assert of.MOST_APPS == 1000
    assert "1,000 apps" in PAGE.read_text("utf-8")
