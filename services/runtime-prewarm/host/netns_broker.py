#!/usr/bin/env python3
"""Opens listening sockets inside other network namespaces and hands them to the Node process that spawned it.

Speaks Node's child-process channel: newline-delimited JSON on the socket NODE_CHANNEL_FD, one SCM_RIGHTS descriptor with
each handle message.
In : {"id": 1, "pid": 1234, "port": 4141, "userns": false}
Out: {"id": 1} together with a net.Server handle, or {"id": 1, "error": "..."}
Needs CAP_SYS_ADMIN over the namespace: host root, or "userns": true to enter its owning user namespace first, in a child.
Ends when the channel closes, so it cannot outlive its manager. Standard library only; Python >= 3.9.
"""
import array
import ctypes
import fcntl
import json
import os
import socket

CLONE_NEWNET, CLONE_NEWUSER, NS_GET_USERNS = 0x40000000, 0x10000000, 0xB701
BACKLOG = 511
libc = ctypes.CDLL(None, use_errno=True)
channel = socket.socket(fileno=int(os.environ["NODE_CHANNEL_FD"]))
home = os.open("/proc/self/ns/net", os.O_RDONLY)


def set_namespace(fd, kind):
    if libc.setns(fd, kind):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def listen(port):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def open_as_root(namespace, port):
    set_namespace(namespace, CLONE_NEWNET)
    try:
        return listen(port)
    finally:
        set_namespace(home, CLONE_NEWNET)


def open_as_user(namespace, port):
    """A user namespace cannot be left again, so a child enters it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            # The owner of the network namespace: the sandbox's first process may sit in a nested one.
            set_namespace(fcntl.ioctl(namespace, NS_GET_USERNS), CLONE_NEWUSER)
            set_namespace(namespace, CLONE_NEWNET)
            listener = listen(port)
            socket.send_fds(theirs, [b"ok"], [listener.fileno()])
        except OSError as error:
            theirs.send(str(error).encode())
        os._exit(0)
    theirs.close()
    text, fds, _, _ = socket.recv_fds(ours, 200, 1)
    ours.close()
    os.waitpid(pid, 0)
    if not fds:
        raise OSError(text.decode())
    return socket.socket(fileno=fds[0])


def open_listener(request):
    namespace = os.open(f"/proc/{int(request['pid'])}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return (open_as_user if request.get("userns") else open_as_root)(namespace, int(request["port"]))
    finally:
        os.close(namespace)


def send(message, listener=None):
    rights = []
    if listener is not None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))]
    channel.sendmsg([json.dumps(message).encode() + b"\n"], rights)


def main():
    buffer, queue, waiting = b"", [], False
    while True:
        data = channel.recv(65536)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("cmd") in ("NODE_HANDLE_ACK", "NODE_HANDLE_NACK"):
                waiting = False
            elif not message.get("cmd"):
                queue.append(message)
        while queue and not waiting:  # Node takes one handle at a time.
            request = queue.pop(0)
            try:
                listener = open_listener(request)
            except (OSError, KeyError, ValueError) as error:
                send({"id": request.get("id"), "error": str(error)})
                continue
            send({"cmd": "NODE_HANDLE", "type": "net.Server", "msg": {"id": request["id"]}}, listener)
            listener.close()
            waiting = True


main()
