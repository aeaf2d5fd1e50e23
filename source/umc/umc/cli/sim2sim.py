# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc sim2sim --policy exported``: the same evaluation in another engine; see docs/mujoco.md."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from umc.training.command_line import asks_for_help, show_help
from umc.utils.cli import Parser, at_least_one, run_main
from umc.utils.errors import UmcError
from umc.utils.io import write_json

EPISODES = 8
"""Robots of each cell without ``--episodes``."""

HEALTHY = 8
"""Scenario of the paper's table in which nothing breaks."""

HEALTHY_ROBOTS = 16
"""Robots of ``--healthy`` without ``--episodes``."""

HEALTHY_SECONDS = 10.0
"""Length of ``--healthy`` without ``--steps`` [s], as in scripts/evaluate.py."""

AGREEMENT = "agreement.json"
"""File with the comparison, beside the report."""

DESCRIPTION = "Evaluate an exported policy in plain MuJoCo, on flat ground, under the faults of an Isaac Lab run."


EXAMPLES = (
    "--policy exported",
    "--policy exported --healthy",
    "--policy exported --against logs/pretrained/a1_mlp_stage2/evaluation/a1_mlp_stage2",
)


def main(argv: Sequence[str]) -> int:
    """Run ``umc sim2sim``; return its exit status."""
    return run_main(_run, argv)


def _run(argv: list[str]) -> int:
    if asks_for_help(argv):
        return show_help(argv, "sim2sim", DESCRIPTION, EXAMPLES, [_add_arguments], launcher=False)
    parser = Parser(add_help=False)
    _add_arguments(parser)
    options = parser.parse_args(argv)
    sheet, description = read_sheet(options.policy)
    robot = sheet["trained"]["robot"].lower()
    if options.robot is not None and options.robot.lower() != robot:
        raise UmcError(f"{description} was trained for robot {robot}, not {options.robot}; choose one of its own")
    for flag in ("episodes", "steps", "workers", "substeps"):
        at_least_one(getattr(options, flag), f"--{flag}")
    if options.seed is not None and options.seed < 0:
        raise UmcError(f"--seed is {options.seed}; it has to be 0 or more")
    if options.ledger is not None and (options.healthy or options.against is not None or options.scenarios):
        raise UmcError("--ledger goes without --healthy, --against and --scenarios: the ledger has the faults")
    if options.healthy and options.against is not None:
        raise UmcError("--healthy walks without faults; --against compares evaluations under faults")
    out = options.out or description.parent / "mujoco"
    missing = sheet.get("start", {}).get("other_events", []) + sheet.get("fall", {}).get("other_terminations", [])
    if missing:
        print(f"not reproduced in MuJoCo: {', '.join(missing)} of {sheet['trained']['task']}")
    if options.healthy:
        return _healthy(options, sheet, description, robot, out, argv)
    if options.ledger is not None:
        return _ledger(options, sheet, description, robot, out, argv)
    return _protocol(options, sheet, description, robot, out, argv)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from umc.cli.evaluate import scenario

    add = parser.add_argument
    add("--policy", help="folder that umc export wrote, or its .json or .onnx")
    add("--robot", help="robot that the policy must be for")
    add("--protocol", default="umc_paper", help="file in config/protocols, or path of one (umc_paper)")
    add("--ledger", type=Path, help="replay the faults of this ledger instead of a protocol's")
    add("--scenarios", type=scenario, nargs="+", help="scenarios of the protocol; all without it")
    add("--episodes", type=int, help=f"robots of each cell ({EPISODES}); episodes of each env of a ledger (all)")
    add("--steps", type=int, help="length of an episode [env steps]; the protocol's or the ledger's without it")
    add("--seed", type=int, help="one seed for all settings; the protocol's without it")
    add("--radii", type=float, nargs="+", help="radii of reached@k [m]; the protocol's without it")
    add("--against", type=Path, help="folder of an evaluation's report, or its study.pt: report the agreement")
    add("--healthy", action="store_true", help="measure the gait of healthy robots instead, for 10 s")
    add("--substeps", type=int, default=1, help="MuJoCo's steps in the time that a torque is held (1)")
    add("--contact_time", type=float, help="time constant of contacts [s], two of MuJoCo's steps or more (0.02)")
    add("--workers", type=int, help="processes; as many as there are cores without it")
    add("--out", type=Path, help="folder to write to; 'mujoco' beside the policy without it")


