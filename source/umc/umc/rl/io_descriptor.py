# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Inputs and outputs of a policy as its task defines them, read from the env cfg without a simulation."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from umc.utils.description import JOINT_LIMITS, validate_task
from umc.utils.errors import UmcError

OBSERVATIONS: Mapping[str, tuple[int | None, str]] = {
    "base_lin_vel": (3, "m/s"),
    "base_ang_vel": (3, "rad/s"),
    "projected_gravity": (3, "-"),
    "root_quat_w": (4, "quaternion (x, y, z, w)"),
    "generated_commands": (3, "m/s, m/s, rad/s"),
    "forward_and_turn": (2, "m/s, rad/s"),
    "phase_clock": (2, "sine, cosine"),
    "joint_pos_rel": (None, "rad from the default pose"),
    "joint_vel_rel": (None, "rad/s"),
    "last_action": (None, "action"),
    "joint_mask": (None, "1 = masked"),
    "fault_flag": (3, "-1 or +1"),
    "fault_class": (3, "1 = the class"),
    "zeros": (None, "always 0"),
}
"""Columns of each observation function, None for one per joint, and its unit before scaling; a parameter ``width`` of a
term overrides the columns."""

JOINT_TERMS = ("joint_pos_rel", "joint_vel_rel", "last_action")
"""What a joint mask hides: functions whose columns follow each other in this order."""

MOTOR_FIGURES: Mapping[str, Sequence[str]] = {
    "kp_Nm_per_rad": ["stiffness"],
    "kd_Nms_per_rad": ["damping"],
    "effort_limit_Nm": ["actuator_effort_limit", "joint_effort_limit", "effort_limit_sim", "effort_limit"],
    "velocity_limit_rad_per_s": [
        "actuator_velocity_limit",
        "joint_velocity_limit",
        "velocity_limit_sim",
        "velocity_limit",
    ],
}
"""Figures of a joint, and the actuator's fields of which the first that is set has them."""

IMPLICIT = "ImplicitActuatorCfg"
"""Actuator that the engine limits, by its own limit only."""

ACTUATORS = (IMPLICIT, "IdealPDActuatorCfg")
"""Actuators that joints and control describe; others also delay, or limit torques by speed or angle."""

EVENTS = {
    "reset_faults": None,
    "randomize_rigid_body_material": None,
    "randomize_rigid_body_mass": "add",
    "randomize_rigid_body_com": None,
    "randomize_actuator_gains": "scale",
    "reset_root_state_uniform": None,
    "reset_joints_by_scale": None,
}
"""Events that ``start`` describes, and the operation that they must have."""

TERMINATIONS: Mapping[str, str | None] = dict.fromkeys(
    ("time_out", "non_finite_state", "illegal_contact", "roll_pitch_beyond", "height_below_minimum")
)
"""Terminations that ``fall`` describes."""

DISTRIBUTIONS = (("uniform", "UniformNoiseCfg", ("n_min", "n_max")), ("normal", "GaussianNoiseCfg", ("mean", "std")))
"""Of noise: name in ``policy.json``, Isaac Lab's cfg, and its two parameters."""

AXES = ("x", "y", "z", "roll", "pitch", "yaw")
"""Components of a root velocity, as Isaac Lab names them."""


def observation_terms(group: Any, num_joints: int, external: bool = False) -> list[dict[str, Any]]:
    """List the terms of an observation group: function, columns ``[start, stop)``, unit, scale, noise (before scaling).

    UmcError if a term's width is not known, or it has more than a scale; the runner of an ``external`` policy also
    clips, and remembers what the whole group reads.
    """
    terms: list[dict[str, Any]] = []
    start = 0
    for name, term in terms_of(group):
        function = function_name(term)
        clipped = term.clip is not None
        more = term.modifiers is not None or term.history_length
        if more or (not external and (clipped or group.history_length)):
            raise UmcError(f"{name} has a clip, modifiers or a history, which cannot be exported; train without")
        stop = start + _width(function, term, num_joints)
        scale = 1.0 if term.scale is None else term.scale
        terms.append({
            "name": name,
            "function": function,
            "columns": [start, stop],
            "unit": OBSERVATIONS.get(function, (None, ""))[1],
            "scale": list(scale) if isinstance(scale, Sequence) else float(scale),
            "noise": noise_of(term) if group.enable_corruption else None,
        })  # fmt: skip
        if clipped:
            terms[-1]["clip"] = list(term.clip)
        if function == "phase_clock":
            terms[-1]["period_s"] = float(term.params["period"])
        start = stop
    return terms


