"""The file of identity providers is read again on SIGHUP."""

from __future__ import annotations

from pathlib import Path

import pytest

from outbound.identity.config import ProvidersError
from tests.support.elsewhere import journeys
from tests.support.elsewhere.double import CLIENT_ID, ProviderDouble
from tests.support.elsewhere.journeys import leaves
from tests.support.http.driver import Service
from tests.support.processes import reloaded_service
from tests.support.processes.reloaded_service import Reloading

pytestmark = pytest.mark.gen_test(timeout=60)

idp, mails, options, site = journeys.idp, journeys.mails, journeys.options, journeys.site
logging_kept, reloading = reloaded_service.logging_kept, reloaded_service.reloading


def table(idp: ProviderDouble, name: str, title: str) -> str:
    return (
        f'[[provider]]\nname = "{name}"\ntitle = "{title}"\nissuer = "{idp.issuer}"\nclient_id = "{CLIENT_ID}"\n'
        'auth_method = "none"\ntrust_email = true\ncreate = true\n'
    )


async def test_providers_change_without_a_restart(
    service: Service, idp: ProviderDouble, reloading: Reloading, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(table(idp, "idp", "Another name"))
    waiting = service.browser()
    back = idp.allows(await leaves(waiting))
    await reloading.take(identity_config=file)
    assert reloading.runtime.providers.find("idp") is not None
    assert "Continue with Another name" in (await service.browser().get("/signin")).body.decode()
    file.write_text('[[provider]]\nname = "idp"\n')
    with pytest.raises(ProvidersError, match="secret_env is missing"):
        await reloading.take()
    assert "Continue with Another name" in (await service.browser().get("/signin")).body.decode()
    file.write_text(table(idp, "other", "Other"))
    await reloading.take()
    page = await waiting.get(back)
    assert page.code == 404, "a sign-in that waits at a provider that is gone"
    assert "no such way to sign in" in page.body.decode()
    assert 'href="/signin"' in page.body.decode()
    assert await service.store.people.find("ada@elsewhere.example") is None
    await reloading.take(identity_config=None)
    assert not reloading.site.providers
