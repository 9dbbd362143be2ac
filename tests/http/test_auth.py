"""Who asks: Basic, Bearer, Digest, netrc, functions; and where credentials go."""

from __future__ import annotations

import asyncio
import hashlib
import re
from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.http import Auth, Basic, Bearer, Client, Digest, InvalidURL, Netrc, Request
from citius.http.auth import challenges
from citius.testing.http import MockCall, MockReply, MockTransport


async def sent(mock: MockTransport, **options) -> str | None:
    mock.add("*", "*")
    await Client("http://a", transport=mock, **options).get("/")
    return mock.calls[-1].headers.get("authorization")


async def test_kinds(mock: MockTransport, tmp_path: Path) -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return "t"

    def signed(request: Request) -> None:
        request.headers["authorization"] = f"Own {request.method}"

    assert await sent(mock, auth=("user", "pässword")) == "Basic dXNlcjpww6Rzc3dvcmQ="
    assert await sent(mock, auth=Bearer("t")) == "Bearer t"
    assert await sent(mock, auth=Bearer(token)) == "Bearer t"
    assert await sent(mock, auth=signed) == "Own GET"
    path = tmp_path / "netrc"
    path.write_text("machine a login user password w\n")
    assert await sent(mock, auth=Netrc(str(path))) == "Basic dXNlcjp3"
    assert await sent(mock) is None


def test_what_authenticates_nothing(tmp_path: Path) -> None:
    for wrong in ("token", 1):
        with pytest.raises(ConfigError, match="auth= is"):
            Client(auth=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="colon"):
        Basic("a:b", "c")
    with pytest.raises(ConfigError, match="netrc"):
        Netrc(str(tmp_path / "none"))
    assert "word" not in repr(Digest("user", "word")) + repr(Basic("user", "word")) + repr(
        Bearer("word")
    )


async def test_of_a_url_and_of_a_call(mock: MockTransport) -> None:
    mock.add("*", "*")
    client = Client(transport=mock)
    for _ in range(2):
        await client.get("http://user:w@a/")
        assert mock.calls[-1].headers["authorization"] == "Basic dXNlcjp3"
        assert mock.calls[-1].url == "http://a/"
    client = Client("http://a", auth=("user", "w"), transport=mock)
    await client.get("/", auth=None)
    assert "authorization" not in mock.calls[-1].headers
    await client.get("/", auth=Bearer("t"))
    assert mock.calls[-1].headers["authorization"] == "Bearer t"


async def test_credentials_of_a_client_are_for_its_base_url(mock: MockTransport) -> None:
    """An absolute URL that came with data does not get the secrets of the service that the client is for."""
    mock.add("*", "*")
    client = Client(
        "https://a",
        auth=("user", "w"),
        transport=mock,
        headers={"X-API-Key": "k", "X-Other": "o", "Cookie": "c=1"},
    )
    await client.get("https://a/x")
    assert (
        mock.calls[-1].headers.items()
        >= {"x-api-key": "k", "cookie": "c=1", "x-other": "o"}.items()
    )
    assert "authorization" in mock.calls[-1].headers
    for url in ("https://b/x", "http://a/x", "https://a:444/x"):
        await client.get(url)
        assert mock.calls[-1].headers.keys() & {"authorization", "x-api-key", "cookie"} == set()
        assert mock.calls[-1].headers["x-other"] == "o"


async def test_a_token_is_renewed_once(mock: MockTransport) -> None:
    tokens = ["old", "new"]
    refreshed: list[int] = []

    async def refresh() -> None:
        refreshed.append(1)
        tokens.pop(0)

    def answer(call: MockCall) -> MockReply:
        return MockReply(200 if call.headers["authorization"] == "Bearer new" else 401)

    mock.add("POST", "*", answer)
    client = Client("http://a", transport=mock, auth=Bearer(lambda: tokens[0], refresh=refresh))
    assert (await client.post("/", json=1)).status_code == 200
    assert [call.content for call in mock.calls] == [b"1", b"1"]
    tokens[:] = ["bad", "worse"]
    assert (await client.post("/")).status_code == 401
    assert refreshed == [1, 1]


