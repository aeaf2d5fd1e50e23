# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Whether two devices compute the same.

:func:`record` keeps the ledger and the observations of a task under fixed actions, from starts and faults that no
device draws by itself; :func:`compare` compares two of these files.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import ConfigDict

from umc.utils.config import FileModel, validated
from umc.utils.errors import UmcError
from umc.utils.io import read_torch, write_torch

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.managers import ObservationManager

RECORDED_ENVS, EPISODE, EPISODES = 64, 24, 3
"""Envs of a recording, env steps of an episode, and episodes: all robots start again before small differences grow."""

SEED, SCALE = 1, 0.3
"""Seed of faults and actions, and standard deviation of the actions [-]."""

COMMAND = (0.5, 0.0, 0.0)
"""Velocity x [m/s], y [m/s], yaw [rad/s]."""

FAULTS: dict[str, Any] = {
    "ratios": {
        "limited": 2.0,
        "locked": 1.0,
        "power_loss": 1.0,
        "braking+friction": 1.0,
        "unread": 1.0,
        "frozen": 1.0,
        "bias+drift+noise": 1.0,
        "dropped": 1.0,
        "delayed": 1.0,
        "normal": 1.0,
    },
    # masks are those of detected faults
    "scenarios": {
        "limited": {"kinds": ["rom", "effort", "velocity"], "detected": True},
        "unread": {"kinds": ["dead"], "detected": True},
    },
    "severity": {
        "rom": 0.3,
        "effort": {"fraction": {"log_uniform": [0.03, 0.3]}},  # G1 needs no more than that
        "velocity": {"log_uniform": [2.0, 6.0]},
        "braking": 0.5,
        "friction": 1.0,
        "bias": {"uniform": [-0.1, 0.1]},
        "drift": 0.1,
        "noise": 0.05,
        "dropped": 0.5,
        "delayed": {"choice": [1, 3]},
    },
    "num_joints": (1, 3),
    "onset_range": (1, EPISODE // 2),
    "duration": (4, EPISODE // 2),
    "seed": SEED,
}
"""Faults of a recording: they come and go in every episode."""

WINDOW = ("lower", "upper")
"""Limits in a ledger that depend on where a joint is at onset; everything else in it has to be equal to the bit."""

EXACT = ("joint_mask", "fault_flag")
"""Observation groups that follow from the faults alone."""

HEIGHT = 2.0
"""How far above the ground the robots of odd numbers start [m]: they fall until their episode ends, and no contact
amplifies differences."""

BASE_TERMS = ("base_lin_vel", "base_ang_vel", "projected_gravity", "orientation")
"""Observation terms of the base."""

BASE = " (base)"
"""End of the name under which a recording has these columns of a group."""

TOLERANCE, FIRST_TOLERANCE = 1.0e-3, 1.0e-4
"""Largest difference of an observation, in its own unit, in an episode and in its first env step."""

PHYSX_TOLERANCE = 3.0e-3
"""The first of them in the air on PhysX, which has another solver on a GPU; first measured on an H100."""

PHYSX_BASE_TOLERANCE, PHYSX_BASE_FIRST_TOLERANCE = 0.2, 5.0e-3
"""Both of the base on PhysX: its speeds differ more than those of joints."""

PHYSX_GROUND_TOLERANCE = 1.0
"""The first of them on the ground on PhysX, but for the base."""

GROUND_STEPS = 6
"""Until which env step of an episode the ground counts: rounding grows tenfold every few env steps."""

SHARE = 0.97
"""Least share of the robots on the ground, and of those in the air, each in each episode, that have to keep the
tolerance [-]; a defect of one kind of faults moves more (docs/gpu_test.md, by ``benchmarks/devices.py``)."""


def make_repeatable(env_cfg: Any, ledger: Path) -> None:
    """Take out of a Stage 2 cfg, in place, what a device draws with a generator of its own, and falls; log its faults.

    Robots start in their default state, those of odd envs in the air, all episodes have the same length, and
    :data:`FAULTS` take the place of the task's faults.
    """
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import EventTermCfg

    from umc.evaluation import conditions

    conditions.disable_training_randomization(env_cfg, COMMAND, RECORDED_ENVS, EPISODE, SEED)
    env_cfg.episode_length_s = EPISODE * env_cfg.sim.dt * env_cfg.decimation
    conditions.drop_events(env_cfg, "startup", "reset")
    env_cfg.events.default_state = EventTermCfg(func=lab.reset_scene_to_default, mode="reset")
    env_cfg.events.height = EventTermCfg(func=raise_odd_robots, mode="reset")
    for name, term in vars(env_cfg.terminations).items():
        if term is not None and not term.time_out:
            setattr(env_cfg.terminations, name, None)
    conditions.add_command_faults(env_cfg)
    conditions.replace_faults(env_cfg, **FAULTS, ledger=str(ledger))


def raise_odd_robots(env: ManagerBasedRLEnv, env_ids: torch.Tensor | slice) -> None:
    """Move the robots of odd envs up, at a reset."""
    robot = env.scene["robot"]
    ids = torch.arange(env.num_envs, device=env.device)[env_ids]
    pose = robot.data.root_pose_w.torch[ids]
    pose[:, 2] += HEIGHT * (ids % 2)
    robot.write_root_pose_to_sim_index(root_pose=pose, env_ids=ids.int())


def record(env: ManagerBasedRLEnv, ledger: Path, out: Path) -> None:
    """Write the observations under fixed actions, (env steps, envs, columns) by group, and the ledger of the faults."""
    generator = torch.Generator().manual_seed(SEED)  # on the CPU: generators of devices differ
    width = env.action_manager.total_action_dim
    groups = _groups(env.observation_manager)
    rows: list[dict[str, torch.Tensor]] = []
    env.reset()
    for _ in range(EPISODE * EPISODES):
        actions = SCALE * torch.randn(env.num_envs, width, generator=generator)
        observations: dict[str, Any] = env.step(actions.to(env.device))[0]
        rows.append({name: observations[group][:, at].float().cpu() for name, (group, at) in groups.items()})
    content = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    engine = env.scene["robot"].__backend_name__
    write_torch(out, {"observations": content, "ledger": ledger.read_text(), "engine": engine})


def _groups(manager: ObservationManager) -> dict[str, tuple[str, list[int]]]:
    """Return group and columns of what a recording has, by name: each group, columns of the base apart."""
    found: dict[str, tuple[str, list[int]]] = {}
    for group, terms in manager.active_terms.items():
        widths = [shape[0] for shape in manager.group_obs_term_dim[group]]
        for term, width, end in zip(terms, widths, itertools.accumulate(widths), strict=True):
            _, columns = found.setdefault(group + BASE * (term in BASE_TERMS), (group, []))
            columns += range(end - width, end)
    return found


def tolerance(engine: str, group: str, env: int) -> float:
    """Return the largest difference of a group's observations in an episode of an env."""
    if engine == "newton":
        return TOLERANCE
    if group.endswith(BASE):
        return PHYSX_BASE_TOLERANCE
    return PHYSX_TOLERANCE if env % 2 else PHYSX_GROUND_TOLERANCE


class Recording(FileModel):
    """What :func:`record` wrote."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    observations: dict[str, torch.Tensor]
    ledger: str
    engine: str
    """Isaac Lab's name of the engine."""


def read_recording(path: Path) -> Recording:
    """Read a file of :func:`record`; raise UmcError if it is damaged."""
    return validated(Recording, read_torch(path), str(path))


@dataclass(frozen=True)
class Comparison:
    """How far two recordings are apart."""

    ledger_lines: int
    switches: int
    """Lines of the ledger that say which faults went on or off."""
    largest: dict[str, float]
    """Largest difference of each observation group, in its own unit."""
    median: dict[str, float]
    """The same of the robot in the middle."""
    within: dict[str, float]
    """Share of the robots, each in each episode, that keep the tolerance [-]: of ground and air the smaller."""
    first: dict[str, float]
    """Largest difference in the first env steps of all episodes."""
    failures: tuple[str, ...]
    """What is beyond the tolerances; empty where the devices agree."""


def compare(one: Recording, other: Recording) -> Comparison:
    """Compare two recordings: ledgers to the bit but for windows, observations within the tolerances."""
    failures = ledger_differences(one.ledger, other.ledger, one.engine)
    largest, median, within, first = {}, {}, {}, {}
    for name, apart in distances(one, other).items():
        robots = apart.amax(1)
        largest[name], median[name] = robots.max().item(), robots.median().item()
        beyond = beyond_tolerance(one, name, apart)
        within[name] = 1.0 - max(half.double().mean().item() for half in (beyond[:, ::2], beyond[:, 1::2]))
        first[name] = apart[:, 0].max().item()
        if name in EXACT and largest[name] > 0.0:
            episode, step, env = (int(place) for place in apart.nonzero()[0])
            failures.append(f"{name} is not equal, first in env step {episode * EPISODE + step + 1} of env {env}")
        elif name not in EXACT and first[name] > first_tolerance(one.engine, name):
            failures.append(f"{name} is {first[name]:.2g} apart in the first env step of an episode")
        elif name not in EXACT and within[name] < SHARE:
            failures.append(f"{name} keeps the tolerance in {within[name]:.1%} of robots: {_scenarios(one, beyond)}")
    lines = one.ledger.splitlines()
    switches = sum(line.startswith('{"switch"') for line in lines)
    return Comparison(len(lines), switches, largest, median, within, first, tuple(failures))


def first_tolerance(engine: str, group: str) -> float:
    """Return the largest difference of a group's observations in the first env step of an episode."""
    is_looser = engine != "newton" and group.endswith(BASE)
    return PHYSX_BASE_FIRST_TOLERANCE if is_looser else FIRST_TOLERANCE


def beyond_tolerance(recording: Recording, group: str, apart: torch.Tensor) -> torch.Tensor:
    """Return which robots leave the tolerance, by :func:`distances` of a group. Shape is (episodes, envs)."""
    counted = apart.clone()
    late = counted[:, GROUND_STEPS:, ::2]
    late[late.isfinite()] = 0.0
    tolerances = [tolerance(recording.engine, group, env) for env in range(apart.shape[2])]
    return counted.amax(1) > torch.tensor(tolerances, dtype=torch.double)


def distances(one: Recording, other: Recording) -> dict[str, torch.Tensor]:
    """Return the largest difference of a robot in an env step, by group. Shapes are (episodes, env steps, envs)."""
    shapes = [{name: tuple(values.shape) for name, values in each.observations.items()} for each in (one, other)]
    if shapes[0] != shapes[1]:
        raise UmcError(f"the recordings have other observations ({shapes[0]}, {shapes[1]}); record both again")
    found = {}
    for name, values in one.observations.items():
        # NaN in both would agree with itself; it must not
        apart = (values.double() - other.observations[name].double()).abs().nan_to_num(nan=math.inf).amax(2)
        found[name] = apart.view(-1, EPISODE, apart.shape[1])
    return found


def _scenarios(recording: Recording, beyond: torch.Tensor) -> str:
    """Return how many robots of each scenario are beyond the tolerance, in words."""
    header, *lines = (json.loads(line) for line in recording.ledger.splitlines())
    names = [scenario["name"] for scenario in header["scenarios"]]
    robots, found = Counter[str](), Counter[str]()
    for line in lines:
        env, episode = line.get("plan", (0, len(beyond)))
        if episode < len(beyond):
            name = "+".join(names[fault["scenario"]] for fault in line["faults"]) or "no fault"
            robots[name] += 1
            found[name] += int(beyond[episode, env])
    return ", ".join(f"{name} {count} of {robots[name]} beyond" for name, count in found.most_common() if count)


def ledger_differences(one: str, other: str, engine: str) -> list[str]:
    """Return the first line in which two ledgers differ, in words; windows may differ as observations may."""
    lines, others = one.splitlines(), other.splitlines()
    windows, far = 0, []
    for number, (line, second) in enumerate(zip(lines, others, strict=False), 1):
        left, right = json.loads(line), json.loads(second)
        pairs = [[content.pop(name, None) for content in (left, right)] for name in WINDOW]
        place = f"line {number}: {line[:200]} and {second[:200]}"
        if left != right or not all(_close(*pair, math.inf) for pair in pairs):
            return [f"the ledgers differ in {place}"]
        if pairs[0][0] is not None:
            env, _, step = left["switch"]
            if env % 2 == 0 and step > GROUND_STEPS:
                continue
            windows += 1
            allowed = min(tolerance(engine, "", env), PHYSX_BASE_TOLERANCE)  # positions, not speeds
            if not all(_close(*pair, allowed) for pair in pairs):
                far.append(place)
    if len(lines) != len(others):
        return [f"the ledgers have {len(lines)} and {len(others)} lines"]
    if len(far) > (1.0 - SHARE) * windows:
        return [f"{len(far)} of {windows} windows in the ledgers are beyond the tolerance, first in {far[0]}"]
    return []


def _close(left: Sequence[float | None] | None, right: Sequence[float | None] | None, tolerance: float) -> bool:
    """Return whether two lists of limits are the same but for the tolerance."""
    if left is None or right is None or len(left) != len(right):
        return left is right
    pairs = zip(left, right, strict=True)
    return all(a is b if a is None or b is None else abs(a - b) <= tolerance for a, b in pairs)
