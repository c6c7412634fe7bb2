"""The mirror on a Chroma server that is spoken to by https, behind a proxy that wants a token, as Chroma Cloud does."""

import asyncio
import contextlib
import ssl
import threading

import pytest
import trustme

from building import add, find, make_palace, texts
from chroma_server import SECRET, ChromaServer
from datasette_mempalace.config import read_settings
from datasette_mempalace.errors import MirrorUnavailable

pytestmark = pytest.mark.long


class TokenProxy:
    """Speaks https with a certificate of the given authority, lets nobody in without the token, hands on to a port."""

    def __init__(self, authority, target):
        self.target, self.refused = target, 0
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(self.tls)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        opening = asyncio.start_server(self.talk, "localhost", 0, ssl=self.tls)
        self.server = asyncio.run_coroutine_threadsafe(opening, self.loop).result(10)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *problem):
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def talk(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if f"authorization: {SECRET}".lower().encode() not in head.lower():
                self.refused += 1
                writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
            else:
                from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
                to_server.write(head)
                await asyncio.gather(pump(reader, to_server), pump(from_server, writer))
        writer.close()


async def pump(reader, writer):
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    """A proxy before a Chroma server, whose authority this machine trusts for the length of a test."""
    folder = tmp_path / "data"
    folder.mkdir()
    chroma = ChromaServer(folder)
    chroma.start()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with TokenProxy(authority, chroma.port) as proxy:
        yield proxy
    chroma.kill()


def settings(proxy, **more):
    place = {"mode": "server", "host": "localhost", "port": proxy.port, "ssl": True, **more}
    return read_settings({"chroma": place})


def test_by_https_with_a_token(tmp_path, proxy, monkeypatch):
    monkeypatch.setattr("datasette_mempalace.nearest._engines", lambda *given: ["chroma"])
    token = {"Authorization": SECRET}
    with make_palace(tmp_path / "p.db", mirror=True, settings=settings(proxy, headers=token)) as palace:
        add(palace, ("the red fox", "w", "r"), ("the blue whale", "w", "s"), mirror=True)
        answer = find(palace, "sea animal", candidate_strategy="vector")
        assert texts(answer)[0] == "the blue whale"
        assert answer["vector_status"] == "ok"
    assert not proxy.refused


def test_without_the_token(tmp_path, proxy):
    with make_palace(tmp_path / "p.db", [("the red fox", "w", "r")], settings=settings(proxy)) as palace:
        with pytest.raises(MirrorUnavailable, match="it answered 401 Unauthorized"):
            palace.mirror.sync()
        assert texts(find(palace, "fox")) == ["the red fox"]
    assert proxy.refused


def test_a_certificate_that_nobody_vouches_for(tmp_path, proxy, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    token = {"Authorization": SECRET}
    drawers = [("the red fox", "w", "r")]
    with make_palace(tmp_path / "p.db", drawers, settings=settings(proxy, headers=token)) as palace:
        with pytest.raises(MirrorUnavailable, match="certificate"):
            palace.mirror.sync()
        assert texts(find(palace, "fox")) == ["the red fox"]
