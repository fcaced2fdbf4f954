"""Code that means well: what it gives back, what it is told when it goes wrong, what it may use."""

import asyncio
import io
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from attacks import run_bare
from PIL import Image

from agrotools.core import UsageError
from agrotools.sandbox import pool
from agrotools.sandbox import running as probing
from agrotools.sandbox.result import DEFAULT_LIMITS, Limits, SandboxUnavailable
from agrotools.sandbox.running import run_code, select_runner, unfenced

PLOT = """
import matplotlib.pyplot as plt

def solution():
    figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
    left.plot([1, 2, 3], [3, 1, 2], label="yield, t/ha")
    left.legend()
    right.bar(["wheat", "maize"], [3.1, 5.4])
    right.set_title("$CO_2$, 产量")
    return figure
"""


@pytest.fixture(scope="class")
def workers_that_import_matplotlib() -> Iterator[None]:
    yield from _workers_that_import("matplotlib")


@pytest.fixture(scope="class")
def workers_that_import_nothing() -> Iterator[None]:
    yield from _workers_that_import()


def _workers_that_import(*packages: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "WARM", packages)
        pool.close_pools()
        yield
    pool.close_pools()


@pytest.mark.usefixtures("workers_that_import_matplotlib")
class TestFigures:
    def test_a_figure_becomes_a_picture_and_always_the_same(self) -> None:
        """Whatever the runner."""
        runners = [runner for runner in probing.RUNNERS if probing.probe(runner).holds]
        results = [run_code(PLOT, runner=runner) for runner in runners]
        for result, runner in zip(results, runners, strict=True):
            assert result.ok, result.message
            assert (result.value, result.runner) == (None, runner)
            (artifact,) = result.artifacts
            assert (artifact.name, artifact.media_type) == ("plot.png", "image/png")
            picture = Image.open(io.BytesIO(artifact.content))
            assert picture.size == (600, 300)
            assert not picture.info
            assert len(picture.convert("RGB").getcolors(100_000) or ()) > 20
        assert len({result.artifacts[0].content for result in results}) <= 1

    @pytest.mark.parametrize(
        ("body", "names"),
        [
            ("plt.plot([1, 2])", ["plot.png"]),
            ("plt.plot([1, 2])\n    plt.show()\n    return plt", ["plot.png"]),
            ("return plt.gca()", ["plot.png"]),
            ("return plt.plot([1, 2])[0]", ["plot.png"]),
            (
                "plt.plot([1, 2])\n    plt.savefig('/anywhere/else/a b.svg', dpi=900, bbox_inches='tight')",
                ["a b.png"],
            ),
            ("plt.plot([1, 2])\n    plt.savefig('one.png')\n    return plt.gcf()", ["plot.png"]),
            (
                "for i in range(2):\n        plt.plot([1, i])\n        plt.savefig(f'{i}.png')",
                ["0.png", "1.png"],
            ),
        ],
    )
    def test_figures_that_are_drawn_but_not_returned(
        self, body: str, names: list[str], best: str
    ) -> None:
        result = run_code(
            f"import matplotlib.pyplot as plt\ndef solution():\n    {body}", runner=best
        )
        assert result.ok, result.message
        assert [artifact.name for artifact in result.artifacts] == names

    def test_figures_are_kept_in_memory_unless_too_large(self, best: str) -> None:
        code = PLOT + "\nimport io\nmade = io.BytesIO()\nsolution().savefig(made, format='svg')\n"
        code += "print(made.getvalue()[:5])\nplt.close()"
        result = run_code(code, call=None, runner=best)
        assert result.stdout == "b'<?xml'\n", result.message
        assert [artifact.name for artifact in result.artifacts] == []
        code = "import matplotlib.pyplot as plt\ndef solution():\n    return plt.figure(figsize=(400, 400))"
        result = run_code(code, runner=best)
        assert result.termination == "artifact_cap"
        assert (
            "40000 x 40000 pixels, more than 16,000,000 in all: choose a smaller figsize"
            in result.message
        )


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (
            "from sympy import *\ndef solution():\n    x = symbols('x')\n    return solve(x**2 - 5*x + 6, x)",
            "[2, 3]",
        ),
        (
            "import numpy as np\ndef solution():\n    return round(np.linalg.det(np.eye(200) * 1.01), 3)",
            "7.316",
        ),
        (
            "from scipy.optimize import brentq\ndef solution():\n    return round(brentq(lambda x: x**3 - 2, 0, 2), 6)",
            "1.259921",
        ),
        ("def solution():\n    return {'a': 1.5}", "{'a': 1.5}"),
        ("def solution():\n    return ''", ""),
        ("def solution():\n    return None", None),
        ("if __name__ == '__main__':\n    def solution():\n        return __name__", "__main__"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    b: 'int'\ndef solution():\n    return A(1)",
            "A(b=1)",
        ),
    ],
)
def test_the_value_of_a_solution_is_returned_as_text(
    code: str, value: str | None, best: str
) -> None:
    result = run_bare(code, best)
    assert (result.value, result.termination) == (value, "ok"), result.message


