# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What an evaluation needs of a velocity task, by name; and how a task of another package gets what it lacks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from isaaclab.assets import ArticulationCfg
from isaaclab.envs import ManagerBasedRLEnvCfg
from isaaclab.envs import mdp as lab
from isaaclab.managers import SceneEntityCfg, TerminationTermCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.utils import configclass
from isaaclab.utils.assets import retrieve_file_path

from umc import mdp
from umc.faults import FaultsCfg
from umc.mdp.detection import GROUP
from umc.mdp.fault_terms import FAULTS_TERM
from umc.mdp.observations import IMU_QUANTITIES, entries
from umc.robots.names import RobotNames, is_remote, robot_names
from umc.tasks.bodies import ROBOT, is_missing, matched
from umc.tasks.offline import make_offline
from umc.utils.cli import did_you_mean
from umc.utils.errors import UmcError

FIELD = "parts"
"""Field of an env cfg that may hold a :class:`TaskPartsCfg`, and section of the overrides that change it."""

_FIX_FEET = f"name them by {FIELD}.feet='[\"PATTERN\"]', and their contact sensor by {FIELD}.contact_sensor=NAME"

_NO_COMMAND = "it has none: make the cfg of its command a UniformVelocityCommandCfg"

AXES = ("lin_vel_x", "lin_vel_y", "ang_vel_z")
"""Ranges that a velocity command has."""


@configclass
class TaskPartsCfg:
    """Names of what an evaluation reads of a task; the defaults fit UMC's and Isaac Lab's velocity tasks.

    A task of your own may have one as its field ``parts``; on the command line, ``parts.command=NAME`` changes one.
    """

    command: str = "base_velocity"
    """Command term, an Isaac Lab ``UniformVelocityCommandCfg``."""

    contact_sensor: str = "contact_forces"
    """Contact sensor that has the feet."""

    non_finite: str = "non_finite_state"
    """Termination by a simulation that failed, which is no fall; it is added to a task that has none."""

    feet: list[str] | None = None
    """Names or patterns of the bodies that touch the ground; those of ``bodies.feet``, else those of a reward about
    feet. Only gaits and the stance at the onset of a fault need them."""

    joints: list[str] | None = None
    """Names or patterns of the joints that can fail, in a task that gets its faults here; without it all that an
    actuator drives."""


def parts_of(env_cfg: Any) -> TaskPartsCfg:
    """Return the parts of a task; the defaults for a cfg that does not have the field."""
    parts = getattr(env_cfg, FIELD, None)
    return parts if isinstance(parts, TaskPartsCfg) else TaskPartsCfg()


def prepare_task(task: str, env_cfg: Any, changes: Mapping[str, Any], offline: bool = False) -> list[str]:
    """Make a velocity task of any package fit for evaluations, in place: find its parts, add what it lacks.

    Args:
        task: Its name in messages.
        env_cfg: Its cfg with presets and overrides applied.
        changes: Fields of :class:`TaskPartsCfg` that the user has set.
        offline: Whether to replace files of Isaac Lab's asset server by those of this package.

    Returns:
        Lines for the screen about what was chosen and added.

    Raises:
        UmcError: For a task that cannot be evaluated, and a robot's file that cannot be read.
    """
    if not isinstance(env_cfg, ManagerBasedRLEnvCfg):
        raise UmcError(f"{task} is no manager-based task; give one whose cfg is a ManagerBasedRLEnvCfg")
    robot = getattr(env_cfg.scene, ROBOT, None)
    if not isinstance(robot, ArticulationCfg):
        raise UmcError(f"the scene of {task} has no articulation named {ROBOT}; give it that name")
    lines = [f"offline: {line}" for line in make_offline(env_cfg)] if offline else []
    names = known_names(env_cfg.scene.robot)
    parts: Any = dataclasses.replace(parts_of(env_cfg))
    for name, value in changes.items():
        _set(parts, name, value)
    _find_command(task, env_cfg, parts, "command" in changes)
    _find_sensor(env_cfg, parts, "contact_sensor" in changes)
    if parts.feet is None:
        parts.feet = _own_feet(env_cfg) or feet_of_rewards(env_cfg, parts.contact_sensor)
    if parts.feet is not None and names is not None:
        parts.feet = matched(parts.feet, names.bodies, f"{FIELD}.feet", "body")
    if parts.joints is not None and names is not None:
        parts.joints = matched(parts.joints, names.joints, f"{FIELD}.joints", "joint")
    lines += _add_termination(env_cfg, parts, "non_finite" in changes)
    setattr(env_cfg, FIELD, parts)
    return [*lines, *_add_faults(task, env_cfg, "joints" in changes, names), *_about(env_cfg)]