def read_sheet(policy: str | None) -> tuple[dict[str, Any], Path]:
    """Find the description of an exported policy: return its content and path."""
    from umc.deploy.policy_runner import PolicyRunner

    if policy is None:
        raise UmcError("--policy is missing; give a folder that scripts/export.py wrote")
    path = Path(policy)
    if path.suffix == ".pt":
        raise UmcError(f"{path} is no exported policy; export it with scripts/export.py and give that folder")
    path = path / "policy.json" if path.is_dir() else path.with_suffix(".json")
    PolicyRunner(path)  # refuses what it cannot feed
    return json.loads(path.read_text(encoding="utf-8")), path


def _healthy(
    options: argparse.Namespace, sheet: dict[str, Any], description: Path, robot: str, out: Path, argv: list[str]
) -> int:
    from umc.evaluation.gait import GAIT
    from umc.evaluation.protocol import Setting, protocol_for
    from umc.evaluation.report import gait_report, gait_table
    from umc.sim2sim.rollout import run_rollout
    from umc.sim2sim.study import gait_of, protocol_rollout

    step_dt = sheet["control"]["policy_dt_s"]
    steps = options.steps or round(HEALTHY_SECONDS / step_dt)
    setting = Setting(seed=options.seed or 0, onset=1)  # nothing sets in: only where the figures count from
    paper = protocol_for(robot, [HEALTHY], options.radii, name=options.protocol)
    protocol = replace(paper, steps=steps, settings=(setting,))
    cfg = protocol_rollout(protocol, description, options.episodes or HEALTHY_ROBOTS, options.substeps)
    cfg = replace(cfg, contact_time=options.contact_time)
    gait = gait_of(run_rollout(cfg, options.workers), sheet["feet"], protocol.command[0], step_dt)
    print(gait_table(gait))
    write_json(out / GAIT, gait_report(gait, about(options, sheet, argv)), indent=1, allow_nan=False)
    print(f"report: {out / GAIT}")
    return 0


def _protocol(
    options: argparse.Namespace, sheet: dict[str, Any], description: Path, robot: str, out: Path, argv: list[str]
) -> int:
    from umc.evaluation.protocol import protocol_for
    from umc.sim2sim.rollout import run_rollout
    from umc.sim2sim.study import episode_batch, protocol_rollout, study_of

    overrides = {} if options.steps is None else {"steps": options.steps}
    protocol = protocol_for(
        robot, options.scenarios, options.radii, options.seed, name=options.protocol, overrides=overrides
    )
    other = None if options.against is None else _other(options.against, sheet)
    cfg = protocol_rollout(protocol, description, options.episodes or EPISODES, options.substeps)
    cfg = replace(cfg, contact_time=options.contact_time)
    cells = len(protocol.cells)
    print(
        f"protocol {protocol.name} of {robot}: {cells} cells x {len(cfg.env) // cells} robots, {protocol.steps} steps"
    )
    run = episode_batch(cfg, run_rollout(cfg, options.workers), protocol)
    study = study_of(protocol, run, sheet, about(options, sheet, argv))
    _report(study, out)
    if other is not None:
        _compare(study, *other, out)
    return 0