def joint_columns(group: Any, num_joints: int) -> dict[str, tuple[int, int] | None]:
    """Return the columns ``[start, stop)`` of the joints' terms as the environment has them, None for a missing one.

    Terms after one of unknown width are left out.
    """
    found: dict[str, tuple[int, int] | None] = {}
    start = 0
    for _, term in terms_of(group):
        function = function_name(term)
        if function not in OBSERVATIONS and "width" not in term.params:
            return found
        history = term.history_length if group.history_length is None else group.history_length
        stop = start + _width(function, term, num_joints) * max(history, 1)
        if function in JOINT_TERMS:
            found.setdefault(function, (start, stop))
        start = stop
    return {**dict.fromkeys(JOINT_TERMS), **found}


def require_robot_order(path: object, terms: Sequence[Any], joint_names: Sequence[str]) -> None:
    """Raise UmcError for a term that a policy reads of some joints, or in another order than the robot's."""
    for term in terms:
        asset_cfg = term.params.get("asset_cfg")
        if asset_cfg is not None and not _has_all(asset_cfg, joint_names):
            raise UmcError(
                f"{path} reads {function_name(term)} of some joints or in another order, which exports and plain "
                "MuJoCo do not know; evaluate it with umc evaluate"
            )


def _has_all(selection: Any, joint_names: Sequence[str]) -> bool:
    """Return whether a selection of joints is all of them, in the robot's order."""
    given = selection.joint_names
    patterns: Sequence[str] = [".*"] if given is None else [given] if isinstance(given, str) else given
    if not selection.preserve_order:
        patterns = ["|".join(f"(?:{pattern})" for pattern in patterns)]
    return [name for one in patterns for name in joint_names if re.fullmatch(one, name)] == list(joint_names)


def group_widths(observations: Any, groups: Sequence[str], num_joints: int) -> dict[str, int]:
    """Return the number of columns of each group; UmcError if there is no such group."""
    widths = {}
    for name in groups:
        group = getattr(observations, name, None)
        if group is None:
            raise UmcError(f"the task has no observation group {name}; choose the policy's own --task")
        widths[name] = observation_terms(group, num_joints)[-1]["columns"][1]
    return widths


def described_groups(
    path: object, observations: Any, names: Sequence[str], joint_names: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """List the terms of the groups that an export reads; UmcError if they are not of all joints in their order."""
    groups = {}
    for name in names:
        group = getattr(observations, name)
        require_robot_order(path, [term for _, term in terms_of(group)], joint_names)
        groups[name] = observation_terms(group, len(joint_names))
    return groups


def why_not_exported(env_cfg: Any, groups: Sequence[str]) -> str | None:
    """Return why ``umc export`` would refuse a task, as far as its cfg says; None if it would not, or is not known."""
    from umc.robots.names import robot_names

    try:
        known = robot_names(env_cfg.scene.robot)
        if known is None:
            return None
        if missing := [name for name in groups if getattr(env_cfg.observations, name, None) is None]:
            return f"an export reads the group {missing[0]}, which the task lacks; keep it"
        group_widths(env_cfg.observations, groups, len(known.joints))
        observations = described_groups("the policy", env_cfg.observations, groups, known.joints)
        figures = task_figures(env_cfg, known.joints, None)
        figures["control"]["action_clip"] = None
        validate_task(json.loads(json.dumps({"observations": observations, **figures})))
    except UmcError as error:
        return str(error)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):  # cfgs of others hold anything
        return None
    return None


def task_figures(env_cfg: Any, joint_names: Sequence[str], feet: Sequence[str] | None) -> dict[str, Any]:
    """Describe the joints, control, feet, starts and falls of a task."""
    return {
        "joints": joint_table(env_cfg.scene.robot, joint_names),
        "control": control(env_cfg, joint_names),
        "feet": list(feet or ()),  # only the figures about feet need them
        "start": start(env_cfg),
        "fall": fall(env_cfg),
    }


