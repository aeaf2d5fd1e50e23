# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluate pretrained policies on every engine, write docs/results.md: ``./isaaclab.sh -p -m tools.results_page``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from umc.evaluation.checkpoints import names_ground
from umc.evaluation.labels import agent_of, labels_of
from umc.evaluation.study import STUDY, Study, load_study
from umc.rl.agents import agent_spec
from umc.rl.checkpoint import TERRAIN_KEY, CheckpointInfo, checkpoint_info, read_checkpoint, trained_terrain
from umc.rl.pretrained import find_pretrained, is_last_stage, is_pretrained, read_models, verified_file
from umc.tasks.registry import checked_checkpoint, checked_robot
from umc.utils.cli import Parser, at_least_one, run_main
from umc.utils.config import read_yaml
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, sha256
from umc.utils.process import run_umc
from umc.utils.provenance import git_state, now

from tools.results_page.kept import NAME_LENGTH, keep, kept_study, missing, prune
from tools.results_page.page import RobotResults, results_page, section_name

ENGINES = ("newton_mjwarp", "ovphysx", "mujoco")
"""Engines without ``--engines``."""

NUM_ENVS = 240
"""Robots of an evaluation without ``--num_envs``: ten of each scenario and setting of A1."""

MUJOCO_EPISODES = 4
"""Robots of each scenario and setting in plain MuJoCo."""

OVERRIDES = ("env.", "agent.", "protocol.", "physics=")
"""What overrides begin with."""

NOTES = Path(__file__).with_name("notes.yaml")
"""Explanations by section of the page."""

IMAGES = "images"
"""Folder of pictures beside the page."""


def main(argv: Sequence[str]) -> int:
    """Evaluate the policies and write the page."""
    options, overrides = _parse(argv)
    kept = options.out.with_suffix("")
    results = []
    for robot, paths in find_policies(options).items():
        for ground, there in by_ground(paths, overrides).items():
            engine = _main_engine(options.engines, [info.physics for info in there.values()])
            # plain MuJoCo knows flat ground only
            engines = [one for one in options.engines if one != "mujoco" or ground in ("", "flat")]
            name = section_name(robot, ground)
            policies = dict(zip(labels(there), there, strict=True))
            measured = Section(robot, ground, engine, engines, policies, options.work / name, kept / name)
            if not options.report_only:
                _measure(options, overrides, measured)
            results.append(collect(measured, dict(_curves(options, measured, there))))
    # the figures are those of the command that simulates, whoever regenerates the page
    simulated = [token for token in argv if token not in ("--report_only", "--report-only", "--kept")]
    command = shlex.join(["./isaaclab.sh", "-p", "-m", "tools.results_page", *simulated])
    write_page(options.out, results, command)
    print(f"results: {options.out}", flush=True)
    return 0


@dataclass(frozen=True)
class Section:
    """Policies of one section of the page, and the folders of their evaluations."""

    robot: str
    ground: str
    """Empty for a robot whose policies were all trained on the same."""
    engine: str
    """Engine of the main tables."""
    engines: Sequence[str]
    policies: Mapping[str, Path]
    """Checkpoints by label."""
    work: Path
    """Folder of the evaluations."""
    kept: Path
    """Folder of their studies beside the page."""

    def unkept(self, engine: str) -> dict[str, Path]:
        """Policies of which nothing is kept on an engine."""
        return {label: path for label, path in self.policies.items() if missing(self.kept, engine, [sha256(path)])}