@pytest.mark.parametrize(
    ("code", "termination", "words"),
    [
        (
            "def solution():\n    return 1 / 0",
            "error",
            "ZeroDivisionError: division by zero (line 2: return 1 / 0)",
        ),
        (
            "def f(x):\n    return int(x)\ndef solution():\n    return f('a')",
            "error",
            "(line 2: return int(x))",
        ),
        (
            "def solution(:\n    pass",
            "error",
            "SyntaxError: invalid syntax (line 1: def solution(:)",
        ),
        ("x = 1", "error", "defines no function solution()"),
        ("solution = 3", "error", "defines no function solution()"),
        ("def solution(x): return x", "error", "missing 1 required positional argument"),
        ("import nonexistent_module", "error", "No module named 'nonexistent_module' (line 1"),
        ("import sys\ndef solution():\n    sys.exit('bye')", "error", "SystemExit: bye (line 3"),
        ("def solution():\n    return input()", "error", "EOFError"),
        ("def solution():\n    return [0] * 10**9", "memory", "1500 MB"),
        (
            "def solution():\n    return open('/etc/hosts').read()",
            ("denied", "error"),
            "(line 2: return open('/etc/hosts').read())",
        ),
        (
            "import urllib.request\ndef solution():\n    urllib.request.urlopen('http://1.1.1.1')",
            "denied",
            "may not reach the network",
        ),
        (
            "import subprocess\ndef solution():\n    subprocess.run(['ls'])",
            "denied",
            "nor start processes",
        ),
        (
            "import threading\ndef solution():\n    threading.Thread(target=print).start()",
            "denied",
            "or threads",
        ),
        ("def solution():\n    open('/usr/x', 'w')", "denied", "(line 2: open('/usr/x', 'w'))"),
    ],
)
def test_what_goes_wrong_is_told_in_one_line(
    code: str, termination: str, words: str, runner: str
) -> None:
    result = run_bare(code, runner)
    assert result.termination in termination, result
    assert words in result.message
    assert "\n" not in result.message
    assert result.value is None


def test_without_isolation_only_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "none" not in probing.RUNNERS
    assert run_code("def solution():\n    return 6 * 7", runner="none").value == "42"
    monkeypatch.setenv(probing.RUNNER_VARIABLE, "none")
    assert select_runner() == "none"


def test_a_setting_that_may_not_be_read_does_not_end_the_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **_more: object) -> None:
        raise PermissionError

    def unavailable(*_: object) -> None:
        raise SandboxUnavailable("it does not start")

    monkeypatch.setattr(probing, "_probes", {})
    monkeypatch.setattr(probing, "missing", lambda _: None)
    monkeypatch.setattr(probing, "_breaches", unavailable)
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "is_file", lambda _: True)
    assert "user namespaces" in str(probing.probe("bubblewrap").hint)


def test_a_runner_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no sandbox 'docker'"):
        run_code("", runner="docker")
    monkeypatch.setattr(probing, "_probes", {})
    monkeypatch.setattr(probing, "missing", lambda runner: ("it is not there", f"install {runner}"))
    with pytest.raises(SandboxUnavailable, match="this machine cannot run") as caught:
        select_runner()
    assert "install bubblewrap" in str(caught.value.hint)
    assert "AGROTOOLS_SANDBOX=none" in str(caught.value.hint)
    monkeypatch.setenv(probing.RUNNER_VARIABLE, "landlock")
    with pytest.raises(SandboxUnavailable, match="landlock fails on this machine: it is not there"):
        run_code("")


