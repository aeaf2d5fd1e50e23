# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What one launch for a whole protocol saves, and what the evaluation costs beside a bare rollout; Markdown.

First, one launch of ``scripts/evaluate.py`` that holds all scenarios and settings side by side is timed against
launches of one scenario in one setting each, with as many robots in all; a few of those are timed and stand for the
rest. Start-up counts. Second, in one process, evaluations and bare rollouts of the same environment and policy take
turns, from the same starts. Processor time is printed beside wall time, since it means something on a busy machine.
Usage:

    ./isaaclab.sh -p benchmarks/evaluation.py [--num_envs 240] [--steps 150] [--launches 3] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import Usage, positive, usage_of
from umc.rl.pretrained import pretrained_folder

ROOT = Path(__file__).resolve().parents[1]
POLICY = pretrained_folder() / "a1_mlp_stage1.pt"
GROUND = "env.scene.terrain=flat"
"""Ground of all runs."""

ONSETS = (10, 11, 12)
"""Onsets of the three settings [env steps], early enough for short runs."""

PAPER_STEPS = 750
"""Length of the paper's episodes [env steps]."""

MEGABYTE = 2**20
"""In bytes."""


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--num_envs", type=positive, default=240, help="robots of the protocol's 24 cells together; a multiple of 24")
    add("--steps", type=int, default=150, help="env steps of an episode")
    add("--launches", type=positive, default=3, help="single launches that are timed, of 24")
    add("--rounds", type=positive, default=3, help="pairs of an evaluation and a bare rollout")
    add("--physics", default="newton_mjwarp", help="engine preset")
    add("--checkpoint", type=Path, default=POLICY, help="policy of A1")
    add("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.num_envs % 24 or options.launches > 24 or options.steps <= max(ONSETS):
        parser.error(f"--num_envs takes multiples of 24, --launches 1 to 24, --steps more than {max(ONSETS)}")
    if options.child is not None:
        options.child.write_text(json.dumps(overhead(options)))
        sys.stdout.flush()
        os._exit(0)  # engines may hang at exit
    with tempfile.TemporaryDirectory() as folder:
        report(options, Path(folder))


def report(options: argparse.Namespace, folder: Path) -> None:
    """Run and print everything, with ``folder`` for temporary files."""
    from umc.evaluation.protocol import protocol_for

    def row(name: str, took: Usage) -> str:
        each = took.wall / steps * 1e3
        return f"| {name} | {took.wall:.0f} | {each:.2f} | {took.processor:.0f} | {took.peak / MEGABYTE:.0f} |"

    steps = options.num_envs * options.steps
    together = launch(options, folder / "together", options.num_envs, f"protocol.settings.onset={list(ONSETS)}")
    cells = protocol_for("a1").cells
    chosen = [cells[number * len(cells) // options.launches] for number in range(options.launches)]
    singles = []
    for number, (setting, scenario) in enumerate(chosen):
        settings = f"{{seed: [{setting.seed}], onset: [{ONSETS[0]}], perlin_seed: [{setting.perlin_seed}]}}"
        arguments = (f"protocol.settings={settings}", "--scenarios", str(scenario))
        singles.append(launch(options, folder / str(number), options.num_envs // len(cells), *arguments))
    alone = Usage(
        len(cells) * statistics.mean(single.wall for single in singles),
        len(cells) * statistics.mean(single.processor for single in singles),
        max(single.peak for single in singles),
    )
    print(f"{options.physics}, {options.num_envs} robots, {options.steps} steps\n")
    print("| | wall [s] | per env-step [ms] | processor [s] | peak memory of a process [MB] |")
    print("| --- | ---: | ---: | ---: | ---: |")
    print(row("one launch", together))
    print(row(f"{len(cells)} launches ({len(singles)} timed)", alone))
    faster, less = alone.wall / together.wall, alone.processor / together.processor
    print(f"\nOne launch is {faster:.1f} x faster ({less:.1f} x in processor time).\n")
    file = folder / "overhead.json"
    subprocess.run([sys.executable, __file__, *sys.argv[1:], "--child", str(file)], check=True, stdout=sys.stderr)
    cost = json.loads(file.read_text())
    ratios = [one["steps"] / one["bare"] for one in cost["rounds"]]
    start = statistics.median(one["start"] for one in cost["rounds"])
    bare = statistics.median(one["bare"] for one in cost["rounds"]) / options.steps
    share = statistics.median(ratios) - 1.0
    print(f"Bare rollout: {bare * 1e3:.1f} ms of processor time per step of all envs. Evaluation: {share:+.1%} a step")
    print(f"(rounds: {', '.join(f'{ratio - 1.0:+.1%}' for ratio in ratios)}), and {start:.2f} s for faults and starts,")
    print(f"together {share + start / (bare * PAPER_STEPS):+.1%} over an episode of {PAPER_STEPS} steps.")
    print(f"Peak memory of that process: {cost['peak']:.0f} MB.")


def launch(options: argparse.Namespace, out: Path, num_envs: int, *more: str) -> Usage:
    """Return what one ``evaluate.py`` of ``num_envs`` envs takes."""
    command = [str(ROOT / "scripts" / "evaluate.py"), "--checkpoint", str(options.checkpoint.resolve())]
    command += ["--num_envs", str(num_envs), "--out", str(out), GROUND, f"physics={options.physics}", "--device", "cpu"]
    return usage_of([*command, f"protocol.steps={options.steps}", *more], str(out.parent))


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    """Take turns with evaluations and bare rollouts; return processor times of each round [s] and peak memory [MB]."""
    import resource

    import umc.evaluation.rollout as rollout
    from tensordict import TensorDict
    from umc.evaluation.arguments import parse
    from umc.evaluation.conditions import set_protocol
    from umc.evaluation.protocol import protocol_for
    from umc.evaluation.session import open_session, prepare
    from umc.tasks.parts import required_feet

    arguments = ["--checkpoint", str(options.checkpoint), GROUND, f"physics={options.physics}", "--device", "cpu"]
    session = prepare(*parse(arguments, lambda _: None), stage=2)
    settings = {"seed": [1, 800, 50], "onset": list(ONSETS)}
    protocol = protocol_for("a1", overrides={"steps": options.steps, "settings": settings})
    set_protocol(session.env_cfg, protocol, options.num_envs)
    rounds = []
    with open_session(session) as (env, (policy,)):
        feet, _ = rollout.feet_sensor(env, required_feet(session.env_cfg))
        rollout.run_faults(env, policy, protocol, feet=feet)  # compiles what is compiled at first use
        for _ in range(options.rounds):
            clock = time.process_time()
            obs = rollout.reset_batch(env, protocol)
            start = time.process_time() - clock
            clock = time.process_time()
            for _ in range(protocol.steps):
                obs, *_ = env.step(policy(TensorDict(obs, batch_size=[env.num_envs])))
            bare = time.process_time() - clock
            clock = time.process_time()
            rollout.run_faults(env, policy, protocol, feet=feet)
            rounds.append({"start": start, "bare": bare, "steps": time.process_time() - clock - start})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE
        return {"rounds": rounds, "peak": peak}


if __name__ == "__main__":
    main()
