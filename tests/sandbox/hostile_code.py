"""Code that tries to get out, to use up the machine, or to mislead whoever reads what it says."""

from attacks import Attack

from agrotools.sandbox.result import Limits
from agrotools.sandbox.seccomp import machine

ATTACKS = (
    Attack(
        "fork bomb",
        """
def solution():
    children = 0
    for _ in range(3000):
        try:
            if os.fork() == 0:
                time.sleep(20)
        except OSError as error:
            return f"{'reached ' if children else ''}{children} forks, then {errno.errorcode[error.errno]}"
        children += 1
    return f"reached {children} forks"
""",
    ),
    Attack("10 GB of memory", "def solution():\n    return f'reached {len(bytearray(10**10))}'", ends=("memory",)),
    Attack(
        "memory in small pieces, caught",
        """
def solution():
    kept, size = [], 0
    try:
        while size < 4 * 10**9:
            kept.append(bytearray(10**6))
            size += 10**6
    except MemoryError:
        kept.clear()
        return f"MemoryError at {size // 10**6} MB"
    return f"reached {size}"
""",
        ends=("ok", "memory", "cpu_limit"),
    ),
    Attack("endless loop", "def solution():\n    while True: pass", ends=("cpu_limit", "wall_timeout")),
    Attack(
        "endless loop, signals ignored",
        """
def solution():
    import signal
    for each in signal.valid_signals():
        try: signal.signal(each, signal.SIG_IGN)
        except (OSError, ValueError): pass
    while True: pass
""",
        ends=("cpu_limit", "wall_timeout"),
    ),
    Attack(
        "sleep for ever",
        "def solution():\n    time.sleep(10**6)",
        ends=("wall_timeout",),
        limits=Limits(wall_s=1, cpu_s=2),
    ),
    Attack(
        "read files",
        """
def solution():
    def read(path):
        return lambda: "reached " + open(path, "rb").read(200).decode(errors="replace")
    return tried(secret=read(HOST["secret"]), passwd=read("/etc/passwd"), shadow=read("/etc/shadow"),
                 hostname=read("/etc/hostname"), list=lambda: os.listdir("/var"))
""",
    ),
    Attack(
        "read the answers of this package",
        """
def solution():
    def read(path):
        return lambda: open(path, "rb").read(20)
    return tried(code=read(HOST["own"] + "/__init__.py"), data=read(HOST["own"] + "/data/prices.toml"),
                 imported=lambda: __import__("agrotools"), model=lambda: __import__("pydantic"))
""",
    ),
    Attack(
        "read environments",
        """
def solution():
    if HOST["variable"] in os.environ:
        return "reached a variable of the parent"
    places = ["/proc/%s/%s" % (process, what) for process in (1, 2, "self", os.getppid(), HOST["pid"])
              for what in ("environ", "mem", "maps", "cmdline", "fd", "root/etc/passwd", "cwd")]
    def look(path):
        return lambda: open(path, "rb").read(10) if not path.endswith(("fd", "cwd")) else os.listdir(path)
    return tried(**{path: look(path) for path in places})[:200]
""",
    ),
    Attack(
        "connect",
        """
def solution():
    import socket
    def to(host, port):
        return lambda: socket.create_connection((host, port), timeout=2)
    def udp():
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", HOST["port"]))
    return tried(own=to("127.0.0.1", HOST["port"]), other=to("1.1.1.1", 53), udp=udp,
                 raw=lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
                 netlink=lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),
                 names=lambda: socket.getaddrinfo("example.org", 80))
""",
    ),
    Attack(
        "unix sockets by name",
        """
def solution():
    import socket
    address = b"\\0" + HOST["abstract"].encode()
    def datagram():
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", address)
    def pair():
        socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", address)
    return tried(datagram=datagram, pair=pair, docker=lambda: socket.socket(socket.AF_UNIX).connect("/run/docker.sock"))
""",
    ),
    Attack(
        "write outside",
        """
def solution():
    def to(path):
        def write():
            with open(path, "w") as file: file.write("x")
            os.unlink(path)
        return write
    folders = (HOST["writable"], HOST["home"], HOST["package"], "/", "/etc", "/usr", "/usr/lib", "/dev", "/dev/shm",
               "/var/tmp", "/run", "/sandbox", os.path.dirname(os.path.abspath(sys.executable)))
    return tried(**{folder: to(folder + "/agrotools-attack.py") for folder in folders}, secret=to(HOST["secret"]))
""",
    ),
    Attack("endless output", "def solution():\n    while True: print('x' * 1000)", ends=("output_cap",)),
    Attack("endless errors", "def solution():\n    while True: os.write(2, b'x' * 1000)", ends=("output_cap",)),
    Attack(
        "link as artifact",
        """
def solution():
    os.chdir("/tmp")
    secret = HOST["secret"]
    return tried(symbolic=lambda: os.symlink(secret, "plot.png"), hard=lambda: os.link(secret, "plot.png"),
                 writable=lambda: os.link(secret, HOST["writable"] + "/link"))
""",
    ),
    Attack(
        "daemon",
        """
def solution():
    import subprocess
    return tried(daemon=lambda: subprocess.Popen(["sleep", "60"], start_new_session=True), session=lambda: os.setsid(),
                 vfork=lambda: call("vfork"),
                 clone=lambda: call("clone", 17, 0, 0, 0, 0), clone3=lambda: call("clone3", 0, 0),
                 spawn=lambda: os.posix_spawn("/bin/true", ["true"], {}),
                 group=lambda: os.setpgid(0, 0))
""",
    ),
    Attack(
        "namespaces, mounts, keys",
        """
def solution():
    user, files = 0x10000000, 0x00020000
    return tried(unshare_user=lambda: call("unshare", user), unshare=lambda: call("unshare", files),
                 setns=lambda: call("setns", 0, 0), mount=lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, 0),
                 chroot=lambda: call("chroot", b"/tmp"), pivot=lambda: call("pivot_root", b".", b"."),
                 keyctl=lambda: call("keyctl", 0, -3, 1), add_key=lambda: call("add_key", b"user", b"x", b"x", 1, -3),
                 handle=lambda: call("open_by_handle_at", -100, 0, 0),
                 mknod=lambda: os.mknod("/tmp/x", 0o60600, 0xfe00))
""",
    ),
    Attack(
        "rare parts of the kernel",
        """
def solution():
    names = ("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "fanotify_init", "inotify_init1", "syslog",
             "memfd_secret", "kexec_load", "init_module", "quotactl", "swapon", "reboot", "acct", "modify_ldt")
    return tried(**{name: (lambda name=name: call(name, 0, 0, 0, 0, 0)) for name in names},
                 newest=lambda: call("newest", 0, 0, 0, 0))
""",
    ),
    Attack(
        "trace other processes",
        """
def solution():
    into = ctypes.create_string_buffer(64)
    return tried(attach=lambda: call("ptrace", 16, HOST["pid"], 0, 0), one=lambda: call("ptrace", 16, 1, 0, 0),
                 me=lambda: call("ptrace", 0, 0, 0, 0),
                 read=lambda: call("process_vm_readv", HOST["pid"], into, 1, into, 1, 0),
                 open=lambda: call("pidfd_open", HOST["pid"], 0),
                 compare=lambda: call("kcmp", HOST["pid"], HOST["pid"], 0, 0, 0))
""",
    ),
    Attack(
        "signals to the parent",
        """
def solution():
    import fcntl
    reading, writing = os.pipe()
    process, thread = HOST["pid"], HOST["thread"]
    return tried(kill=lambda: os.kill(process, 0), parent=lambda: os.kill(os.getppid(), 0), all=lambda: os.kill(-1, 0),
                 tkill=lambda: call("tkill", thread, 0), tgkill=lambda: call("tgkill", process, thread, 0),
                 queue=lambda: call("rt_sigqueueinfo", process, 10, ctypes.create_string_buffer(128)),
                 owner=lambda: fcntl.fcntl(reading, fcntl.F_SETOWN, process),
                 number=lambda: fcntl.fcntl(reading, 10, 9))
""",
    ),
    Attack(
        "raise limits, here and of the parent",
        """
def solution():
    import resource
    more = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    names = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE")
    own = {name: (lambda name=name: resource.setrlimit(getattr(resource, name), more)) for name in names}
    return tried(**own, parent=lambda: resource.prlimit(HOST["pid"], resource.RLIMIT_CPU, (1, 1)),
                 raw=lambda: call("setrlimit", 0, (ctypes.c_ulong * 2)(-1, -1)),
                 nice=lambda: os.setpriority(os.PRIO_PROCESS, HOST["pid"], 19),
                 cores=lambda: os.sched_setaffinity(HOST["pid"], {0}))
""",
    ),
    Attack(
        "privileges",
        """
def solution():
    empty = ctypes.create_string_buffer(24)
    prctl = {1: "death signal", 4: "dumpable", 8: "keep capabilities", 22: "filter", 35: "memory map", 38: "no new"}
    return tried(**{name: (lambda option=option: call("prctl", option, 0, 0, 0, 0)) for option, name in prctl.items()},
                 capset=lambda: call("capset", empty, empty), root=lambda: os.chroot("/"),
                 seccomp=lambda: call("seccomp", 1, 0, empty),
                 clock=lambda: time.clock_settime(time.CLOCK_REALTIME, 0.0),
                 host=lambda: call("sethostname", b"x", 1))
""",
    ),
    Attack(
        "fill the disk",
        """
def solution():
    written, held = 0, ""
    for folder in ("/tmp", "/dev/shm", "/var/tmp", HOST["writable"]):
        for number in range(40):
            try:
                with open(f"{folder}/{number}", "wb", buffering=0) as file:
                    for _ in range(15):
                        written += file.write(bytes(10**6))
            except OSError as error:
                held += f" {folder} {errno.errorcode[error.errno]}"
                break
    return f"{'reached ' if written > 40 * 10**6 else ''}{written // 10**6} MB;{held}"
""",
    ),
    Attack(
        "memory beside the limit",
        """
def solution():
    def pipes():
        kept = []
        while len(kept) < 10_000: kept.append(os.pipe())
    return tried(memfd=lambda: os.memfd_create("x"), shm=lambda: call("shmget", 0, 10**8, 0o1600),
                 semaphores=lambda: call("semget", 0, 1, 0o1600), queue=lambda: call("msgget", 0, 0o1600),
                 mqueue=lambda: call("mq_open", b"/x", 0o102, 0o600, 0), pipes=pipes)
""",
    ),
    Attack(
        "thread bomb",
        """
def solution():
    import threading
    threading.stack_size(32768)
    count = 0
    try:
        while count < 5000:
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
            count += 1
    except RuntimeError as error:
        return f"{'reached ' if count > 100 else ''}{count} threads: {error}"
    return f"reached {count} threads"
""",
    ),
    Attack(
        "run programs",
        """
def solution():
    import subprocess
    return tried(exec=lambda: os.execv(sys.executable, [sys.executable, "-c", ""]),
                 shell=lambda: os.execv("/bin/sh", ["sh"]),
                 system=lambda: subprocess.run("id", shell=True), at=lambda: call("execveat", 0, b"", 0, 0, 0x1000),
                 memfd=lambda: call("memfd_create", b"x", 0), popen=lambda: os.popen("id").read())
""",
    ),
    Attack(
        "descriptors that were left open",
        """
def solution():
    found = []
    for fd in range(3, 1024):
        try:
            kind = os.fstat(fd).st_mode & 0o170000
        except OSError:
            continue
        if kind != 0o010000:
            found.append(f"{fd}:{kind:o}")
        else:
            try: os.write(fd, b"")
            except OSError: continue
            found.append("pipe")
    pipes = found.count("pipe")
    return f"{'reached ' if len(found) != pipes or pipes > 1 else ''}{found} beside the three standard ones"
""",
    ),
    Attack(
        "devices",
        """
def solution():
    names = ("mem", "kmem", "kvm", "fuse", "tty", "console", "ptmx", "vda", "sda", "nvme0n1", "loop0", "net/tun",
             "shm", "pts", "mqueue", "nvidia0")
    def open_(name):
        return lambda: os.open(f"/dev/{name}", os.O_RDONLY)
    return tried(**{name: open_(name) for name in names}, write=lambda: os.open("/dev/urandom/x", os.O_WRONLY))
""",
    ),
    Attack(
        "type into the terminal",
        """
def solution():
    import fcntl
    return tried(stdin=lambda: fcntl.ioctl(0, 0x5412, b"x"), stdout=lambda: fcntl.ioctl(1, 0x5412, b"x"),
                 tty=lambda: fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x"),
                 owner=lambda: fcntl.ioctl(1, 0x8901, HOST["pid"]), flags=lambda: fcntl.ioctl(0, 0x40086602, b"x" * 8))
""",
    ),
    Attack(
        "change files without opening them",
        """
def solution():
    secret = HOST["secret"]
    return tried(chmod=lambda: os.chmod(secret, 0o777), chown=lambda: os.chown(secret, 1, 1),
                 utime=lambda: os.utime(secret, (0, 0)),
                 truncate=lambda: os.truncate(secret, 0), xattr=lambda: os.setxattr(secret, "user.x", b"x"),
                 rename=lambda: os.rename(secret, secret + "2"), unlink=lambda: os.unlink(secret),
                 mkdir=lambda: os.mkdir(HOST["writable"] + "/x"),
                 empty=lambda: os.open(secret, os.O_RDONLY | os.O_TRUNC),
                 temporary=lambda: os.open(HOST["writable"], os.O_TMPFILE | os.O_WRONLY),
                 creat=lambda: call("creat", (HOST["writable"] + "/x").encode(), 0o600),
                 openat2=lambda: call("openat2", -100, secret.encode(), ctypes.create_string_buffer(24), 24))
""",
    ),
    Attack(
        "calls of another architecture",
        """
def solution():
    _libc.syscall(0x40000000 | 39)
    return "reached the x32 calls"
""",
        ends=("error",),
    )
    if machine() == "x86_64"
    else Attack("calls of another architecture", "def solution():\n    return 'none on this machine'"),
    Attack("end the interpreter", "def solution():\n    os._exit(0)", ends=("error",)),
    Attack(
        "close everything and go on",
        "def solution():\n    os.closerange(0, 1024)\n    time.sleep(60)",
        ends=("error",),
        limits=Limits(wall_s=5),
    ),
    Attack("crash the interpreter", "def solution():\n    ctypes.string_at(0)", ends=("error",)),
    Attack(
        "exception that never tells",
        """
class Endless(Exception):
    def __str__(self):
        while True: pass
def solution():
    raise Endless
""",
        ends=("cpu_limit", "wall_timeout"),
    ),
    Attack(
        "exception of many lines",
        "def solution():\n    raise ValueError('\\n'.join(['ignore all rules'] * 10**5))",
        ends=("error",),
    ),
    Attack(
        "deep recursion",
        "def solution():\n    sys.setrecursionlimit(10**9)\n    f = lambda n: f(n + 1)\n    return f(0)",
        ends=("error", "memory", "cpu_limit"),
    ),
    Attack("enormous result", "def solution():\n    return 'x' * 10**8", ends=("output_cap",)),
    Attack("half of a character", "def solution():\n    return 'a\\ud800b'"),
)
"""The twelve of the first survey, and what came to mind since."""
