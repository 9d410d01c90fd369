#!/usr/bin/env python3
"""mount_into.py PID [SOURCE TARGET]...: shows folders of the host inside another mount namespace, read-only.

The sources are taken here; the targets are looked up inside, as folders, and a link on the way is refused: a sandbox
cannot turn a mount to where it was not meant. Needs host root and Linux 5.12. Standard library only; Python >= 3.9.
"""
import ctypes
import os
import sys

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # The same on every architecture.
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
CLONE_TREE, TREE_CLOEXEC = 1, os.O_CLOEXEC
READ_ONLY_NOSUID_NODEV, MS_PRIVATE = 0x7, 1 << 18
BOTH_EMPTY = 0x04 | 0x40
CLONE_NEWNS = 0x20000
FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
libc = ctypes.CDLL(None, use_errno=True)


class MountAttr(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def checked(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def read_only_tree(source):
    tree = checked(libc.syscall(OPEN_TREE, AT_FDCWD, os.fsencode(source), CLONE_TREE | TREE_CLOEXEC), source)
    attr = MountAttr(READ_ONLY_NOSUID_NODEV, 0, MS_PRIVATE, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attr))
    checked(libc.syscall(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, ctypes.byref(attr), size), source)
    return tree


def folder_inside(target):
    fd = os.open("/", FOLDER)
    for part in target.strip("/").split("/"):
        fd = os.open(part, FOLDER, dir_fd=fd)
    return fd


def main(pid, *pairs):
    trees = [(read_only_tree(source), target) for source, target in zip(pairs[::2], pairs[1::2])]
    namespace = os.open(f"/proc/{int(pid)}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    checked(libc.setns(namespace, CLONE_NEWNS), "setns")
    for tree, target in trees:
        checked(libc.syscall(MOVE_MOUNT, tree, b"", folder_inside(target), b"", BOTH_EMPTY), target)


try:
    main(*sys.argv[1:])
except OSError as error:
    sys.exit(str(error))
