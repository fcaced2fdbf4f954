"""``agrotools doctor``: checks of this machine and installation, or of a model's endpoint."""

from typing import TYPE_CHECKING, Any

import typer

from agrotools.cli.output import allow_closed_pipe, count_text, print_json
from agrotools.core.registry import function_of

if TYPE_CHECKING:
    from agrotools.models.probe import ProbeFinding


def doctor(
    model: str | None = None,
    base_url: str | None = None,
    api_key_env: str | None = None,
    env: bool = False,
    as_json: bool = False,
) -> None:
    """Check the sandbox, the installation and plug-ins; or, with --model, what an endpoint does with images, tools,
    schemas, seeds and logprobs, in about ten tiny requests; or, with --env, the reward of the training environment.

    `agrotools eval` warns if a run needs what the endpoint lacks, and stores these findings with the run. Exit code
    1: a plug-in cannot be loaded, or no sandbox works and running without one was not allowed, or a line of
    --env fails; 2: the model is refused; 3: no server answers.
    """
    if env:
        function_of("check_env")(as_json)
        return
    if model is not None:
        _check_endpoint(model, base_url, api_key_env, as_json)
        return
    if base_url or api_key_env:
        from agrotools.core import UsageError

        raise UsageError(
            "--base-url and --api-key-env are for an endpoint", hint="add --model NAME"
        )
    report = {"sandbox": _sandbox(), "installation": _installation(), "plugins": _plugins()}
    with allow_closed_pipe():
        if as_json:
            print_json(report)
        else:
            _print_sandbox(report["sandbox"])
            _print_installation(report["installation"])
            _print_plugins(report["plugins"])
    broken = any(each["fault"] for each in report["plugins"]["installed"])
    raise typer.Exit(0 if report["sandbox"]["active"] and not broken else 1)


def _sandbox() -> dict[str, Any]:
    """Return the state of the sandbox. ``active``: the runner that would execute code now; None if there is none."""
    import os
    from dataclasses import asdict

    from agrotools.core import AgrotoolsError
    from agrotools.sandbox import RUNNER_VARIABLE
    from agrotools.sandbox.pool import pool_size
    from agrotools.sandbox.runners import RUNNERS
    from agrotools.sandbox.running import probe, select_runner

    probes = [asdict(probe(runner)) for runner in RUNNERS]
    facts: dict[str, Any] = {
        "active": None,
        "asked_for": os.environ.get(RUNNER_VARIABLE, "").strip() or None,
        "problem": None,
        "runners": [{**each, "seconds": round(each["seconds"], 3)} for each in probes],
    }
    try:
        facts["workers"] = pool_size()
        facts["active"] = select_runner()
    except AgrotoolsError as error:
        facts["problem"], facts["hint"] = error.message, error.advice
    return facts


def _print_sandbox(facts: dict[str, Any]) -> None:
    active = facts["active"]
    typer.echo("Running model-written code")
    if active is None:
        typer.echo(f"  error: no runner can execute code on this machine: {facts['problem']}")
        if facts.get("hint"):
            typer.echo(f"  {facts['hint']}")
    elif active == "none":
        typer.echo("  active: none (warning: code is not isolated, as set by AGROTOOLS_SANDBOX)")
    else:
        origin = ", set by AGROTOOLS_SANDBOX" if facts["asked_for"] else ""
        typer.echo(f"  active: {active}{origin} ({count_text(facts['workers'], 'worker')})")
    for each in facts["runners"]:
        typer.echo(
            f"  {each['runner']}: {'works' if each['holds'] else 'does not work'}; {each['message']}"
        )
        if not each["holds"] and each["hint"]:
            advice = (
                ""
                if active is None or active == "none" or each["runner"] == "landlock"
                else "recommended: "
            )
            typer.echo(f"    {advice}{each['hint']}")


def _installation() -> dict[str, Any]:
    """Return versions, missing dependencies, and the state of extras."""
    import os
    import platform
    import sys
    from importlib.metadata import version

    missing, extras = _requirements()
    return {
        "agrotools": version("agrotools"),
        "python": platform.python_version(),
        "executable": sys.executable,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "missing": missing,
        "extras": extras,
    }