def by_ground(paths: Mapping[Path, CheckpointInfo], overrides: Sequence[str]) -> dict[str, dict[Path, CheckpointInfo]]:
    """Group policies by ground: each is evaluated on the one it was trained on and, like all of its robot, on flat."""
    trained = {path: trained_terrain(path, info) for path, info in paths.items()}
    grounds = sorted({ground for ground in trained.values() if ground}, key=lambda ground: (ground == "flat", ground))
    if len(grounds) < 2 or names_ground(overrides):
        return {"": dict(paths)}
    return {
        ground: {path: info for path, info in paths.items() if ground == "flat" or trained[path] == ground}
        for ground in grounds
    }


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    description = "Evaluate the pretrained policies and write the results page."
    parser = Parser(prog="python -m tools.results_page", description=description, allow_abbrev=False)
    add = parser.add_argument
    add("--robot", nargs="+", help="robots; default: all with a pretrained policy")
    add("--checkpoint", nargs="+", help="policies; default: the last stage of every pretrained agent")
    add("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="engines; default: all")
    add("--num_envs", type=int, default=NUM_ENVS, help=f"robots of an evaluation ({NUM_ENVS})")
    words = f"robots of each cell in MuJoCo ({MUJOCO_EPISODES})"
    add("--mujoco_episodes", type=int, default=MUJOCO_EPISODES, help=words)
    add("--device", help="cpu, cuda, cuda:N; default: the first GPU where there is one, else the CPU")
    add("--curves", nargs="+", default=[], metavar="POLICY=RUN", help="run folders whose learning curves are drawn")
    add("--work", type=Path, default=Path("logs/results"), help="folder of the evaluations (logs/results)")
    words = "the page (docs/results.md); studies are kept in a folder of its name"
    add("--out", type=Path, default=Path("docs/results.md"), help=words)
    add("--kept", action="store_true", help="simulate only the policies of which nothing is kept beside the page")
    add("--report_only", "--report-only", action="store_true", help="regenerate the page without simulation")
    # to the front, where no flag with a list of values takes them for one of its own; --curves has values like them
    ours = [token for token in argv if token.startswith(OVERRIDES)]
    options, overrides = parser.parse_known_args([*ours, *(token for token in argv if token not in ours)])
    for token in overrides:
        if token.startswith("-") or "=" not in token:
            example = "env.scene.terrain=flat or protocol.steps=300"
            raise UmcError(f"unknown argument {token}; overrides look like {example}")
        if token.startswith("physics="):
            raise UmcError("give the engines with --engines, not physics=")
    at_least_one(options.num_envs, "--num_envs")
    at_least_one(options.mujoco_episodes, "--mujoco_episodes")
    if set(options.engines) == {"mujoco"}:
        raise UmcError("--engines mujoco alone has no main tables; add newton_mjwarp or ovphysx")
    return options, overrides


def find_policies(options: argparse.Namespace) -> dict[str, dict[Path, CheckpointInfo]]:
    """Return the policies of the page by robot and path."""
    robots = None if options.robot is None else [checked_robot(robot) for robot in options.robot]
    paths = _last_stages() if options.checkpoint is None else [_path(text) for text in options.checkpoint]
    found: dict[str, dict[Path, CheckpointInfo]] = {}
    for path in paths:
        info = checkpoint_info(read_checkpoint(path), path)
        if robots is None or info.robot in robots:
            found.setdefault(info.robot, {})[path] = info
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
    path = find_pretrained(text)[0] if is_pretrained(text) else checked_checkpoint(text)
    assert path is not None
    return path


def _main_engine(engines: Sequence[str], trained: Sequence[str]) -> str:
    """Engine of the main tables: the one that all were trained on, else the first."""
    simulated = [engine for engine in engines if engine != "mujoco"]
    return trained[0] if len(set(trained)) == 1 and trained[0] in simulated else simulated[0]


def _measure(options: argparse.Namespace, overrides: Sequence[str], section: Section) -> None:
    where = f"{section.robot} on {section.ground} ground," if section.ground else section.robot
    for engine in sorted(section.engines, key=lambda one: (one == "mujoco", one != section.engine)):
        policies = section.unkept(engine) if options.kept else section.policies
        if not policies:
            print(f"{where} on {engine}: all {len(section.policies)} policies are kept", flush=True)
        elif engine == "mujoco":
            _measure_in_mujoco(options, overrides, section, policies)
        else:
            print(f"{where} on {engine}: {len(policies)} policies", flush=True)
            argv = ["--checkpoint", *map(str, policies.values()), "--robot", section.robot]
            argv += ["--num_envs", str(options.num_envs), "--labels", *policies]
            argv += ["--device", options.device] if options.device else []
            argv += ["--out", str(section.work / engine), f"physics={engine}"]
            argv += [f"{TERRAIN_KEY}={section.ground}"] if section.ground else []
            run_umc("evaluate", [*argv, *overrides])
            keep(load_study(section.work / engine / STUDY), section.kept, engine)
        if options.checkpoint is None:
            prune(section.kept, engine, map(sha256, section.policies.values()))


def _measure_in_mujoco(
    options: argparse.Namespace, overrides: Sequence[str], section: Section, policies: Mapping[str, Path]
) -> None:
    steps = [token.split("=", 1)[1] for token in overrides if token.startswith("protocol.steps=")]
    for label, path in policies.items():
        print(f"{section.robot} in plain MuJoCo: {label}", flush=True)
        exported = section.work / "mujoco" / sha256(path)[:NAME_LENGTH]
        run_umc("export", ["--checkpoint", str(path), "--out", str(exported)])
        more = ["--episodes", str(options.mujoco_episodes), "--out", str(exported)]
        more += ["--steps", steps[-1]] if steps else []
        run_umc("sim2sim", ["--policy", str(exported), *more])
        keep(load_study(exported / STUDY), section.kept, "mujoco")


def labels(policies: Mapping[Path, CheckpointInfo]) -> list[str]:
    """Name policies by their agent, and by their stage where that is not its last one."""
    found = []
    for name, info in zip(labels_of(list(policies.items())), policies.values(), strict=True):
        spec = agent_spec(agent_of(info)[0])
        last = spec is None or info.stage == spec.stages[-1] or f"stage {info.stage}" in name
        found.append(name if last else f"{name} stage {info.stage}")
    return found


def collect(section: Section, curves: dict[str, str]) -> RobotResults:
    """Read the kept studies of a section."""
    policies = [(label, sha256(path)) for label, path in section.policies.items()]
    studies = {engine: kept_study(section.kept, engine, policies) for engine in section.engines if engine != "mujoco"}
    mujoco: list[Study] = []
    if "mujoco" in section.engines:
        mujoco = [kept_study(section.kept, "mujoco", [policy]) for policy in policies]
    models = list(read_models().values())
    entries = {entry[key]: entry for key in ("sha256", "source_sha256") for entry in models if entry.get(key)}
    return RobotResults(section.robot, section.engine, studies, mujoco, entries, curves, section.ground)


def _curves(
    options: argparse.Namespace, section: Section, paths: Mapping[Path, CheckpointInfo]
) -> list[tuple[str, str]]:
    """Draw the learning curves that were asked for; return those that there are, of policies trained on this ground."""
    from tools.docs_figures import plot_run

    runs = dict(token.split("=", 1) for token in options.curves if "=" in token)
    wrong = [token for token in options.curves if "=" not in token or not Path(token.split("=", 1)[1]).is_dir()]
    if wrong:
        raise UmcError(f"--curves {wrong[0]} names no run folder; give POLICY=RUN, such as mlp=logs/rsl_rl/<...>/<run>")
    found, robot = [], section.robot
    for label, (path, info) in zip(labels(paths), paths.items(), strict=True):
        if section.ground and trained_terrain(path, info) != section.ground:
            continue
        name = f"results_{robot}_{label.replace(' ', '_')}.png"
        picture = options.out.parent / IMAGES / name
        if label in runs or f"{robot}_{label}" in runs:
            plot_run(Path(runs.get(f"{robot}_{label}") or runs[label]), picture, f"{robot.upper()}, {label}")
        if picture.is_file():
            found.append((label, f"{IMAGES}/{name}"))
    return found


def write_page(out: Path, results: Sequence[RobotResults], command: str, notes: Path = NOTES) -> None:
    """Write the page."""
    explained = read_yaml(notes.read_text(encoding="utf-8"), str(notes))
    commit = (git_state() or {}).get("commit", "unknown")
    about = {"command": command, "time": now()[:10], "commit": commit[:10]}
    with atomic_write(out) as file:
        file.write(results_page(results, about, explained["robots"]).encode())


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
