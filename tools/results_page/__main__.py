# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluate pretrained policies on every engine, write docs/results.md: ``./isaaclab.sh -p -m tools.results_page``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from umc.evaluation.arguments import overrides_first
from umc.evaluation.card import EFFORT
from umc.evaluation.checkpoints import Checkpoint, names_ground
from umc.evaluation.labels import labels_of
from umc.evaluation.protocol import ScenarioId, protocol_for
from umc.evaluation.report.plots import image
from umc.evaluation.study import STUDY, load_study
from umc.faults import find_scenario
from umc.faults.scenarios import PAPER
from umc.rl.checkpoint import (
    TERRAIN_KEY,
    checkpoint_info,
    interface_of,
    read_checkpoint,
    trained_overrides,
    trained_terrain,
)
from umc.rl.pretrained import find_pretrained, is_last_stage, is_pretrained, read_models, verified_file
from umc.sim2sim.agreement import require_same_conditions
from umc.tasks.registry import checked_checkpoint, checked_robot
from umc.utils.cli import Parser, at_least_one, run_main
from umc.utils.config import read_yaml
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, sha256
from umc.utils.process import run_umc
from umc.utils.provenance import git_state, now

from tools.results_page.kept import NAME_LENGTH, keep, kept_path, kept_study, prune
from tools.results_page.page import IMAGES, RobotResults, results_page, section_name
from tools.results_page.pictures import overview, section_bars
from tools.results_page.without_oracle import section as without_oracle

ENGINES = ("ovphysx", "newton_mjwarp", "mujoco")
"""Engines without ``--engines``; the main tables are of the first."""

NUM_ENVS = 240
"""Robots of an evaluation without ``--num_envs``: ten of each scenario and setting of A1."""

MUJOCO_EPISODES = 4
"""Robots of each scenario and setting in plain MuJoCo."""

INERT = "umc_paper_inert_effort"
"""Protocol in which torque limits have no effect; its scenarios with such limits are simulated on one engine."""

NOTES = Path(__file__).with_name("notes.yaml")
"""Explanations by section of the page."""


@dataclass(frozen=True)
class Section:
    """Policies of one section of the page, and the folders of their evaluations."""

    robot: str
    ground: str
    """Empty for a robot whose policies were all trained on the same."""
    engine: str
    """Engine of the main tables."""
    engines: Sequence[str]
    policies: Mapping[str, Checkpoint]
    """Checkpoints by label."""
    work: Path
    """Folder of the evaluations."""
    kept: Path
    """Folder of their studies beside the page."""

    @property
    def title(self) -> str:
        """What progress calls it."""
        return f"{self.robot} on {self.ground} ground" if self.ground else self.robot

    @property
    def inert(self) -> str:
        """Folder of the evaluation in which torque limits have no effect, beside those of the engines."""
        return f"{self.engine}_inert_effort"

    @property
    def limited(self) -> list[ScenarioId]:
        """Scenarios with torque limits."""
        return [one for one in protocol_for(self.robot).scenarios if EFFORT in find_scenario(one).kinds]


def main(argv: Sequence[str]) -> int:
    """Evaluate the policies and write the page."""
    options, overrides = _parse(argv)
    results = []
    for section in sections(options, overrides):
        if not options.report_only:
            _measure(options, overrides, section)
        results.append(collect(section))
    # the figures are those of the command that simulates, whoever regenerates the page
    simulated = [token for token in argv if token not in ("--report_only", "--report-only", "--kept")]
    about = {
        "command": shlex.join(["./isaaclab.sh", "-p", "-m", "tools.results_page", *simulated]),
        "time": now()[:10],
        "commit": (git_state() or {}).get("commit", "unknown")[:10],
    }
    notes = read_yaml(NOTES.read_text(encoding="utf-8"), str(NOTES))["robots"]
    draw(results, options.out.parent / IMAGES)
    with atomic_write(options.out) as file:
        file.write(results_page(results, about, notes).encode())
    print(f"results: {options.out}", flush=True)
    return 0


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    description = "Evaluate the pretrained policies and write the results page."
    parser = Parser(prog="python -m tools.results_page", description=description, allow_abbrev=False)
    add = parser.add_argument
    add("--robot", nargs="+", help="robots; default: all with a pretrained policy")
    add("--checkpoint", nargs="+", help="policies; default: the last stage of every pretrained agent")
    add(
        "--engines",
        nargs="+",
        choices=ENGINES,
        default=list(ENGINES),
        help="engines, that of the main tables first; default: all",
    )
    add("--num_envs", type=int, default=NUM_ENVS, help=f"robots of an evaluation ({NUM_ENVS})")
    add(
        "--main_num_envs",
        type=int,
        help="robots of an evaluation for the main tables; as many as the others without it",
    )
    add("--device", help="cpu, cuda, cuda:N; default: the first GPU where there is one, else the CPU")
    add("--work", type=Path, default=Path("logs/results"), help="folder of the evaluations (logs/results)")
    words = "the page (docs/results.md); studies are kept in a folder of its name"
    add("--out", type=Path, default=Path("docs/results.md"), help=words)
    add("--kept", action="store_true", help="simulate only the policies of which nothing is kept beside the page")
    add("--report_only", "--report-only", action="store_true", help="regenerate the page without simulation")
    options, overrides = parser.parse_known_args(overrides_first(argv))
    for token in overrides:
        if token.startswith("-") or "=" not in token:
            example = "env.scene.terrain=flat or protocol.steps=300"
            raise UmcError(f"unknown argument {token}; overrides look like {example}")
        if token.startswith("physics="):
            raise UmcError("give the engines with --engines, not physics=")
    at_least_one(options.num_envs, "--num_envs")
    at_least_one(options.main_num_envs, "--main_num_envs")
    if set(options.engines) == {"mujoco"}:
        raise UmcError("--engines mujoco alone has no main tables; add newton_mjwarp or ovphysx")
    return options, overrides


