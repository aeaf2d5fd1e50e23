# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Adds faults of joints, sensors, the IMU and commands to any manager-based task: :func:`add_faults`."""

import copy
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any, cast, override

from isaaclab.assets import ArticulationCfg
from isaaclab.envs import ManagerBasedRLEnvCfg
from isaaclab.managers import EventTermCfg, ObservationGroupCfg, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils import configclass
from isaaclab_tasks.utils import PresetCfg

from umc.faults import FaultsCfg, read_ledger, try_faults
from umc.faults.cfg import check_mapping, check_path, check_patterns, faults_cfg, is_list_of
from umc.faults.kinds import ANGULAR_VELOCITY, CommandKind, FaultKind, ImuKind, JointKind
from umc.faults.replay import ledger_kinds
from umc.faults.severity import FRACTION, SHAPES
from umc.mdp.actions import CommandFaultsCfg
from umc.mdp.detection import DetectionCfg
from umc.mdp.events import joint_faults, reset_faults
from umc.mdp.fault_terms import FAULTS_TERM
from umc.mdp.imu import has_imu_sensor
from umc.mdp.observations import (
    ACTION,
    IMU_QUANTITIES,
    QUANTITIES,
    entries,
    fault_class,
    fault_flag,
    joint_mask,
    live_faults,
)
from umc.mdp.physics import prepare_robot
from umc.mdp.sensor_cfg import SensorWrapper, action_terms, variants
from umc.robots.names import RobotNames, robot_names
from umc.utils.errors import UmcError

RESET_TERM, MASK_GROUP, FLAG_GROUP, COMMAND_TERM = "reset_faults", "joint_mask", "fault_flag", "command_faults"
"""Names of what is added, beside the event ``faults``."""

PLACEHOLDER_JOINTS = 256
"""Joints of the robot that faults are validated on where its own are unknown: more than any real robot has."""


@configclass
class JointMaskCfg(ObservationGroupCfg):
    """Joints that the policy has to mask."""

    mask = ObservationTermCfg(func=joint_mask)


@configclass
class FaultFlagCfg(ObservationGroupCfg):
    """Fault flag: whether a joint fault has been detected, three columns wide."""

    flag = ObservationTermCfg(func=fault_flag)


@configclass
class FaultClassCfg(ObservationGroupCfg):
    """Class of the reported joint faults, for policies that have a head for each (MT-FTC)."""

    fault_class = ObservationTermCfg(func=fault_class)


@configclass
class LiveFaultsCfg(ObservationGroupCfg):
    """All faults, for a privileged critic (:mod:`umc.rl.critics`)."""

    live = ObservationTermCfg(func=live_faults)


@configclass
class FaultEventsCfg:
    """The fault terms; a robot's events follow them, so that ``reset_faults`` restores limits before others reset."""

    reset_faults = EventTermCfg(func=reset_faults, mode="reset")
    # every step: switches due faults on
    faults = EventTermCfg(
        func=cast(Any, joint_faults),
        mode="interval",
        interval_range_s=(0.0, 0.0),
        is_global_time=True,
        params=cast(Any, MISSING),
    )


@configclass
class FaultyJointsCfg(SceneEntityCfg):
    """The joints that can fail; the fault term refuses patterns that match nothing, since it can name the joints."""

    @override
    def resolve(self, scene: Any) -> None:
        joints = scene[self.name].joint_names
        if all(any(re.fullmatch(pattern, joint) for joint in joints) for pattern in self.joint_names or ()):
            super().resolve(scene)


