#!/usr/bin/env python3
"""Run inside a sandbox: tries to get out. One line a probe, `ok NAME` or `leak NAME detail`; exit 1 if anything leaked.

Bait of the host comes in the environment: PROBE_HOST_FILE (a path there), PROBE_OTHER_FILE (a path in another sandbox),
PROBE_TCP and PROBE_PROXY (host:port), PROBE_ABSTRACT (an abstract socket's name), PROBE_HOST_ENV (a value in the
manager's environment), PROBE_HOST_PROC (text of a process's command line),
PROBE_FDS (descriptors that the test process itself inherited), PROBE_OUTSIDE (host:port of other machines, by spaces),
PROBE_IMAGE (anything: the root file system is a writable image of its own). In a session of a mesh also: PROBE_MESH
(host:port of its services, by spaces), PROBE_NEIGHBOUR (id of a session that runs beside this one; its harness listens
on PROBE_NEIGHBOUR_PORT and as the abstract socket of that name), PROBE_SECRET (its capability, backwards).
Nothing is harmed where a probe succeeds.
"""
import ctypes
import glob
import os
import socket
import stat
import sys
import urllib.error
import urllib.request

libc = ctypes.CDLL(None, use_errno=True)
bait = {key[6:]: value for key, value in os.environ.items() if key.startswith("PROBE_")}
leaks = 0


def check(name, leaked, detail=""):
    global leaks
    leaks += bool(leaked)
    print(f"leak {name} {detail}" if leaked else f"ok {name}", flush=True)


def slurp(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def works(action):
    """True if it does; in a child, so that a success changes nothing here."""
    pid = os.fork()
    if pid == 0:
        try:
            result = action()
            os._exit(1 if result is False or (isinstance(result, int) and result < 0) else 0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def opens(path, flags):
    return works(lambda: os.close(os.open(path, flags)))


def status(key):
    lines = slurp("/proc/self/status").decode().splitlines()
    return next((line.split()[1] for line in lines if line.startswith(key + ":")), "?")


def connects(where):
    host, port = where.rsplit(":", 1)
    return works(lambda: socket.create_connection((host, int(port)), 1).close())


def connects_abstract(name):
    return works(lambda: socket.socket(socket.AF_UNIX).connect("\0" + name))


def rewrites(path):
    def rewrite():
        old = slurp(path)
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, old)
    return os.path.exists(path) and works(rewrite)


def privileges():
    check("caps-effective", int(status("CapEff"), 16))
    check("caps-bounding", int(status("CapBnd"), 16))
    check("no-new-privs", status("NoNewPrivs") != "1")
    check("seccomp", status("Seccomp") != "2")
    first, outside, _ = (int(part) for part in slurp("/proc/self/uid_map").split()[:3])
    check("not-host-root", os.getuid() - first + outside == 0)
    check("descriptors", set(os.listdir("/proc/self/fd")) - {"0", "1", "2", "3", *bait["FDS"].split()}, os.listdir("/proc/self/fd"))


def processes():
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    others = [pid for pid in pids if int(pid) != os.getpid()]
    check("pid-namespace", len(pids) > 10, len(pids))
    commands = [slurp(f"/proc/{pid}/cmdline").replace(b"\0", b" ") for pid in others]
    check("host-processes", any(bait["HOST_PROC"].encode() in command for command in commands))
    check("host-environment", any(bait["HOST_ENV"].encode() in slurp(f"/proc/{pid}/environ").replace(
        b"PROBE_HOST_ENV=" + bait["HOST_ENV"].encode(), b"") for pid in others))
    first = slurp("/proc/1/cmdline") + slurp("/proc/1/environ")
    check("first-process-arguments", b"--setenv" in first or b"/boxes/" in first)


def files():
    for name in ("HOST_FILE", "OTHER_FILE"):
        paths = [root + bait[name] for root in ("", "/proc/1/root", "/proc/self/root")]
        check(name.lower().replace("_", "-"), any(os.path.lexists(path) for path in paths), bait[name])
    sockets = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/dbus/system_bus_socket")
    check("control-sockets", any(os.path.exists(path) for path in sockets))
    check("host-shadow", b":$" in slurp("/etc/shadow"))
    if "IMAGE" in bait:
        return
    top = set(os.listdir("/")) - set("bin dev etc home lib lib32 lib64 libx32 opt polar proc root run sbin tmp usr var".split())
    check("root-folder", top, top)
    check("usr-writable", opens("/usr/.probe", os.O_CREAT | os.O_WRONLY))
    check("other-home", os.listdir("/home") + os.listdir("/root"))


def kernel():
    for path in ("core_pattern", "hostname", "domainname", "modprobe"):
        check(f"sysctl-{path}", rewrites(f"/proc/sys/kernel/{path}"))
    check("drop-caches", opens("/proc/sys/vm/drop_caches", os.O_WRONLY))
    check("sysrq", opens("/proc/sysrq-trigger", os.O_WRONLY))
    groups = glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True) + glob.glob("/sys/fs/cgroup/*/release_agent")
    check("cgroups-writable", any(opens(path, os.O_WRONLY) for path in groups))
    buffer = ctypes.create_string_buffer(4096)
    check("dmesg", libc.klogctl(3, buffer, 4096) >= 0 or opens("/dev/kmsg", os.O_RDONLY))
    check("kcore", opens("/proc/kcore", os.O_RDONLY))
    check("mount", works(lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None)))
    check("umount-proc", works(lambda: libc.umount2(b"/proc", 2)))
    check("mknod", works(lambda: os.mknod("/tmp/.probe-dev", stat.S_IFBLK | 0o600, os.makedev(7, 0))))
    devices = ("kvm", "fuse", "mem", "loop-control", "loop0", "sda", "vda", "net/tun", "vsock")
    check("devices", [name for name in devices if opens(f"/dev/{name}", os.O_RDWR)])
    check("unshare-user", works(lambda: libc.unshare(0x10000000)))
    check("unshare-mount", works(lambda: libc.unshare(0x00020000)))
    if os.uname().machine == "x86_64":
        check("init-module", works(lambda: libc.syscall(175, b"", 0, b"")))
        check("keyctl", works(lambda: libc.syscall(250, 11, -3, buffer, 4096)))
        check("bpf", works(lambda: libc.syscall(321, 0, (ctypes.c_uint * 18)(1, 4, 8, 1), 72)))
        check("perf-event", works(lambda: libc.syscall(298, (ctypes.c_uint * 32)(1, 128), -1, 0, -1, 0)))
        check("io-uring", works(lambda: libc.syscall(425, 4, (ctypes.c_char * 120)())))
        check("userfaultfd", works(lambda: libc.syscall(323, 0)))
        check("clone3", works(lambda: libc.syscall(435, (ctypes.c_ulonglong * 11)(0x10000000), 88)))


