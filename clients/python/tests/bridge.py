"""One port for gRPC and for Connect's protocol over HTTP/1.1, as the mesh has it, in front of a gRPC server."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import struct
import threading
from collections.abc import Iterator
from typing import BinaryIO

import grpc
from google.rpc import status_pb2

Metadata = list[tuple[str, str]] | None

_PREFIX = struct.Struct(">BI")
_LAST = 2
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/connect+proto\r\ntransfer-encoding: chunked\r\n\r\n"


def speaks_http2(near: socket.socket) -> bool:
    """By the first bytes, which are left where they are."""
    return near.recv(4, socket.MSG_PEEK | socket.MSG_WAITALL) == b"PRI "


def serve_connect(near: socket.socket, grpc_port: int) -> None:
    """Answer the calls on this connection with what the gRPC server says: a server stream, or one call after another."""
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with near, near.makefile("rb") as file, _channel(grpc_port) as channel:
        while line := _line(file):
            _, path, _ = line.split()
            headers = http.client.parse_headers(file)
            body = file.read(int(headers["content-length"]))
            metadata = [("authorization", headers["authorization"])] if headers["authorization"] else None
            if headers["content-type"] != "application/proto":
                _stream(near, channel, path, body, metadata)
                return
            try:
                near.sendall(_answer(channel, path, body, metadata))
            except OSError:
                return


def _line(file: BinaryIO) -> bytes:
    """The first one of the next request; none where the caller has left."""
    try:
        return file.readline()
    except OSError:
        return b""


def _answer(channel: grpc.Channel, path: bytes, body: bytes, metadata: Metadata) -> bytes:
    try:
        status, kind, data = "200 OK", "proto", channel.unary_unary(path.decode())(body, metadata=metadata)
    except grpc.RpcError as error:
        # Which number it is says nothing to who reads the body.
        status, kind, data = "400 Bad Request", "json", json.dumps(_json(error)).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/{kind}\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _stream(near: socket.socket, channel: grpc.Channel, path: bytes, body: bytes, metadata: Metadata) -> None:
    call = channel.unary_stream(path.decode())(body[_PREFIX.size :], metadata=metadata)
    threading.Thread(target=_cancel_at_end, args=(near, call), daemon=True).start()
    try:
        near.sendall(_HEAD)
        for part in _envelopes(call):
            near.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        near.sendall(b"0\r\n\r\n")
    except OSError:
        call.cancel()


def _channel(port: int) -> grpc.Channel:
    return grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])


def _envelopes(call: grpc.Call) -> Iterator[bytes]:
    end: dict[str, object] = {}
    try:
        for message in call:  # type: ignore[attr-defined]
            yield _PREFIX.pack(0, len(message)) + message
    except grpc.RpcError as error:
        end = {"error": _json(error)}
    data = json.dumps(end).encode()
    yield _PREFIX.pack(_LAST, len(data)) + data


def _json(error: grpc.RpcError) -> dict[str, object]:
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
    details = [
        {"type": one.type_url.split("/")[-1], "value": base64.b64encode(one.value).decode().rstrip("=")}
        for one in status.details
    ]
    code = error.code().name.lower().replace("cancelled", "canceled")
    return {"code": code, "message": error.details(), "details": details}


def _cancel_at_end(near: socket.socket, call: grpc.Call) -> None:
    """The caller says nothing behind its request: what comes is the end of its connection."""
    try:
        near.recv(1)
    except OSError:
        pass
    call.cancel()