def find_policies(options: argparse.Namespace) -> dict[str, list[Checkpoint]]:
    """Return the policies of the page by robot."""
    robots = None if options.robot is None else [checked_robot(robot) for robot in options.robot]
    found: dict[str, list[Checkpoint]] = {}
    for path in _last_stages() if options.checkpoint is None else map(_path, options.checkpoint):
        info = checkpoint_info(read_checkpoint(path), path)
        if robots is None or info.robot in robots:
            found.setdefault(info.robot, []).append(Checkpoint(path, info, sha256(path)))
    absent = [robot for robot in robots or () if robot not in found]
    if absent or not found:
        robot = absent[0] if absent else "any robot"
        raise UmcError(f"no policy of {robot}; publish one (docs/recipes.md) or give --checkpoint")
    return dict(sorted(found.items()))


def _last_stages() -> list[Path]:
    """Of every robot's and agent's pretrained policies the one of the last stage, UMC's before their baselines."""
    models = {name: entry for name, entry in read_models().items() if is_last_stage(entry)}
    order = {name: (one["robot"], one["agent"].startswith("nm_"), one["agent"]) for name, one in models.items()}
    return [verified_file(name) for name in sorted(order, key=order.__getitem__)]


def _path(text: str) -> Path:
    return find_pretrained(text)[0] if is_pretrained(text) else checked_checkpoint(text)


def sections(options: argparse.Namespace, overrides: Sequence[str]) -> Iterator[Section]:
    """Yield policies by robot and ground: each is on the one it was trained on and, like all of its robot, on flat."""
    for robot, policies in find_policies(options).items():
        trained = [trained_terrain(one.path, one.info) for one in policies]
        grounds = sorted({ground for ground in trained if ground}, key=lambda ground: (ground == "flat", ground))
        for ground in [""] if len(grounds) < 2 or names_ground(overrides) else grounds:
            there = [one for one, own in zip(policies, trained, strict=True) if ground in ("", "flat", own)]
            # plain MuJoCo knows flat ground only
            engines = [one for one in options.engines if one != "mujoco" or ground in ("", "flat")]
            name = section_name(robot, ground)
            yield Section(
                robot,
                ground,
                engine=next(one for one in engines if one != "mujoco"),
                engines=engines,
                policies=dict(zip(labels_of([(one.path, one.info) for one in there]), there, strict=True)),
                work=options.work / name,
                kept=options.out.with_suffix("") / name,
            )


def _measure(options: argparse.Namespace, overrides: Sequence[str], section: Section) -> None:
    engines = sorted(section.engines, key=lambda one: (one == "mujoco", one != section.engine))
    engines += [section.inert] if section.robot in PAPER["robots"] else []
    for engine in engines:
        runs = {label: one for label, one in section.policies.items() if engine != "mujoco" or runs_in_mujoco(one)}
        policies = {
            label: one
            for label, one in runs.items()
            if not (options.kept and kept_path(section.kept, engine, one.sha256).is_file())
        }
        if not policies:
            print(f"{section.title} on {engine}: all {len(runs)} policies are kept", flush=True)
        elif engine == "mujoco":
            _measure_in_mujoco(overrides, section, policies)
        else:
            print(f"{section.title} on {engine}: {len(policies)} policies", flush=True)
            for number, alike in enumerate(by_interface(policies), 1):
                out = section.work / (engine if number == 1 else f"{engine}_{number}")
                _measure_in_isaaclab(options, overrides, section, engine, alike, out)
        if options.checkpoint is None:
            prune(section.kept, engine, [one.sha256 for one in section.policies.values()])


