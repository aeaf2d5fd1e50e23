# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
# type: ignore
# (Warp compiles these functions; its array types mean something else to a Python type checker.)
"""Warp kernels of the Newton governor: one thread per degree of freedom and world."""

import warp as wp

BRAKE = 1.0e4
"""Largest friction torque of a joint that is beyond its bound [N*m]: more than any leg needs, so the bound holds."""

IMPEDANCE = 0.999
"""Share of the asked acceleration that the solver's friction constraint delivers [-]; MuJoCo allows up to 0.9999."""

CRUISE = 0.97
"""Share of the speed limit from which on a pushed joint is braked [-]."""

HOLD_FROM = 0.92
"""Share of that speed from which on a pushed joint is held at its speed [-], so that a blow meets the brake."""

HOLD = 4.0
"""Friction of a held joint over what holding is predicted to need [-]; bounds how stiffly it meets a blow."""

SMALLEST_SHARE = 0.25
"""Least share of the wanted effect that a guessed brake torque is trusted to have [-]; bounds its correction."""

_FRICTION_DOF = 1
"""``mujoco_warp`` type of a joint friction row."""

vec5 = wp.types.vector(length=5, dtype=float)


@wp.kernel(enable_backward=False)
def read_brakes(
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
            if braking[world, dof] > 0.0:
                brake[world, dof] = row_force[world, row]


@wp.kernel(enable_backward=False)
def change_of_torque(
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
def predict(
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
    if not wp.isfinite(predicted):
        # the world has diverged: brakes made of NaN would outlive its reset
        return
    bound[world, column] = wp.clamp(predicted, lowest, highest)
    excess[world, column] = predicted - bound[world, column]
    inertia = 1.0 / inverse_inertia[world % inverse_inertia.shape[0], column]
    guess[world, column] = -excess[world, column] * inertia / dt


@wp.kernel(enable_backward=False)
def turn_brakes(
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
    # up to the limit itself a held joint keeps its speed; a window, whose bound is no cruising speed, is never overrun
    hard = wp.where(wp.abs(limit) == CRUISE * speed[dof], limit / CRUISE, limit)
    if (v - hard) * e > 0.0:
        # beyond the speed limit, or about to leave the window: come back within this substep
        rate = wp.clamp((v - hard) / (v * dt), 0.0, 1.0 / dt)
        torque = BRAKE
    elif (v - HOLD_FROM * limit) * e < 0.0:
        # just strong enough to arrive at the bound, by what the guess does to this joint with all others braked, too
        share = -dt * effect[world, column] / e
        torque = wp.abs(guess[world, column]) / wp.max(share, SMALLEST_SHARE)
    braking[world, column] = 1.0
    friction[world, column] = own_friction[dof] + torque
    solref[world, column] = wp.vec2(0.0, -rate * IMPEDANCE)
    solimp[world, column] = vec5(IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0)
