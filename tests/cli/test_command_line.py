"""The command line: help, mistakes, completion, and speed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import manage
from cli.commands_parser import SECTIONS, build_parser
from cli.local_commands import LOCAL
from cli.remote.commands import REMOTE
from cli.run import named
from cli.terminal.parser import HelpFormatter, Parser, folded
from settings.declared import SETTINGS
from tests.support.lists.offenders import each
from tests.support.processes.operator_commands import at_terminal, child, clean_environment
from tests.support.processes.store_owners import ROOT

MANAGE = ROOT / "manage.py"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Every page of help, at the terminal that the process has.
ALL_HELP = """
from cli.commands_parser import build_parser
from runtime.arguments import load
def pages(parser):
    yield parser
    for one in parser.commands.values():
        yield from pages(one)
for parser in pages(build_parser("latchkey")):
    parser.print_help()
try:
    load(["--help"], {}, program="latchkey serve")
except SystemExit:
    pass
"""


def pages(parser: Parser) -> Iterator[Parser]:
    yield parser
    for one in parser.commands.values():
        yield from pages(one)


every_page = each("parser", [pytest.param(one, id=one.prog) for one in pages(build_parser("latchkey"))])
LEAVES = [leaf for leaf in build_parser("latchkey").leaves() if leaf.get_default("run")]


@every_page
@pytest.mark.parametrize("columns", [60, 120])
def test_help_fits_a_pipe(parser: Parser, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for said in (parser.format_help(), parser.format_settings()):
        assert "\x1b" not in said
        assert [line for line in said.splitlines() if len(line) > min(columns, 100)] == []
        assert said.startswith(f"Usage: {parser.prog}")
        assert said.endswith("\n")
        assert not said.endswith("\n\n")


@pytest.mark.parametrize("columns", [60, 120])
def test_help_fits_a_terminal_and_is_coloured(columns: int) -> None:
    seen = at_terminal("-c", ALL_HELP, columns=columns)
    assert seen.status == 0
    assert [line for line in seen.lines if len(line) > columns] == []
    for page in pages(build_parser("latchkey")):
        assert f"Usage: {page.prog} " in seen.text
    assert "--ops-port PORT" in seen.text
    assert len(COLOUR.findall(seen.raw)) > 100


def test_no_color_is_respected() -> None:
    seen = at_terminal("-c", ALL_HELP, NO_COLOR="1")
    # Bold is no colour.
    assert set(COLOUR.findall(seen.raw)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m"}
    wrong = at_terminal(MANAGE, "ap", NO_COLOR="1")
    assert "\x1b" not in wrong.raw
    assert at_terminal(MANAGE, "ap").raw.startswith("\x1b[1;31mmanage.py:\x1b[0m ")
    assert "\x1b" not in at_terminal(MANAGE, "ap", TERM="dumb").raw


@each("leaf", [pytest.param(one, id=one.prog) for one in LEAVES])
def test_every_command_has_valid_examples_and_a_function(leaf: Parser) -> None:
    assert leaf.examples
    for example in leaf.examples:
        words = shlex.split(example)
        assert f"latchkey {' '.join(words)}".startswith(leaf.prog)
        found = build_parser("latchkey").parse_args(words)
        assert found.run == leaf.get_default("run")
    assert callable(named(leaf.get_default("run")))


def test_help_of_a_command_shows_its_own_flags_and_settings_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        manage.main(["app", "create", "--help"], {})
    assert ended.value.code == 0
    short = capsys.readouterr().out
    assert "\nUsage: manage.py app create --name N --redirect-uri U --scopes S [options]\n" in f"\n{short}"
    assert "--redis-timeout" not in short
    assert "--data-dir DIR" in short
    assert "\nExamples:\n  python manage.py app create " in short
    with pytest.raises(SystemExit) as ended:
        manage.main(["app", "create", "--help-settings"], {})
    assert ended.value.code == 0
    whole = capsys.readouterr().out
    for item in SETTINGS:
        shown = item.flag and item.where == "both"
        assert (f"[{item.environment}]" in whole) is shown
    assert "--homepage URL" in whole


def test_help_offers_a_server_elsewhere_only_where_it_works() -> None:
    parser = build_parser()
    assert {leaf.get_default("run") for leaf in parser.leaves()} - REMOTE.keys() == LOCAL
    offered = {leaf.prog for leaf in parser.leaves() if "--server" in leaf.format_help()}
    assert offered == {leaf.prog for leaf in parser.leaves() if leaf.get_default("run") in REMOTE}


def test_every_command_is_in_a_section() -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(build_parser().commands)
    said = build_parser().format_help()
    for name in build_parser().commands:
        assert re.search(rf"^  {name} ", said, re.MULTILINE), name


def test_examples_wrap_at_shell_continuations() -> None:
    words = ["latchkey", "app", "create", "--name", "My app", "--scopes", "profile data:read", "--public"]
    lines = folded(words, 42)
    assert lines == ['latchkey app create --name "My app" \\', '    --scopes "profile data:read" \\', "    --public"]
    assert as_a_shell(lines) == words
    odd = ["a", "it's $5", 'b"c', "", "--x", "`y`"]
    assert as_a_shell(folded(odd, 14)) == odd


def as_a_shell(lines: list[str]) -> list[str]:
    """The words that a shell makes of what is pasted into it."""
    program = "words() { printf '%s\\0' \"$@\"; }\nwords " + "\n".join(lines)
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("app creat", "invalid choice: 'creat': did you mean create? (manage.py app --help explains)"),
        ("usr list", "invalid choice: 'usr': did you mean user? (manage.py --help explains)"),
        ("mint", "invalid choice: 'mint': did you mean token mint? (manage.py --help explains)"),
        (
            "create",
            "invalid choice: 'create': did you mean app create or api create or user create or operator-key create? (",
        ),
        (
            "token xyzzy",
            "invalid choice: 'xyzzy': choose from mint (manage.py token --help explains)",
        ),
        (
            "app create --nmae Web --scopes profile",
            "there is no flag --nmae: did you mean --name? (manage.py app create --help explains)",
        ),
        (
            "app list --dta-dir=x",
            "there is no flag --dta-dir: did you mean --data-dir? (manage.py app list --help expl",
        ),
        ("app list --xyzzy", "there is no flag --xyzzy (manage.py app list --help explains)"),
        ("--jsn app list", "there is no flag --jsn: did you mean --json? (manage.py --help explains)"),
        ("app list more", "too many words: more (manage.py --help explains)"),
        ("completion fsh", "argument SHELL: invalid choice: 'fsh': did you mean zsh?"),
        ("--data-dir=x serve", "`serve` comes first: manage.py serve [settings]"),
    ],
)
def test_a_mistake_gets_a_suggestion(words: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(shlex.split(words), {}) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"manage.py: {complaint}")
    assert said.err.count("\n") == 1


def test_secrets_are_not_suggested_as_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(["app", "list", "--secret-key", "1:x"], {}) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_the_server_answers_a_mistake_in_one_line() -> None:
    for program, words in (("server.py", ["server.py"]), ("manage.py serve", ["manage.py", "serve"])):
        done = subprocess.run(
            [sys.executable, *words, "--prot", "1"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
        )
        complaint = f"{program}: there is no flag --prot: did you mean --port? ({program} --help explains)\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", complaint)


def test_errors_name_the_program_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert manage.main(["app", "list", "--redis-url", "redis://x"], {}, program="latchkey") == 2
    said = capsys.readouterr().err
    assert said.startswith("latchkey: ")
    assert "`latchkey keys generate`" in said


def test_without_a_command_people_get_help_and_scripts_an_error() -> None:
    for words, usage in (([], "Usage: manage.py COMMAND [ACTION] [options]"), (["app"], "Usage: manage.py app ACTION")):
        seen = at_terminal(MANAGE, *words)
        assert seen.status == 2
        assert seen.lines[0].startswith(usage)
        done = subprocess.run([sys.executable, MANAGE, *words], capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_the_version() -> None:
    done = subprocess.run([sys.executable, MANAGE, "--version"], capture_output=True, text=True, check=True, timeout=30)
    assert re.fullmatch(r"latchkey \d+\.\d+\.\d+\n", done.stdout)


def test_help_and_errors_load_no_command_modules() -> None:
    program = (
        "import sys, manage\n"
        "assert manage.main(['app', 'creat'], {}) == 2\n"
        "assert manage.build_parser().parse_args(['app', 'list']).run == 'apps.list_apps'\n"
        "print(sorted({'rich.console', 'rich.table', 'shtab', 'store', 'redis', 'tornado'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_shell_completes_commands_and_flags(tmp_path: Path) -> None:
    script = child(tmp_path, "completion", "bash").out
    (tmp_path / "completion").write_text(script)
    function = re.search(r"complete .*-F (\w+) latchkey", script)
    assert function
    program = f"""
    source completion
    words() {{
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMPREPLY=()
        {function[1]}
        echo "${{COMPREPLY[@]}}"
    }}
    words latchkey us
    words latchkey app rot
    words latchkey user create --password-s
    words latchkey serve --trus
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=30
    )
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["user"],
        ["rotate-secret", "rotate-webhook-secret"],
        ["--password-stdin"],
        ["--trusted-proxies"],
    ]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_get_a_script(tmp_path: Path, shell: str) -> None:
    said = child(tmp_path, "completion", shell).out
    assert "latchkey" in said
    assert "rotate-secret" in said


def test_the_widest_help_can_be_read() -> None:
    assert HelpFormatter("latchkey", width=500).width == 100
