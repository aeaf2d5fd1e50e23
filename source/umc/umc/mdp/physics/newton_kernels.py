# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
# type: ignore
# (Warp compiles these functions; its array types mean something else to a Python type checker.)
"""Warp kernels that put joint limits into Newton's MuJoCo solver."""

import warp as wp

IMPEDANCE = 0.9999
"""Share of a violated bound that the solver corrects within the step [-]; the largest that MuJoCo allows."""

_LIMIT_JOINT = 3
"""``mujoco_warp`` type of a joint limit row."""


@wp.struct
class Rows:
    """The constraint rows of ``mujoco_warp`` that a joint limit fills; first index is the world."""

    capacity: int
    entries: int
    count: wp.array[int]
    type: wp.array2d[int]
    id: wp.array2d[int]
    pos: wp.array2d[float]
    margin: wp.array2d[float]
    stiffness: wp.array2d[float]
    velocity: wp.array2d[float]
    acceleration: wp.array2d[float]
    friction: wp.array2d[float]
    jacobian: wp.array3d[float]
    # the rest is in use with sparse Jacobians only
    length: wp.array2d[int]
    start: wp.array2d[int]
    column: wp.array3d[int]
    block_start: wp.array2d[int]
    block_rows: wp.array2d[int]
    blocks: wp.array[int]


@wp.func
def _entries_in_use(rows: Rows, world: int) -> int:
    """Return the index of the next free entry of a sparse Jacobian."""
    used = wp.int32(0)
    for row in range(wp.min(rows.count[world], rows.capacity)):
        used = wp.max(used, rows.start[world, row] + rows.length[world, row])
    return used


@wp.func
def _add_row(
    rows: Rows,
    world: int,
    dofs: int,
    dof: int,
    joint: int,
    sign: float,
    velocity: float,
    acceleration: float,
    stiffness: float,
    entry: int,
) -> None:
    """Require a joint's acceleration, times ``sign``, to be at least ``acceleration``; ``entry`` < 0 for dense rows."""
    row = rows.count[world]
    rows.count[world] = row + 1  # as the solver counts: it warns of rows that found no room
    if row >= rows.capacity:
        return
    if entry < 0:
        for other in range(dofs):
            rows.jacobian[world, row, other] = 0.0
        rows.jacobian[world, row, dof] = sign
    else:
        rows.length[world, row] = 0
        rows.start[world, row] = 0
        if entry < rows.entries:
            rows.length[world, row] = 1
            rows.start[world, row] = entry
            rows.column[world, 0, entry] = dof
            rows.jacobian[world, 0, entry] = sign
        block = rows.blocks[world]
        rows.blocks[world] = block + 1
        rows.block_start[world, block] = row
        rows.block_rows[world, block] = 1
    rows.type[world, row] = _LIMIT_JOINT
    rows.id[world, row] = joint
    rows.pos[world, row] = 0.0
    rows.margin[world, row] = 0.0
    rows.stiffness[world, row] = stiffness
    rows.velocity[world, row] = sign * velocity
    rows.acceleration[world, row] = acceleration
    rows.friction[world, row] = 0.0


@wp.func
def _bound(
    rows: Rows,
    world: int,
    dofs: int,
    dof: int,
    joint: int,
    velocity: float,
    lowest: float,
    highest: float,
    stiffness: float,
    dt: float,
    entry: int,
) -> int:
    """Keep a joint's speed at the end of the step between two bounds; return the next free ``entry``."""
    _add_row(rows, world, dofs, dof, joint, -1.0, velocity, (velocity - highest) / dt, stiffness, entry)
    step = wp.where(entry < 0, 0, 1)
    _add_row(rows, world, dofs, dof, joint, 1.0, velocity, (lowest - velocity) / dt, stiffness, entry + step)
    return entry + 2 * step