def test_a_runner_that_lets_something_through_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe is run in a worker that is not held at all."""
    from agrotools.sandbox import runners

    start = runners.start
    monkeypatch.setattr(
        runners, "start", lambda runner, *rest, **named: start("none", *rest, **named)
    )
    monkeypatch.setattr(probing, "_probes", {})
    found = probing.probe("landlock")
    assert not found.holds
    for reached in ("read", "connect", "write", "signal"):
        assert reached in found.message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"), ("```python\nx = 1\n```", "x = 1"),
        ("Here you are:\n```py\nx = 1\ny = 2\n```\nDone.", "x = 1\ny = 2"), ("```\nx = 1\n```", "x = 1"),
        ("```json\n{}\n```\n```Python\nx = 1\n```", "x = 1"), ("```python\nx = 1", "x = 1"),
        ("  ```python\n  x = 1\n  ```", "  x = 1"), ("print('```')", "print('```')"),
    ],
)  # fmt: skip
def test_code_is_taken_from_between_its_fences(text: str, code: str) -> None:
    assert unfenced(text) == code


@pytest.mark.usefixtures("workers_that_import_nothing")
class TestCodeWithoutPackages:
    """In workers that import none in advance, which takes most of their start."""

    def test_a_script_without_a_function(self, runner: str) -> None:
        result = run_code("import sys\nprint('sum', 2 + 3)\nsys.exit()", call=None, runner=runner)
        assert (result.termination, result.stdout, result.value) == ("ok", "sum 5\n", None)

    def test_code_that_computes_meets_the_limit_of_its_processor_first(self, runner: str) -> None:
        """Another process shares what this one has, as on a busy machine."""
        assert DEFAULT_LIMITS.wall_s >= 5 * DEFAULT_LIMITS.cpu_s
        limits = Limits(cpu_s=1, wall_s=DEFAULT_LIMITS.wall_s / DEFAULT_LIMITS.cpu_s * 2)
        loop = partial(run_code, "while True: pass", call=None, limits=limits, runner=runner)
        with ThreadPoolExecutor(2) as threads:
            runs = [threads.submit(loop) for _ in range(2)]
        assert [run.result().termination for run in runs] == ["cpu_limit"] * 2

    def test_output_before_a_timeout_is_kept(self, runner: str) -> None:
        code = "import time\nprint('so far', flush=True)\ntime.sleep(60)"
        started = time.monotonic()
        result = run_code(code, call=None, limits=Limits(wall_s=0.5), runner=runner)
        assert (result.termination, result.stdout) == ("wall_timeout", "so far\n")
        assert "more than 0.5 s" in result.message
        assert time.monotonic() - started < 30

    async def test_many_callers_at_once_also_from_asyncio(self, runner: str) -> None:
        with ThreadPoolExecutor(8) as threads:
            values = list(
                threads.map(
                    lambda n: run_code(f"def solution():\n    return {n}", runner=runner).value,
                    range(8),
                )
            )
        assert values == [str(n) for n in range(8)]
        calls = [
            asyncio.to_thread(run_code, f"def solution():\n    return {n}", runner=runner)
            for n in range(3)
        ]
        assert [result.value for result in await asyncio.gather(*calls)] == ["0", "1", "2"]

    def test_a_result_is_measured_in_bytes(self, runner: str) -> None:
        result = run_code("def solution():\n    return '\U0001f34e' * 900_000", runner=runner)
        assert (result.termination, "3,600,000 bytes" in result.message) == ("output_cap", True)


def test_the_log_holds_what_the_message_leaves_out(runner: str) -> None:
    code = "import sys\ndef inner():\n    raise ValueError('deep')\n"
    code += "def solution():\n    print('to err', file=sys.stderr)\n    inner()"
    result = run_bare(code, runner)
    assert "Traceback" in result.log
    assert "in inner" in result.log
    assert "to err" in result.log