def by_interface(policies: Mapping[str, Checkpoint]) -> list[dict[str, Checkpoint]]:
    """Return policies in groups that one environment can simulate: MT-FTC has observations and gains of its own."""
    groups: dict[tuple[str, ...], dict[str, Checkpoint]] = {}
    for label, one in policies.items():
        interface = interface_of(trained_overrides(one.path, one.info))
        groups.setdefault(tuple(sorted(interface)), {})[label] = one
    return list(groups.values())


def runs_in_mujoco(one: Checkpoint) -> bool:
    """Return whether a policy can be exported; MT-FTC reads the class of the fault, which exported policies do not."""
    from umc.rl.models import EXPORT_INPUTS
    from umc.rl.policy import ACTOR_SET, stored_agent
    from umc.utils.naming import load_tasks

    load_tasks()
    return set(stored_agent(one.path, one.info)["obs_groups"][ACTOR_SET]) <= set(EXPORT_INPUTS)


def _measure_in_isaaclab(
    options: argparse.Namespace,
    overrides: Sequence[str],
    section: Section,
    engine: str,
    policies: Mapping[str, Checkpoint],
    out: Path,
) -> None:
    argv = ["--checkpoint", *(str(one.path) for one in policies.values()), "--robot", section.robot]
    argv += ["--labels", *policies]
    argv += ["--device", options.device] if options.device else []
    num_envs, physics = (options.main_num_envs if engine == section.engine else None) or options.num_envs, engine
    if engine == section.inert:
        scenarios, limited = protocol_for(section.robot, name=INERT).scenarios, section.limited
        num_envs, physics = num_envs * len(limited) // len(scenarios), section.engine
        argv += ["--protocol", INERT, "--scenarios", *map(str, limited)]
    argv += ["--num_envs", str(num_envs), "--out", str(out), f"physics={physics}"]
    argv += [f"{TERRAIN_KEY}={section.ground}"] if section.ground else []
    run_umc("evaluate", [*argv, *overrides])
    keep(load_study(out / STUDY), section.kept, engine)


def _measure_in_mujoco(overrides: Sequence[str], section: Section, policies: Mapping[str, Checkpoint]) -> None:
    changes = [token for token in overrides if token.startswith("protocol.")]
    for label, one in policies.items():
        print(f"{section.robot} in plain MuJoCo: {label}", flush=True)
        exported = section.work / "mujoco" / one.sha256[:NAME_LENGTH]
        run_umc("export", ["--checkpoint", str(one.path), "--out", str(exported)])
        more = ["--episodes", str(MUJOCO_EPISODES), "--out", str(exported)]
        run_umc("sim2sim", ["--policy", str(exported), *more, *changes])
        keep(load_study(exported / STUDY), section.kept, "mujoco")


def collect(section: Section) -> RobotResults:
    """Read the kept studies of a section."""
    policies = [(label, one.sha256) for label, one in section.policies.items()]
    studies = {engine: kept_study(section.kept, engine, policies) for engine in section.engines if engine != "mujoco"}
    alone = [(label, one.sha256) for label, one in section.policies.items() if runs_in_mujoco(one)]
    mujoco = [kept_study(section.kept, "mujoco", [one]) for one in alone if "mujoco" in section.engines]
    for one in mujoco if section.engine in studies else ():
        require_same_conditions(studies[section.engine].protocol, one.protocol)
    models = list(read_models().values())
    entries = {entry[key]: entry for key in ("sha256", "source_sha256") for entry in models if entry.get(key)}
    # of the folder alone: where nothing is kept, the page has one reading only
    inert = kept_study(section.kept, section.inert, policies) if (section.kept / section.inert).is_dir() else None
    found = RobotResults(section.robot, section.engine, studies, mujoco, entries, section.ground, inert)
    return replace(found, without_oracle=without_oracle(section.kept, found.title))


def draw(results: Sequence[RobotResults], folder: Path) -> None:
    """Write the pictures of the page."""
    figures = {"results": overview(results)}
    figures |= {f"results_{section_name(one.robot, one.ground)}": section_bars(one) for one in results}
    for name, figure in figures.items():
        with atomic_write(folder / f"{name}.png") as file:
            file.write(image(figure, "png"))


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
