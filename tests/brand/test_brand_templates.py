"""Templates of a brand: which files count, how they find ours, and who may write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handlers.core.brand import overrides
from handlers.core.brand.overrides import Templates, WrongTemplates, ours, read_overrides, templates_of
from handlers.core.brand.reading import BrandError, load_brand
from tests.support.browser.english import ENGLISH
from tests.support.data.brands import write_brand


def folder_of(base: Path, **files: str) -> Path:
    """A folder of templates; `__` in a name is a slash, `_dot_` a dot."""
    folder = base / "templates"
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def rendered(templates: Templates, name: str) -> str:
    return templates.pages.load(name).generate(**{**ENGLISH, "product": "Acme"}).decode()


def test_a_template_replaces_ours_and_the_others_stay(tmp_path: Path) -> None:
    found = read_overrides(folder_of(tmp_path, base__message_dot_html="{{ product }} &", mail__reset_dot_txt="Reset\n"))
    templates = templates_of(found)
    templates.check()
    assert rendered(templates, "base/message.html") == "Acme &"
    assert templates.mails.load("mail/reset.txt").generate() == b"Reset\n"
    assert templates.pages.load("base/home.html").name == "base/home.html"
    assert "hero" not in rendered(templates, "base/message.html")


def test_our_templates_find_the_brands_in_their_place(tmp_path: Path) -> None:
    templates = templates_of(read_overrides(folder_of(tmp_path, base__account_tabs_dot_html="tabs of {{ product }}")))
    page = templates.pages.load("account/apps.html")
    assert "tabs of " in page.code


def test_a_template_may_extend_the_one_that_it_replaces(tmp_path: Path) -> None:
    layout = '{% extends "../original/base/layout.html" %}{% block footer %}our own foot{% end %}'
    templates = templates_of(read_overrides(folder_of(tmp_path, base__layout_dot_html=layout)))
    templates.check()
    code = templates.pages.load("base/message.html").code
    assert "our own foot" in code
    assert "<!doctype html>" in code


def test_the_original_of_a_page_has_the_brands_layout(tmp_path: Path) -> None:
    files = {
        "base__layout_dot_html": "own layout {% block content %}{% end %}",
        "signin__signin_dot_html": '{% extends "../original/signin/signin.html" %}',
    }
    templates = templates_of(read_overrides(folder_of(tmp_path, **files)))
    assert "own layout" in templates.pages.load("signin/signin.html").code


def test_parts_of_the_brands_own_are_included(tmp_path: Path) -> None:
    files = {"brand__note_dot_html": "a note", "base__home_dot_html": '{% include "../brand/note.html" %}'}
    assert rendered(templates_of(read_overrides(folder_of(tmp_path, **files))), "base/home.html") == "a note"


def test_values_are_escaped_on_pages(tmp_path: Path) -> None:
    templates = templates_of(read_overrides(folder_of(tmp_path, base__home_dot_html="{{ product }}")))
    assert templates.pages.load("base/home.html").generate(**{**ENGLISH, "product": "<b>"}) == b"&lt;b&gt;"


def test_servers_without_templates_share_ours() -> None:
    assert templates_of({}) is ours()
    assert templates_of({"base/home.html": ""}) is not ours()


@pytest.mark.parametrize(
    ("files", "words"),
    [
        pytest.param({"home_dot_html": ""}, "home.html is none of them; base/home.html is", id="in the wrong folder"),
        pytest.param({"base__hom_dot_html": ""}, "base/home.html is", id="a slip"),
        pytest.param({"base__logo_dot_png": ""}, "is none of them", id="no template"),
        pytest.param({"base__home_dot_html": "{% if x %}"}, "base/home.html", id="an open block"),
        pytest.param({"base__home_dot_html": "{{ 1 + }}"}, "Python refuses", id="a broken expression"),
        pytest.param({"base__home_dot_html": '{% include "x.html" %}'}, "names base/x.html", id="an unknown part"),
        pytest.param(
            {"base__layout_dot_html": '{% extends "layout.html" %}'}, "write original/base/layout.html", id="a circle"
        ),
        pytest.param({"base__home_dot_html": "x" * (overrides.MOST_FILE + 1)}, "is larger", id="a large one"),
        pytest.param({".git__x": ""}, "there are none", id="an empty folder"),
    ],
)
def test_a_folder_that_cannot_work_is_refused(tmp_path: Path, files: dict[str, str], words: str) -> None:
    folder_of(tmp_path, **files)
    path = write_brand(tmp_path, templates="templates")
    with pytest.raises(BrandError, match=words) as refused:
        load_brand(path)
    assert str(refused.value).startswith("templates must be a folder")
    assert str(path) in str(refused.value)


def test_hidden_files_and_copies_of_editors_are_passed_over(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, base__home_dot_html="x", base__home_dot_html_="x")
    (folder / "base" / "home.html_").rename(folder / "base" / "home.html~")
    (folder / ".DS_Store").write_text("x")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    assert list(read_overrides(folder)) == ["base/home.html"]


def test_files_behind_links_count_as_a_kubernetes_volume_has_them(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, **{"..data__home_dot_html": "linked"})
    (folder / "base").mkdir()
    (folder / "base" / "home.html").symlink_to("../..data/home.html")
    assert read_overrides(folder) == {"base/home.html": "linked"}


def test_the_wrong_folder_is_left_at_once(tmp_path: Path) -> None:
    for number in range(5 * overrides.MOST_FILES + 1):
        (tmp_path / f".{number}").touch()
    with pytest.raises(WrongTemplates, match="at most"):
        read_overrides(tmp_path)


def test_a_pipe_among_the_templates_does_not_hold_up_the_start(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, base__home_dot_html="x")
    os.mkfifo(folder / "base" / "layout.html")
    with pytest.raises(WrongTemplates, match="is none"):
        read_overrides(folder)


@pytest.mark.parametrize("name", ["brand.toml", "templates", "templates/base", "templates/base/home.html"])
def test_what_everybody_can_write_is_refused(tmp_path: Path, name: str) -> None:
    """Templates run as code: whoever can write them, can do what the server can."""
    folder_of(tmp_path, base__home_dot_html="x")
    path = write_brand(tmp_path, templates="templates")
    assert load_brand(path).templates == {"base/home.html": "x"}
    target = tmp_path / name
    target.chmod(target.stat().st_mode | 0o002)
    with pytest.raises(BrandError, match=r"everybody on this machine can write to .*; chmod o-w helps"):
        load_brand(path)


def test_a_file_that_everybody_can_write_may_have_everything_but_templates(tmp_path: Path) -> None:
    path = write_brand(tmp_path, name="Acme")
    path.chmod(0o666)
    assert load_brand(path).name == "Acme"
