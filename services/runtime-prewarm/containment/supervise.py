#!/usr/bin/env python3
"""supervise.py LIFELINE_FD COMMAND...: runs a command and ends when nothing of it is left.

It is a child subreaper: whatever the command leaves behind, in whichever session, becomes its child. When the command
ends, or the lifeline (a pipe that the manager holds) does, every descendant is killed. Exits with the command's code,
128 + N when signal N ended it. Standard library only; Python >= 3.9.
"""
import ctypes
import os
import select
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


def descendants():
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rsplit(b") ", 1)[1].split()[:2]
            except OSError:
                continue
            if state != b"Z":
                children.setdefault(int(parent), []).append(int(name))
    found, queue = [], [os.getpid()]
    while queue:
        for pid in children.get(queue.pop(), []):
            found.append(pid)
            queue.append(pid)
    return found


def kill_all():
    for pid in descendants():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def start(command, lifeline):
    pid = os.fork()
    if pid:
        return pid
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.close(lifeline)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def main():
    lifeline, command = int(sys.argv[1]), sys.argv[2:]
    os.environ.pop("LC_CTYPE", None)  # Python's own, where the locale is C.
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake, notify = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child, code, ending = start(command, lifeline), None, False
    while True:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == child:
                    code, ending = os.waitstatus_to_exitcode(status), True
        except ChildProcessError:
            os._exit(137 if code is None else code if code >= 0 else 128 - code)
        if ending:
            kill_all()
        watched = [wake] if ending else [wake, lifeline]
        ready = select.select(watched, [], [], 0.01 if ending else None)[0]
        if wake in ready:
            os.read(wake, 4096)
        if lifeline in ready:
            ending = True


main()
