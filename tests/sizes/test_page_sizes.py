
from __future__ import annotations
import time, re
from pathlib import Path
import pytest
from handlers.core.site import Site
from tests.support.http.driver import Browser, Service, EMAIL
from tests.sizes.fullest import *
from tests.admin.conftest import Console, CONFIRM
from tests.support.store.second_factors import shown

import os
ONLY=os.environ.get('ONLY')
pytestmark = pytest.mark.gen_test(timeout=300)

@pytest.fixture
def base_url(_unused_port):
    return f"http://localhost:{_unused_port[1]}"

async def show(browser, path):
    for lang in "en","ja":
            a=await browser.get(path, **{"Accept-Language":lang})
            print("SIZE", path,lang,a.code,len(a.body), "!!!" if len(a.body)>=40000 or a.code!=200 else "")
            Path(f"/tmp/ps/{path.replace('/','_')[:80]}.{lang}.html").write_bytes(a.body)
    return a.body.decode()

async def test_measure(service: Service):
    Path("/tmp/ps").mkdir(exist_ok=True)
    t=time.time()
    store=service.store
    browser = await service.confirmed()
    session = store.sessions.open(browser.cookies["latchkey_session"])
    print('a',time.time()-t)
    for n in range(SESSIONS-2): await session_of(store, EMAIL, n)
    print('b',time.time()-t)
    await fill_factors(store, service.ada)
    apps=[await connect(store, service.ada, n) for n in range(APPS)]
    await fill_trails(store, service.ada, [a.client_id for a in apps])
    await shown(store, session)
    print('c',time.time()-t)
    if ONLY == "security":
        for q in "", "?sessions=2", "?sessions=99", "?passkeys=2", "?accounts=4": await show(browser, "/account/security" + q)
        for app in apps[-3:]: await hand_on(store, service.ada, app)
        for q in "", "?page=2", "?page=99999", "?page=1&app=weather-diary-198&helpers=2": print(re.findall('href="([^"]*helpers=[^"]*)"', await show(browser, "/account/apps" + q)))
        return
    await fill_credits(store, service.ada, apps)
    print('d',time.time()-t)
    own=await own_app(store, service)
    print('e',time.time()-t)
    for app in apps[-3:]: await hand_on(store, service.ada, app)
    print('f',time.time()-t)
    await stock(store, service.ada, apps[5].client_id, {f"messungen-{n%1000:04}/wetterstation-{n:06}": b'{"x": 1}' for n in range(3000)})
    doc = b"[" + b",".join(b'{"station": "Wetterstation 0815", "grad": -3, "ort": "N\xc3\xbcrnberg"}' for n in range(3000)) + b"]"
    await stock(store, service.ada, apps[6].client_id, {"messungen/wetter": doc, "a/b": b"1"})
    if ONLY == "consent":
        ...
    for path in () if ONLY else ("/developer/apis","/developer/register","/developer/apps/own-app/settings","/developer/register?apis=3","/developer/apps/own-app/settings?apis=2","/account","/account/security","/account/security/activity","/account/security/activity?kind=apps","/account/apps","/account/apps?page=2","/account/credits","/account/credits?days=90", "/account/credits/usage","/account/delete",
      f"/account/apps/{apps[5].client_id}/data", f"/account/apps/{apps[6].client_id}/data/messungen/wetter",
      "/developer/apps","/developer/apis","/developer/apps/own-app","/developer/apps/own-app/settings","/developer/apps/own-app/credentials","/developer/apps/own-app/log","/developer/apps/own-app/usage","/developer/apps/own-app/team","/developer/apps/own-app/webhooks","/developer/apps/own-app/try", "/developer/register"):
        text = await show(browser, path)
        if path == "/account/credits":
            m = re.search(r'href="(/account/credits\?before=[^"]*)"', text)
            await show(browser, m[1])
        if path == "/developer/apis":
            await show(browser, re.search(r'href="(/developer/apis/[^"]*)"', text)[1])
        if path.endswith("webhooks"):
            await show(browser, re.search(r'href="(/developer/apps/own-app/webhooks/[^"?]*)"', text)[1])
    from handlers.guides import pages as gp
    guides = set(re.findall(r'href="(/developer/apps/own-app/guides/[^"]*)"', await show(browser, "/developer/apps/own-app")))
    for g in sorted(guides): await show(browser, g)
    # consent
    from urllib.parse import urlencode
    import json as j
    from tests.support.http.driver import App
    a = App(service.base_url, "own-app", None, own.redirect_uris[0])
    det = j.dumps([{"type":"credits","limit":5000000,"period":"month"}, {"type":"llm-inference","budget":4000000}])
    plain = [x.partition("/")[2] for x in own.api_scopes]
    api = (await store.apis.find(own.api_scopes[0].partition("/")[0])).identifier
    for more in {}, {"authorization_details": det}:
        print((await browser.get(a.authorize_url(scope=" ".join((*SPENDS, *plain)), resource=api, **more))).headers.get("Location"))
        await show(browser, a.authorize_url(scope=" ".join((*SPENDS, *plain)), resource=api, **more))
    if ONLY: return
    # console
    console = Console(service)
    admin = await console.operator("admin")
    for n in range(120):
        await service.store.people.create(f"augusta.ada.king.lovelace.{n:03}@example.net", f"Augusta Ada King Lovelace {n:03}", None, verified=True, event="created_by_operator", visitor=Visitor(network(n), AGENTS[0]))
    await store.security.flush()
    await admin.browser.get("/admin")
    for path in ("/admin","/admin/people","/admin/people?query=augusta",f"/admin/people/{service.ada}","/admin/audit","/admin/apps","/admin/apps/own-app","/admin/apis","/admin/webhooks","/admin/credits",f"/admin/credits?person={service.ada}","/admin/health","/admin/settings?show=all"):
        text = await show(admin.browser, path)
        if path == "/admin/people":
            users = re.findall(r'name="person_([0-9a-f]{32})"', text)
            await show(admin.browser, "/admin/people/bulk?act=suspend&" + "&".join(f"person_{u}=yes" for u in users))
        for at in (r'(/admin/apis/[^"]*)"', r'(/admin/audit/[0-9][^"]*)"', r'(/admin/webhooks/own-app/[^"]*)"'):
            if (m := re.search('href="' + at, text)) and not path.startswith("/admin/people/"):
                await show(admin.browser, m[1])
    print('z',time.time()-t)