@wp.kernel(enable_backward=False)
def bound_speeds(
    dofs: int,
    sparse: bool,
    timestep: wp.array[float],
    newton_dof: wp.array2d[int],
    dof_joint: wp.array[int],
    joint_coordinate: wp.array[int],
    inverse_inertia: wp.array2d[float],
    qpos: wp.array2d[float],
    qvel: wp.array2d[float],
    speed: wp.array[float],
    lower: wp.array[float],
    upper: wp.array[float],
    damping: wp.array[float],
    rows: Rows,
) -> None:
    """Add two rows for each limited joint, and two for each braked one. One thread per world.

    The speed of a limited joint at the end of the step keeps its bounds. The torque of a braked one is -damping times
    that speed: a bound at speed 0 that is as soft as the damping. MuJoCo's own damping acts after the solve, and would
    take a joint out of its window.
    """
    world = wp.tid()
    dt = timestep[world % timestep.shape[0]]
    entry = wp.int32(-1)
    for dof in range(dofs):
        at = newton_dof[world, dof]
        if at < 0:
            continue
        limited = not (wp.isinf(speed[at]) and wp.isinf(lower[at]) and wp.isinf(upper[at]))
        if not limited and damping[at] == 0.0:
            continue
        if sparse and entry < 0:
            entry = _entries_in_use(rows, world)
        joint = dof_joint[dof]
        v = qvel[world, dof]
        if damping[at] != 0.0:
            entry = _bound(rows, world, dofs, dof, joint, v, 0.0, 0.0, damping[at] * dt, dt, entry)
        if limited:
            q = qpos[world, joint_coordinate[joint]]
            # a joint outside its window must not go further out; the engine's own limit brings it back
            highest = wp.min(speed[at], wp.max((upper[at] - q) / dt, 0.0))
            lowest = wp.max(-speed[at], wp.min((lower[at] - q) / dt, 0.0))
            stiffness = IMPEDANCE / ((1.0 - IMPEDANCE) * inverse_inertia[world % inverse_inertia.shape[0], dof])
            entry = _bound(rows, world, dofs, dof, joint, v, lowest, highest, stiffness, dt, entry)


@wp.kernel(enable_backward=False)
def write_position_limits(
    joints: int,
    slot: wp.array[int],
    newton_dof: wp.array2d[int],
    envs: wp.array[wp.bool],
    faulty: wp.array2d[wp.bool],
    lower: wp.array2d[float],
    upper: wp.array2d[float],
    model_lower: wp.array[float],
    model_upper: wp.array[float],
    joint_range: wp.array2d[wp.vec2],
    bound_lower: wp.array[float],
    bound_upper: wp.array[float],
) -> None:
    """Write position limits into Newton's model, the solver's and the bounds. One thread per world and joint."""
    world, joint = wp.tid()
    dof = newton_dof[world, joint]
    if dof < 0 or slot[dof] < 0:
        return
    env = slot[dof] // joints
    column = slot[dof] % joints
    if not envs[env]:
        return
    low = lower[env, column]
    high = upper[env, column]
    model_lower[dof] = low
    model_upper[dof] = high
    joint_range[world % joint_range.shape[0], joint] = wp.vec2(low, high)
    bound_lower[dof] = wp.where(faulty[env, column], low, -wp.inf)
    bound_upper[dof] = wp.where(faulty[env, column], high, wp.inf)


@wp.kernel(enable_backward=False)
def write_effort_limits(
    joints: int,
    slot: wp.array[int],
    newton_dof: wp.array2d[int],
    envs: wp.array[wp.bool],
    effort: wp.array2d[float],
    model_effort: wp.array[float],
    joint_force_range: wp.array2d[wp.vec2],
) -> None:
    """Write effort limits into Newton's model and the solver's. One thread per world and joint."""
    world, joint = wp.tid()
    dof = newton_dof[world, joint]
    if dof < 0 or slot[dof] < 0:
        return
    env = slot[dof] // joints
    if not envs[env]:
        return
    value = effort[env, slot[dof] % joints]
    model_effort[dof] = value
    joint_force_range[world % joint_force_range.shape[0], joint] = wp.vec2(-value, value)


@wp.kernel(enable_backward=False)
def write_passive(
    joints: int,
    slot: wp.array[int],
    newton_dof: wp.array2d[int],
    envs: wp.array[wp.bool],
    faulty: wp.array2d[wp.bool],
    values: wp.array3d[float],
    timestep: wp.array[float],
    healthy_reference: wp.array2d[wp.vec2],
    healthy_impedance: wp.array2d[wp.types.vector(5, float)],
    healthy_damping: wp.array[float],
    damping: wp.array[float],
    model_friction: wp.array[float],
    friction: wp.array2d[float],
    reference: wp.array2d[wp.vec2],
    impedance: wp.array2d[wp.types.vector(5, float)],
) -> None:
    """Write dry friction into Newton's model and the solver's, and the damping that faults add. One thread per joint.

    MuJoCo's dry friction creeps by default: faulty joints stop within a step instead.
    """
    world, at = wp.tid()
    dof = newton_dof[world, at]
    if dof < 0 or slot[dof] < 0:
        return
    env = slot[dof] // joints
    column = slot[dof] % joints
    if not envs[env]:
        return
    damping[dof] = values[env, column, 0] - healthy_damping[dof]
    model_friction[dof] = values[env, column, 2]
    friction[world, at] = values[env, column, 2]
    if faulty[env, column]:
        reference[world, at] = wp.vec2(2.0 * timestep[world % timestep.shape[0]], 1.0)
        stiff = healthy_impedance[world, at]
        stiff[0] = IMPEDANCE
        stiff[1] = IMPEDANCE
        impedance[world, at] = stiff
    else:
        reference[world, at] = healthy_reference[world, at]
        impedance[world, at] = healthy_impedance[world, at]