def _requirements() -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return dependencies that are not installed, and the state of each extra with its missing packages."""
    import re
    from importlib.metadata import PackageNotFoundError, distribution, requires

    lacking: dict[str, list[str]] = {"": []}
    for line in requires("agrotools") or ():
        name = re.split(r"[^\w.-]", line)[0]
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)", line)
        if name == "agrotools":
            continue
        missing = lacking.setdefault(extra[1] if extra else "", [])
        try:
            distribution(name)
        except PackageNotFoundError:
            missing.append(name)
    missing = lacking.pop("")
    for of_developers in ("test", "dev"):
        lacking.pop(of_developers, None)
    return missing, {
        extra: {"installed": not without, "missing": without} for extra, without in lacking.items()
    }


def _print_installation(facts: dict[str, Any]) -> None:
    from agrotools.core.texts import install_command

    typer.echo("Installation")
    typer.echo(
        f"  agrotools {facts['agrotools']}, Python {facts['python']} ({facts['executable']})"
    )
    typer.echo(f"  {facts['system']}, {facts['cores']} cores")
    if facts["missing"]:
        typer.echo(f"  missing dependencies: {', '.join(facts['missing'])}; {install_command()}")
    complete = [extra for extra, state in facts["extras"].items() if state["installed"]]
    typer.echo(f"  installed extras: {', '.join(complete) or 'none'}")
    for extra, state in facts["extras"].items():
        if not state["installed"]:
            typer.echo(f"  extra {extra} not installed: it needs {', '.join(state['missing'])}")
    if not all(state["installed"] for state in facts["extras"].values()):
        typer.echo(f"  to install an extra: {install_command('EXTRA')}")


def _plugins() -> dict[str, Any]:
    """Return plug-in names of other packages, with errors of those that cannot be loaded, and clashing names."""
    import warnings

    from agrotools.agents.llm import PROMPT_TEMPLATES
    from agrotools.calling import TOOLS
    from agrotools.core import BENCHMARKS, PluginWarning
    from agrotools.core.installed import WithPlugins
    from agrotools.core.registry import CLASHES, SOURCES
    from agrotools.core.slot import slot_types
    from agrotools.runner.policies import RUN_PROTOCOLS
    from agrotools.scoring.judging.questions import JUDGED_METRICS
    from agrotools.scoring.metrics import METRICS
    from agrotools.scoring.predictions import FORMATS

    registries = {"benchmark": BENCHMARKS, "tool": TOOLS, "source": SOURCES}
    tables: list[WithPlugins[Any]] = [
        PROMPT_TEMPLATES,
        RUN_PROTOCOLS,
        JUDGED_METRICS,
        METRICS,
        FORMATS,
    ]
    found: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # they are listed below
        for kind, registry in registries.items():
            packages = {name: registry.package_of(name) for name in registry}
            theirs = {name: package for name, package in packages.items() if package != "agrotools"}
            faults = {name: fault.message for name, fault in registry.broken(theirs).items()}
            for name, package in theirs.items():
                found.append(
                    {"kind": kind, "name": name, "package": package, "fault": faults.get(name)}
                )
        slot_types()
        for table in tables:
            table.joined()
    return {"installed": found, "clashes": CLASHES}


def _print_plugins(facts: dict[str, Any]) -> None:
    typer.echo("Plug-ins")
    for each in facts["installed"]:
        fault = f": error: {each['fault']}" if each["fault"] else ""
        typer.echo(f"  {each['kind']} {each['name']} of the package {each['package']}{fault}")
    if not facts["installed"]:
        typer.echo("  none installed")
    for text in facts["clashes"]:
        typer.echo(f"  warning: {text}")


def _check_endpoint(
    model: str, base_url: str | None, api_key_env: str | None, as_json: bool
) -> None:
    from agrotools.core import UsageError
    from agrotools.models import Endpoint
    from agrotools.models.probe import run_probe

    if model.startswith("scripted:"):
        raise UsageError(f"{model} has no endpoint to probe", hint="give a model on a server")
    report = run_probe(
        Endpoint(model, base_url, api_key_env), (lambda _: None) if as_json else _print_finding
    )
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    tokens = [
        sum(getattr(each, name) for each in report.findings)
        for name in ("input_tokens", "output_tokens")
    ]
    typer.echo(f"{tokens[0]:,} tokens in, {tokens[1]:,} out; kept for agrotools eval")


def _print_finding(finding: "ProbeFinding") -> None:
    typer.echo(f"{finding.feature:<16} {finding.state:<8} {finding.detail}")
