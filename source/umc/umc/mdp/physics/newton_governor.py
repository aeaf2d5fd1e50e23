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
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp
from isaaclab_newton.physics import NewtonManager
from mujoco_warp import solve_m

from umc.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation

BRAKE = 1.0e4
"""Largest friction torque of a joint that is beyond its bound [N*m]: more than any leg needs, so the bound holds."""

IMPEDANCE = 0.999
"""Share of the asked acceleration that the solver's friction constraint delivers [-]; MuJoCo allows up to 0.9999."""

CRUISE = 0.95
"""Share of the speed limit at which a pushed joint is held [-]: held below it, a blow from outside meets the brake."""

HOLD = 4.0
"""Friction of a joint held at its speed, over what holding is predicted to need [-]."""

SMALLEST_SHARE = 0.25
"""Least share of the wanted effect that a guessed brake torque is trusted to have [-]; bounds its correction."""

_FRICTION_DOF = 1
"""``mujoco_warp`` type of a joint friction row."""

vec5 = wp.types.vector(length=5, dtype=float)


@wp.kernel(enable_backward=False)
def _read_brakes(
    ne: wp.array[int],
    nf: wp.array[int],
    row_type: wp.array2d[int],
    row_dof: wp.array2d[int],
    row_force: wp.array2d[float],
    braking: wp.array2d[float],
    brake: wp.array2d[float],
) -> None:
    """Friction torque of each braked joint in the last substep [N*m]. One thread per world."""
    world = wp.tid()
    for dof in range(brake.shape[1]):
        brake[world, dof] = 0.0
    last = wp.min(ne[world] + nf[world], row_type.shape[1])
    for row in range(ne[world], last):
        if row_type[world, row] == _FRICTION_DOF:
            dof = row_dof[world, row]
            brake[world, dof] = row_force[world, row] * braking[world, dof]


@wp.kernel(enable_backward=False)
def _change_of_torque(
    dof_map: wp.array2d[int],
    joint_qd: wp.array[float],
    torque: wp.array[float],
    brake: wp.array2d[float],
    last_torque: wp.array[float],
    change: wp.array2d[float],
) -> None:
    """What motor and brake torque change if the brake lets go [N*m]."""
    world, column = wp.tid()
    dof = dof_map[world, column]
    friction = brake[world, column]
    if friction * joint_qd[dof] > 0.0:
        # it held the joint against a blow, which is over: without it, the brake would have balanced the motor
        friction = -last_torque[dof]
    change[world, column] = torque[dof] - last_torque[dof] - friction
    last_torque[dof] = torque[dof]


@wp.kernel(enable_backward=False)
def _predict(
    dt: float,
    dof_map: wp.array2d[int],
    coordinate: wp.array[int],
    joint_q: wp.array[float],
    joint_qd: wp.array[float],
    speed: wp.array[float],
    lower: wp.array[float],
    upper: wp.array[float],
    acceleration: wp.array2d[float],
    change: wp.array2d[float],
    inverse_inertia: wp.array2d[float],
    bound: wp.array2d[float],
    excess: wp.array2d[float],
    guess: wp.array2d[float],
) -> None:
    """Predicted speed beyond the bound that it would break [rad/s], and a first guess of the brake torque [N*m]."""
    world, column = wp.tid()
    dof = dof_map[world, column]
    excess[world, column] = 0.0
    guess[world, column] = 0.0
    if wp.isinf(speed[dof]) and wp.isinf(lower[dof]) and wp.isinf(upper[dof]):
        return
    q = joint_q[coordinate[dof]]
    v = joint_qd[dof]
    # a joint outside its window is stopped here; the engine's own limit brings it back
    highest = wp.min(CRUISE * speed[dof], wp.max((upper[dof] - q) / dt, 0.0))
    lowest = wp.max(-CRUISE * speed[dof], wp.min((lower[dof] - q) / dt, 0.0))
    predicted = v + dt * (acceleration[world, column] + change[world, column])
    bound[world, column] = wp.clamp(predicted, lowest, highest)
    excess[world, column] = predicted - bound[world, column]
    inertia = 1.0 / inverse_inertia[world % inverse_inertia.shape[0], column]
    guess[world, column] = -excess[world, column] * inertia / dt


@wp.kernel(enable_backward=False)
def _brake(
    dt: float,
    dof_map: wp.array2d[int],
    joint_qd: wp.array[float],
    speed: wp.array[float],
    bound: wp.array2d[float],
    excess: wp.array2d[float],
    guess: wp.array2d[float],
    effect: wp.array2d[float],
    own_friction: wp.array[float],
    own_solref: wp.array2d[wp.vec2],
    own_solimp: wp.array2d[vec5],
    braking: wp.array2d[float],
    friction: wp.array2d[float],
    solref: wp.array2d[wp.vec2],
    solimp: wp.array2d[vec5],
) -> None:
    """Turns the friction of joints that would leave their bounds on, and that of all others back to their own."""
    world, column = wp.tid()
    dof = dof_map[world, column]
    e = excess[world, column]
    if e == 0.0:
        braking[world, column] = 0.0
        friction[world, column] = own_friction[dof]
        solref[world, column] = own_solref[world, column]
        solimp[world, column] = own_solimp[world, column]
        return
    v = joint_qd[dof]
    limit = bound[world, column]
    rate = wp.float32(0.0)
    torque = HOLD * wp.abs(guess[world, column])
    if (v - limit) * e >= 0.0:
        # at the bound: hold; beyond the speed limit or about to leave the window: come back within this substep
        limit = wp.where(wp.abs(limit) == CRUISE * speed[dof], limit / CRUISE, limit)
        if (v - limit) * e > 0.0:
            rate = wp.clamp((v - limit) / (v * dt), 0.0, 1.0 / dt)
            torque = BRAKE
    else:
        # just strong enough to arrive at the bound, by what the guess does to this joint with all others braked, too
        share = -dt * effect[world, column] / e
        torque = wp.abs(guess[world, column]) / wp.max(share, SMALLEST_SHARE)
    braking[world, column] = 1.0
    friction[world, column] = own_friction[dof] + torque
    solref[world, column] = wp.vec2(0.0, -rate * IMPEDANCE)
    solimp[world, column] = vec5(IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0)


class NewtonGovernor:
    """Bounds on speed and position of the joints of one robot.

    Args:
        asset: The robot, on Newton.

    Raises:
        UmcError: If the solver is not MuJoCo-Warp.
    """

    def __init__(self, asset: Articulation) -> None:
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
        solver = NewtonManager._solver  # Isaac Lab 3.0 has no public accessor
        model, data, dof_map = solver.mjw_model, solver.mjw_data, solver.mjc_dof_to_newton_dof
        buffers = self._buffers or self._allocate(model, dof_map.shape)
        shape, device, dt = dof_map.shape, dof_map.device, NewtonManager.get_solver_dt()
        wp.launch(
            _read_brakes,
            dim=shape[0],
            inputs=[data.ne, data.nf, data.efc.type, data.efc.id, data.efc.force, buffers["braking"]],
            outputs=[buffers["brake"]],
            device=device,
        )
        wp.launch(
            _change_of_torque,
            dim=shape,
            inputs=[dof_map, state.joint_qd, NewtonManager.get_control().joint_f, buffers["brake"], self._last_torque],
            outputs=[buffers["torque"]],
            device=device,
        )
        solve_m(model, data, buffers["change"], buffers["torque"])
        wp.launch(
            _predict,
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
            _brake,
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