def joint_table(robot: Any, joint_names: Sequence[str]) -> list[dict[str, Any]]:
    """List default pose, gains and limits of every joint, in order; UmcError if one has no actuator."""
    from umc.robots.names import drive_limits, joint_limits

    drives = drive_limits(robot)
    pose, limits = expand(robot.init_state.joint_pos, joint_names, 0.0), joint_limits(robot)
    rows: dict[str, dict[str, Any]] = {}
    for actuator in robot.actuators.values():
        mine = [name for name in joint_names if any(re.fullmatch(one, name) for one in actuator.joint_names_expr)]
        figures = {key: _first_set(actuator, fields, mine) for key, fields in MOTOR_FIGURES.items()}
        for name in mine:
            motor = {key: values[name] for key, values in figures.items()}
            if motor["effort_limit_Nm"] is None:
                motor["effort_limit_Nm"] = drives.get(name)
            motor = {key: None if value in (None, math.inf) else value for key, value in motor.items()}
            bounds = dict(zip(JOINT_LIMITS, limits.get(name, (None, None)), strict=True))
            rows[name] = {"name": name, "default_position_rad": pose[name], **motor, **bounds}
    missing = [name for name in joint_names if name not in rows]
    if missing:
        raise UmcError(f"no actuator drives {', '.join(missing)}; add one to the robot's cfg")
    return [rows[name] for name in joint_names]


def _first_set(actuator: Any, fields: Sequence[str], joint_names: Sequence[str]) -> dict[str, float | None]:
    """Return the figure of every joint from the first field that has it; None where none has."""
    found: dict[str, float | None] = dict.fromkeys(joint_names)
    for field in fields:
        if type(actuator).__name__ != IMPLICIT or not field.startswith("actuator_effort"):
            given = expand(getattr(actuator, field), joint_names)
            found = {name: given[name] if value is None else value for name, value in found.items()}
    return found


def control(env_cfg: Any, joint_names: Sequence[str]) -> dict[str, Any]:
    """Describe how actions become torques; UmcError unless they are one joint position target per joint."""
    from umc.mdp import CommandFaultsCfg  # takes seconds

    terms = [term for _, term in terms_of(env_cfg.actions) if not isinstance(term, CommandFaultsCfg)]
    if len(terms) != 1 or not hasattr(terms[0], "use_default_offset"):
        raise UmcError(
            f"{type(env_cfg).__name__} has other actions than one of joint positions; only such tasks can be exported"
        )
    action = terms[0]
    if action.clip is not None:
        raise UmcError("only joint position actions without clip can be exported; set the agent's clip_actions instead")
    if not _has_all(action, joint_names):
        raise UmcError("the task acts on some joints or in another order than the robot's; only all can be exported")
    scale = expand(action.scale, joint_names, 1.0)
    pose = expand(env_cfg.scene.robot.init_state.joint_pos, joint_names, 0.0)
    offset = pose if action.use_default_offset else expand(action.offset, joint_names, 0.0)
    return {
        "physics_dt_s": env_cfg.sim.dt,
        "decimation": env_cfg.decimation,
        "policy_dt_s": env_cfg.sim.dt * env_cfg.decimation,
        "action_scale": [scale[name] for name in joint_names],
        "action_offset_rad": [offset[name] for name in joint_names],
        "target_rad": "action_offset + action_scale * action",
        "torque_Nm": "clip(kp * (target - position) - kd * velocity, -effort_limit, effort_limit)",
    }


def start(env_cfg: Any) -> dict[str, Any]:
    """Describe what the task randomises at a start; ``other_events``: events and actuators that nothing describes."""
    events = [(name, term) for name, term in terms_of(env_cfg.events) if term.mode != "interval"]
    found, other = _params(events, EVENTS)
    base, gains = found["reset_root_state_uniform"], found["randomize_actuator_gains"]
    com, velocity = found["randomize_rigid_body_com"].get("com_range", {}), base.get("velocity_range", {})
    robot = env_cfg.scene.robot
    kinds = {name: type(actuator).__name__ for name, actuator in robot.actuators.items()}
    other += [f"actuator {name} ({kind})" for name, kind in kinds.items() if kind not in ACTUATORS]
    return {
        "base_height_m": robot.init_state.pos[2],
        "yaw_rad": base.get("pose_range", {}).get("yaw", (0.0, 0.0)),
        "base_velocity_m_rad_per_s": [velocity.get(axis, (0.0, 0.0)) for axis in AXES],
        "joint_position_factor": found["reset_joints_by_scale"].get("position_range", (1.0, 1.0)),
        "soft_limit_factor": robot.soft_joint_pos_limit_factor,
        "friction": found["randomize_rigid_body_material"].get("static_friction_range", (1.0, 1.0)),
        "added_base_mass_kg": found["randomize_rigid_body_mass"].get("mass_distribution_params", (0.0, 0.0)),
        "base_com_shift_m": [com.get(axis, (0.0, 0.0)) for axis in "xyz"],
        "kp_factor": gains.get("stiffness_distribution_params", (1.0, 1.0)),
        "kd_factor": gains.get("damping_distribution_params", (1.0, 1.0)),
        "other_events": other,
    }