def _set(parts: TaskPartsCfg, name: str, value: Any) -> None:
    known = [field.name for field in dataclasses.fields(parts)]
    if name not in known:
        raise UmcError(f"unknown override {FIELD}.{name};{did_you_mean(name, known)} choose one of {', '.join(known)}")
    wanted = isinstance(value, str)
    if example := {"feet": ".*_foot", "joints": ".*_knee_joint"}.get(name):
        value = [value] if wanted else value
        wanted = isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
    if not wanted:
        kind = f"a list of names, such as '[\"{example}\"]'" if example else "a name"
        raise UmcError(f"{FIELD}.{name} takes {kind}")
    setattr(parts, name, value)


def known_names(robot: ArticulationCfg) -> RobotNames | None:
    """Return the names of a robot's bodies and joints, of a file on a server by a local copy; None without a USD file.

    Raises:
        UmcError: If the file cannot be read or fetched.
    """
    spawn: Any = robot.spawn
    path = getattr(spawn, "usd_path", None)
    if not is_remote(path):
        return robot_names(robot)
    return robot_names(robot.replace(spawn=spawn.replace(usd_path=_fetched(str(path)))))


@lru_cache(maxsize=8)
def _fetched(path: str) -> str:
    """Return a local copy of a file of Isaac Lab's asset server, which Isaac Lab keeps for later runs."""
    try:
        return retrieve_file_path(path)
    except (OSError, RuntimeError) as error:
        raise UmcError(
            f"the robot's file {path} cannot be fetched; give a file of yours by env.scene.robot.spawn.usd_path=FILE, "
            "or --offline for a robot that UMC has itself"
        ) from error


def _find_command(task: str, env_cfg: Any, parts: TaskPartsCfg, typed: bool) -> None:
    """Find the velocity command: the one that is named, else the only one."""
    found = [name for name, term in entries(env_cfg.commands or {}).items() if _is_velocity_command(term)]
    if parts.command not in found and len(found) == 1 and not typed:
        parts.command = found[0]
    if parts.command not in found:
        there = f"it has {', '.join(found)}: choose one by {FIELD}.command=NAME" if found else _NO_COMMAND
        raise UmcError(f"{task} has no uniform velocity command named {parts.command}; {there}")


def _is_velocity_command(term: Any) -> bool:
    ranges = getattr(term, "ranges", None)
    return isinstance(term, lab.UniformVelocityCommandCfg) and all(hasattr(ranges, axis) for axis in AXES)


def _find_sensor(env_cfg: Any, parts: TaskPartsCfg, typed: bool) -> None:
    """Find the contact sensor: the one that is named, else the only one; a task may have none."""
    found = [name for name, cfg in entries(env_cfg.scene).items() if isinstance(cfg, ContactSensorCfg)]
    if parts.contact_sensor in found:
        return
    if typed:
        known, name = ", ".join(found) or "none", parts.contact_sensor
        raise UmcError(f"{FIELD}.contact_sensor: the scene has no contact sensor {name}; it has {known}")
    if len(found) == 1:
        parts.contact_sensor = found[0]


def _own_feet(env_cfg: Any) -> list[str] | None:
    """Return the feet that the field ``bodies`` of UMC's tasks names."""
    feet = getattr(getattr(env_cfg, "bodies", None), "feet", None)
    return list(feet) if feet and not is_missing(feet) else None


def feet_of_rewards(env_cfg: Any, sensor: str) -> list[str] | None:
    """Return the bodies of a contact sensor that the first reward about feet reads; None if there is no such reward."""
    for name, term in entries(env_cfg.rewards or {}).items():
        func = getattr(getattr(term, "func", None), "__name__", "")
        if term is None or not any(word in text for word in ("feet", "foot") for text in (name.lower(), func.lower())):
            continue
        for entity in entries(term.params).values():
            if isinstance(entity, SceneEntityCfg) and entity.name == sensor and entity.body_names:
                names = entity.body_names
                return [names] if isinstance(names, str) else list(names)
    return None


def _add_termination(env_cfg: Any, parts: TaskPartsCfg, typed: bool) -> list[str]:
    """Find the termination by a simulation that failed; add it where there is none."""
    terms = entries(env_cfg.terminations)
    if terms.get(parts.non_finite) is not None:
        return []
    if typed:
        known = ", ".join(name for name, term in terms.items() if term is not None)
        raise UmcError(f"{FIELD}.non_finite: the task has no termination {parts.non_finite}; it has {known}")
    for name, term in terms.items():
        if getattr(term, "func", None) is mdp.non_finite_state:
            parts.non_finite = name
            return []
    setattr(env_cfg.terminations, parts.non_finite, TerminationTermCfg(func=mdp.non_finite_state))
    return [f"added to the task: termination {parts.non_finite}, for simulations that fail"]


