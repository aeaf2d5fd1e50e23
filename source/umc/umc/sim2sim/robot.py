# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One robot in plain MuJoCo: motors as the exported policy's JSON says, joints that can do less, senses, and falls.

Torque faults clamp the motor. Windows and speed limits act in MuJoCo's own constraint rows of joint limits: those of a
faulty joint are kept in play always, and between the two halves of a step each is told that the joint's speed at the
end of the step must not exceed its limit, nor take it out of its window. The solver fulfils them together with the
contacts, so that momentum is conserved and a blow of the ground does not break them.
"""

# mujoco's stubs lack most of its functions:
# pyright: reportAttributeAccessIssue=none

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from umc.sim2sim.conditions import FORCE_HISTORY, FORCE_THRESHOLD, SOFT_LIMIT_FACTOR, Conditions, Start
from umc.sim2sim.model import read_robot
from umc.utils.errors import UmcError

IMPEDANCE = 0.9999
"""Share of a broken bound that the solver takes back within the step [-]; the largest that MuJoCo allows."""

RETURN_TIME = 0.05
"""Time in which a joint that is beyond its window comes back [s]: no faster, so that switching it on kicks nothing."""

ALWAYS = 1.0e3
"""Margin that keeps both limit rows of a joint in play wherever it is [rad]."""

FREE = 7
"""Coordinates of the free base; its speeds are one fewer."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Motors:
    """What the exported JSON says of the joints, in the policy's order; shapes are (J,)."""

    names: tuple[str, ...]
    pose: Vector
    """Default pose [rad]."""
    kp: Vector
    """Stiffness [N*m/rad]."""
    kd: Vector
    """Damping [N*m*s/rad]."""
    effort: Vector
    """Largest torque [N*m]."""
    velocity: Vector
    """Largest speed of the healthy joint [rad/s]; a fraction of it can be a fault's severity, healthy joints are not
    held to it."""
    physics_dt: float
    """Time for which a torque is held [s]."""
    decimation: int
    """Torques per target."""

    @classmethod
    def of(cls, sheet: Mapping[str, Any]) -> Motors:
        """Reads a description.

        Args:
            sheet: Content of an exported ``policy.json``.

        Returns:
            The motors.
        """
        rows, control = sheet["joints"], sheet["control"]
        keys = (
            "default_position_rad",
            "kp_Nm_per_rad",
            "kd_Nms_per_rad",
            "effort_limit_Nm",
            "velocity_limit_rad_per_s",
        )
        columns = [np.array([np.inf if row[key] is None else row[key] for row in rows], dtype=float) for key in keys]
        names = tuple(row["name"] for row in rows)
        return cls(names, *columns, physics_dt=control["physics_dt_s"], decimation=control["decimation"])


@dataclass(frozen=True)
class JointBounds:
    """What the joints can do now; shapes are (J,)."""

    lower: Vector
    upper: Vector
    effort: Vector
    velocity: Vector


class Kind:
    """All robots of one sort: the model that they are copied from, and where it keeps the joints.

    Args:
        usd: The robot's USD file.
        motors: Its motors.
        conditions: How it starts and falls.
        substeps: MuJoCo's steps in the time that a torque is held.
        contact_time: Time constant of contacts [s]; MuJoCo's own without it.

    Raises:
        UmcError: If the file has other joints than the policy, or if contacts are too short for the steps.
    """

    def __init__(
        self,
        usd: Path,
        motors: Motors,
        conditions: Conditions,
        substeps: int = 1,
        contact_time: float | None = None,
    ) -> None:
        self.motors, self.conditions, self.substeps = motors, conditions, substeps
        self.model = read_robot(usd, motors.physics_dt / substeps, contact_time)
        model = self.model
        found = [model.joint(number).name for number in range(1, model.njnt)]
        if sorted(found) != sorted(motors.names):
            raise UmcError(f"{usd.name} has other joints than the policy: {sorted(set(found) ^ set(motors.names))}")
        self.joints = np.array([model.joint(name).id for name in motors.names])
        self.qpos, self.qvel = model.jnt_qposadr[self.joints], model.jnt_dofadr[self.joints]
        self.base = int(model.jnt_bodyid[0])
        self.bounds = JointBounds(
            model.jnt_range[self.joints, 0].copy(),
            model.jnt_range[self.joints, 1].copy(),
            motors.effort,
            motors.velocity,
        )
        """What healthy joints can do."""
        names = [model.body(number).name for number in range(model.nbody)]
        self.forbidden = np.array([any(re.fullmatch(one, name) for one in conditions.forbidden) for name in names])
        self.feet = np.array([names.index(foot) for foot in conditions.feet])


