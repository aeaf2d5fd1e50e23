# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Joint limits in PhysX: hard position limits, speed limits and effort limits of its drives.

Speed limits that add no momentum need velocity iterations (:func:`prepare_robot`): without, PhysX cuts the speed of
joints after it has solved for the forces between bodies.
"""

from __future__ import annotations

from typing import Any, cast, override

import torch
from isaaclab.assets import ArticulationCfg
from isaaclab_physx.sim.schemas import PhysxArticulationCfg

from umc.mdp.physics.engine import EngineJoints
from umc.robots.spawn import SOLVER_POSITION_ITERATIONS, SOLVER_VELOCITY_ITERATIONS
from umc.utils.errors import UmcError


class PhysxJoints(EngineJoints):
    """The joints of one robot in PhysX.

    PhysX keeps joint properties in host memory: a write has to wait for the device, and asks it first for the ids of
    the envs to write.
    """

    @override
    def write_position_limits(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        ids = envs.nonzero().squeeze(1)
        if not len(ids):
            return
        data = self.asset.data
        default = data.default_joint_pos.torch[ids]
        self.asset.write_joint_position_limit_to_sim_index(
            limits=torch.stack((lower[ids], upper[ids]), dim=-1), env_ids=ids.int(), warn_limit_violation=False
        )
        # the writer moves the default pose into the limits (actions are offsets from it), and rescales the soft limits
        data.default_joint_pos.torch[ids] = default
        data.soft_joint_pos_limits.torch[ids] = soft[ids]

    @override
    def write_velocity_limits(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        ids = envs.nonzero().squeeze(1)
        if len(ids):
            self._slow_down(speed[ids], ids)
            self.asset.write_joint_velocity_limit_to_sim_index(limits=speed[ids], env_ids=ids.int())

    @override
    def read_passive(self) -> torch.Tensor:
        data = cast(Any, self.asset.data)
        parts = (data.joint_viscous_friction_coeff, data.joint_friction_coeff, data.joint_dynamic_friction_coeff)
        return torch.stack([part.torch for part in parts], dim=-1)

    @override
    def write_passive(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        ids = envs.nonzero().squeeze(1)
        if not len(ids):
            return
        viscous, static, dynamic = values[ids].unbind(-1)
        # "coefficients" in Isaac Lab, torques in PhysX: tests/mdp/test_fault_physics.py
        self.asset.write_joint_friction_coefficient_to_sim_index(
            joint_friction_coeff=static.contiguous(),
            joint_dynamic_friction_coeff=dynamic.contiguous(),
            joint_viscous_friction_coeff=viscous.contiguous(),
            env_ids=ids.int(),
        )

    @override
    def write_effort_limits(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        ids = envs.nonzero().squeeze(1)
        if len(ids):
            self.asset.write_joint_effort_limit_to_sim_index(limits=effort[ids], env_ids=ids.int())

    def _slow_down(self, limit: torch.Tensor, ids: torch.Tensor) -> None:
        """Slow joints down to a new limit [rad/s] by impulses between their links.

        PhysX would only cut their speed, and a floating robot would gain momentum.
        """
        data = self.asset.data
        joint_speed = data.joint_vel.torch[ids]
        fast = (joint_speed.abs() > limit).any(dim=1)
        if not fast.any():
            return
        ids, limit, joint_speed = ids[fast], limit[fast], joint_speed[fast]
        base = self.asset.num_base_dofs
        before = torch.cat((data.root_com_vel_w.torch[ids][:, :base], joint_speed), dim=1)
        mass = data.mass_matrix.torch[ids].clone()
        mass.diagonal(dim1=1, dim2=2)[:, base:] += data.joint_armature.torch[ids]
        response = torch.linalg.inv(mass)[:, :, base:]  # velocities per impulse on a joint
        identity = torch.eye(joint_speed.shape[1], device=limit.device)
        stopped, after, target = torch.zeros_like(joint_speed, dtype=torch.bool), before, joint_speed
        for _ in range(joint_speed.shape[1]):  # stopping some joints may speed others up
            too_fast = (after[:, base:].abs() > limit) & ~stopped
            if not too_fast.any():
                break
            stopped = stopped | too_fast
            target = torch.where(too_fast, after[:, base:].clamp(-limit, limit), target)
            both = stopped.unsqueeze(1) & stopped.unsqueeze(2)
            impulse = torch.linalg.solve(
                torch.where(both, response[:, base:], identity), torch.where(stopped, joint_speed - target, 0.0)
            )
            after = before - (response * impulse.unsqueeze(1)).sum(-1)  # a product of matrices may round in training
        speeds = after[:, base:].clamp(-limit, limit)  # rounding
        self.asset.write_joint_velocity_to_sim_index(velocity=speeds, env_ids=ids.int())
        if base:
            self.asset.write_root_com_velocity_to_sim_index(root_velocity=after[:, :base], env_ids=ids.int())


def prepare_robot(cfg: ArticulationCfg) -> None:
    """Give a robot, in place, at least the PhysX solver iterations that windows and speed limits need.

    Newton reads none. Raises UmcError if it is not spawned from a file whose articulation properties can be set.
    """
    spawn = cast(Any, cfg.spawn)
    if not hasattr(spawn, "articulation_props"):
        raise UmcError(
            "speed limits need solver iterations that this robot's spawn cfg cannot set; spawn it from a file"
        )
    properties = spawn.articulation_props
    entries = list(properties) if isinstance(properties, list | tuple) else [properties] if properties else []
    solvers = [entry for entry in entries if hasattr(entry, "solver_velocity_iteration_count")]
    if not solvers:
        solvers = [PhysxArticulationCfg()]
        spawn.articulation_props = [*entries, *solvers]
    for solver in solvers:
        for count, least in (
            ("solver_position_iteration_count", SOLVER_POSITION_ITERATIONS),
            ("solver_velocity_iteration_count", SOLVER_VELOCITY_ITERATIONS),
        ):
            setattr(solver, count, max(getattr(solver, count) or 0, least))
