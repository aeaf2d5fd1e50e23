# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a film costs beside the bare rollout of its env, policy and steps; Markdown.

In one process, takes of a film and bare rollouts take turns, from the same start; then the files are written, ffmpeg's
processor time included. Usage:

    ./isaaclab.sh -p benchmarks/film.py [--checkpoint pretrained:a1_mlp_stage2] [--steps 200] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import positive
from ratios import add_json_flag, save, spread


def processor_time() -> float:
    """Return the processor time of this process and of the children that have ended [s]."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(args: argparse.Namespace) -> tuple[list[float], list[float], float]:
    """Return the times of bare rollouts, of takes, and of writing the files of one take [s]."""
    from tensordict import TensorDict
    from umc.evaluation.arguments import parse
    from umc.evaluation.session import prepare
    from umc.rendering import film
    from umc.rendering.film_cfg import add_film_arguments, film_cfg

    flags = ["--checkpoint", *[args.checkpoint] * (args.rounds + 1), "--steps", str(args.steps), "--scenario", "6"]
    options, overrides = parse([*flags, "--device", "cpu", "env.scene.terrain=flat"], add_film_arguments)
    session, cfg = prepare(options, overrides, once=False), film_cfg(options)
    options.num_envs, protocol = 1, cfg.protocol(session.info.robot, 0)
    reset_batch, step_policy = film.reset_batch, film.step_policy
    bare: list[float] = []
    takes: list[float] = []

    def step(env: Any, policy: Any, obs: Any, steps: int, bar: Any) -> Any:
        start = processor_time()
        for _ in range(steps):
            obs, *_ = env.step(policy(TensorDict(obs, batch_size=[1])))
        bare.append(processor_time() - start)
        obs, start = reset_batch(env, protocol), processor_time()
        yield from step_policy(env, policy, obs, steps, bar)
        takes.append(processor_time() - start)

    film.step_policy = step
    filmed, step_dt = film.film_takes(session, protocol, cfg)
    heading = film.Heading(
        "film", cfg.steps, step_dt, cfg.onset, film.fault_color(protocol.scenario(cfg.scenario).kinds)
    )
    start = processor_time()
    with tempfile.TemporaryDirectory() as folder:
        for path in film.film_files(Path(folder), "film"):
            film.write_film(path, filmed[:1], heading, 1.0 / (step_dt * cfg.every))
    return bare[1:], takes[1:], processor_time() - start  # the first take compiles the renderer


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="pretrained:a1_mlp_stage2", help="policy that is filmed")
    parser.add_argument("--steps", type=int, default=200, help="env steps of a take")
    parser.add_argument("--rounds", type=positive, default=3, help="pairs of a take and a bare rollout")
    add_json_flag(parser)
    args = parser.parse_args()
    if args.steps < 2:
        parser.error("--steps must be at least 2")
    bare, takes, writing = measure(args)
    found = {
        "take": [take / one for take, one in zip(takes, bare, strict=True)],
        "take and files": [(take + writing) / one for take, one in zip(takes, bare, strict=True)],
    }
    step = 1e3 * statistics.median(bare) / args.steps
    print(f"\n{args.checkpoint}, {args.steps} env steps of {step:.1f} ms without pictures, CPU, processor time\n")
    print("| | over the bare rollout: median (min to max) |\n|---|---|")
    for name, ratios in found.items():
        print(f"| {name} | {spread(ratios)} |")
    save(args.json, found)
    sys.stdout.flush()
    os._exit(0)  # the teardown of an engine may hang


if __name__ == "__main__":
    main()
