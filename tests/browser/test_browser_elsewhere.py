"""Sign-in with other providers, in a real browser."""

from __future__ import annotations

from pathlib import Path

from tests.support.browser.webdriver import Chromium
from tests.support.processes.processes import QUICK, Server

PROVIDER = '[[provider]]\nname = "idp"\nissuer = "http://localhost:1"\nclient_id = "us"\nauth_method = "none"\n'
SHOWN = "return [...document.querySelectorAll('.providers a')].filter(one => one.offsetParent).map(one => one.search)"


def test_the_checkbox_counts_for_sign_ins_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(PROVIDER)
    with Server("--identity-config", str(file), "--redis-url", "memory", *QUICK) as server, Chromium() as browser:
        for scripts in (True, False):
            browser.allow_scripts(scripts)
            browser.open(server.ready().url + "/signin?next=%2Faccount%2Fapps")
            assert browser.run(SHOWN) == ["?next=%2Faccount%2Fapps"]
            browser.press_on("//label[@class='keep']")
            assert browser.run(SHOWN) == ["?keep=1&next=%2Faccount%2Fapps"], scripts
