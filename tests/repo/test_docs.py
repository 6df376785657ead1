"""README and docs: everything they name exists."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from cli.terminal.argparse_private import commands_of, flags_of
from handlers.ops.credits import OPS_ROUTES
from handlers.ops.metrics import METRICS_ROUTES
from handlers.routes import ROUTES
from manage import build_parser
from outbound.ai.config import load_models
from outbound.ai.health import Ejection
from outbound.ai.models import Timeouts
from settings.declared import SETTINGS
from settings.reading import CONFIG, add_arguments
from store.engine.script_source import script_files
from testkit.routes import TESTING_ROUTES
from tests.support.lists.offenders import each

ROOT = Path(__file__).resolve().parent.parent.parent
README = ROOT / "README.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
INDEX = ROOT / "docs" / "index.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FOLDERS = (
    *(
        "cli",
        "deploy",
        "dev",
        "docs",
        "examples",
        "handlers",
        "latchkey",
        "lua",
        "observability",
        "outbound",
        "runtime",
    ),
    *("settings", "static", "store", "templates", "testkit", "tests"),
    ".ci",
)
PATH_PREFIXES = tuple(f"{folder}/" for folder in FOLDERS)
PATH_SUFFIXES = (".py", ".lua", ".md", ".cfg", ".svg", ".html", ".css")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

documents = each("path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in DOCUMENTS])


def spans(text: str) -> list[str]:
    """The inline code of a text, fenced blocks left out."""
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", FENCE.sub("", text))]


def anchors(path: Path) -> set[str]:
    """The link fragments of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    return [" ".join(target.split()) for target in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", text))]


@documents
def test_every_link_resolves(path: Path) -> None:
    for link in links(path.read_text("utf-8")):
        file, _, fragment = link.partition("#")
        target = (path.parent / unquote(file)).resolve() if file else path
        assert target.exists(), f"{path.name}: {link}"
        assert target.is_relative_to(ROOT), f"{path.name}: {link} leads out of the project"
        assert not fragment or fragment in anchors(target), f"{path.name}: {link}"


@documents
def test_every_named_file_exists(path: Path) -> None:
    for span in spans(path.read_text("utf-8")):
        word = span.removeprefix("python ").partition(" ")[0].partition("::")[0]
        if word.startswith(PATH_PREFIXES) or word.endswith(PATH_SUFFIXES):
            assert (ROOT / word).exists() or (path.parent / word).exists(), f"{path.name}: {word}"


STRIPE = ("api.stripe.com", "checkout.stripe.com")
"""Hosts of the payment provider, which settings name."""

IN_THE_IMAGE = ("/", "/data", "/home", "/tmp", "/usr", "/var")
"""Places in the container image and on a host that docs name."""


@documents
def test_no_path_outside_the_project_is_named(path: Path) -> None:
    text = path.read_text("utf-8")
    for host in re.findall(r"https?://([^\s/:`'\"?)>…]+)", text):
        assert host in ("localhost", "127.0.0.1", "[", "schemas.openid.net", *STRIPE) or re.search(
            r"(^|\.)example\.(org|com)$", host
        ), host
    patterns = [
        *(route.pattern for route in (*ROUTES, *OPS_ROUTES, *METRICS_ROUTES)),
        *(path for path, _ in TESTING_ROUTES),
    ]
    served = [re.compile(pattern) for pattern in patterns]
    for span in spans(text):
        place = span.removeprefix("GET ").removeprefix("POST ").partition("?")[0]
        if not place.startswith("/") or any(mark in place for mark in "*…"):
            continue
        place = place.replace(":guide", "clients").replace(":section", "openid-client").replace(":provider", "idp")
        place = place.replace(":group", "c3RhZmY").replace(":urn", "urn:x").replace(":name", "User")
        place = place.replace("people/:id", f"people/{'0' * 32}").replace(":user", "0" * 32).replace(":id", "x" * 22)
        concrete = place.replace(":client_id", "an-app").replace(":delivery", "x" * 22)
        concrete = concrete.replace(":logo", "x" * 22).replace(":token", "x" * 22).replace(":entry", "1-1")
        known = any(pattern.fullmatch(concrete) for pattern in served)
        # A prefix of a path is fine too, and a place in the image.
        known = known or place in IN_THE_IMAGE or any(raw.startswith(place) for raw in patterns)
        assert known, f"{path.name}: {place} is no path of this server"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield from flags_of(parser)
    for inner in commands_of(parser).values():
        yield from _options(inner)


def _commands() -> set[str]:
    found = set()
    for noun, parser in commands_of(build_parser()).items():
        # What follows a noun without verbs, or with optional ones, is an option.
        found |= {f"{noun} {word}" for word in (*commands_of(parser), *_options(parser))}
    return found


@documents
def test_every_named_flag_exists(path: Path) -> None:
    server = argparse.ArgumentParser()
    add_arguments(server, "server")
    known = {*_options(server), *_options(build_parser())}
    # The flags of the proof and of the demo app stand in their own programs.
    known |= set(re.findall(r'"(--[a-z-]+)"', (ROOT / "dev" / "proof" / "options.py").read_text()))
    known |= set(re.findall(r'add_argument\("(--[a-z-]+)"', (ROOT / "examples" / "demo_app.py").read_text()))
    for program in ("deploy/image.py", "dev/proof/two_hosts/__main__.py", "dev/bench/importing.py"):
        known |= set(re.findall(r'add_argument\(\s*"(--[a-z-]+)"', (ROOT / program).read_text()))
    # Flags of other programs are theirs.
    others = "redis-server|redis-cli|pip install|pip wheel|stripe listen|claude mcp add|docker|helm|kubectl"
    text = re.sub(rf"\b({others}) (?:[^`\n\\]|\\\n)*", "", path.read_text("utf-8"))
    for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
        assert flag in known, f"{path.name}: {flag}"


@documents
def test_every_named_command_and_target_exists(path: Path) -> None:
    text = path.read_text("utf-8")
    commands = _commands()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = r"(?:manage\.py|(?:^|`|\()\s*latchkey) (?:--[^\s`]+ )*(?!serve|completion)([a-z]+) ([a-z-]+)"
    for noun, verb in re.findall(typed, text, re.MULTILINE):
        # What follows these is the name of a file.
        if noun not in ("import", "export"):
            assert f"{noun} {verb}" in commands, f"{path.name}: {noun} {verb}"
    for span in spans(text):
        noun, _, rest = span.partition(" ")
        if noun in ("app", "user", "credits", "token", "keys", "store") and rest:
            assert f"{noun} {rest.partition(' ')[0]}" in commands, f"{path.name}: {span}"
    for target in [*re.findall(r"^ {4}make ([a-z-]+)", text, re.MULTILINE), *re.findall(r"`make ([a-z-]+)", text)]:
        assert target in targets, f"{path.name}: make {target}"


@documents
def test_every_named_environment_variable_exists(path: Path) -> None:
    known = {item.environment for item in SETTINGS} | {CONFIG}
    assert set(re.findall(r"\bLATCHKEY_[A-Z_]+", path.read_text("utf-8"))) <= known


def test_the_diagram_names_existing_scripts_and_routes() -> None:
    picture = (ROOT / "docs" / "pictures" / "flow.svg").read_text("utf-8")
    scripts = re.findall(r'class="code"[^>]*>([a-z_]+)<', picture)
    assert scripts
    assert [name for name in scripts if name not in script_files()] == []
    routes = re.findall(r">(?:GET|POST) (/[a-z/]+)", picture)
    assert set(routes) <= {route.pattern for route in ROUTES}


def test_the_architecture_lists_every_module_and_folder() -> None:
    listed = ARCHITECTURE.read_text("utf-8").split("\n## Where things are\n")[1].split("\n## ")[0]
    names = [*(path.name for path in ROOT.glob("*.py")), *(f"{folder}/" for folder in FOLDERS if folder != ".ci")]
    assert [name for name in names if f"`{name}" not in listed] == []


def test_the_index_lists_every_page() -> None:
    listed = {(INDEX.parent / link).resolve() for link in links(INDEX.read_text("utf-8"))}
    pages = {*DOCUMENTS, ROOT / "dev" / "bench" / "README.md"} - {INDEX}
    assert [str(page.relative_to(ROOT)) for page in sorted(pages - listed)] == []


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").split()) <= 1500


def test_the_documented_models_file_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "models.md").read_text("utf-8"), re.S)
    file = tmp_path / "models.toml"
    file.write_text("\n".join(blocks))
    models = load_models(file, {"EXAMPLE_API_KEY": "a-key", "SECOND_API_KEY": "another"})
    assert [model.model_id for model in models.all()] == ["latchkey-echo", "claude-sonnet"]
    # What it says are the defaults are those of the code.
    assert models.all()[1].upstream.limits == Timeouts()
    assert models.all()[1].upstream.health.rule == Ejection()
    assert [one.weight for one in models.all()[1].candidates] == [1, 2]
