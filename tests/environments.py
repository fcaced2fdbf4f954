"""Run tests in other environments than yours. Needs an index of packages; uv downloads missing Pythons.

python tests/environments.py 3.11 3.13 lowest [-- pytest arguments]
python tests/environments.py extras learned servers mcp-tools trackers agents clients ray
python tests/environments.py trl openenv verifiers nemo-gym models

``3.X`` installs the newest dependencies for that Python, ``lowest`` the lowest versions that pyproject.toml declares
for the oldest Python; both run the unit tests. The others are the tier ``ecosystem``: packages too large or too
particular for the test command, which skips what needs them.

=========  ===========================================================================================================
extras     the extras docs, zh, bleu, ocr and heic, and polars
learned    torch, transformers...: nets trained and exported, open models behind a tool server (about 7 GB)
servers    llama.cpp's server and a litellm proxy
mcp-tools  MCP servers of other people in the place of our tools, and beside them (2.1 GB)
trackers   Inspect AI runs our tasks, MLflow and W&B log runs (1.8 GB; Python 3.12)
clients    Claude Code and the MCP inspector start our server from their configurations (needs npm; 0.6 GB)
trl        GRPO on the environment to train agents in, with TRL: masks, pictures, a training killed (5.5 GB)
openenv    examples/openenv, examples/verifiers and examples/nemo_gym (Python 3.12) play episodes of that environment
verifiers  (0.8, 0.8 and 1.4 GB)
nemo-gym
ray        tool calls on Ray clusters of this machine, with workers, nodes, actors and the command killed (0.3 GB)
models     three small models answer benchmarks (1.7 GB, hours): tests/real_models; other GGUF files of a folder
           AGROTOOLS_TEST_MODELS; run folders stay in .versions/models-runs or AGROTOOLS_TEST_MODELS_RUNS
agents     the examples with Pydantic AI, OpenAI Agents SDK, LangGraph and smolagents are evaluated (1.5 GB)
=========  ===========================================================================================================

Each environment is a folder below ``.versions``, which stays for the next time; uv, which finds the lowest versions in
seconds and pip in no sensible time, gets one, too.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".versions"
OLDEST = "3.11"


@dataclass(frozen=True)
class Environment:
    """A Python, what is installed besides the package with one of its extras, and what pytest is given."""

    python: str = OLDEST
    extra: str = "dev"
    """``test`` beside packages that pin another version of the MCP SDK than ``dev`` has."""
    install: Sequence[str] = ("--upgrade",)
    pytest: Sequence[str] = ("-n", "2", "-m", "unit")


ENVIRONMENTS = {
    **{version: Environment(version) for version in ("3.11", "3.12", "3.13")},
    "lowest": Environment(install=["--resolution", "lowest-direct"]),
    "extras": Environment(
        install=[".[docs,zh,bleu,ocr,heic]", "polars"],
        pytest=[
            "tests/benchmarks", "tests/authoring/own_photos/test_own_privacy.py", "tests/engine/cli/test_snapshots.py",
            "tests/docs/test_site.py", "tests/golden", "tests/engine/test_api.py",
            "tests/tools/general/test_read_text.py", "tests/examples",
        ],
    ),
    "learned": Environment(
        install=[
            ".[embed,bertscore]",
            "sentence-transformers",
            "--requirements",
            "examples/tool_servers/learned/requirements.txt",
            "--group",
            "train-nets",
        ],
        pytest=[
            "tests/engine/knowledge",
            "tests/engine/scoring/test_embedders.py",
            "tests/training",
            "tests/engine/vision",
            "tests/tools/vision",
            "tests/examples",
        ],
    ),
    "trackers": Environment(
        python="3.12",
        install=["inspect-ai>=0.3.285", "openai", "mlflow-skinny>=3.17", "wandb>=0.20"],
        pytest=["tests/engine/report/test_trackers.py", "tests/engine/test_inspect_tasks.py"],
    ),
    "agents": Environment(
        install=[
            "pydantic-ai-slim[openai]>=2.68",
            "openai-agents>=0.24",
            "langgraph>=1.2.22",
            "langchain-openai>=1.7.3",
            "smolagents[openai]>=1.26",
        ],
        pytest=["tests/engine/agents/test_agent_sdks.py"],
    ),
    "ray": Environment(
        install=[".[ray]"],
        pytest=["tests/engine/calling/test_ray.py", "tests/engine/calling/test_ray_executor.py"],
    ),
    "trl": Environment(
        install=["trl[peft]>=1.16,<2", "torchvision"],
        pytest=["tests/authoring/test_env_trl.py", "tests/authoring/export/test_messages.py"],
    ),
    "openenv": Environment(
        extra="test",
        install=["openenv>=0.10,<0.11"],
        pytest=["tests/authoring/doors/test_openenv.py"],
    ),
    "verifiers": Environment(
        extra="test",
        install=["verifiers>=0.4,<0.5", "uv"],
        pytest=["tests/authoring/doors/test_verifiers.py"],
    ),
    "nemo-gym": Environment(
        python="3.12",
        extra="test",
        install=["nemo_gym>=0.4,<0.5"],
        pytest=["tests/authoring/doors/test_nemo_gym.py"],
    ),
    "clients": Environment(pytest=["tests/tools/serve/test_clients.py"]),
    "models": Environment(install=[".[local]"], pytest=["-s", "tests/real_models"]),
    "mcp-tools": Environment(pytest=["tests/examples/test_servers_of_others.py"]),
    "servers": Environment(
        pytest=[
            "tests/performance/test_foreign_servers.py", "tests/engine/runner/test_llama_server.py",
        ],
    ),
}  # fmt: skip
TOOL_SERVERS = {
    "plantcv": ["plantcv-mcp==1.17.2"],
    "gdal": ["gdal-mcp==1.1.3"],
    "kilimo": ["kilimo-mcp==0.1.9"],
    # These two import a module that the SDK has no more since its version 2.
    "opencv": ["opencv-mcp-server==0.1.2", "mcp<2"],
    "farshid": ["farshid-mcp-imageprocessing==0.3.0", "mcp<2"],
}
"""Packages of each MCP server of other people; each gets an environment of its own, because they need other versions of
the same libraries."""
NPM = ["@anthropic-ai/claude-code@2", "@modelcontextprotocol/inspector@2"]
if sys.platform == "linux":  # the inspector needs Node 22
    NPM.append(f"node-linux-{'arm64' if platform.machine() == 'aarch64' else 'x64'}@22")


def main() -> int:
    names, pytest = sys.argv[1:], []
    if "--" in names:
        at = names.index("--")
        names, pytest = names[:at], names[at + 1 :]
    if not names or not ENVIRONMENTS.keys() >= set(names):
        print(__doc__, file=sys.stderr)
        return 2
    failed = [name for name in names if not run_tests(name, pytest)]
    print(f"failed: {', '.join(failed)}" if failed else "everything passed")
    return bool(failed)


def run_tests(name: str, arguments: Sequence[str]) -> bool:
    """Install the package in an environment and run its tests, or pytest with ``arguments``; False if this fails."""
    print(f"== {name}", flush=True)
    environment, uv, folder = ENVIRONMENTS[name], installed_uv(), FOLDER / name
    python = folder / "bin" / "python"
    variables = dict(os.environ)
    steps = [] if python.exists() else [[uv, "venv", "--python", environment.python, folder]]
    install = [uv, "pip", "install", "--quiet", "--python", python, "--editable"]
    steps.append([*install, f".[{environment.extra}]", *environment.install])
    if name == "servers":
        servers = FOLDER / "foreign-servers"
        variables["AGROTOOLS_TEST_SERVERS"] = str(servers)
        if not servers.exists():
            steps.append(
                [python, "performance/foreign_servers.py", "--servers", servers, "--setup"]
            )
    if name == "mcp-tools":
        servers = FOLDER / "servers-of-others"
        variables["AGROTOOLS_TEST_TOOL_SERVERS"] = str(servers)
        for server, packages in TOOL_SERVERS.items():
            own = servers / server
            if not own.exists():
                steps.append([uv, "venv", "--quiet", "--python", OLDEST, own])
                own_python = own / "bin" / "python"
                steps.append([uv, "pip", "install", "--quiet", "--python", own_python, *packages])
    if name == "models":
        models = variables.get("AGROTOOLS_TEST_MODELS")
        runs = variables.setdefault("AGROTOOLS_TEST_MODELS_RUNS", str(FOLDER / "models-runs"))
        if models is None:
            models = FOLDER / "models"
            steps.append([python, "tests/real_models/models.py", models])
        steps.append([python, "tests/real_models/runs.py", runs, models])
    if name == "clients":
        if not (npm := shutil.which("npm")):
            print(
                "the clients are installed by npm, which is not here (nodejs.org)", file=sys.stderr
            )
            return False
        variables["AGROTOOLS_TEST_CLIENTS"] = str(FOLDER / "npm")
        steps.append([npm, "install", "--silent", "--prefix", FOLDER / "npm", *NPM])
    steps.append([python, "-m", "pytest", "-q", "-rs", *(arguments or environment.pytest)])
    return all(
        subprocess.run(step, cwd=ROOT, env=variables, check=False).returncode == 0 for step in steps
    )


def installed_uv() -> Path:
    """The uv of ``.versions``, installed if need be."""
    folder = FOLDER / "uv"
    if not (folder / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True
        )
    return folder / "bin" / "uv"


if __name__ == "__main__":
    sys.exit(main())
