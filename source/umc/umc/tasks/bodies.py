# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Names of a robot's trunk and feet: a field of the task's cfg that all its terms read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING
from typing import Any

from isaaclab.actuators import ImplicitActuatorCfg
from isaaclab.assets import ArticulationCfg
from isaaclab.managers import ObservationTermCfg, SceneEntityCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.utils import configclass

from umc import mdp
from umc.mdp.observations import entries
from umc.robots.names import RobotNames, robot_names
from umc.utils.errors import UmcError, shown


@configclass
class BodyNamesCfg:
    """The robot's bodies that terms of a task act on; every entry is a regular expression of names."""

    trunk: str = MISSING
    """The body that carries the legs."""

    feet: list[str] = MISSING
    """The bodies that touch the ground, in the order front left, front right, rear left, rear right, or left, right.

    A foot that is welded to its calf or ankle goes by that body's name.
    """


@configclass
class PartCfg(SceneEntityCfg):
    """The bodies of :class:`BodyNamesCfg` that a term acts on; names that are set by an override stay."""

    part: str = MISSING
    """``trunk`` or ``feet``."""

    applied: str | list[str] | None = None
    """The names that :func:`name_bodies` has written."""

    def __post_init__(self) -> None:
        """Stand for a part whose names are not known yet."""
        if self.body_names is None:
            self.body_names = self.applied = f"{{bodies.{self.part}}}"


ROBOT = "robot"
"""Name of the robot in the scene of every task."""

ALL_BODIES = ("/Robot/[^/]*", "/Robot/.*")
"""Ends of the prim path of a contact sensor on every body of the robot."""

NOT_TERMS = ("scene", "sim", "viewer")
"""Fields of an env cfg that hold no terms."""

READ_BY_JOINT = ("observations.policy.", "observations.joint_mask.")
"""Groups in which a network looks for its joints."""

TRUNK = PartCfg("robot", part="trunk")
TRUNK_CONTACT = PartCfg("contact_forces", part="trunk")
FEET = PartCfg("robot", part="feet", preserve_order=True)
FEET_CONTACT = PartCfg("contact_forces", part="feet", preserve_order=True)


def is_missing(value: Any) -> bool:
    """Return whether a field is not set; a copied cfg has a copy of ``MISSING``."""
    return value is None or isinstance(value, type(MISSING))


def name_bodies(env_cfg: Any) -> None:
    """Write the names of the field ``bodies`` into the terms that act on them."""
    for _, entity in selections(env_cfg):
        if isinstance(entity, PartCfg) and entity.body_names == entity.applied:
            names = getattr(env_cfg.bodies, entity.part)
            if not is_missing(names):
                entity.body_names = entity.applied = names if isinstance(names, str) else list(names)


def selections(env_cfg: Any) -> Iterator[tuple[str, SceneEntityCfg]]:
    """Yield every selection of bodies or joints in the terms of an env cfg, and where it is."""
    terms = {name: value for name, value in entries(env_cfg).items() if name not in NOT_TERMS}
    for where, cfg in cfgs_within(terms):
        if isinstance(cfg, SceneEntityCfg):
            yield where.replace(".params.", "."), cfg


