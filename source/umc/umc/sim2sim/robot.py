# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One robot in plain MuJoCo: motors as in the exported policy's JSON, joint limits that faults change, state, falls.

Torque faults clamp the motor. Damping and dry friction are MuJoCo's own, in the robot's copy of the model. Position
windows and speed limits act in MuJoCo's own constraint rows of joint limits: the rows of a faulty joint are always
active, and between the two halves of a step each gets a target acceleration, so that at the end of the step the
joint's speed is within its limit and the joint within its window. The solver satisfies them together with the
contacts: momentum is conserved, and an impact on the ground does not violate them.
"""

# mujoco's stubs lack most of its functions:
# pyright: reportAttributeAccessIssue=none

from __future__ import annotations

import copy
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from umc.sim2sim.conditions import Conditions, Start
from umc.utils.description import JOINT_FIGURES
from umc.utils.errors import UmcError, shown

GROUND = "ground"
"""Name of the floor's geom."""

ALL_BITS = 2**31 - 1
"""Of a geom's ``contype`` and ``conaffinity``."""

FLAGS_OFF = mujoco.mjtDisableBit.mjDSBL_AUTORESET | mujoco.mjtDisableBit.mjDSBL_ISLAND
FLAGS_OFF |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
"""MuJoCo must neither reset a robot whose state is not finite nor copy constraint rows before the solve; torques are
:class:`Robot`'s, not those of a model's actuators."""

STEPS_PER_CONTACT = 2
"""Fewest steps in a contact's time constant (MuJoCo clips shorter ones, see ``solref``)."""

STANCE_FORCE = 1.0
"""Contact force above which a foot stands on the ground [N], as in umc.mdp.foot_contact."""

IMPEDANCE = 0.9999
"""Share of a violated bound that the solver corrects within the step [-]; the largest that MuJoCo allows."""

RETURN_TIME = 0.05
"""Time in which a joint outside its window returns [s]: slow enough that switching the fault on is no impulse."""

ALWAYS = 1.0e3
"""Margin that keeps both limit rows of a joint active at any angle [rad]."""

FREE = 7
"""Coordinates of the free base; its speeds are one fewer."""

Vector = NDArray[np.float64]


Transmission = Callable[[Vector, Vector, Vector], tuple[Vector, Vector]]
"""Takes position targets [rad] that arrived, angles [rad] and speeds [rad/s]; returns the position and velocity targets
[rad/s] that act in a physics step. Shapes are (J,)."""


@dataclass(frozen=True)
class Motors:
    """Joints and their motors in the policy's order; shapes are (J,)."""

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
    """Speed limit [rad/s]; faults can be a fraction of it, healthy joints are not held to it."""
    physics_dt: float
    """Time for which a torque is held [s]."""
    decimation: int
    """Torques per target."""

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Motors:
        """Read the content of an exported ``policy.json``."""
        rows, control = description["joints"], description["control"]
        keys = (*JOINT_FIGURES, "effort_limit_Nm", "velocity_limit_rad_per_s")
        columns = [np.array([np.inf if row[key] is None else row[key] for row in rows], dtype=float) for key in keys]
        names = tuple(row["name"] for row in rows)
        return cls(names, *columns, physics_dt=control["physics_dt_s"], decimation=control["decimation"])


@dataclass(frozen=True)
class JointBounds:
    """Limits of the joints now; shapes are (J,)."""

    lower: Vector
    upper: Vector
    effort: Vector
    velocity: Vector
    damping: Vector = field(default_factory=lambda: np.zeros(()))
    """What faults add [N*m*s/rad]; 0 unless given."""
    friction: Vector = field(default_factory=lambda: np.zeros(()))
    """What faults add [N*m]; 0 unless given."""


def robot_mjcf(robot: str) -> Path:
    """Return the MJCF file of a robot of this package by its name in checkpoints; UmcError if there is none."""
    found = mjcf_robots().get(robot.lower())
    if found is None:
        raise UmcError(f"robot {robot} is none of {', '.join(mjcf_robots())}; give its model with --mjcf FILE")
    return found