def _ledger(
    options: argparse.Namespace, sheet: dict[str, Any], description: Path, robot: str, out: Path, argv: list[str]
) -> int:
    import numpy as np

    from umc.faults import read_ledger
    from umc.sim2sim.agreement import agreement_table, ledger_agreement
    from umc.sim2sim.rollout import run_rollout
    from umc.sim2sim.study import episode_batch, ledger_protocol, ledger_rollout, study_of

    ledger = read_ledger(options.ledger)
    if ledger.header.robot.lower() != robot:
        raise UmcError(
            f"the ledger {options.ledger} is one of robot '{ledger.header.robot}', the policy one of {robot}"
        )
    protocol, scenarios = ledger_protocol(
        ledger, robot, options.protocol, options.steps, options.radii, options.episodes
    )
    cfg = ledger_rollout(ledger, protocol, description, options.episodes, options.substeps)
    cfg = replace(cfg, contact_time=options.contact_time)
    print(f"ledger {options.ledger}: {len(cfg.env)} episodes of up to {protocol.steps} steps")
    run = episode_batch(cfg, run_rollout(cfg, options.workers), protocol, scenarios)
    study = study_of(protocol, run, sheet, about(options, sheet, argv))
    _report(study, out)
    rows = ledger_agreement(ledger, scenarios, run, np.stack([cfg.env, cfg.episode], axis=1))
    if rows:
        print("the recording's own policy, which a ledger does not name, beside this one; no agreement if they differ:")
        print(agreement_table(rows, ("the recording", "MuJoCo")))
        _write(out, rows, "the recording")
    return 0


def about(options: argparse.Namespace, sheet: dict[str, Any], argv: list[str]) -> dict[str, Any]:
    """Describe in plain values how a report was made."""
    import mujoco

    from umc.utils.provenance import git_state, now, versions

    return {
        "task": sheet["trained"]["task"],
        "physics": f"mujoco {mujoco.__version__}",
        "device": "cpu",
        "substeps": options.substeps,
        "contact_time_s": options.contact_time,
        "ground": "flat",
        "action": "mean (no exploration noise)",
        "noise": "off",
        "pushes": "off",
        "randomised": "starts and physics, from the ranges of training, drawn by another generator",
        "ledger": None if options.ledger is None else str(options.ledger),
        "command_line": shlex.join(["umc", "sim2sim", *argv]),
        "time": now(),
        "git": git_state(),
        "versions": {**versions(), "mujoco": mujoco.__version__},
    }


def _other(path: Path, sheet: dict[str, Any]) -> tuple[Any, Any]:
    """The study to compare with, and the same policy in it."""
    from umc.evaluation.study import STUDY, load_study

    study = load_study(path / STUDY if path.is_dir() else path)
    wanted = sheet["checkpoint"]["sha256"]
    for result in study.policies:
        if result.about.get("sha256") == wanted:
            return study, result
    names = ", ".join(result.label for result in study.policies)
    raise UmcError(f"{path} does not hold the policy {sheet['checkpoint']['file']}, but {names}; evaluate it, too")


def _report(study: Any, out: Path) -> None:
    from umc.evaluation.report import score_table, write_study_report
    from umc.evaluation.study import STUDY, save_study

    save_study(out / STUDY, study)
    print(score_table(study.protocol, [score for _, score in study.scenario_scores(study.policies[0])]))
    print(f"report: {write_study_report(study, out)}", flush=True)


def _compare(study: Any, other: Any, result: Any, out: Path) -> None:
    from umc.sim2sim.agreement import agreement, agreement_table, pair_up

    first, second = pair_up(other, result, study, study.policies[0])
    rows = agreement(study, first, second)
    engine = str(other.about.get("physics", "the other"))
    print(agreement_table(rows, (engine, "MuJoCo")))
    _write(out, rows, engine)


def _write(out: Path, rows: Sequence[Any], engine: str) -> None:
    write_json(
        out / AGREEMENT,
        {"first": engine, "second": "mujoco", "scenarios": [asdict(row) for row in rows]},
        indent=1,
        allow_nan=False,
    )
    print(f"agreement: {out / AGREEMENT}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
