# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a task feeds its policy and does with its actions, read off the env cfg; nothing is simulated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from umc.utils.errors import UmcError

FAULT_FLAG_COLUMNS = 3
"""Width of the fault flag (paper, section "Actor Model")."""

WIDTHS = {
    "base_lin_vel": 3,
    "base_ang_vel": 3,
    "projected_gravity": 3,
    "generated_commands": 3,
    "phase_clock": 2,
    "fault_flag": FAULT_FLAG_COLUMNS,
}
"""Columns of the observation functions whose width does not depend on the robot."""

PER_JOINT = ("joint_pos_rel", "joint_vel_rel", "last_action", "joint_mask")
"""Observation functions with one column per joint."""

UNITS = {
    "base_lin_vel": "m/s",
    "base_ang_vel": "rad/s",
    "projected_gravity": "-",
    "generated_commands": "m/s, m/s, rad/s",
    "phase_clock": "sine, cosine",
    "joint_pos_rel": "rad from the default pose",
    "joint_vel_rel": "rad/s",
    "last_action": "action",
    "joint_mask": "1 = masked",
    "fault_flag": "-1 or +1",
    "zeros": "always 0",
}
"""Units before scaling."""


def observation_terms(group: Any, num_joints: int) -> list[dict[str, Any]]:
    """The terms of an observation group with their columns.

    Args:
        group: The group's cfg.
        num_joints: Number of joints.

    Returns:
        Name, function, columns ``[start, stop)``, unit before scaling and scale of every term, in order, and the period
        of a clock.

    Raises:
        UmcError: If a term's width cannot be told from its cfg, or it has more than a scale.
    """
    terms: list[dict[str, Any]] = []
    start = 0
    for name, term in _terms(group):
        function = _function_name(term)
        if term.clip is not None or term.modifiers is not None or term.history_length:
            raise UmcError(f"{name} has a clip, modifiers or a history, which a description cannot tell; train without")
        stop = start + _width(function, term, num_joints)
        scale = 1.0 if term.scale is None else term.scale
        terms.append({
            "name": name,
            "function": function,
            "columns": [start, stop],
            "unit": UNITS.get(function, ""),
            "scale": list(scale) if isinstance(scale, Sequence) else float(scale),
        })  # fmt: skip
        if function == "phase_clock":
            terms[-1]["period_s"] = float(term.params["period"])
        start = stop
    return terms


def group_widths(observations: Any, groups: Sequence[str], num_joints: int) -> dict[str, int]:
    """Columns of observation groups.

    Args:
        observations: The observations' cfg.
        groups: Names of groups.
        num_joints: Number of joints.

    Returns:
        Width per group.

    Raises:
        UmcError: If there is no such group.
    """
    widths = {}
    for name in groups:
        group = getattr(observations, name, None)
        if group is None:
            raise UmcError(f"the task has no observation group {name}; choose the policy's own --task")
        widths[name] = observation_terms(group, num_joints)[-1]["columns"][1]
    return widths


def joint_table(robot: Any, joint_names: Sequence[str]) -> list[dict[str, Any]]:
    """Default pose, gains and limits of every joint.

    Args:
        robot: The robot's ArticulationCfg.
        joint_names: Joints in the order of the actions.

    Returns:
        One entry per joint, in order.

    Raises:
        UmcError: If a joint has no actuator.
    """
    pose = expand(robot.init_state.joint_pos, joint_names, 0.0)
    rows: dict[str, dict[str, Any]] = {}
    for actuator in robot.actuators.values():
        mine = [name for name in joint_names if any(re.fullmatch(one, name) for one in actuator.joint_names_expr)]
        kp, kd = expand(actuator.stiffness, mine), expand(actuator.damping, mine)
        effort = expand(actuator.actuator_effort_limit, mine)
        speed = expand(actuator.actuator_velocity_limit, mine)
        for name in mine:
            rows[name] = {
                "name": name,
                "default_position_rad": pose[name],
                "kp_Nm_per_rad": kp[name],
                "kd_Nms_per_rad": kd[name],
                "effort_limit_Nm": effort[name],
                "velocity_limit_rad_per_s": speed[name],
            }
    missing = [name for name in joint_names if name not in rows]
    if missing:
        raise UmcError(f"no actuator drives {', '.join(missing)}; add one to the robot's cfg")
    return [rows[name] for name in joint_names]


def control(env_cfg: Any, joint_names: Sequence[str]) -> dict[str, Any]:
    """How actions become torques.

    Args:
        env_cfg: The task's env cfg, engine presets resolved or not.
        joint_names: Joints in the order of the actions.

    Returns:
        Timing and the meaning of an action.

    Raises:
        UmcError: If the task has another action than one joint position target per joint.
    """
    from umc.mdp import CommandFaultsCfg  # takes seconds

    terms = [term for _, term in _terms(env_cfg.actions) if not isinstance(term, CommandFaultsCfg)]
    if len(terms) != 1 or not hasattr(terms[0], "use_default_offset"):
        raise UmcError("only tasks with a single joint position action can be exported")
    action = terms[0]
    if action.clip is not None:
        raise UmcError("only joint position actions without clip can be exported; set the agent's clip_actions instead")
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


def expand(
    values: float | Mapping[str, float] | None, joint_names: Sequence[str], default: float | None = None
) -> dict[str, float | None]:
    """Spreads a value, or values by name pattern, over joints.

    Args:
        values: One value for all, or a value per regular expression.
        joint_names: The joints.
        default: Value of joints that no pattern names.

    Returns:
        Value per joint.
    """
    if not isinstance(values, Mapping):
        return dict.fromkeys(joint_names, default if values is None else float(values))
    named: dict[str, float | None] = dict.fromkeys(joint_names, default)
    for pattern, value in values.items():
        named.update({name: float(value) for name in joint_names if re.fullmatch(pattern, name)})
    return named


def _terms(group: Any) -> list[tuple[str, Any]]:
    """Terms of a manager cfg, in the order in which Isaac Lab reads them."""
    return [(name, term) for name, term in vars(group).items() if hasattr(term, "func") or hasattr(term, "asset_name")]


def _function_name(term: Any) -> str:
    """What a term reads; a joint sensor stands for what it wraps."""
    function = term.params.get("func", term.func)
    return getattr(function, "__name__", str(function)).rpartition(":")[2].rpartition(".")[2]


def _width(function: str, term: Any, num_joints: int) -> int:
    if function in PER_JOINT:
        return num_joints
    if function in WIDTHS:
        return WIDTHS[function]
    if "width" in term.params:
        return int(term.params["width"])
    raise UmcError(
        f"the width of observation function {function} is not known; add it to umc.deploy.description.WIDTHS"
    )