def mjcf_robots() -> dict[str, Path]:
    """Return the MJCF files of this package's robots by name."""
    folder = Path(str(files("umc"))) / "robots" / "data"  # umc.robots itself would import Isaac Lab
    return {file.stem: file for file in sorted(folder.glob("*.xml"))}


def load_robot(path: Path, timestep: float, contact_time: float | None = None) -> mujoco.MjModel:
    """Put the robot of an MJCF file on a plane, with elliptic friction cones; its first joint has to be the free one.

    ``timestep`` is the length of a step [s], ``contact_time`` the time constant of contacts [s], MuJoCo's if None.
    """
    if contact_time is not None and not contact_time >= STEPS_PER_CONTACT * timestep:  # refuses NaN, too
        raise UmcError(
            f"contacts of {contact_time:g} s are too short for steps of {timestep:g} s: take"
            f" {STEPS_PER_CONTACT * timestep:g} s or longer, or shorter steps"
        )
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        spec.option.timestep = timestep
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.disableflags = FLAGS_OFF
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        # below every priority of a robot: its friction alone counts, as on the ground of the tasks
        ground = spec.worldbody.add_geom(name=GROUND, type=plane, size=[0, 0, 1], condim=3, priority=-1)
        ground.contype = ground.conaffinity = ALL_BITS  # meets whatever collides at all
        model = spec.compile()
    except ValueError as error:
        raise UmcError(f"cannot read {path} as MJCF ({shown(str(error))}); build it with umc.robots.builder") from error
    if not model.njnt or model.jnt_type[0] != mujoco.mjtJoint.mjJNT_FREE:
        raise UmcError(f"{path}: the first joint has to be a free one; build the MJCF with umc.robots.builder")
    np.maximum(model.geom_condim, 3, out=model.geom_condim)  # 1 would be without friction
    if contact_time is not None:
        model.geom_solref[:, 0] = contact_time
    return model


@dataclass(frozen=True)
class SolverCfg:
    """Settings of MuJoCo's solver."""

    substeps: int = 1
    """MuJoCo's steps in the time that a torque is held."""
    contact_time: float | None = None
    """Time constant of contacts [s]; MuJoCo's 0.02 if None."""


class RobotType:
    """Data that all robots of a rollout share: the model that they copy, and the indices of joints and bodies in it.

    Raises:
        UmcError: If the MJCF file has other joints or feet than the policy, or contacts are too short for the steps.
    """

    def __init__(self, mjcf: Path, motors: Motors, conditions: Conditions, solver: SolverCfg) -> None:
        self.motors, self.conditions, self.substeps = motors, conditions, solver.substeps
        self.model = model = load_robot(mjcf, motors.physics_dt / solver.substeps, solver.contact_time)
        found = [model.joint(number).name for number in range(1, model.njnt)]
        fix = "export the policy again, or give another --mjcf"
        if sorted(found) != sorted(motors.names):
            others = sorted(set(found) ^ set(motors.names))
            raise UmcError(f"{mjcf.name} has other joints than the policy: {others}; {fix}")
        self.joints = np.array([model.joint(name).id for name in motors.names])
        self.qpos, self.qvel = model.jnt_qposadr[self.joints], model.jnt_dofadr[self.joints]
        self.base = int(model.jnt_bodyid[0])
        names = motors.names
        if free := [name for name, joint in zip(names, self.joints, strict=True) if not model.jnt_limited[joint]]:
            raise UmcError(f"{mjcf.name}: {', '.join(free)} has no limits, with which faults act; give it a range")
        lower, upper = model.jnt_range[self.joints].T.copy()
        self.bounds = JointBounds(lower, upper, motors.effort, motors.velocity)
        """Limits of the healthy joints."""
        self.forbidden, self.feet = self._bodies(conditions.contact_bodies), self._bodies(conditions.feet)
        for pattern in conditions.feet:
            if (count := len(self._bodies([pattern]))) != 1:
                raise UmcError(
                    f"feet names {shown(pattern)}, which matches {count} bodies of {mjcf.name} instead of one; {fix}"
                )
        for pattern in conditions.contact_bodies:
            if not len(self._bodies([pattern])):
                raise UmcError(f"{mjcf.name} has no body {shown(pattern)}, whose contact is a fall; {fix}")

    def _bodies(self, patterns: Sequence[str]) -> NDArray[np.int64]:
        """Return the indices of the bodies that regular expressions name, in the order of these."""
        names = [self.model.body(number).name for number in range(self.model.nbody)]
        found = [number for one in patterns for number, name in enumerate(names) if re.fullmatch(one, name)]
        return np.array(found, dtype=int)


