"""Mail settings: the mail server, the folder without one, the log, and the sender."""

from __future__ import annotations

import email
import logging
import stat
from dataclasses import replace
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from handlers.core.brand.brand import Brand
from outbound.mail.mailer import KEPT, Spool
from outbound.mail.message import compose, plain_text
from runtime.arguments import load
from runtime.outbound_wiring import open_mailer
from settings.declared import Settings
from settings.types import SettingsError
from tests.support.browser.mailbox import MAIL, mailer
from tests.support.lists.offenders import each

SECRET_LINK = "lk_pr_x"


@pytest.mark.gen_test
async def test_without_a_mail_server_mails_go_to_private_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "data" / "mail"
    sender = mailer(Spool(folder))
    sender.post(MAIL)
    await sender.close(5)
    (file,) = folder.iterdir()
    assert file.suffix == ".eml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    found = email.message_from_bytes(file.read_bytes(), policy=default)
    assert (found["To"], plain_text(found).replace("\r\n", "\n")) == (MAIL.to, MAIL.text)
    assert b"https://id.example/reset?link=lk_pr_x\r\n" in file.read_bytes()
    assert caplog.messages == ["mail: Set a new password"]


@pytest.mark.gen_test
async def test_on_a_developers_machine_mails_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sender = mailer(Spool(None, show=True))
    sender.post(MAIL)
    await sender.close(5)
    (line,) = caplog.messages
    assert line.startswith("mail to ada@example.com: Set a new password\n")
    assert SECRET_LINK in line


@pytest.mark.gen_test
async def test_only_the_newest_mails_are_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in range(KEPT):
        (tmp_path / f"{number:020d}-x.eml").touch()
    sender = mailer(spool)
    for number in range(5):
        sender.post(replace(MAIL, subject=f"number {number}"))
    await sender.close(5)
    files = sorted(tmp_path.glob("*.eml"))
    assert len(files) == KEPT
    assert files[0].name == f"{5:020d}-x.eml"
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".eml"]


@pytest.mark.gen_test
async def test_an_unwritable_mail_folder_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    sender = mailer(Spool(tmp_path / "file"))
    sender.post(MAIL)
    await sender.close(5)
    assert caplog.messages == ["mail reset not sent: FileExistsError"]


@pytest.mark.parametrize(
    ("base_url", "sender"),
    [
        ("https://id.example.org", "noreply@id.example.org"),
        ("http://localhost:8080", "noreply@localhost"),
        ("http://127.0.0.1:8080", "noreply@[127.0.0.1]"),
        ("http://[::1]:8080", "noreply@[IPv6:::1]"),
    ],
)
def test_mails_come_from_the_servers_host_by_default(base_url: str, sender: str) -> None:
    assert Settings().sender(base_url) == sender
    assert compose(MAIL, sender)["From"].addresses[0].addr_spec == sender
    assert load(["--mail-from", "us@example.org"], {}).sender(base_url) == "us@example.org"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], True),
        (["--base-url", "http://127.0.0.1:1"], True),
        (["--base-url", "https://id.example.org"], False),
        (["--host", "0.0.0.0"], False),
        (["--host", "192.0.2.1"], False),
        (["--trusted-proxies", "127.0.0.1"], False),
    ],
)
def test_links_go_to_the_log_only_on_a_private_server(tmp_path: Path, arguments: list[str], shown: bool) -> None:
    settings = load(["--data-dir", str(tmp_path), *arguments], {})
    made: Any = open_mailer(settings, settings.origin(8080), Brand())
    assert (made._transport._show, made._transport._folder, made.confirms) == (shown, tmp_path / "mail", False)


@pytest.mark.parametrize(
    "url",
    [
        "smtp://mail.example.org",
        "smtp://mail.example.org:587?starttls",
        "smtp://post:secret@mail.example.org:587?starttls",
        "smtps://post:secret@mail.example.org",
        "smtp://post:secret@localhost:2525",
        "smtp://post:secret@[::1]:2525",
    ],
)
def test_addresses_of_mail_servers(url: str) -> None:
    assert load([], {"LATCHKEY_SMTP_URL": url}).smtp_url == url
    assert open_mailer(load([], {"LATCHKEY_SMTP_URL": url}), "https://id.example.org", Brand()).confirms


@each(
    "url",
    [
        pytest.param("smtp://post:s3cret@mail.example.org", id="a password in the clear"),
        pytest.param("http://post:s3cret@mail.example.org", id="another scheme"),
        pytest.param("smtps://post:s3cret@mail.example.org?starttls", id="both kinds of TLS"),
        pytest.param("smtp://post:s3cret@mail.example.org?tls=1", id="an unknown parameter"),
        pytest.param("smtp://post:s3cret@", id="no host"),
        pytest.param("smtp://post:s3cret@mail.example.org:port?starttls", id="a port that is none"),
        pytest.param("smtp://post:s3cret@mail.example.org/path?starttls", id="a path"),
        pytest.param("smtp://post:s3 cret@mail.example.org?starttls", id="a blank"),
        pytest.param("s3cret", id="no URL"),
    ],
)
def test_an_invalid_mail_server_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^smtp_url must be ") as refused:
        load([], {"LATCHKEY_SMTP_URL": url})
    assert "s3cret" not in str(refused.value)
    assert "s3cret" not in repr(load([], {"LATCHKEY_SMTP_URL": "smtps://post:s3cret@mail.example.org"}))


@each("text", ["nobody", "a@b c", "a b@c", "A <a@b.example>", "a@b\n.example", "ü@b.example", "a@"])
def test_an_invalid_sender_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^mail_from must be an e-mail address"):
        load([], {"LATCHKEY_MAIL_FROM": text})
