"""Speed of ``agrotools_build.Env`` (resets, rewards), and what thousands of episodes leave behind.

Figure of docs/training.md, "Scenes drawn ahead": resets a second.

    python performance/env.py [--episodes N]

One process; seconds of its processor, since other work on the machine is no part of it. Resets and rewards are of all
rows of three groups, which are drawn first unless the cache has them; every reward is of a submission of its own, read
anew. Episodes call random tools with random valid or hostile arguments, and submit random or hostile answers. Resident
memory is that of this process, in MB; tool workers are replaced when they grow, and their number is shown.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from random import Random

from agrotools.agents.baselines.simple import random_answer, random_arguments
from agrotools.calling import tool_specs
from agrotools.core.slot import asked_slots
from agrotools_build import Env, env_rows
from agrotools_build.env import tools_of_process
from agrotools_tools import AGROTOOLS

RESETS, REWARDS, VALID = 20_000, 20_000, 0.15
DEEP = []
for _ in range(5_000):
    DEEP = [DEEP]
HOSTILE = [
    None, True, -1, 0, 10**400, float("nan"), float("inf"), -1e308, "", "\0", "\ud800", "../../etc/passwd",
    "a" * 1_000_000, [], [[]], {}, {"$ref": "steps[0]"}, DEEP, object(), b"\xff", {1: 2}, [0] * 200_000, "{{ 7 * 7 }}",
    "</observation>", "; rm -rf /", "9**9**9**9", "__import__('os').system('id')", [1e30, 1e30, -1e30, -1e30],
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=5_000)
    episodes = parser.parse_args().episodes
    rows = [*env_rows("train", 20), *env_rows("validation", 10)]
    rng = Random(0)
    print(f"{speed_of_resets(rows):12,.0f} resets/s")
    for what, speed in zip(
        ("rewards", "resets with two submissions and a reward"), speeds(rows, rng), strict=True
    ):
        print(f"{speed:12,.0f} {what}/s")
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        play(rows, episodes, rng, Path(folder))


def speed_of_resets(rows: list[dict]) -> float:
    env, started = Env(), time.process_time()
    for number in range(RESETS):
        env.reset(**rows[number % len(rows)])
    return RESETS / (time.process_time() - started)


def speeds(rows: list[dict], rng: Random) -> tuple[float, float]:
    env, of_rewards, of_episodes = Env(), 0.0, 0.0
    for number in range(REWARDS):
        row = rows[number % len(rows)]
        env.reset(**row)
        answer = f"{rng.random()}\n{random_answer(asked_slots(env.session.sample.answer), rng)}"
        started = time.process_time()
        env.reset(**row)
        env.submit_answer("an answer in own words")
        env.submit_answer(answer)
        submitted = time.process_time()
        env.get_reward()
        of_rewards += time.process_time() - submitted
        of_episodes += time.process_time() - started
    return REWARDS / of_rewards, REWARDS / of_episodes


def play(rows: list[dict], episodes: int, rng: Random, folder: Path) -> None:
    env, specs, started, calls = Env(), tool_specs(AGROTOOLS), time.perf_counter(), 0
    for number in range(episodes):
        env.reset(**rng.choice(rows))
        for _ in range(rng.randrange(5)):
            spec = rng.choice(specs)
            arguments = random_arguments(spec, env.session.view, rng)
            if rng.random() >= VALID:
                arguments[rng.choice([*arguments, "self", "x"])] = rng.choice(HOSTILE)
            assert isinstance(getattr(env, spec.name)(**arguments), str)
            calls += 1
        slots = asked_slots(env.session.sample.answer)
        for _ in range(rng.randrange(4)):
            text = random_answer(slots, rng) if rng.random() < 0.5 else rng.choice(HOSTILE)
            assert isinstance(env.submit_answer(text), str)
        assert -1 <= env.get_reward() <= 1
        if number == 0 or (number + 1) % max(1, episodes // 10) == 0:
            workers, left = (
                len(tools_of_process()[1].worker_pids),
                len([*folder.glob("agrotools-*")]),
            )
            seconds = time.perf_counter() - started
            print(f"{number + 1:6} episodes {calls:6} calls {seconds:6.0f} s {resident_mb():6.0f} MB {workers} workers "
                  f"{left} folders of temporary files", flush=True)  # fmt: skip
    env.close()
    left = [*folder.iterdir()]
    assert not left, f"left behind: {left}"
    print("nothing is left behind")


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