def add_faults(
    env_cfg: Any,
    asset_name: str = "robot",
    joint_names: Sequence[str] | None = None,
    *,
    faults: FaultsCfg | None = None,
    groups: Sequence[str] = ("policy",),
    quantities: Mapping[Callable[..., Any], str | None] | None = None,
    **changes: Any,
) -> None:
    """Add faults of joints, sensors and commands to a manager-based task's cfg, in place.

    Any robot and any task of Isaac Lab's manager-based workflow will do, stock tasks included:

    .. code-block:: python

        from umc import mdp

        mdp.add_faults(
            env_cfg,
            joint_names=[".*_hip_joint", ".*_knee_joint"],  # that can fail; all of them without it
            severity={"rom": 0.3, "effort": 5.0, "velocity": {"uniform": [2.0, 4.0]}},
            num_joints=(1, 3),  # of each fault
            onset_range=(25, 250),  # env steps
        )
        env = ManagerBasedRLEnv(env_cfg)
        state = mdp.fault_state(env)  # which joints of which env are broken now, how, and since when

    docs/faults.md lists the kinds of faults, what they depend on and what the call changes: two events, the joint
    observations of ``groups`` (every other group, such as a critic's, keeps true values), two observation groups, the
    actions if commands can fail, and the PhysX solver iterations of the robot. Rewards, terminations and commands stay
    as they are. :class:`~umc.faults.FaultsCfg` describes every field; without ``ratios``, ``scenario`` and ``cases``
    the four subcategories of the paper are drawn equally often.

    Call it on an instance of the cfg, or in ``__post_init__`` of a subclass; presets that Hydra has yet to choose from
    are changed in every variant. On the command line the parameters are ``env.events.faults.params.num_joints=[1,2]``
    and so on.

    Args:
        env_cfg: The task's cfg, a :class:`~isaaclab.envs.ManagerBasedRLEnvCfg`.
        asset_name: The robot's name in the scene.
        joint_names: Patterns (full match) of the joints that can fail, in place of those of ``faults``.
        faults: Description of the faults; the defaults without it.
        groups: Observation groups whose sensors can fail; each needs one, such as a joint observation.
        quantities: What further observation functions report of each joint: ``position`` [rad], ``velocity`` [rad/s]
            or ``action``; of an IMU: ``angular_velocity`` [rad/s] or ``gravity``; None for one that keeps its true
            values.
        changes: Fields of ``faults``, as a shorthand: ``severity=...``, ``num_joints=...``.

    Raises:
        UmcError: If anything is invalid; the cfg is then unchanged. Patterns that match no joint are found at once
            where the robot's USD is a local file, else when the environment is made.
    """
    if not isinstance(env_cfg, ManagerBasedRLEnvCfg):
        fix = "; choose with resolve_presets first" if isinstance(env_cfg, PresetCfg) else ""
        raise UmcError(f"add_faults needs a ManagerBasedRLEnvCfg, not {type(env_cfg).__name__}{fix}")
    changes = changes if joint_names is None else {**changes, "joint_names": joint_names}
    faults = faults_cfg(faults, changes)
    asset_cfg = _faulty_joints(env_cfg, asset_name, faults.joint_names)
    kinds = validate_faults(env_cfg, faults, _known_joints(env_cfg, asset_name))
    params = {**faults.params(), **{name: value for name, value in changes.items() if name != "joint_names"}}
    has_imu_faults = any(isinstance(kind, ImuKind) for kind in kinds)
    sensors = SensorWrapper(asset_name, quantities or {}, action_terms(env_cfg), has_imu_faults)
    edits = _sensor_edits(env_cfg, groups, sensors)
    if has_imu_faults and not sensors.has_imu and not has_imu_sensor(env_cfg):
        raise UmcError(
            f"observation groups {', '.join(groups)} show no {', '.join(func.__name__ for func in IMU_QUANTITIES)} of "
            f"'{asset_name}'; leave IMU faults out, or name others by quantities={{function: '{ANGULAR_VELOCITY}'}}"
        )
    if any(isinstance(kind, CommandKind) for kind in kinds):
        actions = [entries(holder[name]) for holder, name in variants(env_cfg, "actions")]
        _refuse_taken(actions, COMMAND_TERM, "action")
        edits += [(terms, COMMAND_TERM, CommandFaultsCfg(asset_name=asset_name)) for terms in actions]
    if any(isinstance(kind, JointKind) for kind in kinds):
        edits += _prepared_robots(env_cfg, asset_name)
    events = [entries(holder[name]) for holder, name in variants(env_cfg, "events")]
    for added in (RESET_TERM, FAULTS_TERM):
        _refuse_taken(events, added, "event")

    # from here on nothing fails
    if not hasattr(env_cfg, "detection"):
        env_cfg.detection = DetectionCfg()
    for holder, key, value in edits:
        holder[key] = value
    for terms in {id(terms): terms for terms in events}.values():
        added = FaultEventsCfg()
        added.faults.params = {"asset_cfg": copy.deepcopy(asset_cfg), **copy.deepcopy(params)}
        others = {name: term for name, term in terms.items() if name not in (RESET_TERM, FAULTS_TERM)}
        terms.clear()
        terms.update({RESET_TERM: added.reset_faults, **others, FAULTS_TERM: added.faults})


