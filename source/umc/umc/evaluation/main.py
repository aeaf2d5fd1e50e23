# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``scripts/evaluate.py`` calls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from umc.errors import UmcError

from .protocol import Protocol, protocol_for
from .session import INTERRUPTED, USAGE_ERROR, Session, parse, prepare

CPU_ENVS = 256
"""Envs without ``--num_envs`` on a CPU: 32 for each scenario."""

GPU_ENVS = {"a1": 4000, "g1": 10000}
"""Envs without ``--num_envs`` on a GPU (paper, inference parameters)."""

QUICK_ENVS = 16
"""Envs of ``--quick``."""

HEALTHY_ENVS = 64
"""Envs of ``--healthy``."""

HEALTHY_SECONDS = 10.0
"""Length of ``--healthy`` [s]."""

REPORT = "report.json"
GAIT = "gait.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of ``scripts/evaluate.py``.

    Args:
        parser: The parser.
    """
    add = parser.add_argument
    add("--scenarios", type=int, nargs="+", help="scenarios of the paper's table, 1 to 8; all without it")
    add("--radii", type=float, nargs="+", help="radii of reached@k [m]; 1 2 3 4 5 without it")
    add("--quick", action="store_true", help="a few envs and steps: proves that everything works, no figures")
    add("--healthy", action="store_true", help="measure the gait of the healthy robot instead, for 10 s")


def main(argv: Sequence[str]) -> int:
    """Runs ``scripts/evaluate.py``.

    Args:
        argv: Arguments without the script's name.

    Returns:
        Exit status: 0 done, 2 wrong use, 130 Ctrl-C.
    """
    try:
        return _run(list(argv))
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        return INTERRUPTED


def _run(argv: list[str]) -> int:
    from umc.rl.console import quiet

    if "-h" not in argv and "--help" not in argv:
        with quiet():
            options, overrides = parse(argv, "evaluate.py", __doc__ or "", add_arguments)
    else:
        options, overrides = parse(argv, "evaluate.py", "Evaluate a policy under the paper's faults.", add_arguments)
    with quiet():
        session = prepare(options, overrides, stage=1 if options.healthy else 2)
    protocol = protocol_for(session.info.robot, options.scenarios, options.radii, options.seed, options.quick)
    out = options.out or session.checkpoint.parent / "evaluation" / session.checkpoint.stem
    if options.healthy:
        return _healthy(session, protocol, out)
    return _faults(session, protocol, out)


def _faults(session: Session, protocol: Protocol, out: Path) -> int:
    from .conditions import make_calm, set_faults
    from .metrics import score
    from .report import fault_report, score_table, write_report
    from .rollout import run_faults
    from .session import describe_run, running

    num_envs = session.options.num_envs or _default_envs(session)
    protocol.deal(num_envs)  # refuses too few envs before anything slow starts
    make_calm(session.env_cfg, protocol.command, num_envs, protocol.steps, protocol.seed)
    set_faults(session.env_cfg, protocol)
    with running(session) as (env, policy):
        run = run_faults(env, policy, protocol)
        step_dt = env.step_dt
    scenario = run.cell % len(protocol.scenarios)
    scores = [
        score(run.episodes, protocol.radii, step_dt, scenario == index) for index in range(len(protocol.scenarios))
    ]
    print(score_table(protocol, scores))
    about = {**describe_run(session, policy), "step_dt_s": step_dt, "quick": session.options.quick}
    write_report(out / REPORT, fault_report(protocol, run, scores, about))
    print(f"report: {out / REPORT}", flush=True)
    return 0


def _healthy(session: Session, protocol: Protocol, out: Path) -> int:
    from .conditions import make_calm, set_healthy
    from .report import gait_report, gait_table, write_report
    from .rollout import feet_of, run_healthy
    from .session import describe_run, running

    num_envs = session.options.num_envs or (QUICK_ENVS if session.options.quick else HEALTHY_ENVS)
    step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
    steps = protocol.steps if session.options.quick else round(HEALTHY_SECONDS / step_dt)
    make_calm(session.env_cfg, protocol.command, num_envs, steps, protocol.seed)
    set_healthy(session.env_cfg)
    with running(session) as (env, policy):
        gait = run_healthy(env, policy, feet_of(session.info.robot), protocol.command[0], steps)
    print(gait_table(gait))
    write_report(out / GAIT, gait_report(gait, describe_run(session, policy)))
    print(f"report: {out / GAIT}", flush=True)
    return 0


def _default_envs(session: Session) -> int:
    if session.options.quick:
        return QUICK_ENVS
    return CPU_ENVS if session.device == "cpu" else GPU_ENVS[session.info.robot]
