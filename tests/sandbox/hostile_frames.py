"""Code that speaks to the process outside by itself, where only the worker should."""

from attacks import Attack

from agrotools.sandbox.result import DEFAULT_LIMITS, Limits

_FRAMES = """
import struct
CHANNEL = next(fd for fd in range(3, 1024) if is_pipe(fd))
def send(kind, content, length=None):
    os.write(CHANNEL, struct.pack(">cI", kind, len(content) if length is None else length) + content)
"""
_IS_PIPE = """
def is_pipe(fd):
    try: return os.fstat(fd).st_mode & 0o170000 == 0o010000
    except OSError: return False
"""
_PNG = """
import zlib
def png(width, height, *chunks):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = zlib.compress(bytes((width + 1) * min(height, 1000)))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks, (b"IDAT", pixels), (b"IEND", b"")]
    return b"\\x89PNG\\r\\n\\x1a\\n" + b"".join(chunk(*each) for each in parts)
"""


def _on_the_channel(name: str, code: str, ends: tuple[str, ...], limits: Limits = DEFAULT_LIMITS) -> Attack:
    return Attack(name, f"{_IS_PIPE}{_FRAMES}{_PNG}{code}", ends, limits)


ATTACKS_ON_THE_CHANNEL = (
    _on_the_channel(
        "picture of 2.5 billion pixels",
        "def solution():\n    send(b'A', b'x.png\\0' + png(50_000, 50_000))\n    return 'sent'",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "picture that states its size twice",
        "def solution():\n    large = (b'IHDR', struct.pack('>IIBBBBB', 9000, 9000, 8, 0, 0, 0, 0))\n"
        "    send(b'A', b'x.png\\0' + png(10, 10, large))\n    return 'sent'",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "picture with a bomb of text",
        "def solution():\n    bomb = (b'zTXt', b'x\\0\\0' + zlib.compress(bytes(4 * 10**8), 9))\n"
        "    send(b'A', b'x.png\\0' + png(10, 10, bomb, bomb))\n    return 'sent'",
        ("artifact_cap",),
        Limits(cpu_s=10, wall_s=30),
    ),
    _on_the_channel(
        "picture that is something else",
        "def solution():\n    send(b'A', b'x.png\\0<svg onload=alert(1)>')\n    return 'sent'",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "picture that breaks off",
        "def solution():\n    send(b'A', b'x.png\\0' + png(500, 500)[:60])\n    return 'sent'",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "a thousand pictures",
        "def solution():\n    for _ in range(1000): send(b'A', b'x.png\\0' + png(10, 10))\n    return 'sent'",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "frame of four gigabytes",
        "def solution():\n    send(b'A', b'x', 2**32 - 1)\n    time.sleep(60)",
        ("artifact_cap",),
    ),
    _on_the_channel(
        "frame that never ends",
        "def solution():\n    send(b'A', b'x', 1000)\n    time.sleep(60)",
        ("wall_timeout",),
        Limits(wall_s=1),
    ),
    _on_the_channel("frame of no kind", "def solution():\n    send(b'Z', b'x')\n    time.sleep(60)", ("error",)),
    _on_the_channel(
        "result that is no JSON", "def solution():\n    send(b'D', b'[' * 10**5)\n    time.sleep(60)", ("error",)
    ),
    _on_the_channel(
        "result of other types",
        'def solution():\n    send(b\'D\', b\'{"status": ["ok"], "message": {}, "value": 7}\')\n    time.sleep(60)',
        ("error",),
    ),
    _on_the_channel(
        "claim that it was our fault",
        'def solution():\n    send(b\'D\', b\'{"status": "infrastructure", "message": "retry"}\')\n    time.sleep(60)',
        ("error",),
    ),
    _on_the_channel(
        "start again and again for more time",
        "def solution():\n    while True:\n        send(b'S', b'')\n        time.sleep(0.1)",
        ("wall_timeout",),
        Limits(wall_s=2),
    ),
)
"""Against the process that reads what comes out: here the code speaks to it directly."""
