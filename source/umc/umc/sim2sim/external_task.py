# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Describe a task of Isaac Lab, and what a policy that UMC did not train reads of it, for plain MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from umc.evaluation.checkpoints import External, read_externals
from umc.mdp.observations import entries
from umc.rl.external import GROUP, is_by_step, joint_values, read_external
from umc.rl.external_networks import load_network, require_fits
from umc.rl.io_descriptor import function_name, observation_terms, require_robot_order, task_figures
from umc.sim2sim.external import ExternalRobotPolicy
from umc.tasks.parts import foot_names
from umc.tasks.registry import checked_task
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.description import MEASURABLE
from umc.utils.errors import UmcError

GROUPS = ("joint_mask", "fault_flag")
"""Groups that a network may read by the names of its inputs."""

ADD_ROBOT = "for another one first add the robot (docs/howto_robot.md)"
"""What helps somebody whose task is not one of UMC's: the engine would decide the order of its joints."""

FUNCTIONS = (*MEASURABLE, *GROUPS, "base_lin_vel")
"""Functions of observation terms that :class:`umc.sim2sim.external.ExternalRunner` has values of."""


def read_external_policy(text: str, task: str, overrides: Sequence[str], trust: bool) -> ExternalRobotPolicy:
    """Read what ``--policy`` names, and describe what it reads and does in a task (gym id) with overrides.

    Raises UmcError for a policy that does not fit the task, or that plain MuJoCo cannot feed.
    """
    task = checked_task(task, ADD_ROBOT)
    if (function := read_external(text).function) is not None:
        raise UmcError(f"--policy {function} needs an environment of Isaac Lab; evaluate it with umc evaluate")
    env_cfg, _ = resolve_cfgs(task, None, [*overrides])
    (found,) = read_externals([text], task, env_cfg, trust)
    policy = describe_external(found, env_cfg)
    network = load_network(policy.network, activation=policy.activation)
    if others := [name for name in network.groups if name not in GROUPS]:
        raise UmcError(f"{policy.network} reads {', '.join(others)}, which there is not in MuJoCo")
    terms = policy.reads["observations"]["policy"]
    joints = len(policy.task["joints"])
    widths = {"joint_mask": joints, "fault_flag": 3}
    about = ", ".join(f"{term['name']} {term['columns'][1] - term['columns'][0]}" for term in terms)
    columns = terms[-1]["columns"][1] * policy.history
    require_fits(policy.network, network, [columns, *(widths[name] for name in network.groups)], about, joints)
    return policy


def describe_external(found: External, env_cfg: Any) -> ExternalRobotPolicy:
    """Describe a task and what a policy of :func:`read_externals` reads of it."""
    external, names = found.external, found.info.joint_names
    description, figures = external.description, task_figures(env_cfg, names, foot_names(env_cfg))
    group = entries(env_cfg.observations)[external.group]
    described = [term for term in entries(group).values() if hasattr(term, "func")]
    functions = [function_name(term) for term in described]
    if others := [name for name in functions if name not in FUNCTIONS]:
        raise UmcError(f"{found.path} reads {', '.join(others)}, which there is not in MuJoCo; leave it out")
    require_robot_order(found.path, described, names)
    terms = observation_terms(group, len(names), external=True)
    joints = description.joints or names
    if sorted(joints) != sorted(names):
        raise UmcError(f"{found.path}: joints have to be all of the robot's, once each: {', '.join(names)}")
    order = [names.index(name) for name in joints]
    for number, term in enumerate(terms):
        own = description.scales(number, term["columns"][1] - term["columns"][0])
        if own is not None:
            term["scale"] = own
        elif isinstance(term["scale"], list) and len(term["scale"]) == len(order):  # the task's
            term["scale"] = [term["scale"][joint] for joint in order]
    control = {**figures["control"], "action_clip": description.clip_actions}
    scale, offset = control["action_scale"], control["action_offset_rad"]
    if description.action_scale is not None:
        scale = joint_values(description.action_scale, names)
    if isinstance(description.action_offset, dict):
        offset = joint_values(description.action_offset, names)
    elif description.action_offset == "default":
        offset = [joint["default_position_rad"] for joint in figures["joints"]]
    control |= {"action_scale": [scale[i] for i in order], "action_offset_rad": [offset[i] for i in order]}
    return ExternalRobotPolicy(
        network=found.path,
        activation=description.activation,
        task={
            "checkpoint": {"file": found.path.name, "sha256": found.sha256},
            "trained": asdict(found.info),
            "reads": found.about["reads"],
            "observations": {GROUP: observation_terms(entries(env_cfg.observations)[GROUP], len(names), external=True)},
            **figures,
        },
        reads={
            "joints": [figures["joints"][number] for number in order],
            "control": control,
            "observations": {GROUP: terms},
        },
        history=group.history_length or 1,
        by_step=is_by_step(external, group),
    )
