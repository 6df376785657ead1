"""The peers in their usual fast configuration, without features that the calls don't need; a row for each call."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

from dev.bench.measure import HOST, Unexpected
from dev.bench.parts.devices import DEVICES, BoundCalls, Device
from dev.bench.parts.filling import document
from dev.bench.parts.latchkey import BOUND, LISTED, PUSHED, QUESTION, SIZE, authorization_request
from dev.bench.parts.rows import Chained, Once, Pushed, Replayed, Row, Source, bearer, http
from dev.bench.peers import install
from dev.bench.peers.install import HERE, NotInstalled
from dev.bench.peers.stage import STUB, Stage
from dev.lab.ports import free_port
from dev.lab.processes import Process

SECRET = "a-secret-of-32-characters-or-more"
TOKENS = 64
"""Initial tokens of a refresh chain: more than connections."""
COLLECTIONS = 10
"""Few: the back ends of Kinto on Redis scan all keys."""
MADE = 6_000
"""Tokens of each kind that a setup creates on start."""
READ = 1_000
"""The last ones of these, whose access tokens are presented: a refresh may end its own access token."""
GUNICORN = ("gunicorn", "--workers", "1", "--worker-class", "gthread", "--threads", "1", "--no-control-socket")
"""With keep-alive, which gunicorn's default worker lacks; several threads would lock each other out of SQLite."""

Setup = Callable[[Stage], Iterator[Row]]


def oidc_provider(stage: Stage) -> Iterator[Row]:
    """node-oidc-provider over Redis, with opaque access tokens."""
    devices, thumbprints = [Device.make() for _ in range(DEVICES)], stage.directory / "thumbprints.json"
    thumbprints.write_text(json.dumps([one.thumbprint for one in devices]))
    process = _node(stage, "oidc_provider", THUMBPRINTS=str(thumbprints))
    made = stage.tokens("oidc_provider")

    def row(endpoint: str, source: Source, expected: bytes) -> Row:
        return Row("oidc-provider", endpoint, process, source, expected, stage.store)

    def refreshes(name: str, client: str) -> Chained:
        return _refreshes(stage, f"oidc-{name}", client, made[name], "/token")

    credentials = {"client_id": "rotating", "client_secret": SECRET}
    yield row("userinfo", _read(stage, "oidc-me", made["access"], "/me"), b"Lovelace")
    yield row(
        "introspection",
        Replayed(
            stage.file("oidc-introspection"),
            [
                http("POST", "/token/introspection", {}, urlencode({**credentials, "token": one}))
                for one in made["access"]
            ],
        ),
        b'"active":true',
    )
    yield row("refresh", refreshes("rotating", "rotating"), b"refresh_token")
    yield row("refresh, not rotating", refreshes("keeping", "keeping"), b"refresh_token")
    yield row("refresh, ES256 id_token", refreshes("openid", "rotating"), b"id_token")
    calls = BoundCalls(devices, made["bound"], "/me", f"http://{HOST}/me")
    yield row(BOUND, Once(stage.file("oidc-bound"), calls.make), b"Lovelace")
    push = http("POST", "/request", {}, urlencode({**authorization_request("openid profile"), **credentials}))
    query = f"client_id=rotating&request_uri={Pushed.MARK.decode()}"
    arrivals = [http("GET", f"/auth?{query}", {"Cookie": cookies}) for cookies in made["cookies"]]
    yield row(PUSHED, Pushed(stage.file("oidc-pushed"), push, arrivals), b"code=")


def oauth2_server(stage: Stage) -> Iterator[Row]:
    """On Express, over Redis."""
    process = _node(stage, "oauth2_server")
    made = stage.tokens("oauth2_server")
    yield from _two(stage, "@node-oauth/oauth2-server", process, made, stage.store)


def authlib(stage: Stage) -> Iterator[Row]:
    """On Flask, over SQLite."""
    yield from _gunicorn(stage, "Authlib, Flask", "authlib_flask", "authlib_site", "app")


def django_toolkit(stage: Stage) -> Iterator[Row]:
    """Over SQLite."""
    yield from _gunicorn(stage, "django-oauth-toolkit", "django_toolkit", "django_site", "application")


def kinto_in_memory(stage: Stage) -> Iterator[Row]:
    """Kinto with all back ends in memory."""
    back_ends = {name: f"kinto.core.{name}.memory" for name in ("storage", "cache", "permission")}
    yield from _kinto(stage, "Kinto, memory", back_ends, "")


def kinto_on_redis(stage: Stage) -> Iterator[Row]:
    """Kinto with all back ends on Redis."""
    back_ends = {name: f"kinto_redis.{name}" for name in ("storage", "cache", "permission")}
    urls = [
        f"kinto.{name}_url = redis://{HOST}:{stage.store.port}/{number}" for number, name in enumerate(back_ends, 2)
    ]
    yield from _kinto(stage, "Kinto, Redis", back_ends, "\n".join(urls))