class Robot:
    """One robot, which starts anew with every :meth:`start`.

    Args:
        kind: What it is.
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.start()

    def start(self, start: Start | None = None) -> None:
        """Puts the robot where it begins.

        Args:
            start: Its draw; the default pose, at rest, with friction 1 without it.
        """
        kind, healthy = self.kind, self.kind.model
        self.model, motors, base = copy.copy(healthy), kind.motors, kind.base
        self.data = mujoco.MjData(self.model)
        self.kp, self.kd = motors.kp, motors.kd
        self.torque: Vector = np.zeros(len(motors.names))
        """Torques of the motors now [N*m]. Shape is (J,)."""
        pose, data = motors.pose, self.data
        self.model.geom_friction[1:, 0] = 1.0 if start is None else start.friction
        if start is not None:
            self.model.body_mass[base] += start.payload
            self.model.body_inertia[base] *= self.model.body_mass[base] / healthy.body_mass[base]
            self.model.body_ipos[base] += start.com
            mujoco.mj_setConst(self.model, data)
            self.kp, self.kd = motors.kp * start.stiffness, motors.kd * start.damping
            middle = (kind.bounds.lower + kind.bounds.upper) / 2.0
            reach = SOFT_LIMIT_FACTOR * (kind.bounds.upper - kind.bounds.lower) / 2.0
            pose = np.clip(pose * start.joints, middle - reach, middle + reach)
            data.qvel[:6] = start.velocity
        yaw = 0.0 if start is None else start.yaw
        data.qpos[:FREE] = (0.0, 0.0, kind.conditions.height, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        data.qpos[kind.qpos] = pose
        self.limit(kind.bounds)
        self._touched: deque[bool] = deque(maxlen=FORCE_HISTORY)
        mujoco.mj_forward(self.model, data)

    def limit(self, bounds: JointBounds) -> None:
        """Limits the joints; what equals the healthy bounds is healthy.

        Args:
            bounds: What they can do from now on.
        """
        kind, healthy = self.kind, self.kind.bounds
        self._effort = bounds.effort
        bounded = (bounds.lower != healthy.lower) | (bounds.upper != healthy.upper)
        slow = bounds.velocity != healthy.velocity
        bounded |= slow
        self.model.jnt_margin[kind.joints] = np.where(bounded, ALWAYS, kind.model.jnt_margin[kind.joints])
        self.model.jnt_range[kind.joints, 0], self.model.jnt_range[kind.joints, 1] = bounds.lower, bounds.upper
        self._bounded = np.flatnonzero(bounded)
        at = self._bounded
        self._lower, self._upper, self._speed = (
            bounds.lower[at],
            bounds.upper[at],
            np.where(slow, bounds.velocity, np.inf)[at],
        )

    def step(self, target: Vector) -> None:
        """Holds joint targets for one call of the policy.

        Args:
            target: Joint targets [rad]. Shape is (J,).
        """
        model, data, kind = self.model, self.data, self.kind
        for _ in range(kind.motors.decimation):
            wanted = self.kp * (target - data.qpos[kind.qpos]) - self.kd * data.qvel[kind.qvel]
            self.torque = np.clip(wanted, -self._effort, self._effort)
            data.qfrc_applied[kind.qvel] = self.torque
            touched = False
            for _ in range(kind.substeps):
                if len(self._bounded):
                    mujoco.mj_step1(model, data)
                    self._bound()
                    mujoco.mj_step2(model, data)
                else:
                    mujoco.mj_step(model, data)
                touched |= self._touches()
            self._touched.append(touched)

    def _bound(self) -> None:
        """Tells the rows of faulty joints what the joints may do in this step."""
        model, data, kind, at = self.model, self.data, self.kind, self._bounded
        count, dt = data.nefc, model.opt.timestep
        q, v = data.qpos[kind.qpos[at]], data.qvel[kind.qvel[at]]
        highest = np.minimum(self._speed, np.maximum((self._upper - q) / dt, 0.0))
        lowest = np.maximum(-self._speed, np.minimum((self._lower - q) / dt, 0.0))
        lowest = np.where(q < self._lower, np.minimum((self._lower - q) / RETURN_TIME, self._speed), lowest)
        highest = np.where(q > self._upper, np.maximum((self._upper - q) / RETURN_TIME, -self._speed), highest)
        # MuJoCo makes the row of the lower limit first, then that of the upper one
        limits = np.flatnonzero(data.efc_type[:count] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
        of = data.efc_id[limits]
        low = np.array([limits[of == joint][0] for joint in kind.joints[at]])
        high = np.array([limits[of == joint][1] for joint in kind.joints[at]])
        stiffness = IMPEDANCE / ((1.0 - IMPEDANCE) * model.dof_invweight0[kind.qvel[at]])
        for rows, acceleration in ((low, (lowest - v) / dt), (high, (v - highest) / dt)):
            data.efc_aref[rows] = acceleration
            data.efc_D[rows], data.efc_R[rows] = stiffness, 1.0 / stiffness

    def _touches(self) -> bool:
        """Whether a body touches the ground that must not."""
        return bool(self.kind.forbidden.any()) and bool(self._forces()[self.kind.forbidden].max() > FORCE_THRESHOLD)

    def _forces(self) -> Vector:
        """Normal force of the ground on every body [N]. Shape is (nbody,)."""
        data, forces = self.data, np.zeros(self.model.nbody)
        if data.ncon:
            contact = data.contact
            rows = contact.efc_address
            felt = rows >= 0
            bodies = self.model.geom_bodyid[contact.geom[felt]].max(axis=1)  # the ground's is 0
            np.add.at(forces, bodies, data.efc_force[rows[felt]])  # with elliptic cones, a contact's first row
        return forces

    @property
    def joint_position(self) -> Vector:
        """Joint angles [rad]. Shape is (J,)."""
        return self.data.qpos[self.kind.qpos]

    @property
    def joint_velocity(self) -> Vector:
        """Joint speeds [rad/s]. Shape is (J,)."""
        return self.data.qvel[self.kind.qvel]

    @property
    def angular_velocity(self) -> Vector:
        """Angular velocity of the base in its own frame [rad/s]. Shape is (3,)."""
        return self.data.qvel[3:6].copy()

    @property
    def gravity(self) -> Vector:
        """Direction of gravity in the base's frame [-]. Shape is (3,)."""
        return -self.rotation[2]

    @property
    def rotation(self) -> Vector:
        """Rotation matrix of the base. Shape is (3, 3)."""
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, self.data.qpos[3:7])
        return matrix.reshape(3, 3)

    @property
    def velocity(self) -> Vector:
        """Velocity of the base's centre of mass in the base's frame [m/s], which Isaac Lab reports. Shape is (3,)."""
        turning = np.cross(self.data.qvel[3:6], self.model.body_ipos[self.kind.base])
        return self.rotation.T @ self.data.qvel[:3] + turning

    @property
    def power(self) -> float:
        """Mechanical power of the motors, negative power left out [W]."""
        return float(np.maximum(self.torque * self.joint_velocity, 0.0).sum())

    @property
    def stance(self) -> NDArray[np.bool_]:
        """Which feet stand on the ground. Shape is (num_feet,)."""
        return self._forces()[self.kind.feet] > FORCE_THRESHOLD

    @property
    def finite(self) -> bool:
        """Whether the state is a state."""
        return bool(np.isfinite(self.data.qpos).all() and np.isfinite(self.data.qvel).all())

    @property
    def fallen(self) -> bool:
        """Whether the task would end the episode here."""
        conditions, turned = self.kind.conditions, self.rotation
        roll = np.arctan2(turned[2, 1], turned[2, 2])
        pitch = np.arcsin(np.clip(-turned[2, 0], -1.0, 1.0))
        return (
            any(self._touched)
            or (conditions.max_roll is not None and abs(roll) > conditions.max_roll)
            or (conditions.max_pitch is not None and abs(pitch) > conditions.max_pitch)
            or (conditions.min_height is not None and self.data.qpos[2] < conditions.min_height)
        )