def _add_faults(task: str, env_cfg: Any, typed: bool, names: RobotNames | None) -> list[str]:
    """Add the fault terms to a task without them; an evaluation or a film sets what fails."""
    if getattr(env_cfg.events, FAULTS_TERM, None) is not None:
        if typed:
            fix = f"change env.events.{FAULTS_TERM}.params.asset_cfg.joint_names"
            raise UmcError(f"{FIELD}.joints is for tasks without faults, and {task} has them; {fix}")
        return []
    _require_group(task, env_cfg)
    joints, passive = parts_of(env_cfg).joints, []
    if joints is None and names is not None:
        driven = _driven(env_cfg.scene.robot, names.joints)
        passive = [name for name in names.joints if name not in driven]
        joints = driven if driven and passive else None
    most = FaultsCfg().num_joints[1]
    try:
        # a joint and a command fault, so that both can be chosen
        mdp.add_faults(
            env_cfg,
            joint_names=joints,
            scenario=["rom", "dropped"],
            severity={"rom": 1.0},
            num_joints=(1, most if joints is None else min(most, len(joints))),
            onset=1,
        )
    except UmcError as error:
        raise UmcError(f"faults cannot be added to {task}: {error}") from error
    lines = ["added to the task: faults of joints, sensors and commands (umc.mdp.add_faults)"]
    if joints is not None and passive:
        lines.append(f"no actuator drives {', '.join(passive)}: they do not fail, unless {FIELD}.joints has them")
    return [*lines, *_about_terms(env_cfg)]


def _driven(robot: ArticulationCfg, joints: Sequence[str]) -> list[str]:
    """Return the joints that an actuator drives; an effort fault would change nothing at the others."""
    given = [actuator.joint_names_expr for actuator in robot.actuators.values()]
    patterns = [one for some in given for one in ([some] if isinstance(some, str) else some)]
    return [name for name in joints if any(re.fullmatch(pattern, name) for pattern in patterns)]


def _require_group(task: str, env_cfg: Any) -> None:
    """Raise UmcError for a task without faults whose actor does not read the group ``policy``."""
    groups = [name for name, group in entries(env_cfg.observations).items() if group is not None]
    if groups and GROUP not in groups:
        own = next((name for name in groups if name != "critic"), groups[0])
        raise UmcError(
            f"{task} has no observation group {GROUP}, whose sensors would fail; call umc.mdp.add_faults(self, "
            f"groups=['{own}']) in its __post_init__, and name what a policy reads in a YAML file, as {own}/TERM"
        )


def _about_terms(env_cfg: Any) -> list[str]:
    """Return a line about which terms of the group ``policy`` sensor faults reach."""
    joints, imu, others = [], [], []
    for name, term in entries(entries(env_cfg.observations).get(GROUP) or {}).items():
        func = getattr(term, "func", None)
        if func is not None:
            (joints if func is mdp.joint_sensor else imu if func in IMU_QUANTITIES else others).append(name)
    faults = {"faults of joint sensors": joints, "faults of the IMU": imu, "none": others}
    words = [f"{what} reach {', '.join(names)}" for what, names in faults.items() if names]
    return [f"group {GROUP}: {'; '.join(words)}"] if words else []


def feet_of(env_cfg: Any) -> tuple[str, ...] | None:
    """Return names or patterns of a robot's feet; None if they are not known, or no contact sensor has them."""
    parts = parts_of(env_cfg)
    feet = parts.feet or _own_feet(env_cfg)
    sensor = getattr(env_cfg.scene, parts.contact_sensor, None)
    return tuple(feet) if feet and isinstance(sensor, ContactSensorCfg) else None


def foot_names(env_cfg: Any) -> tuple[str, ...] | None:
    """Return :func:`feet_of` as the names of bodies, where those of the robot are known before a simulation."""
    feet, names = feet_of(env_cfg), known_names(env_cfg.scene.robot)
    return feet if feet is None or names is None else tuple(matched(feet, names.bodies, "the feet", "body"))


def required_feet(env_cfg: Any) -> tuple[str, ...]:
    """Return :func:`feet_of`; UmcError if they are not known."""
    feet = feet_of(env_cfg)
    if feet is None:
        raise UmcError(f"the feet of the robot are unknown; {_FIX_FEET}")
    return feet


def _about(env_cfg: Any) -> Iterator[str]:
    """Yield lines about what is measured in a task that does not say it itself."""
    if _own_feet(env_cfg) is None:
        feet = feet_of(env_cfg)
        unknown = f"unknown, so that reports lack the feet on the ground at the fault; {_FIX_FEET}"
        yield f"feet: {unknown if feet is None else ', '.join(feet)}"
    own = parts_of(env_cfg).non_finite
    terms = [(name, term) for name, term in entries(env_cfg.terminations).items() if hasattr(term, "time_out")]
    if not any(name != own and not term.time_out for name, term in terms):
        yield "falls: the task has no termination by a fall, so that none is counted"
    own_events: dict[str, list[str]] = {"interval": [], "startup": []}
    for name, event in entries(env_cfg.events or {}).items():
        module = str(getattr(getattr(event, "func", None), "__module__", "isaaclab"))
        if getattr(event, "mode", None) in own_events and not module.startswith(("isaaclab", "umc.")):
            own_events[event.mode].append(name)
    if left_out := own_events["interval"]:
        yield f"left out, as pushes are: the interval events {', '.join(left_out)}"
    if again := own_events["startup"]:
        yield f"run anew for each policy and batch, so that they must not add up: startup events {', '.join(again)}"
