#!/usr/bin/env python3
"""Makes the user, mount, network and control group namespaces of one sandbox, and becomes apptainer in them, which makes the
others, and a mount namespace of its own.

Called as bwrap is: `enter.py --args FD -- COMMAND…`. FD gives one JSON document, to its end:
  argv     what to become, without COMMAND
  env      its environment
  files    descriptor -> text that is to be read from it
  folders, places   made in `root` where they are missing, as apptainer makes no place for what it shows: folders, and pairs of
           what is shown, a folder or a file, and its place
  sources  what is shown: apptainer makes them read-only inside, but not what is mounted below them
  root     from the present folder on; it is shown at `place`, too, a folder (empty: nothing is)
  maps     whether root inside is the present user, who is no host root
  status, block, seccomp, unread   descriptors
Tells {"child-pid": N} on `status`, then waits for a byte on `block`: until then the caller gives it its users, but for `maps`, and
listens in its network. `seccomp` holds a BPF program, under which all that follows runs. Standard library only; Python >= 3.9.
"""
import ctypes
import errno
import fcntl
import json
import os
import re
import socket
import struct
import sys

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x02000000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
REMOUNT_READ_ONLY = 0x20 | MS_BIND | 0x1 | 0x2 | 0x4  # And nosuid, nodev.
MS_STRICTATIME = 0x1000000
# Of a mount that is the host's, these may not change.
KEPT = {b"noexec": 0x8, b"nosymfollow": 0x100, b"noatime": 0x400, b"nodiratime": 0x800, b"relatime": 0x200000}
UNREACHABLE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
INSTRUCTION_BYTES, PROGRAM_BYTES_MAX = 8, 8 * 4096
ABOVE_ALL = 64
libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read_all(fd):
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def map_root(uid, gid):
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def bring_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def make_places(root, folders, places):
    for source, target in [*((None, folder) for folder in folders), *places]:
        path = root + target
        if os.path.lexists(path):  # A link, too: a command's own, which apptainer follows inside.
            continue
        if source is None or os.path.isdir(source):
            os.makedirs(path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))


def make_read_only_below(sources):
    """What is mounted later does not appear."""
    checked(libc.mount(None, b"/", None, MS_PRIVATE | MS_REC, None))
    with open("/proc/self/mountinfo", "rb") as file:
        mounts = [line.split(b" ") for line in file]
    for point, options in ((fields[4], fields[5].split(b",")) for fields in mounts):
        path = re.sub(rb"\\(\d{3})", lambda found: bytes([int(found[1], 8)]), point)
        if any(path.startswith(os.fsencode(source) + b"/") for source in sources):
            kept = sum(KEPT.get(option, 0) for option in options)
            if b"relatime" not in options and b"noatime" not in options:
                kept |= MS_STRICTATIME
            result = libc.mount(None, path, None, REMOUNT_READ_ONLY | kept, None)
            if ctypes.get_errno() not in UNREACHABLE:
                checked(result)


def hand_over(files):
    """The numbers are those of descriptors that have been used up."""
    for number, text in files.items():
        with os.fdopen(os.memfd_create("polar"), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            away = fcntl.fcntl(stream.fileno(), fcntl.F_DUPFD, ABOVE_ALL)
        os.lseek(away, 0, os.SEEK_SET)
        os.dup2(away, int(number), inheritable=True)
        os.close(away)


def confine(program):
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    filter_program = Program(len(program) // INSTRUCTION_BYTES, program)
    checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_program), 0, 0))


def main(args_fd, command):
    launch = json.loads(read_all(args_fd))
    user = os.geteuid(), os.getegid()
    checked(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWCGROUP))
    if launch["maps"]:
        map_root(*user)
    bring_loopback_up()
    os.write(launch["status"], json.dumps({"child-pid": os.getpid()}).encode())
    if not read_all(launch["block"]):
        return 1
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    make_read_only_below(launch["sources"])
    make_places(launch["root"], launch["folders"], launch["places"])
    if launch["place"]:
        checked(libc.mount(launch["root"].encode(), launch["place"].encode(), None, MS_BIND | MS_REC, None))
    os.chdir("/")  # Apptainer tells what runs inside where it was called.
    program = os.pread(launch["seccomp"], PROGRAM_BYTES_MAX, 0)
    for fd in (launch["seccomp"], launch["unread"]):
        os.close(fd)
    hand_over(launch["files"])
    os.set_inheritable(launch["status"], True)
    confine(program)
    os.execve(launch["argv"][0], launch["argv"] + command, launch["env"])


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[2]), sys.argv[4:]))
    except OSError as error:
        sys.exit(f"enter: {error}")