def _faulty_joints(
    env_cfg: ManagerBasedRLEnvCfg, asset_name: str, joint_names: Sequence[str] | None
) -> FaultyJointsCfg:
    """Return the joints that can fail, as far as they can be checked without a robot."""
    patterns = [pattern.pattern for pattern in check_patterns(joint_names)]
    for holder, name in variants(env_cfg, "scene"):
        robots = [
            asset
            for asset in entries(holder[name])
            if any(isinstance(at[of], ArticulationCfg) for at, of in variants(holder[name], asset))
        ]
        if asset_name not in robots:
            raise UmcError(f"the scene has no articulation '{asset_name}'; it has {', '.join(robots) or 'none'}")
    return FaultyJointsCfg(asset_name) if patterns == [".*"] else FaultyJointsCfg(asset_name, joint_names=patterns)


def _known_joints(env_cfg: ManagerBasedRLEnvCfg, asset_name: str) -> list[tuple[str, ...]]:
    """Return the joints of the robot, of each that a preset offers; none where no file names them."""
    robots = [at[of] for holder, name in variants(env_cfg, "scene") for at, of in variants(holder[name], asset_name)]
    return [names.joints for robot in robots if (names := _names_of(robot)) is not None]


def _names_of(robot: Any) -> RobotNames | None:
    """Return the names of a robot whose USD file can be read."""
    path = getattr(getattr(robot, "spawn", None), "usd_path", None)
    return robot_names(robot) if isinstance(path, str) and Path(path).is_file() else None


def _prepared_robots(env_cfg: ManagerBasedRLEnvCfg, asset_name: str) -> list[tuple[dict[str, Any], str, Any]]:
    """Copies of the robot, which other tasks may share, whose limits an engine can hold: holder, key and new value."""
    edits: list[tuple[dict[str, Any], str, Any]] = []
    for holder, name in variants(env_cfg, "scene"):
        for at, of in variants(holder[name], asset_name):
            if isinstance(at[of], ArticulationCfg):
                robot = copy.deepcopy(at[of])
                prepare_robot(robot)
                edits.append((at, of, robot))
    return edits


def _sensor_edits(
    env_cfg: ManagerBasedRLEnvCfg, groups: Sequence[str], sensors: SensorWrapper
) -> list[tuple[dict[str, Any], str, Any]]:
    """Changes of the observations: holder, key and new value."""
    if isinstance(groups, str) or not groups:
        raise UmcError(f"groups must list observation groups, such as ['policy'], not {groups!r}")
    edits: list[tuple[dict[str, Any], str, Any]] = []
    all_groups = [entries(holder[name]) for holder, name in variants(env_cfg, "observations")]
    for added in (MASK_GROUP, FLAG_GROUP):
        _refuse_taken(all_groups, added, "observation group")
    for present in all_groups:
        for group in groups:
            if present.get(group) is None:
                names = ", ".join(name for name, cfg in present.items() if cfg is not None)
                raise UmcError(
                    f"the task has no observation group '{group}'; it has {names} (groups=[...] names others)"
                )
            edits += [(at, of, sensors.wrap_group(at[of], group)) for at, of in variants(present, group)]
    with_joints = _groups_with_joints(all_groups)
    others = [name for name in with_joints if name not in groups]
    if others and others == with_joints and not sensors.selections:
        text = f"no fault reaches the joint sensors in {', '.join(others)}, and none is in {', '.join(groups)}; "
        warnings.warn(f"{text}list by groups= what the actor reads", RuntimeWarning, stacklevel=3)
    mask = JointMaskCfg()
    selections = list(sensors.selections.values())
    if len(selections) == 1 and selections[0] is not None:
        mask.mask.params["asset_cfg"] = copy.deepcopy(selections[0])
    for present in all_groups:
        edits += [(present, MASK_GROUP, copy.deepcopy(mask)), (present, FLAG_GROUP, FaultFlagCfg())]
    return edits


