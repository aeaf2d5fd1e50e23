# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Find out how often a humanoid could stand at rest with weak motors: ``python -m tools.torque_margin g1``.

For draws of faulty joints as the protocol makes them, an optimizer looks for the posture that needs the least torque in
the faulty joints: on both feet, and on the left and the right foot alone. It knows joint limits, the healthy joints'
torque limits, friction, and the size of the feet. A posture says that a robot could stand so, not that it gets there,
keeps its balance or walks. The optimizer may miss one, from ``--starts`` tries. H1 has no roll in its ankles: it cannot
stand on one foot at rest, even healthy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from umc.evaluation.protocol import protocol_for
from umc.evaluation.report.renderers import percent
from umc.evaluation.statistics import wilson
from umc.sim2sim.robot import robot_mjcf
from umc.utils.cli import Parser, at_least_one, run_main
from umc.utils.console import progress_bar

Floats = NDArray[np.float64]

FRICTION = 0.7
"""Coefficient between foot and ground [-]."""

CLEARANCE = 0.02
"""Least height of a lifted foot [m]."""

APART = 0.10
"""Least sideways distance of the feet [m]."""

TOLERANCE = 1.02
"""By how much a posture may exceed the torque limit [-]: the optimizer stops near it."""

FEET = {"g1": ("left_ankle_roll_link", "right_ankle_roll_link"), "h1": ("left_ankle_link", "right_ankle_link")}
"""Bodies with the soles."""

STANCES = {"both feet": (0, 1), "left foot": (0,), "right foot": (1,)}
"""Feet on the ground."""


@dataclass(frozen=True)
class Sole:
    """Contact rectangle of a foot, in the frame of its body."""

    body: int
    low: Floats
    """Smallest x and y [m]."""
    high: Floats
    """Largest x and y [m]."""
    height: float
    """z of the sole [m]."""


class Statics:
    """Postures and contact forces of a humanoid at rest."""

    def __init__(self, robot: str, lean: float) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(robot_mjcf(robot)))
        self._data = mujoco.MjData(self.model)
        self.joints = [self.model.joint(number).name for number in range(1, self.model.njnt)]
        self.ranges = self.model.jnt_range[1:]
        self.lean = lean
        self.healthy = self.model.jnt_actfrcrange[1:, 1]
        self._weight = float(self.model.body_mass.sum()) * 9.81
        self._soles = [_sole(self.model, name) for name in FEET[robot]]

    def least_torque(self, weak: Sequence[int], feet: Sequence[int], start: Floats) -> float:
        """Return the largest torque of the faulty joints in the best posture found from ``start`` [N*m]."""
        count, scale = len(self.joints), self._weight
        forces = np.zeros((len(feet), 6))
        forces[:, 2] = 1.0 / len(feet)
        first = np.concatenate([start, forces.ravel(), [1.0]])
        bounds = [*map(tuple, self.ranges), *[(-1.0, 1.0)] * forces.size, (0.0, None)]

        def split(values: Floats) -> tuple[Floats, Floats, float]:
            return values[:count], values[count:-1].reshape(len(feet), 6) * scale, values[-1]

        def equal(values: Floats) -> Floats:
            posture, wrenches, _ = split(values)
            base, _, frames = self._solve(posture, feet, wrenches)
            flat = [part for number in feet[1:] for part in (frames[number][0], *frames[number][1][2, :2])]
            return np.concatenate([base / scale, flat])

        def at_least_zero(values: Floats) -> Floats:
            posture, wrenches, bound = split(values)
            _, torques, frames = self._solve(posture, feet, wrenches)
            found = [10.0 * bound - abs(torques[weak]), (self.healthy - abs(torques)) / 10.0]
            for number, wrench in zip(feet, wrenches, strict=True):
                found.append(_cone(self._soles[number], wrench) / scale)
            for number in {0, 1} - set(feet):
                found.append(np.array([frames[number][0] - CLEARANCE]))
            found.append(np.array([frames[0][2] - frames[1][2] - APART, self._data.xmat[1, 8] - np.cos(self.lean)]))
            return np.concatenate(found)

        constraints: Any = [{"type": "eq", "fun": equal}, {"type": "ineq", "fun": at_least_zero}]
        options = {"maxiter": 150, "ftol": 1e-5}
        result = minimize(
            lambda values: values[-1], first, method="SLSQP", bounds=bounds, constraints=constraints, options=options
        )
        valid = abs(equal(result.x)).max() < 1e-3 and at_least_zero(result.x).min() > -1e-3
        return 10.0 * float(result.x[-1]) if valid else np.inf

    def _solve(
        self, posture: Floats, feet: Sequence[int], wrenches: Floats
    ) -> tuple[Floats, Floats, list[tuple[float, Floats, float]]]:
        """Return the forces that the base lacks, the joints' torques, and height, rotation and y of both soles.

        The first of ``feet`` stands flat at the origin; wrenches are force [N] and moment [N*m] at the soles' frames.
        """
        model, data = self.model, self._data
        data.qpos[:7], data.qpos[7:] = (0, 0, 0, 1, 0, 0, 0), posture
        mujoco.mj_kinematics(model, data)
        sole = self._soles[feet[0]]
        position, quat = np.zeros(3), np.zeros(4)
        mujoco.mju_negPose(position, quat, data.xpos[sole.body], data.xquat[sole.body])
        data.qpos[:3], data.qpos[3:7] = position - (0, 0, sole.height), quat
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        data.qvel[:] = 0.0
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, data.qfrc_bias)
        needed = data.qfrc_bias.copy()
        for number, wrench in zip(feet, wrenches, strict=True):
            moving, turning = np.zeros((3, model.nv)), np.zeros((3, model.nv))
            foot = self._soles[number].body
            rotation = data.xmat[foot].reshape(3, 3)
            point = data.xpos[foot] + rotation @ (0.0, 0.0, self._soles[number].height)
            mujoco.mj_jac(model, data, moving, turning, point, foot)
            needed -= moving.T @ rotation @ wrench[:3] + turning.T @ rotation @ wrench[3:]
        frames = []
        for one in self._soles:
            rotation = data.xmat[one.body].reshape(3, 3)
            point = data.xpos[one.body] + rotation @ (0.0, 0.0, one.height)
            frames.append((float(point[2]), rotation, float(point[1])))
        return needed[:6], needed[6:], frames