def network():
    check("interfaces", [name for _, name in socket.if_nameindex() if name == "eth0" or name.startswith(("en", "veth"))])
    check("routes", slurp("/proc/net/route").decode().splitlines()[1:])
    check("host-loopback", connects(bait["TCP"]))
    check("outside", [where for where in bait["OUTSIDE"].split() if connects(where)])
    check("abstract-socket", connects_abstract(bait["ABSTRACT"]))
    check("raw-socket", works(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()))
    check("packet-socket", works(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()))
    check("vsock", works(lambda: socket.socket(40, socket.SOCK_STREAM).close()))
    check("proxy-unreachable", not connects(bait["PROXY"]))


def asks(path, credential, body=None):
    """Status of the LLM proxy's answer."""
    headers = {"authorization": f"Bearer {credential}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://{bait['PROXY']}{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def readable_files():
    for top in ("/polar", "/tmp", "/var", "/run", "/etc", "/home", "/root", "/opt", "/dev/shm"):
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    yield path


def neighbours():
    check("mesh-services", [where for where in bait["MESH"].split() if connects(where)])
    check("neighbour-listener", connects(f"127.0.0.1:{bait['NEIGHBOUR_PORT']}"))
    check("neighbour-abstract-socket", connects_abstract(bait["NEIGHBOUR_PORT"]))
    secret = bait["SECRET"][::-1].encode()
    seen = [f"/proc/{pid}/{name}" for pid in os.listdir("/proc") if pid.isdigit() for name in ("environ", "cmdline")]
    check("neighbour-capability", [path for path in [*seen, *readable_files()] if secret in slurp(path)])
    own = os.environ["OPENAI_API_KEY"]
    check("own-capability-refused", asks("/v1/models", own) != 200)
    # What trainers and operators call at the proxy, and what would end another session.
    for rpc in ("PolicyService/GetPolicy", "PolicyService/Pause", "ProxyService/ListEngines", "ProxyService/CloseSession"):
        check(f"rpc-{rpc}", asks(f"/polar.llm_proxy.v1.{rpc}", own, b"{}") not in (401, 404, 405))
    check("neighbour-capability-refused", asks("/v1/models", secret.decode()) != 401)
    near = own[:-1] + ("A" if own[-1] != "A" else "B")
    for name, guess in (("session-id", bait["NEIGHBOUR"]), ("changed", near), ("short", own[:-1]), ("none", "")):
        check(f"capability-{name}", asks("/v1/models", guess) != 401)
        check(f"capability-{name}-in-path", asks(f"/s/{guess}/v1/models", "") != 401)


for part in (privileges, processes, files, kernel, network, *([neighbours] if "MESH" in bait else [])):
    part()
sys.exit(1 if leaks else 0)
