# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Holds speed and range of motion of joints on Newton, whose MuJoCo solver has no speed limit and soft position limits.

Before every solver substep the governor predicts each limited joint's next speed from the last substep's acceleration
(contacts are in it) and from what the motor torques have changed since. Where the prediction breaks a bound, it turns
on the joint's dry friction in the solver, just strong enough: the solver finds the friction force together with
contacts and the other joints. Friction acts between two links, so that momentum is conserved whatever happens, and it
only takes energy; where the prediction keeps the bounds nothing is written that was not there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import warp as wp
from isaaclab.physics import PhysicsManager
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonManager
from mujoco_warp import solve_m
from newton.solvers import SolverMuJoCo

from umc.errors import UmcError

from .newton_kernels import change_of_torque, predict, read_brakes, turn_brakes

if TYPE_CHECKING:
    from isaaclab.assets import Articulation


class NewtonGovernor:
    """Bounds on speed and position of the joints of one robot.

    Args:
        asset: The robot, on Newton.

    Raises:
        UmcError: If the solver is not MuJoCo-Warp.
    """

    def __init__(self, asset: Articulation) -> None:
        physics = PhysicsManager._cfg
        if not isinstance(getattr(physics, "solver_cfg", None), MJWarpSolverCfg):
            raise UmcError("faults on Newton need the MuJoCo-Warp solver; set NewtonCfg.solver_cfg to MJWarpSolverCfg")
        model = NewtonManager.get_model()
        self._dofs, coordinate = _joint_addresses(asset, model)
        count = model.joint_dof_count

        def bound(value: float) -> wp.array:
            return wp.full(count, value, dtype=float, device=model.device)

        self._speed, self._lower, self._upper = bound(np.inf), bound(-np.inf), bound(np.inf)
        self._bounds = [wp.to_torch(array) for array in (self._speed, self._lower, self._upper)]
        self._coordinate = wp.array(coordinate, dtype=int, device=model.device)
        self._last_torque = bound(0.0)
        self._buffers: dict[str, wp.array] = {}
        NewtonManager.register_state_force_callback(self._before_substep)

    def limit_velocity(self, env_ids: torch.Tensor, speed: torch.Tensor) -> None:
        """Bounds the speed of joints.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            speed: Largest speed, infinite for no bound [rad/s]. Shape is (N, J).
        """
        self._bounds[0][self._dofs[env_ids]] = speed

    def limit_position(self, env_ids: torch.Tensor, lower: torch.Tensor, upper: torch.Tensor) -> None:
        """Bounds the position of joints.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
            lower: Lowest position, -infinite for no bound [rad]. Shape is (N, J).
            upper: Highest position, infinite for no bound [rad]. Shape is (N, J).
        """
        self._bounds[1][self._dofs[env_ids]] = lower
        self._bounds[2][self._dofs[env_ids]] = upper

    def free_velocity(self, env_ids: torch.Tensor) -> None:
        """Takes the bounds on speed away.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
        """
        self._bounds[0][self._dofs[env_ids]] = torch.inf

    def free_position(self, env_ids: torch.Tensor) -> None:
        """Takes the bounds on position away.

        Args:
            env_ids: The envs, dtype int64. Shape is (N,).
        """
        self._bounds[1][self._dofs[env_ids]] = -torch.inf
        self._bounds[2][self._dofs[env_ids]] = torch.inf

    def _before_substep(self, state: Any) -> None:
        solver = cast(SolverMuJoCo, NewtonManager._solver)  # Isaac Lab 3.0 has no public accessor
        model, data, dof_map = solver.mjw_model, solver.mjw_data, cast(Any, solver.mjc_dof_to_newton_dof)
        buffers = self._buffers or self._allocate(model, dof_map.shape)
        shape, device, dt = dof_map.shape, dof_map.device, NewtonManager.get_solver_dt()
        wp.launch(
            read_brakes,
            dim=shape[0],
            inputs=[data.ne, data.nf, data.efc.type, data.efc.id, data.efc.force, buffers["braking"]],
            outputs=[buffers["brake"]],
            device=device,
        )
        wp.launch(
            change_of_torque,
            dim=shape,
            inputs=[dof_map, state.joint_qd, NewtonManager.get_control().joint_f, buffers["brake"], self._last_torque],
            outputs=[buffers["torque"]],
            device=device,
        )
        solve_m(model, data, buffers["change"], buffers["torque"])
        wp.launch(
            predict,
            dim=shape,
            inputs=[
                dt,
                dof_map,
                self._coordinate,
                state.joint_q,
                state.joint_qd,
                self._speed,
                self._lower,
                self._upper,
                data.qacc,
                buffers["change"],
                model.dof_invweight0,
            ],
            outputs=[buffers["bound"], buffers["excess"], buffers["torque"]],
            device=device,
        )
        solve_m(model, data, buffers["change"], buffers["torque"])
        wp.launch(
            turn_brakes,
            dim=shape,
            inputs=[
                dt,
                dof_map,
                state.joint_qd,
                self._speed,
                buffers["bound"],
                buffers["excess"],
                buffers["torque"],
                buffers["change"],
                NewtonManager.get_model().joint_friction,
                buffers["solref"],
                buffers["solimp"],
            ],
            outputs=[buffers["braking"], model.dof_frictionloss, model.dof_solref, model.dof_solimp],
            device=device,
        )

    def _allocate(self, model: Any, shape: tuple[int, int]) -> dict[str, wp.array]:
        """Allocates at the first substep: the solver is built after the event manager."""
        device = self._speed.device
        for name in ("braking", "brake", "torque", "change", "bound", "excess"):
            self._buffers[name] = wp.zeros(shape, dtype=float, device=device)
        self._buffers["solref"] = wp.clone(model.dof_solref)
        self._buffers["solimp"] = wp.clone(model.dof_solimp)
        return self._buffers


def _joint_addresses(asset: Articulation, model: Any) -> tuple[torch.Tensor, np.ndarray]:
    """Where Newton keeps the robot's joints.

    Returns:
        Index of every joint in velocity-shaped arrays, shape (E, J), and, for every such index, the one in
        position-shaped arrays, shape (number of degrees of freedom,).
    """
    dofs = np.full((asset.num_instances, asset.num_joints), -1)
    coordinate = np.zeros(model.joint_dof_count, dtype=np.int32)
    column = {name: index for index, name in enumerate(asset.joint_names)}
    root = re.compile(asset.cfg.prim_path + "/.*")
    world, dof_start, q_start = (
        array.numpy() for array in (model.joint_world, model.joint_qd_start, model.joint_q_start)
    )
    for index, label in enumerate(model.joint_label):
        joint = column.get(label.rsplit("/", 1)[-1])
        if joint is not None and root.fullmatch(label):
            dofs[world[index], joint] = dof_start[index]
            coordinate[dof_start[index]] = q_start[index]
    if (dofs < 0).any():
        raise UmcError(f"Newton does not hold every joint of {asset.cfg.prim_path} as a single degree of freedom")
    return torch.as_tensor(dofs, device=asset.device), coordinate