def litellm(stage: Stage) -> Iterator[Row]:
    """LiteLLM chat completions on its fastest path; no database, no logging."""
    if stage.stub is None:
        raise NotInstalled(f"there is no {STUB} here")
    folder = HERE / "litellm_proxy"
    programs, port = install.python("litellm_proxy"), free_port()
    command: list[Path | str] = [
        programs / "litellm",
        "--config",
        folder / "config.yaml",
        "--host",
        HOST,
        "--port",
        str(port),
    ]
    process = stage.start(
        [*command, "--num_workers", "1"],
        "litellm",
        stage.directory,
        port,
        STUB_URL=f"http://{HOST}:{stage.stub.port}",
        LITELLM_LOG="ERROR",
        PATH=f"{programs}:/usr/bin:/bin",
    )
    headers = {**bearer("sk-bench"), "Content-Type": "application/json"}
    question = json.dumps({**QUESTION, "model": "stub"})
    source = Replayed(stage.file("litellm"), [http("POST", "/v1/chat/completions", headers, question)])
    yield Row("LiteLLM proxy", "AI call", process, source, b"completion_tokens")


SETUPS: dict[str, Setup] = {
    "oidc-provider": oidc_provider,
    "@node-oauth/oauth2-server": oauth2_server,
    "Authlib, Flask": authlib,
    "django-oauth-toolkit": django_toolkit,
    "Kinto, memory": kinto_in_memory,
    "Kinto, Redis": kinto_on_redis,
    "LiteLLM proxy": litellm,
}


def _node(stage: Stage, name: str, **environment: str) -> Process:
    folder, port = install.node(), free_port()
    return stage.start(
        ["node", f"{name}.mjs"],
        name,
        folder,
        port,
        REDIS=stage.socket_path,
        TOKENS=str(MADE),
        OUT=str(stage.out(name)),
        NODE_ENV="production",
        **environment,
    )


def _gunicorn(stage: Stage, system: str, folder: str, module: str, application: str) -> Iterator[Row]:
    programs, port = install.python(folder), free_port()
    environment = {"DATABASE": str(stage.directory / f"{folder}.db"), "OUT": str(stage.out(folder))}
    _run_once([programs / "python", f"{module}.py"], HERE / folder, {**environment, "TOKENS": str(MADE)})
    command: list[Path | str] = [
        programs / GUNICORN[0],
        *GUNICORN[1:],
        "--bind",
        f"{HOST}:{port}",
        f"{module}:{application}",
    ]
    process = stage.start(command, folder, HERE / folder, port, **environment)
    yield from _two(stage, system, process, stage.tokens(folder), None)


def _run_once(command: list[Path | str], folder: Path, environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise NotInstalled(ran.stderr.strip().splitlines()[-1][:200])


def _kinto(stage: Stage, system: str, back_ends: dict[str, str], urls: str) -> Iterator[Row]:
    programs, port = install.python("kinto_records"), free_port()
    text = (HERE / "kinto_records" / "kinto.ini").read_text()
    for name, value in (("PORT", str(port)), ("URLS", urls), *((one.upper(), two) for one, two in back_ends.items())):
        text = text.replace(f"@{name}@", value)
    name = system.lower().replace(", ", "-")
    settings = stage.directory / f"{name}.ini"
    settings.write_text(text)
    process = stage.start([programs / "kinto", "start", "--ini", settings], name, stage.directory, port)
    store = stage.store if urls else None
    who = {"Authorization": "Basic " + base64.b64encode(b"ada:a password").decode()}
    who["Content-Type"] = "application/json"
    content = json.dumps({"data": json.loads(document(SIZE))})
    # As many in a collection as each of our people has.
    collections = [f"/v1/buckets/bench/collections/notes{number}" for number in range(COLLECTIONS)]
    paths = [f"{place}/records/n{number}" for place in collections for number in range(LISTED)]
    made = [http("PUT", place, who, "{}") for place in ("/v1/buckets/bench", *collections)]
    setting_up = Row(system, "set-up", process, Replayed(stage.file(f"{name}-made"), made), b"data")
    for _ in made:
        setting_up.look()
    writes = Replayed(stage.file(f"{name}-put"), [http("PUT", path, who, content) for path in paths])
    put = Row(system, "document PUT", process, writes, b"last_modified", store)
    for _ in paths:
        put.look()
    reads = Replayed(stage.file(f"{name}-get"), [http("GET", path, who) for path in paths])
    yield Row(system, "document GET", process, reads, b"A note", store)
    yield put


def _two(
    stage: Stage, system: str, process: Process, made: dict[str, list[str]], store: Process | None
) -> Iterator[Row]:
    """A resource call with a token, and a refresh."""
    name = system.partition(",")[0].replace("/", "-")
    yield Row(
        system, "userinfo", process, _read(stage, f"{name}-me", made["access"][-READ:], "/me"), b"Lovelace", store
    )
    refreshes = _refreshes(stage, f"{name}-refresh", "bench", made["refresh"][:-READ], "/token")
    yield Row(system, "refresh", process, refreshes, b"refresh_token", store)


def _read(stage: Stage, name: str, tokens: list[str], path: str) -> Replayed:
    return Replayed(stage.file(name), [http("GET", path, bearer(token)) for token in tokens])


def _refreshes(stage: Stage, name: str, client: str, tokens: list[str], path: str) -> Chained:
    unused = iter(tokens)

    def more(wanted: int) -> list[str]:
        taken = list(islice(unused, wanted))
        if len(taken) < wanted:
            raise Unexpected(f"{name}: all {len(tokens)} tokens are used: ask for fewer rounds")
        return taken

    def request(token: str) -> bytes:
        form = {"grant_type": "refresh_token", "client_id": client, "client_secret": SECRET}
        return http("POST", path, {}, f"{urlencode(form)}&refresh_token={token}")

    return Chained(stage.file(name), more, request, TOKENS)