def _sole(model: mujoco.MjModel, name: str) -> Sole:
    """Return the contact rectangle of a foot, whose geoms are spheres or boxes."""
    body, points = model.body(name).id, []
    for number in range(model.ngeom):
        geom = model.geom(number)
        if model.geom_bodyid[number] == body:
            box = geom.type == mujoco.mjtGeom.mjGEOM_BOX
            size = geom.size if box else np.array([0.0, 0.0, geom.size[0]])
            points += [geom.pos - size, geom.pos + size * (1.0, 1.0, -1.0)]
    corners = np.array(points)
    return Sole(body, corners[:, :2].min(axis=0), corners[:, :2].max(axis=0), float(corners[:, 2].min()))


def _cone(sole: Sole, wrench: Floats) -> Floats:
    """Return what has to be 0 or more for a foot that neither slips nor tips."""
    fx, fy, fz, mx, my, mz = wrench
    lever = 0.5 * float(np.linalg.norm(sole.high - sole.low))
    return np.array([
        FRICTION * fz - np.hypot(fx, fy), FRICTION * lever * fz - abs(mz),
        sole.high[0] * fz + my, -sole.low[0] * fz - my, sole.high[1] * fz - mx, mx - sole.low[1] * fz,
    ])  # fmt: skip


def draws(joints: int, fewest: int, most: int, number: int, rng: np.random.Generator) -> list[list[int]]:
    """Draw sets of faulty joints: each number of joints as often as another."""
    sizes = [fewest + index % (most - fewest + 1) for index in range(number)]
    return [sorted(rng.permutation(joints)[:size].tolist()) for size in sizes]


def main(argv: Sequence[str]) -> int:
    """Print the share of draws with a posture, by stance."""
    parser = Parser(prog="python -m tools.torque_margin", description=(__doc__ or "").split(":")[0])
    parser.add_argument("robot", choices=sorted(FEET))
    parser.add_argument("--draws", type=int, default=60, help="sets of faulty joints (60)")
    parser.add_argument("--starts", type=int, default=4, help="tries of the optimizer for each (4)")
    parser.add_argument("--limits", type=float, nargs="+", help="torque limits [N*m]; default: the protocol's")
    parser.add_argument("--lean", type=float, default=45.0, help="largest lean of the trunk [deg] (45)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    at_least_one(options.draws, "--draws")
    at_least_one(options.starts, "--starts")
    protocol = protocol_for(options.robot)
    limits = options.limits or [float(protocol.severity["effort"])]
    statics, rng = Statics(options.robot, np.deg2rad(options.lean)), np.random.default_rng(options.seed)
    sets = draws(len(statics.joints), *protocol.num_joints, options.draws, rng)
    needed: dict[str, list[float]] = {stance: [] for stance in STANCES}
    with progress_bar(len(sets) * len(STANCES), "standing") as bar:
        for weak in sets:
            for stance, feet in STANCES.items():
                best = np.inf
                for attempt in range(options.starts):
                    start = _start(statics, rng, attempt)
                    best = min(best, statics.least_torque(weak, feet, start))
                    if best <= min(limits):
                        break
                needed[stance].append(best)
                bar.update()
    needed["each foot in turn"] = np.maximum(needed["left foot"], needed["right foot"]).tolist()
    print(f"{options.robot}, trunk leans up to {options.lean:g} deg")
    for limit in limits:
        for name, values in needed.items():
            share = wilson(sum(one <= TOLERANCE * limit for one in values), len(values))
            print(f"{limit:g} N*m, {name}: {percent(share)} of {len(values)} draws")
    return 0


def _start(statics: Statics, rng: np.random.Generator, attempt: int) -> Floats:
    """Return a posture near that with straight legs; the first is that itself."""
    spread = 0.3 if attempt else 0.0
    return np.clip(rng.normal(0.0, spread, len(statics.joints)), *statics.ranges.T)


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