def server(algorithm: str, quality: str | None, nonces: list[str]):
    """A server that verifies digests, by RFC 7616."""
    hashed = {"MD5": hashlib.md5, "SHA-256": hashlib.sha256}[algorithm.removesuffix("-sess")]
    counts: set[tuple[str, str, str]] = set()

    def digest(text: str) -> str:
        return hashed(text.encode()).hexdigest()

    def answer(call: MockCall) -> MockReply:
        line = f'Digest realm="r, \\"x\\"", nonce="{nonces[0]}", algorithm={algorithm}, opaque="o"'
        line += f', qop="{quality}"' if quality else ""
        refused = MockReply(
            401, headers=[("www-authenticate", "Negotiate"), ("www-authenticate", line)]
        )
        said = call.headers.get("authorization", "")
        if not said.startswith("Digest "):
            return refused
        [(_, parts)] = challenges(said)
        if parts["nonce"] != nonces[0]:
            refused.fields[1] = (b"www-authenticate", f"{line}, stale=true".encode())
            return refused
        first = digest('Mufasa:r, "x":Circle')
        if algorithm.endswith("-sess"):
            first = digest(f"{first}:{parts['nonce']}:{parts['cnonce']}")
        second = digest(f"{call.method}:{parts['uri']}")
        middle = f"{parts['nonce']}:"
        if quality:
            once = (parts["nonce"], parts["nc"], parts["cnonce"])
            assert once not in counts
            counts.add(once)
            middle += f"{parts['nc']}:{parts['cnonce']}:auth:"
        assert call.url.endswith(parts["uri"])
        return MockReply(200 if digest(f"{first}:{middle}{second}") == parts["response"] else 403)

    return answer


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256", "MD5-sess", "SHA-256-sess"])
@pytest.mark.parametrize("quality", [None, "auth", "auth-int, auth"])
async def test_digest(mock: MockTransport, algorithm: str, quality: str | None) -> None:
    if quality is None and algorithm.endswith("-sess"):
        pytest.skip("a session needs a quality, whose cnonce it has")
    nonces = ["n1"]
    mock.add("*", "*", server(algorithm, quality, nonces))
    client = Client("http://a", transport=mock, auth=Digest("Mufasa", "Circle"))
    assert (await client.get("/x?y=1")).status_code == 200
    assert len(mock.calls) == 2
    assert (await client.post("/z", json=1)).status_code == 200
    assert len(mock.calls) == 3  # answered at once
    nonces[0] = "n2"
    assert (await client.get("/")).status_code == 200
    assert len(mock.calls) == 5
    wrong = Client("http://a", transport=mock, auth=Digest("Mufasa", "Square"))
    assert (await wrong.get("/")).status_code == 403


async def test_a_digest_of_what_is_not_ascii(mock: MockTransport) -> None:
    """Bytes are hashed as they are: those of the realm as they came, names and passwords in UTF-8."""
    realm, name, word = "Zürich".encode(), "Müller€".encode(), "pä€".encode()

    def digest(data: bytes) -> bytes:
        return hashlib.md5(data).hexdigest().encode()

    def answer(call: MockCall) -> MockReply:
        if "authorization" not in call.headers:
            line = 'Digest realm="' + realm.decode("latin-1") + '", nonce="n"'
            return MockReply(401, headers=[("www-authenticate", line)])
        [(_, parts)] = challenges(call.headers["authorization"])
        assert parts["realm"].encode("latin-1") == realm
        assert parts["username"].encode("latin-1") == name
        right = digest(digest(b"%s:%s:%s" % (name, realm, word)) + b":n:" + digest(b"GET:/"))
        return MockReply(200 if parts["response"].encode() == right else 403)

    mock.add("*", "*", answer)
    client = Client("http://a", transport=mock, auth=Digest(name.decode(), word.decode()))
    assert (await client.get("/")).status_code == 200


async def test_a_user_name_of_a_url_that_no_field_can_have(mock: MockTransport) -> None:
    """What a user gives as a URL is no mistake of the program."""
    with pytest.raises(InvalidURL, match="colon"):
        await Client(transport=mock).get("http://a%3Ab:c@host/")


async def test_a_digest_that_is_not_known(mock: MockTransport) -> None:
    mock.add(
        "*",
        "*",
        MockReply(401, headers={"www-authenticate": 'Digest realm="", nonce="n", qop="auth-int"'}),
    )
    client = Client("http://a", transport=mock, auth=Digest("u", "w"))
    assert (await client.get("/")).status_code == 401
    assert len(mock.calls) == 1


def test_challenges() -> None:
    assert challenges('Basic realm="a, b", Digest nonce="x\\"y", qop="auth", Negotiate') == [
        ("basic", {"realm": "a, b"}), ("digest", {"nonce": 'x"y', "qop": "auth"}), ("negotiate", {}),
    ]  # fmt: skip


async def test_an_authentication_of_ones_own(mock: MockTransport) -> None:
    class Twice(Auth):
        def flow(self, request: Request):
            response = yield request
            request.headers["x-seen"] = str(response.status_code)
            yield request

    mock.add("*", "*", MockReply(418), MockReply())
    response = await Client("http://a", transport=mock).get("/", auth=Twice())
    assert response.status_code == 200
    assert mock.calls[-1].headers["x-seen"] == "418"
    assert re.match("<Request GET", repr(response.request))
