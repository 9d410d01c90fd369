"""The stream over HTTP/1.1: what ends it, and what it becomes for the caller."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading

import grpc
import pytest
from bridge import serve_connect
from support import Garbled, Server, Trajectories, batch

from polar_mesh import Client, PolicyClient, errors
from polar_mesh.certificates import Security
from polar_mesh.gen.polar.reconstructor.v1.reconstructor_service_pb2 import (
    StreamTrajectoriesRequest,
    StreamTrajectoriesResponse,
)
from polar_mesh.http_stream import http_stream_method

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\n"
MESSAGE = StreamTrajectoriesResponse(seeks=7).SerializeToString()
ENVELOPE = bytes([0]) + len(MESSAGE).to_bytes(4, "big") + MESSAGE
END = bytes([2, 0, 0, 0, 2]) + b"{}"


@pytest.fixture
def answered(stack):
    """A call that is answered with these bytes, by a server that then closes; and what it was asked."""

    def call(answer: bytes, token: str | None = None):
        listener = socket.create_server(("127.0.0.1", 0))
        stack.callback(listener.close)
        asked: list[bytes] = []

        def serve() -> None:
            # Who has cancelled is gone, or never came.
            with contextlib.suppress(OSError), listener.accept()[0] as near:
                asked.append(near.recv(65536))
                near.sendall(answer)
                near.shutdown(socket.SHUT_WR)
                near.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        made = http_stream_method(url, "http", lambda: Security(None, None), token)(StreamTrajectoriesRequest(consumer="trainer"))
        stack.callback(made.cancel)
        return made, asked

    return call


def test_messages_come_in_chunks_of_any_size_and_without_chunks(answered):
    body = ENVELOPE * 3 + END
    parts = [body[at : at + 3] for at in range(0, len(body), 3)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    for answer in (HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks, HEAD + b"\r\n" + body):
        assert [one.seeks for one in answered(answer)[0]] == [7, 7, 7]


@pytest.mark.parametrize("kept", [1, 4, len(ENVELOPE) - 1, len(ENVELOPE), len(ENVELOPE) + 5])
def test_an_answer_that_breaks_off_is_unavailable(answered, kept):
    call, _ = answered(HEAD + b"\r\n" + (ENVELOPE + END)[:kept])
    with pytest.raises(errors.Unavailable) as caught:
        list(call)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (b"503 Service Unavailable", errors.Unavailable, True),
        (b"401 Unauthorized", errors.Unauthenticated, False),
        (b"403 Forbidden", errors.PermissionDenied, False),
        (b"404 Not Found", errors.Internal, False),
        (b"400 Bad Request", errors.Internal, False),
        (b"308 Permanent Redirect", errors.Internal, False),
        (b"500 Internal Server Error", errors.Internal, True),
        (b"200 OK", errors.Internal, False),
    ],
)
def test_what_another_server_answers_is_an_error(answered, status, error, retryable):
    call, _ = answered(b"HTTP/1.1 " + status + b"\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: 2\r\n\r\nno")
    with pytest.raises(error) as caught:
        next(call)
    said = f"HTTP {status.decode()}, text/html"
    assert (caught.value.retryable, caught.value.message.partition(":")[0]) == (retryable, said)
    # Who refuses for good is not the mesh, whose refusals have a reason.
    assert ("is the address right?" in caught.value.message) is not retryable


def test_what_is_no_http_is_unavailable_and_what_is_compressed_is_refused(answered):
    with pytest.raises(errors.Unavailable):
        next(answered(b"SSH-2.0-server\r\n\r\n")[0])
    with pytest.raises(errors.Internal, match="compressed"):
        next(answered(HEAD + b"\r\n" + b"\x01" + ENVELOPE[1:])[0])


@pytest.mark.parametrize(
    "body",
    [
        bytes([0, 0, 0, 0, 1]) + b"\xff",
        bytes([2, 0, 0, 0, 2]) + b"no",
        bytes([2, 0, 0, 0, 2]) + b"[]",
        bytes([2, 0, 0, 0, 23]) + b'{"error":{"details":7}}',
    ],
)
def test_what_cannot_be_read_is_internal_and_ends_the_call(answered, body):
    call, _ = answered(HEAD + b"\r\n" + body + ENVELOPE)
    with pytest.raises(errors.Internal) as caught:
        next(call)
    assert (caught.value.code, caught.value.retryable) == ("INTERNAL", False)
    with pytest.raises(errors.Unavailable):
        next(call)


@pytest.mark.parametrize("transport", ["http", "grpc"])
def test_a_stream_that_cannot_be_read_raises_and_the_next_one_is_another(stack, transport):
    server = Server(Garbled([batch(1)]).register)
    stack.callback(server.stop)
    client = Client(trajectory_url=server.url, transport=transport)
    stack.callback(client.close)
    stream = client.stream("trainer")
    stack.callback(stream.close)
    with pytest.raises(errors.Internal, match="could not be read"):
        stream.next(timeout_s=10)
    assert stream.next(timeout_s=10).batch_id == 1


def test_the_token_is_sent(answered):
    call, asked = answered(HEAD + b"\r\n" + END, token="secret")
    assert list(call) == []
    assert b"\r\nauthorization: Bearer secret\r\n" in asked[0]


@pytest.mark.parametrize("token", ["of a file\n", "sécret", "a\nb"])
@pytest.mark.parametrize("make", [Client, PolicyClient])
def test_a_token_that_no_header_carries_is_refused_and_not_told(make, token):
    with pytest.raises(ValueError, match="the access token holds") as caught:
        make(token=token)
    assert token not in str(caught.value)


def test_the_end_of_the_line_is_not_of_the_token(answered, monkeypatch):
    monkeypatch.setenv("POLAR_TOKEN", "secret\n")
    call, asked = answered(HEAD + b"\r\n" + END)
    assert list(call) == []
    assert b"\r\nauthorization: Bearer secret\r\n" in asked[0]


def test_a_call_that_was_cancelled_before_it_began_connects_to_nobody(answered):
    call, asked = answered(HEAD + b"\r\n" + END)
    call.cancel()
    with pytest.raises(errors.Unavailable):
        next(call)
    assert asked == []


def test_it_goes_by_grpc_where_only_that_has_the_certificates():
    credentials = grpc.ssl_channel_credentials()
    url = "https://127.0.0.1:1"
    assert http_stream_method(url, "http", lambda: Security(credentials, None), None) is None
    assert http_stream_method(url, "http", lambda: Security(credentials, ssl.create_default_context()), None) is not None
    assert http_stream_method(url, "grpc", lambda: Security(None, None), None) is None
    with pytest.raises(ValueError, match="http2"):
        http_stream_method(url, "http2", lambda: Security(None, None), None)


def test_it_comes_by_tls_from_whom_the_context_trusts(stack, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", *names]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    service = Trajectories([batch(1, tokens=100_000), batch(2)])
    plain = Server(service.register)
    stack.callback(plain.stop)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    stack.callback(listener.close)

    def serve() -> None:
        while True:
            try:
                near, _ = listener.accept()
                serve_connect(server_side.wrap_socket(near, server_side=True), plain.grpc_port)
            except ssl.SSLError:
                pass
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    url = f"https://localhost:{listener.getsockname()[1]}"
    stranger = Client(trajectory_url=url)
    stack.callback(stranger.close)
    with pytest.raises(errors.Unavailable, match="CERTIFICATE_VERIFY_FAILED") as caught:
        stranger.stream("trainer").next(timeout_s=10)
    assert not caught.value.retryable
    client = Client(trajectory_url=url, tls=ssl.create_default_context(cafile=certificate))
    stack.callback(client.close)
    stream = client.stream("trainer")
    assert [stream.next(timeout_s=10).batch_id for _ in range(2)] == [1, 2]