def _groups_with_joints(observations: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the groups that have positions or velocities of joints."""
    found: dict[str, None] = {}
    for present in observations:
        for name in present:
            for holder, key in variants(present, name) if present[name] is not None else ():
                functions = [getattr(term, "func", None) for term in entries(holder[key]).values()]
                if any(QUANTITIES.get(func, ACTION) != ACTION for func in functions if callable(func)):
                    found[name] = None
    return list(found)


def _refuse_taken(present: Sequence[Mapping[str, Any]], name: str, what: str) -> None:
    if any(terms.get(name) is not None for terms in present):
        raise UmcError(f"the task has an {what} named '{name}' already; add faults once (copy.deepcopy copies a cfg)")


def validate_faults(env_cfg: Any, faults: FaultsCfg, robots: Sequence[Sequence[str]] = ()) -> tuple[FaultKind, ...]:
    """Draw faults for robots of these joints, by default of any, and return their kinds; UmcError for invalid ones."""
    if faults.replay is not None:
        return ledger_kinds(read_ledger(faults.replay))
    if faults.ledger is not None:
        check_path("ledger", faults.ledger)
    kinds: tuple[FaultKind, ...] = ()
    for joints in robots:
        kinds = try_faults(joints, faults, _episode_length(env_cfg), "these parameters").kinds
    if robots:
        return kinds
    names = [f"joint_{number}" for number in range(PLACEHOLDER_JOINTS)]
    for severity in _without_patterns(check_mapping("severity", faults.severity)):
        cfg = replace(
            faults,
            severity=severity,
            joint_names=None,
            joint_groups=_without_names(faults.joint_groups, names),
            cases=_cases_of_any_robot(faults.cases, names),
        )
        kinds = try_faults(names, cfg, _episode_length(env_cfg), "these parameters").kinds
    return kinds


def _without_patterns(severity: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Severities for joints of any name: each value of a pattern in turn, the first of all others."""
    values = {
        kind: list(value.values()) if isinstance(value, Mapping) and set(value) - {*SHAPES, FRACTION} else [value]
        for kind, value in severity.items()
    }
    first = {kind: listed[0] for kind, listed in values.items()}
    return [first, *({**first, kind: value} for kind, listed in values.items() for value in listed[1:])]


def _cases_of_any_robot(cases: Any, names: Sequence[str]) -> Any:
    """Cases for joints of other names: several for one whose severities differ by joint."""
    if not is_list_of(lambda case: isinstance(case, Mapping), cases):
        return cases
    changed: list[dict[str, Any]] = []
    for case in cases:
        check_patterns(case.get("joint_names"))
        groups = {"joint_groups": _without_names(case["joint_groups"], names)} if "joint_groups" in case else {}
        for severity in _without_patterns(check_mapping("severity", case.get("severity"))):
            changed.append({**case, **groups, "joint_names": None, "severity": severity})
    return changed


def _without_names(groups: Any, names: Sequence[str]) -> Any:
    """Joint groups of a robot whose joints have other names: as many, of one joint each."""
    if not isinstance(groups, Mapping):
        return groups
    return {group: [names[number % len(names)]] for number, group in enumerate(groups)}


def _episode_length(env_cfg: Any) -> int | None:
    """Length of an episode [env steps], if the cfg has it."""
    seconds, step, decimation = env_cfg.episode_length_s, getattr(env_cfg.sim, "dt", None), env_cfg.decimation
    if not all(isinstance(value, int | float) for value in (seconds, step, decimation)):
        return None  # not set yet, or a preset; the environment checks again
    return math.ceil(seconds / (step * decimation))
