# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc evaluate``, ``umc gait`` and ``umc report``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.rl.pretrained import results_folder
from umc.training.command_line import (
    OWN_SECTIONS,
    add_policy_arguments,
    asks_for_help,
    overrides_first,
    parse,
    show_help,
)
from umc.utils.cli import at_least_one, run_main
from umc.utils.config import read_overrides
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.io import write_json

if TYPE_CHECKING:
    from umc.evaluation.compare import Comparison
    from umc.evaluation.grid import Sweep
    from umc.evaluation.protocol import Protocol
    from umc.evaluation.session import Session
    from umc.evaluation.study import Study

CPU_ENVS = 256
"""Envs without ``--num_envs`` on a CPU."""

QUICK_ENVS = 16
"""Envs of ``--quick``."""

HEALTHY_ENVS = 64
"""Envs of ``--healthy``."""

HEALTHY_SECONDS = 10.0
"""Length of ``--healthy`` [s]."""

GAIT = "gait.json"

DESCRIPTION = "Evaluate policies under the paper's faults: all scenarios and settings side by side in one simulation."


EXAMPLES = (
    "--checkpoint pretrained:a1_mlp_stage2",
    "--checkpoint logs/rsl_rl/umc_a1_mlp_stage2/RUN pretrained:a1_nm_mlp_stage1 --episodes 100",
    "--checkpoint pretrained:g1_mlp_stage2 --healthy",
)