def fall(env_cfg: Any) -> dict[str, Any]:
    """Describe which states end an episode; ``other_terminations`` are those that nothing here describes."""
    found, other = _params(terms_of(env_cfg.terminations), TERMINATIONS)
    contact, tilt = found["illegal_contact"], found["roll_pitch_beyond"]
    bodies = contact["sensor_cfg"].body_names if contact else []
    history = getattr(env_cfg.scene, contact["sensor_cfg"].name).history_length if contact else 0
    return {
        "contact_bodies": [bodies] if isinstance(bodies, str) else list(bodies),
        "contact_force_N": contact.get("threshold", 1.0),
        "contact_history_steps": max(1, history),
        "max_roll_rad": tilt.get("max_roll"),
        "max_pitch_rad": tilt.get("max_pitch"),
        "min_height_m": found["height_below_minimum"].get("minimum_height"),
        "other_terminations": other,
    }


def expand(
    values: float | Mapping[str, float] | None, joint_names: Sequence[str], default: float | None = None
) -> dict[str, float | None]:
    """Expand a value, or values by regular expression, to a value per joint."""
    if not isinstance(values, Mapping):
        return dict.fromkeys(joint_names, default if values is None else float(values))
    named: dict[str, float | None] = dict.fromkeys(joint_names, default)
    for pattern, value in values.items():
        named.update({name: float(value) for name in joint_names if re.fullmatch(pattern, name)})
    return named


def terms_of(group: Any) -> list[tuple[str, Any]]:
    """Return the terms of a manager cfg, in the order in which Isaac Lab reads them."""
    return [(name, term) for name, term in vars(group).items() if hasattr(term, "func") or hasattr(term, "asset_name")]


def _params(
    terms: Sequence[tuple[str, Any]], functions: Mapping[str, str | None]
) -> tuple[dict[str, Mapping[str, Any]], list[str]]:
    """Return parameters by function, empty where no term has it, and the names of all other terms."""
    found: dict[str, Mapping[str, Any]] = {}
    other: list[str] = []
    for name, term in terms:
        function = function_name(term)
        if function in found or functions.get(function, "unknown") != term.params.get("operation"):
            other.append(name)
        else:
            found[function] = term.params
    return {function: found.get(function, {}) for function in functions}, other


def function_name(term: Any) -> str:
    """Return the name of what a term computes; of a joint sensor, what it wraps."""
    function = term.params.get("func", term.func)
    if isinstance(function, str):  # module:name
        return function.rpartition(":")[2].rpartition(".")[2]
    return getattr(function, "__name__", type(function).__name__)


def noise_of(term: Any) -> dict[str, Any] | None:
    """Return the distribution of a term's noise with its parameters, or the cfg's name if it is another."""
    noise = term.noise or term.params.get("noise")
    if noise is None:
        return None
    for distribution, cfg, names in DISTRIBUTIONS:
        values: list[Any] = [getattr(noise, name, None) for name in names]
        plain = getattr(noise, "operation", None) == "add" and all(isinstance(value, float | int) for value in values)
        if type(noise).__name__ == cfg and plain and (distribution != "uniform" or values == sorted(values)):
            return {distribution: [float(value) for value in values]}
    return {"other": type(noise).__name__}


def _width(function: str, term: Any, num_joints: int) -> int:
    if "width" in term.params:
        return int(term.params["width"])
    if function not in OBSERVATIONS:
        raise UmcError(
            f"observation function {function} is unknown to exports and plain MuJoCo; leave it out, or in another group"
        )
    width, _ = OBSERVATIONS[function]
    return num_joints if width is None else width
