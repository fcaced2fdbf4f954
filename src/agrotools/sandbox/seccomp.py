"""The system call filters, assembled here so that no library is needed: classic BPF, as ``seccomp(2)`` takes it.

A filter sees the number of a call, the architecture and six 64-bit arguments, and no memory that they point to.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterable
from typing import Literal

Stage = Literal["start", "code", "code_reading_host"]
"""``start``: for a worker that is being set up. ``code``: for untrusted code in its own file system.
``code_reading_host``: the same where it sees the host's file system, and so may open nothing for writing."""

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_EPERM, _ENOSYS, _ENOTTY = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS, _ERRNO | errno.ENOTTY

_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY = 8, 10, 15, 1024, 1026
_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX"""
_WRITING = (
    os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | (getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY)
)


def assemble(stage: Stage, architecture: str) -> bytes:
    """The filter of a stage as an array of ``struct sock_filter``."""
    refused = set(DENIED)
    if stage != "start":
        refused |= DENIED_TO_CODE
    if stage == "code_reading_host":
        refused |= DENIED_WITHOUT_A_FILE_SYSTEM
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_JUMP_EQUAL, AUDIT_ARCHITECTURES[architecture], 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    if architecture == "x86_64":
        lines += [_line(_JUMP_AT_LEAST, _X32, 0, 1), _line(_RETURN, _KILL)]
    lines += [_line(_JUMP_AT_LEAST, LAST_KNOWN + 1, 0, 1), _line(_RETURN, _ENOSYS)]
    # libc falls back to clone and openat, whose flags a filter can see
    refusals = dict.fromkeys(refused, _EPERM) | {"clone3": _ENOSYS, "openat2": _ENOSYS}
    for name in sorted(refusals):
        if (value := number(name, architecture)) is not None:
            lines += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, refusals[name])]
    if stage == "start":
        lines += _threads_only(architecture)
    else:
        lines += _on("ioctl", architecture, _unless_one_of(1, _IOCTLS, _ENOTTY))
        lines += _on("fcntl", architecture, _if_one_of(1, (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_SETLEASE, _F_NOTIFY)))
        lines += _on("prctl", architecture, _unless_one_of(0, (_PR_SET_NAME,), _EPERM))
        lines += _on("prlimit64", architecture, _unless_null(2))
    if stage == "code_reading_host":
        lines += _on("open", architecture, _if_bits(1, _WRITING))
        lines += _on("openat", architecture, _if_bits(2, _WRITING))
    lines.append(_line(_RETURN, _ALLOW))
    return b"".join(lines)


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _on(name: str, architecture: str, body: list[bytes]) -> list[bytes]:
    """Run ``body``, which ends the filter, for this call only."""
    value = number(name, architecture)
    return [] if value is None else [_line(_JUMP_EQUAL, value, 0, len(body)), *body]


def _argument(index: int, *, high: bool = False) -> bytes:
    return _line(_LOAD, 16 + 8 * index + (4 if high else 0))


def _threads_only(architecture: str) -> list[bytes]:
    body = [_argument(0), _line(_JUMP_BITS, _CLONE_THREAD, 1, 0), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]
    return _on("clone", architecture, body)


def _if_one_of(index: int, values: Iterable[int]) -> list[bytes]:
    return _by_value(index, values, found=_EPERM, other=_ALLOW)


def _unless_one_of(index: int, values: Iterable[int], refusal: int) -> list[bytes]:
    return _by_value(index, values, found=_ALLOW, other=refusal)


def _by_value(index: int, values: Iterable[int], *, found: int, other: int) -> list[bytes]:
    body = [_argument(index)]
    for value in values:
        body += [_line(_JUMP_EQUAL, value, 0, 1), _line(_RETURN, found)]
    return [*body, _line(_RETURN, other)]


def _if_bits(index: int, bits: int) -> list[bytes]:
    return [_argument(index), _line(_JUMP_BITS, bits, 0, 1), _line(_RETURN, _EPERM), _line(_RETURN, _ALLOW)]


def _unless_null(index: int) -> list[bytes]:
    """A pointer must be NULL: there is nothing to set then, only to ask for."""
    return [
        _argument(index),
        _line(_JUMP_EQUAL, 0, 0, 3),
        _argument(index, high=True),
        _line(_JUMP_EQUAL, 0, 0, 1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _EPERM),
    ]


LAST_KNOWN = 450
"""Calls that are newer than the list below do not exist for the code."""

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bind": (49, 200),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "creat": (85, None),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fork": (57, None),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lchown": (94, None),
    "link": (86, None),
    "linkat": (265, 37),
    "listen": (50, 201),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "request_key": (249, 218),
    "rmdir": (84, None),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "setrlimit": (160, 164),
    "setsid": (112, 157),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "uselib": (134, None),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vfork": (58, None),
    "vhangup": (153, 58),
}

DENIED: frozenset[str] = frozenset(
    """
    fork vfork
    socket socketpair connect bind listen accept accept4
    kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd pidfd_send_signal
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp migrate_pages move_pages
    setpriority sched_setparam sched_setscheduler sched_setattr sched_setaffinity ioprio_set setpgid setsid
    shmget shmat shmctl semget semctl semop semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
    memfd_create memfd_secret
    add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register
    setns mount pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
    symlink symlinkat link linkat mknod mknodat open_by_handle_at name_to_handle_at
    inotify_init inotify_init1 inotify_add_watch fanotify_init fanotify_mark
    chmod fchmod fchmodat chown fchown lchown fchownat utime utimes futimesat utimensat
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr truncate
    kexec_load kexec_file_load init_module finit_module delete_module quotactl quotactl_fd swapon swapoff reboot acct
    settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname
    iopl ioperm modify_ldt personality syslog vhangup uselib nfsservctl lookup_dcookie
    """.split()
)
"""Refused from the first instruction of a worker on. The file calls (chmod, utime...) are here because Landlock does
not see them; those on other processes because without a process namespace they could reach this one."""

DENIED_TO_CODE: frozenset[str] = frozenset(
    """
    clone execve execveat seccomp setrlimit capset unshare umount2
    landlock_create_ruleset landlock_add_rule landlock_restrict_self
    """.split()
)
"""Refused once the worker is set up: what bubblewrap and the worker themselves need before. Threads (clone) are among
them: code that draws or solves starts none, and many small ones would use up the numbers of processes of a machine."""

DENIED_WITHOUT_A_FILE_SYSTEM: frozenset[str] = frozenset(
    "creat rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat".split()
)
"""Refused where the file system that the worker sees is the host's: it may read there and nothing else."""

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def machine() -> str | None:
    """``x86_64`` or ``aarch64``; None where system calls cannot be filtered (no such numbers are known)."""
    name = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine())
    return name if name in AUDIT_ARCHITECTURES and platform.system() == "Linux" else None


def number(name: str, architecture: str) -> int | None:
    return _NUMBERS[name][0 if architecture == "x86_64" else 1]