def cfgs_within(cfg: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a cfg and every cfg within it, and where it is; not those of markers."""
    if dataclasses.is_dataclass(cfg):
        yield where, cfg
    if isinstance(cfg, Mapping) or dataclasses.is_dataclass(cfg):
        for name, value in list(entries(cfg).items()):
            if "visualizer" not in str(name):
                yield from cfgs_within(value, f"{where}.{name}" if where else str(name))


def check_robot(env_cfg: Any) -> None:
    """Refuse names that the scene or the robot does not have; write those of trunk and feet into the terms.

    Bodies and joints of a robot whose USD is on a server are left to the simulation.

    Raises:
        UmcError: With the names that exist.
    """
    name_bodies(env_cfg)
    _check_entities(env_cfg)
    robot = getattr(env_cfg.scene, ROBOT, None)
    _check_gains(env_cfg, robot)
    names = robot_names(robot) if isinstance(robot, ArticulationCfg) else None
    if names is None:
        return
    if own := isinstance(getattr(env_cfg, "bodies", None), BodyNamesCfg):
        _check_parts(env_cfg, names)
    _check_joints(env_cfg, robot, names, own)
    for where, entity in selections(env_cfg):
        if entity.name == ROBOT and entity.joint_names is not None:
            found = matched(entity.joint_names, names.joints, f"{where}.joint_names", "joint")
            if own and entity.preserve_order and where.startswith(READ_BY_JOINT):
                _check_order(found, names, where)
        if entity.body_names is not None and _has_all_bodies(env_cfg.scene, entity.name):
            matched(entity.body_names, names.bodies, f"{where}.body_names", "body")
    _check_number_of_feet(env_cfg, names)


def _check_entities(env_cfg: Any) -> None:
    """Refuse terms that act on what is not in the scene."""
    scene = env_cfg.scene
    if not isinstance(scene, InteractiveSceneCfg):
        return
    there = {name for name, cfg in entries(scene).items() if cfg is not None}
    for where, entity in selections(env_cfg):
        if entity.name not in {*there, "terrain"}:  # which Isaac Lab finds in every scene
            known = ", ".join(name for name, cfg in entries(scene).items() if hasattr(cfg, "prim_path"))
            raise UmcError(f"{where}.name: the scene has no {shown(entity.name)}; it has {known}")


def _check_gains(env_cfg: Any, robot: Any) -> None:
    """Refuse an observation of the gains of a group of actuators that the robot does not have, or that has none."""
    if not isinstance(robot, ArticulationCfg):
        return
    for where, term in cfgs_within({"observations": env_cfg.observations}):
        if not isinstance(term, ObservationTermCfg) or term.func is not mdp.randomized_physics:
            continue
        name = term.params["actuator"]
        if not isinstance(robot.actuators.get(name), ImplicitActuatorCfg | None):
            continue
        there = "implicit motors" if name in robot.actuators else f"actuators {', '.join(robot.actuators)}"
        raise UmcError(
            f"{where} reads the gains of explicit actuators {shown(name)}, and the robot has {there}; give it one "
            "group of that name, of IdealPDActuatorCfg (values by joint: stiffness={'.*_hip_joint': 20.0, ...}), or "
            f"leave the term out (env.{where}=null)"
        )


def _check_parts(env_cfg: Any, names: RobotNames) -> None:
    """Refuse trunk and feet that the robot does not have; name the feet one by one."""
    bodies = env_cfg.bodies
    for part in ("trunk", "feet"):
        if is_missing(getattr(bodies, part)):
            raise UmcError(f"the task does not set bodies.{part}; the robot's bodies are {', '.join(names.bodies)}")
    matched(bodies.trunk, names.bodies, "bodies.trunk", "body")
    bodies.feet = matched(bodies.feet, names.bodies, "bodies.feet", "body")
    name_bodies(env_cfg)


def _check_joints(env_cfg: Any, robot: Any, names: RobotNames, own: bool) -> None:
    """Refuse joints of actuators, of the default pose and of actions that the robot does not have."""
    for actuator, cfg in robot.actuators.items():
        matched(cfg.joint_names_expr, names.joints, f"joint_names_expr of the robot's actuator {actuator}", "joint")
    matched(list(robot.init_state.joint_pos), names.joints, "joint_pos of the robot's init_state", "joint")
    for action, cfg in entries(env_cfg.actions or {}).items():
        if getattr(cfg, "asset_name", None) == ROBOT and getattr(cfg, "joint_names", None):
            found = matched(cfg.joint_names, names.joints, f"actions.{action}.joint_names", "joint")
            if own and getattr(cfg, "preserve_order", False):
                _check_order(found, names, f"actions.{action}")


def _check_order(joints: Sequence[str], names: RobotNames, where: str) -> None:
    """Refuse joints in another order than the robot's, in which networks and joint masks have them."""
    if list(joints) != [name for name in names.joints if name in joints]:
        raise UmcError(
            f"{where}: preserve_order puts the joints in another order than the robot's, in which networks and joint "
            "masks have them; leave it out"
        )


def _check_number_of_feet(env_cfg: Any, names: RobotNames) -> None:
    """Refuse gait rewards for another number of feet than the robot has."""
    for reward, term in entries(env_cfg.rewards or {}).items():
        func = getattr(term, "func", None)
        if func not in (mdp.diagonal_support, mdp.contact_follows_phase):
            continue
        needed = 4 if func is mdp.diagonal_support else len(term.params.get("offsets") or ())
        bodies = getattr(term.params.get("sensor_cfg"), "body_names", None)
        feet = names.bodies if bodies is None else matched(bodies, names.bodies, f"rewards.{reward}", "body")
        if len(feet) != needed:
            raise UmcError(f"rewards.{reward} needs {needed} feet, and its body_names match {', '.join(feet)}")


def matched(patterns: str | Sequence[str], names: Sequence[str], where: str, what: str) -> list[str]:
    """Return the names that patterns match, pattern by pattern; UmcError for a pattern that matches none."""
    found: list[str] = []
    for pattern in patterns if isinstance(patterns, list | tuple) else [patterns]:
        try:
            mine = [name for name in names if re.fullmatch(pattern, name)]
        except (re.error, TypeError) as error:
            raise UmcError(f"{where}: '{pattern}' is no regular expression ({error})") from error
        if not mine:
            raise UmcError(f"{where}: no {what} of the robot matches '{pattern}'; it has {', '.join(names)}")
        found += [name for name in mine if name not in found]
    return found


def _has_all_bodies(scene: Any, name: str) -> bool:
    """Return whether an entity of the scene has the bodies of the robot: itself, or a contact sensor on all of them."""
    cfg = getattr(scene, name, None)
    return name == ROBOT or (isinstance(cfg, ContactSensorCfg) and cfg.prim_path.endswith(ALL_BODIES))
