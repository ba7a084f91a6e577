"""Who may call: tokens in a file, and those of an authorization server."""

import hashlib
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from serving.harness import serving

from mcp_context_server.errors import InvalidInput
from mcp_context_server.serving.auth import verifier_of
from mcp_context_server.serving.oauth import IntrospectedTokens, SignedTokens
from mcp_context_server.serving.token_file import TokenFile
from mcp_context_server.settings import Settings

pytestmark = pytest.mark.anyio

ALICE, BOB = "alice-token-0123456789", "bob-token-0123456789"
ISSUER, RESOURCE = "https://issuer.example", "https://mcp.example/mcp"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "tokens"
    write(path, f"# who may call\nalice {ALICE}\n\nbob {BOB}  # from the phone\n")
    return path


def write(path, text: str, mode: int = 0o600) -> None:
    """Put a new file in its place, as an editor does."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(mode)
    os.replace(fresh, path)


async def owner(tokens, token: str) -> str | None:
    found = await tokens.verify_token(token)
    return found.subject if found else None


async def test_a_token_says_whose_it_is(path):
    tokens = TokenFile(path)
    assert [await owner(tokens, each) for each in (ALICE, BOB, "", "eve", f"{ALICE} ")] == [
        "alice",
        "bob",
        None,
        None,
        None,
    ]


async def test_a_file_of_digests_holds_no_secret_and_may_be_read(path):
    digest = hashlib.sha256(ALICE.encode()).hexdigest()
    write(path, f"alice sha256:{digest}\n", mode=0o644)
    tokens = TokenFile(path)
    assert await owner(tokens, ALICE) == "alice"
    assert await owner(tokens, f"sha256:{digest}") is None


async def test_a_changed_file_is_read_again(path):
    tokens = TokenFile(path)
    write(path, f"carol {ALICE}\n")
    assert (await owner(tokens, ALICE), await owner(tokens, BOB)) == ("carol", None)


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (f"alice {ALICE}\nbob\n", 0o600, "line 2"),
        (f"alice {ALICE} x\n", 0o600, "line 1"),
        ("alice short\n", 0o600, "16 characters"),
        ("alice sha256:0123456789abcdef\n", 0o600, "64 hexadecimal"),
        (f"alice {ALICE}\n", 0o644, "chmod 600"),
        (f"alice {ALICE}\n", 0o602, "chmod o-w"),
        ("# nobody\n", 0o600, "no token"),
        ("\x00\xff", 0o600, "line 1"),
    ],
)
async def test_what_is_wrong_with_a_file_stops_the_start_and_later_lets_nobody_in(
    path, caplog, text, mode, told
):
    tokens = TokenFile(path)
    write(path, text, mode)
    assert await owner(tokens, BOB) is None
    assert told in caplog.text
    assert ALICE not in caplog.text
    with pytest.raises(InvalidInput, match=told):
        TokenFile(path)


async def test_a_file_that_is_gone_lets_nobody_in_until_it_is_back(path, caplog):
    tokens, text = TokenFile(path), path.read_text()
    path.unlink()
    assert [await owner(tokens, ALICE) for _ in "ab"] == [None, None]
    assert caplog.text.count("can't be read") == 1
    write(path, text)
    assert await owner(tokens, ALICE) == "alice"
    with pytest.raises(InvalidInput, match="can't be read"):
        TokenFile(path.with_suffix(".nowhere"))


@pytest.mark.requirement("SERVE-4")
@pytest.mark.parametrize("address", ["/mcp", "/sse", "/messages/?session_id=1"])
async def test_nobody_comes_in_without_a_token(path, address):
    async with serving(auth_token_file=path) as server:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {ALICE}"}):
            async with server.http(**headers) as http:
                answer = await http.get(address)
            assert (answer.status_code, answer.headers["www-authenticate"][:6]) == (401, "Bearer")


async def test_a_connection_is_its_openers_only(path):
    """What the SDK promises, which whose session it is builds upon."""
    async with (
        serving(auth_token_file=path) as server,
        server.http(ALICE, accept="text/event-stream") as alice,
        server.http(BOB) as bob,
        alice.stream("GET", "/sse") as events,
    ):
        lines = events.aiter_lines()
        address = [await anext(lines), await anext(lines)][1].removeprefix("data: ")
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert (await bob.post(address, json=body)).status_code == 404
        assert (await alice.post(address, json=body)).status_code == 202


# ── an authorization server ──────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"auth_jwks_url": "https://x/keys"}, "AUTH_ISSUER"),
        ({"auth_issuer": ISSUER}, "AUTH_RESOURCE"),
        ({"auth_issuer": ISSUER, "auth_resource": RESOURCE}, "AUTH_JWKS_URL"),
    ],
)
def test_settings_that_do_not_add_up_say_what_is_missing(settings, told):
    with pytest.raises(InvalidInput, match=told):
        verifier_of(Settings(**settings))


def test_nobody_has_to_bring_a_token_where_none_are_set():
    assert verifier_of(Settings()) is None


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@pytest.fixture
def keys_at(key):
    """The address of the issuer's keys."""
    published = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) | {"kid": "k1"}

    class Keys(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": [published]}).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Keys) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/keys"
        server.shutdown()
        thread.join()


def signed(key, **claims: object) -> str:
    told = {"iss": ISSUER, "aud": RESOURCE, "sub": "alice", "exp": time.time() + 60} | claims
    told = {name: value for name, value in told.items() if value is not None}
    return jwt.encode(told, key, algorithm="RS256", headers={"kid": "k1"})


async def test_a_signed_token_of_the_issuer_for_this_server_is_taken(key, keys_at):
    tokens = SignedTokens(ISSUER, RESOURCE, keys_at)
    found = await tokens.verify_token(signed(key, scope="a b", client_id="app"))
    assert found is not None
    assert (found.subject, found.scopes, found.client_id) == (f"{ISSUER}#alice", ["a", "b"], "app")
    assert (await owner(tokens, signed(key, aud=["x", RESOURCE + "/"]))) == f"{ISSUER}#alice"
    assert (await owner(tokens, signed(key, sub=None, azp="app"))) == f"{ISSUER}#client:app"


async def test_no_other_signed_token_is_taken(key, keys_at):
    tokens = SignedTokens(ISSUER, RESOURCE, keys_at)
    other = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    refused = [
        signed(key, aud="https://other.example/mcp"),
        signed(key, aud=None),
        signed(key, iss="https://evil.example"),
        signed(key, exp=time.time() - 60),
        signed(key, exp=None),
        signed(key, sub=None),
        signed(other),
        jwt.encode({"iss": ISSUER, "aud": RESOURCE, "sub": "a"}, "x" * 32, algorithm="HS256"),
        jwt.encode({"iss": ISSUER, "aud": RESOURCE, "sub": "a"}, None, algorithm="none"),
        "not.a.jwt",
        "",
    ]
    assert [await owner(tokens, each) for each in refused] == [None] * len(refused)
    assert await owner(SignedTokens(ISSUER, RESOURCE, "http://127.0.0.1:9/"), signed(key)) is None


def introspected(**told: object) -> IntrospectedTokens:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["authorization"].startswith("Basic ")
        assert request.content == b"token=opaque"
        return httpx2.Response(told.get("status", 200), json=told.get("body", told))

    transport = httpx2.MockTransport(answer)
    return IntrospectedTokens(ISSUER, RESOURCE, "https://issuer.example/i", "us", "pw", transport)


async def test_the_issuer_is_asked_about_an_opaque_token():
    active = {"active": True, "aud": RESOURCE, "sub": "alice", "scope": "a"}
    found = await introspected(**active).verify_token("opaque")
    assert found is not None
    assert (found.subject, found.scopes) == (f"{ISSUER}#alice", ["a"])
    for wrong in (
        {"active": False},
        {"active": "true"},
        {"aud": "https://other.example"},
        {"iss": "https://evil.example"},
        {"sub": None},
        {"status": 500},
        {"body": ["x"]},
    ):
        assert await owner(introspected(**active | wrong), "opaque") is None
    assert "pw" not in repr(introspected())


async def test_clients_find_the_authorization_server(key, keys_at, path):
    settings = {
        "auth_issuer": ISSUER,
        "auth_resource": RESOURCE,
        "auth_jwks_url": keys_at,
        "auth_scopes": ("context",),
        "auth_token_file": path,
    }
    async with serving(**settings) as server, server.http() as http:
        refused = await http.get("/mcp")
        assert refused.status_code == 401
        told = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{told}"' in refused.headers["www-authenticate"]
        found = (await http.get("/.well-known/oauth-protected-resource/mcp")).json()
        assert (found["resource"], found["authorization_servers"], found["scopes_supported"]) == (
            RESOURCE,
            [ISSUER],
            ["context"],
        )
        for token, status in (
            (signed(key), 403),
            (signed(key, scope="context"), 400),
            (ALICE, 400),
        ):
            answer = await http.get("/mcp", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == status