class Robot:
    """One robot; :meth:`reset` puts it at a start."""

    def __init__(self, kind: RobotType) -> None:
        self.kind = kind
        self.reset()

    def reset(self, start: Start | None = None) -> None:
        """Put the robot at a start; without one, in the default pose, at rest, with friction 1."""
        kind, healthy = self.kind, self.kind.model
        self.model, motors, base = copy.copy(healthy), kind.motors, kind.base
        self.data = mujoco.MjData(self.model)
        self.kp, self.kd = motors.kp, motors.kd
        self.torque: Vector = np.zeros(len(motors.names))
        """Torques of the motors now [N*m]. Shape is (J,)."""
        self.demanded: Vector = self.torque
        """What they would be without a limit [N*m]. Shape is (J,)."""
        pose, data = motors.pose, self.data
        self.model.geom_friction[self.model.geom_bodyid > 0, 0] = 1.0 if start is None else start.friction
        if start is not None:
            self.model.body_mass[base] += start.added_mass
            self.model.body_inertia[base] *= self.model.body_mass[base] / healthy.body_mass[base]
            self.model.body_ipos[base] += start.com_shift
            mujoco.mj_setConst(self.model, data)
            self.kp, self.kd = motors.kp * start.kp_factor, motors.kd * start.kd_factor
            middle = (kind.bounds.lower + kind.bounds.upper) / 2.0
            reach = kind.conditions.soft_limit_factor * (kind.bounds.upper - kind.bounds.lower) / 2.0
            pose = np.clip(pose * start.joint_factor, middle - reach, middle + reach)
            data.qvel[:6] = start.velocity
        yaw = 0.0 if start is None else start.yaw
        data.qpos[:FREE] = (0.0, 0.0, kind.conditions.base_height_m, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        data.qpos[kind.qpos] = pose
        self.limit(kind.bounds)
        self._touched: deque[bool] = deque(maxlen=kind.conditions.contact_history_steps)
        mujoco.mj_forward(self.model, data)

    def limit(self, bounds: JointBounds) -> None:
        """Limit the joints from now on; those whose bounds equal the healthy ones are healthy."""
        kind, healthy = self.kind, self.kind.bounds
        self._effort = bounds.effort
        bounded = (bounds.lower != healthy.lower) | (bounds.upper != healthy.upper)
        slow = bounds.velocity != healthy.velocity
        bounded |= slow
        self.model.jnt_margin[kind.joints] = np.where(bounded, ALWAYS, kind.model.jnt_margin[kind.joints])
        model, dofs = self.model, kind.qvel
        model.dof_damping[dofs] = kind.model.dof_damping[dofs] + bounds.damping
        model.dof_frictionloss[dofs] = kind.model.dof_frictionloss[dofs] + bounds.friction
        rubs = np.broadcast_to(bounds.friction > 0.0, dofs.shape)[:, None]
        # MuJoCo's dry friction creeps by default: faulty joints stop within a step instead
        stiff = np.array([2.0 * model.opt.timestep, 1.0])
        model.dof_solref[dofs] = np.where(rubs, stiff, kind.model.dof_solref[dofs])
        hard = np.array([IMPEDANCE, IMPEDANCE, *model.dof_solimp[0, 2:]])
        model.dof_solimp[dofs] = np.where(rubs, hard, kind.model.dof_solimp[dofs])
        self.model.jnt_range[kind.joints, 0], self.model.jnt_range[kind.joints, 1] = bounds.lower, bounds.upper
        self._bounded = at = np.flatnonzero(bounded)
        self._lower, self._upper = bounds.lower[at], bounds.upper[at]
        self._speed = np.where(slow, bounds.velocity, np.inf)[at]

    def step(self, target: Vector, transmission: Transmission | None = None) -> None:
        """Hold joint targets [rad] of shape (J,) for one call of the policy."""
        model, data, kind = self.model, self.data, self.kind
        for _ in range(kind.motors.decimation):
            q, v = self.joint_position, self.joint_velocity
            acting, speed = (target, 0.0) if transmission is None else transmission(target, q, v)
            self.demanded = self.kp * (acting - q) + self.kd * (speed - v)
            self.torque = np.clip(self.demanded, -self._effort, self._effort)
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
        """Write into the limit rows of faulty joints what the joints may do in this step."""
        model, data, kind, at = self.model, self.data, self.kind, self._bounded
        count, dt = data.nefc, model.opt.timestep
        q, v = data.qpos[kind.qpos[at]], data.qvel[kind.qvel[at]]
        highest = np.minimum(self._speed, np.maximum((self._upper - q) / dt, 0.0))
        lowest = np.maximum(-self._speed, np.minimum((self._lower - q) / dt, 0.0))
        lowest = np.where(q < self._lower, np.minimum((self._lower - q) / RETURN_TIME, self._speed), lowest)
        highest = np.where(q > self._upper, np.maximum((self._upper - q) / RETURN_TIME, -self._speed), highest)
        # MuJoCo adds the row of the lower limit first, then that of the upper one
        limits = np.flatnonzero(data.efc_type[:count] == mujoco.mjtConstraint.mjCNSTR_LIMIT_JOINT)
        of = data.efc_id[limits]
        pairs = [limits[of == joint] for joint in kind.joints[at]]
        if any(len(pair) < 2 for pair in pairs):  # a joint that has diverged has none
            return
        low, high = np.array(pairs).T
        stiffness = IMPEDANCE / ((1.0 - IMPEDANCE) * model.dof_invweight0[kind.qvel[at]])
        for rows, acceleration in ((low, (lowest - v) / dt), (high, (v - highest) / dt)):
            data.efc_aref[rows] = acceleration
            data.efc_D[rows], data.efc_R[rows] = stiffness, 1.0 / stiffness

    def _touches(self) -> bool:
        """Return whether a body touches the ground whose contact is a fall."""
        return len(self.kind.forbidden) > 0 and bool(
            (self._forces()[self.kind.forbidden] > self.kind.conditions.contact_force_N).any()
        )

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
        """Positive mechanical power of the motors [W]."""
        return float(np.maximum(self.torque * self.joint_velocity, 0.0).sum())

    @property
    def stance(self) -> NDArray[np.bool_]:
        """Feet on the ground. Shape is (num_feet,)."""
        return self._forces()[self.kind.feet] > STANCE_FORCE

    @property
    def finite(self) -> bool:
        """Whether the state is finite."""
        return bool(np.isfinite(self.data.qpos).all() and np.isfinite(self.data.qvel).all())

    @property
    def fallen(self) -> bool:
        """Whether the task would end the episode here."""
        conditions, turned = self.kind.conditions, self.rotation
        roll = np.arctan2(turned[2, 1], turned[2, 2])
        pitch = np.arcsin(np.clip(-turned[2, 0], -1.0, 1.0))
        return (
            any(self._touched)
            or (conditions.max_roll_rad is not None and abs(roll) > conditions.max_roll_rad)
            or (conditions.max_pitch_rad is not None and abs(pitch) > conditions.max_pitch_rad)
            or (conditions.min_height_m is not None and self.data.qpos[2] < conditions.min_height_m)
        )