def scenario(text: str) -> int | str:
    """Read a scenario: a number of the paper's table, or a name."""
    return int(text) if text.lstrip("-").isdigit() else text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc evaluate``."""
    add = parser.add_argument_group("conditions").add_argument
    add("--protocol", help="file in config/protocols, or path of one (umc_paper); protocol.steps=300 changes it")
    add("--scenarios", type=scenario, nargs="+", help="scenarios, 1 to 8 of the paper or by name; else the protocol's")
    add("--episodes", type=int, help="robots of each cell (scenario x setting), in batches if needed; else one batch")
    add("--radii", type=float, nargs="+", help="radii of reached@k [m]; the protocol's without it")
    add("--sweep", help="file in config/sweeps, or path of one: a grid of conditions, or the policies of an ablation")
    add("--healthy", action="store_true", help="measure the gait of the healthy robot instead, for 10 s (umc gait)")
    add("--quick", action="store_true", help="a few envs and steps: proves that everything works, no figures")
    add = parser.add_argument_group("reports").add_argument
    add("--labels", nargs="+", help="names of the policies in the report")
    add("--report_only", "--report-only", type=Path, help="write the reports of an --out folder anew (umc report)")
    add("--logs", type=Path, default=Path("logs"), help="folder of all runs, where sweeps find policies (logs)")
    add = parser.add_argument_group("several machines").add_argument
    add("--share", help="2/8: simulate the second eighth and write no report; the command without it collects them")
    add("--ray", type=int, metavar="WORKERS", help="simulate on so many workers of a Ray cluster")
    add("--ray_address", help="address of the cluster; without it one is started on this machine")
    add("--plan", type=Path, help=argparse.SUPPRESS)  # conditions that another process has settled


def main(argv: Sequence[str]) -> int:
    """Run ``umc evaluate``; return its exit status."""
    return run_main(_run, argv, "stopped; finished batches are kept, the same command goes on from there")


def _run(argv: list[str]) -> int:
    own = ("protocol", "sweep")
    if asks_for_help(argv):
        return show_help(argv, "evaluate", DESCRIPTION, EXAMPLES, [add_policy_arguments, add_arguments])
    with quiet():
        options, overrides = parse(argv, add_arguments, own)
    if options.report_only is not None:
        return _report_again(options.report_only)
    from umc.evaluation.session import prepare

    changes = {section: read_overrides(overrides, section) for section in own}
    with quiet():
        sweep = _sweep(options, changes["sweep"])
        if options.healthy and len(options.checkpoint or ()) > 1:
            raise UmcError("--healthy measures one policy; give one --checkpoint")
        env_overrides = [token for token in overrides if token.split(".")[0] not in own]
        session = prepare(options, env_overrides, stage=1 if options.healthy else 2)
    protocol = _protocol(session, sweep, changes["protocol"])
    out = options.out or _default_out(session, protocol)
    if options.healthy:
        return _healthy(session, protocol, out)
    return _faults(session, protocol, sweep, out, argv)


def _sweep(options: argparse.Namespace, changes: Mapping[str, Any]) -> Sweep | None:
    """The sweep, if there is one; finds its policies where no checkpoint is given."""
    if options.sweep is None:
        if changes:
            raise UmcError(f"sweep.{next(iter(changes))}: there is no --sweep to change")
        return None
    from umc.evaluation.grid import read_sweep

    sweep = read_sweep(options.sweep, changes)
    if options.checkpoint is None and sweep.agents:
        if options.robot is None:
            raise UmcError(f"--robot is missing; sweep {sweep.name} looks for the policies of one robot")
        options.checkpoint = sweep.checkpoints(options.robot.lower(), options.logs)
    return sweep


def _protocol(session: Session, sweep: Sweep | None, changes: Mapping[str, Any]) -> Protocol:
    from umc.evaluation.conditions import on_tracks
    from umc.evaluation.protocol import DEFAULT_PROTOCOL, protocol_for
    from umc.evaluation.study import protocol_of

    options, robot = session.options, session.info.robot
    for flag in ("episodes", "ray"):
        at_least_one(getattr(options, flag), f"--{flag}")
    if options.plan is not None:
        return protocol_of(json.loads(options.plan.read_text(encoding="utf-8"))["protocol"])
    name = options.protocol or (sweep.protocol if sweep else DEFAULT_PROTOCOL)
    scenarios = options.scenarios or (sweep.scenarios if sweep else None)
    protocol = protocol_for(robot, scenarios, options.radii, options.seed, name, changes)
    if options.quick:
        protocol = protocol.quick()
    if not on_tracks(session.env_cfg):
        protocol = replace(protocol, track={})  # so that the report does not claim them
    return sweep.apply(protocol, session.info.joint_names, options.quick) if sweep else protocol


def _default_out(session: Session, protocol: Protocol) -> Path:
    if len(session.candidates) == 1 and session.options.sweep is None:
        return results_folder(session.checkpoint) / "evaluation" / session.checkpoint.stem
    from umc.evaluation.batches import fingerprint

    which = fingerprint([one.sha256 for one in session.candidates])[:8]
    return session.options.logs / "evaluation" / f"{protocol.name}_{protocol.robot}_{which}"


def _faults(session: Session, protocol: Protocol, sweep: Sweep | None, out: Path, argv: list[str]) -> int:
    from umc.evaluation.compare import Comparison, read_share
    from umc.evaluation.study import STUDY, save_study

    options = session.options
    num_envs = options.num_envs or _default_envs(session, protocol)
    episodes = options.episodes or (sweep.episodes if sweep else None)
    plan = None if options.plan is None else json.loads(options.plan.read_text(encoding="utf-8"))
    if plan is not None:
        num_envs, episodes = plan["num_envs"], plan["episodes"]
    share = None if options.share is None else read_share(options.share)
    with quiet():
        comparison = Comparison(session, protocol, num_envs, episodes, out)
    if plan is not None:
        comparison.simulate(comparison.named(plan["units"]))
        return 0
    for line in describe(comparison):
        print(line)
    missing = comparison.missing()
    if len(missing) < len(comparison.units):
        done = len(comparison.units) - len(missing)
        print(f"{done} of {len(comparison.units)} batches are there already, in {comparison.parts.folder}", flush=True)
    if share is not None:
        mine = [unit for unit in missing if comparison.units.index(unit) % share[1] == share[0]]
        if mine:
            comparison.simulate(mine)
        return 0
    if missing and options.ray is not None:
        from umc.evaluation.ray_cluster import simulate_on_ray

        simulate_on_ray(comparison, missing, worker_arguments(comparison.session, argv))
    elif missing:
        comparison.simulate(missing)
    study = comparison.study()
    save_study(out / STUDY, study)
    return _report(study, out)


def describe(comparison: Comparison) -> list[str]:
    """What is about to be measured, for the screen."""
    protocol, batches = comparison.protocol, comparison.batches
    settings = [setting.name for setting in protocol.settings]
    more = f" ... ({len(settings)} in all)" if len(settings) > 6 else ""
    severity = ", ".join(f"{kind} {value}" for kind, value in protocol.severity.items())
    return [
        f"protocol {protocol.name} of {protocol.robot}: {protocol.steps} steps, command {list(protocol.command)}, "
        f"{protocol.num_joints[0]} to {protocol.num_joints[1]} faulty joints, {severity}",
        f"scenarios {', '.join(map(str, protocol.scenarios))}; settings: {'; '.join(settings[:6])}{more}",
        f"{len(comparison.session.candidates)} policies x {len(protocol.cells)} cells x {batches.episodes} robots, "
        f"in {batches.count} batches of {batches.num_envs} envs each",
    ]


def _report(study: Study, out: Path) -> int:
    from umc.evaluation.report import score_table, write_study_report

    for result in study.policies:
        print(result.label)
        print(score_table(study.protocol, [score for _, score in study.scenario_scores(result)]))
    page = write_study_report(study, out)
    print(f"report: {page}", flush=True)
    return 0


def _report_again(out: Path) -> int:
    from umc.evaluation.study import STUDY, load_study

    return _report(load_study(out / STUDY), out)


def _healthy(session: Session, protocol: Protocol, out: Path) -> int:
    from umc.evaluation.conditions import disable_training_randomization, set_healthy
    from umc.evaluation.report import gait_report, gait_table, load_table
    from umc.evaluation.rollout import feet_of, run_healthy
    from umc.evaluation.session import describe_run, running

    num_envs = session.options.num_envs or (QUICK_ENVS if session.options.quick else HEALTHY_ENVS)
    step_dt = session.env_cfg.sim.dt * session.env_cfg.decimation
    steps = protocol.steps if session.options.quick else round(HEALTHY_SECONDS / step_dt)
    disable_training_randomization(session.env_cfg, protocol.command, num_envs, steps, protocol.seed)
    set_healthy(session.env_cfg)
    with running(session) as (env, policy):
        gait, loads = run_healthy(env, policy, feet_of(session.env_cfg), protocol, steps)
    print(gait_table(gait))
    print(load_table(loads, protocol.severity))
    write_json(out / GAIT, gait_report(gait, describe_run(session, policy), loads), indent=1, allow_nan=False)
    print(f"report: {out / GAIT}", flush=True)
    return 0


def _default_envs(session: Session, protocol: Protocol) -> int:
    if session.options.quick:
        return max(QUICK_ENVS, len(protocol.cells))
    # the paper's robots of one scenario and setting at once on a GPU; --episodes asks for as many of each
    return max(CPU_ENVS if session.device == "cpu" else protocol.num_envs, len(protocol.cells))


def worker_arguments(session: Session, argv: Sequence[str]) -> list[str]:
    """What a worker is told beside its checkpoints and its plan."""
    return [*launcher_arguments(argv), *session.repeated]


def launcher_arguments(argv: Sequence[str]) -> list[str]:
    """What of a command line is not the evaluation itself: launcher flags, presets, ``env.`` overrides."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    # robot and agent say which pretrained policies are meant; workers get files
    for name in ("--checkpoint", "--robot", "--agent", "--num_envs", "--seed", "--out"):
        parser.add_argument(name, nargs="*")
    _, rest = parser.parse_known_args(overrides_first(argv))
    return [token for token in rest if token.split(".")[0] not in OWN_SECTIONS]
