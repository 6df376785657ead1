"""The Helm chart: linted and rendered by Helm, and held against the schemas of Kubernetes."""

from __future__ import annotations

import http.client
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from deploy.charts import CHART, REQUIRED, helm, manifests, rendered, validate
from deploy.programs import ran
from dev.lab.ports import free_port
from latchkey import __version__
from settings.declared import Settings
from tests.support.processes.processes import QUICK, Server

EVERYTHING: dict[str, Any] = {
    "ops": {"enabled": True},
    "metrics": {"enabled": True, "serviceMonitor": {"enabled": True}},
    "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "id-tls"},
    "autoscaling": {"enabled": True},
    "config": {"trusted_proxies": ["10.0.0.0/8"], "workers": 2, "signup": "invite", "webhooks": True},
    "networkPolicy": {
        "httpFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        "opsFrom": [{"podSelector": {"matchLabels": {"app": "billing"}}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egress": [{"ports": [{"port": 6379}]}],
    },
    "env": [{"name": "LATCHKEY_AI_CONFIG", "value": "/etc/models/models.toml"}],
    "volumes": [{"name": "models", "secret": {"secretName": "models"}}],
    "volumeMounts": [{"name": "models", "mountPath": "/etc/models"}],
}
EMBEDDED: dict[str, Any] = {"replicas": 1, "store": {"embedded": True}, "secrets": []}


def yaml_of(name: str) -> Any:
    """A file of the chart."""
    import yaml

    return yaml.safe_load((CHART / name).read_text())


def test_helm_finds_nothing_wrong(tmp_path: Path) -> None:
    values = tmp_path / "values.json"
    values.write_text(json.dumps(REQUIRED))
    said = ran(helm(), "lint", "--strict", "--quiet", str(CHART), "--values", str(values))
    assert "WARNING" not in said.stdout
    described = yaml_of("Chart.yaml")
    assert (described["version"], described["appVersion"]) == (__version__, __version__)


def test_every_value_in_the_templates_has_a_default_and_a_schema() -> None:
    values, schema = yaml_of("values.yaml"), json.loads((CHART / "values.schema.json").read_text())
    used = set()
    for template in (CHART / "templates").iterdir():
        used |= set(re.findall(r"\.Values\.([A-Za-z._]+[A-Za-z])", template.read_text()))
    assert len(used) > 40
    for path in used - {"config.trusted_proxies"}:
        value, rule = values, schema
        for name in path.split("."):
            assert name in value, path
            value, rule = value[name], rule["properties"][name]
    assert set(schema["properties"]) - set(values) == {"global"}


@pytest.mark.parametrize("values", [{}, EVERYTHING, EMBEDDED], ids=["least", "everything", "embedded"])
def test_kubernetes_takes_what_is_rendered(values: dict[str, Any], tmp_path: Path) -> None:
    found = manifests(tmp_path, **values)
    # The Prometheus operator brings the schema of its own kind.
    validate(tmp_path, *(one for one in found.values() if one["kind"] != "ServiceMonitor"))
    assert ("ServiceMonitor" in found) == (values is EVERYTHING)


@pytest.mark.parametrize("values", [{}, EVERYTHING, EMBEDDED], ids=["least", "everything", "embedded"])
def test_pods_are_confined_and_have_time_to_drain(values: dict[str, Any], tmp_path: Path) -> None:
    spec = manifests(tmp_path, **values)["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    if values is EMBEDDED:
        assert spec["strategy"] == {"type": "Recreate"}
    else:
        assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    drain = yaml_of("values.yaml")["drain"]
    timeout = yaml_of("values.yaml")["store"]["timeout"]
    assert pod["terminationGracePeriodSeconds"] >= drain["delay"] + drain["timeout"] + 2 * timeout + 5
    ready = container["readinessProbe"]
    assert drain["delay"] > ready["failureThreshold"] * ready["periodSeconds"] + ready["timeoutSeconds"]
    assert ready["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}


def test_the_server_takes_the_rendered_settings_and_answers_the_probes_of_a_node(tmp_path: Path) -> None:
    found = manifests(tmp_path, **{name: EVERYTHING[name] for name in ("config", "drain", "ops") if name in EVERYTHING})
    text = found["ConfigMap"]["data"]["latchkey.toml"]
    read = tomllib.loads(text)
    assert read.keys() <= vars(Settings()).keys()
    assert (read["base_url"], read["trusted_proxies"]) == ("https://id.example.org", ["10.0.0.0/8"])
    config = tmp_path / "latchkey.toml"
    config.write_text("\n".join(line for line in text.splitlines() if not line.startswith("ops_")))
    port = free_port()
    with Server("--config", str(config), "--workers", "1", "--drain-delay", "0", *QUICK, port=port) as server:
        server.ready()
        # A node asks by the address of the pod, without the name that people use.
        for path in ("/healthz", "/readyz"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", path, headers={"Host": "10.244.1.7:8080"})
            assert connection.getresponse().status == 200
            connection.close()
        assert server.stop() == 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param({"secrets": []}, "LATCHKEY_SECRET_KEYS", id="no secret"),
        pytest.param({"store": {"embedded": True}}, "one owner", id="two pods on the embedded store"),
        pytest.param({"baseUrl": ""}, "/baseUrl", id="no address"),
        pytest.param({"config": {"secret_keys": "1:x"}}, "a ConfigMap is not", id="a secret in the settings"),
        pytest.param({"config": {"port": 9}}, "value of its own", id="a setting of the chart's"),
        pytest.param({"repliacs": 3}, "repliacs", id="a misspelt value"),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], said: str, tmp_path: Path) -> None:
    done = rendered(tmp_path, **values)
    assert done.returncode != 0
    assert said in done.stderr


def test_nobody_reaches_the_management_interface_unless_named(tmp_path: Path) -> None:
    found = manifests(tmp_path, ops={"enabled": True}, metrics={"enabled": True})
    [rule] = found["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {"ports": [{"port": "http"}]}
    outer = found["Service"]["spec"]["ports"]
    assert [port["name"] for port in outer] == ["http"]
