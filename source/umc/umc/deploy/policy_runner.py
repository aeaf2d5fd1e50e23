# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An exported policy on a robot: from raw sensor values to joint targets, with NumPy and ONNX Runtime only."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import ArrayLike, NDArray

from umc.utils.errors import UmcError

FORMAT = 2
"""Version of the JSON file that this class reads."""

JOINT_FIGURES = ("default_position_rad", "kp_Nm_per_rad", "kd_Nms_per_rad")

Vector = NDArray[np.float64]

MEASURABLE = (
    *("zeros", "phase_clock", "joint_pos_rel", "joint_vel_rel", "last_action"),
    *("base_ang_vel", "projected_gravity", "generated_commands"),
)
"""Functions of observation terms that a robot can measure."""


class PolicyRunner:
    """An exported policy, run step by step, with its last action and its gait clock.

    Call it every :attr:`policy_dt` seconds; between two calls, the robot's motors hold the targets with :attr:`kp` and
    :attr:`kd`.

    Attributes:
        joint_names: Order of all joint vectors.
        policy_dt: Time between two calls [s].
        default_position: Default pose [rad]. Shape is (J,).
        kp: Stiffness that the policy was trained with [N*m/rad]. Shape is (J,).
        kd: Damping [N*m*s/rad]. Shape is (J,).

    Args:
        description: The exported ``policy.json``; the ONNX file lies beside it.
        joint_names: The robot's own order of joints; the policy's if not given.

    Raises:
        UmcError: If there is no such file, it has another format, or the joints are not the policy's.
    """

    def __init__(self, description: Path | str, joint_names: Sequence[str] | None = None) -> None:
        path = Path(description)
        content = read_description(path)
        self._names: list[str] = [joint["name"] for joint in content["joints"]]
        self.joint_names = list(self._names if joint_names is None else joint_names)
        if sorted(self.joint_names) != sorted(self._names):
            raise UmcError(f"the policy needs the joints {', '.join(self._names)}, each once, in any order")
        self._outward = [self._names.index(name) for name in self.joint_names]
        self._inward = [self.joint_names.index(name) for name in self._names]
        pose, kp, kd = (np.array([joint[key] for joint in content["joints"]]) for key in JOINT_FIGURES)
        self._pose = pose
        self.default_position, self.kp, self.kd = pose[self._outward], kp[self._outward], kd[self._outward]
        control = content["control"]
        self.policy_dt: float = control["policy_dt_s"]
        self._scale, self._offset = np.array(control["action_scale"]), np.array(control["action_offset_rad"])
        self._clip: float = math.inf if control["action_clip"] is None else control["action_clip"]
        self._terms: list[dict[str, Any]] = content["observations"]["policy"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # for a single observation, more threads only cost time
        model = path.with_name(content["onnx"]["file"])
        if not model.is_file():
            raise UmcError(f"{model} is missing; copy it beside {path.name}, or export the policy again")
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.reset()

    def reset(self) -> None:
        """Start an episode: no last action, the gait clock at 0."""
        self._action: Vector = np.zeros(len(self._names))
        self._steps = 0

    def __call__(  # noqa: PLR0913  (what a robot measures, one value each)
        self,
        joint_position: ArrayLike,
        joint_velocity: ArrayLike,
        angular_velocity: ArrayLike,
        gravity: ArrayLike,
        command: ArrayLike,
        dead: Collection[str] = (),
        detected: bool = False,
    ) -> Vector:
        """Return the next joint targets.

        Args:
            joint_position: Joint angles [rad]; those of dead joints are ignored. Shape is (J,).
            joint_velocity: Joint speeds [rad/s], likewise. Shape is (J,).
            angular_velocity: Angular velocity of the trunk in its own frame [rad/s]. Shape is (3,).
            gravity: Direction of gravity in the trunk's frame, (0, 0, -1) when level [-]. Shape is (3,).
            command: Forward and sideward velocity [m/s] and yaw rate [rad/s] to walk with. Shape is (3,).
            dead: Names of the joints whose sensors are dead.
            detected: Whether a fault of a joint, not only of its sensor, has been detected.

        Returns:
            Joint targets [rad]. Shape is (J,).

        Raises:
            UmcError: If a value has another shape or is not finite, or a dead joint is not one of the robot's.
        """
        unknown = sorted(set(dead) - set(self._names))
        if unknown:
            raise UmcError(f"the robot has no joint {', '.join(unknown)}; name some of {', '.join(self._names)}")
        mask = np.isin(self._names, list(dead))
        angle, speed = (np.asarray(value, dtype=float) for value in (joint_position, joint_velocity))
        for name, value in (("joint_position", angle), ("joint_velocity", speed)):
            _check(name, value, ~mask[self._outward])
        signals: dict[str, Vector] = {
            "joint_pos_rel": np.where(mask, 0.0, angle[self._inward] - self._pose),
            "joint_vel_rel": np.where(mask, 0.0, speed[self._inward]),
            "last_action": np.where(mask, 0.0, self._action),
        }
        for function, name, value in (
            ("base_ang_vel", "angular_velocity", angular_velocity),
            ("projected_gravity", "gravity", gravity),
            ("generated_commands", "command", command),
        ):
            signals[function] = np.asarray(value, dtype=float)
            _check(name, signals[function], np.ones(3, dtype=bool))
        observation = np.concatenate([self._signal(term, signals) * np.asarray(term["scale"]) for term in self._terms])
        inputs = {"policy": observation, "joint_mask": mask, "fault_flag": np.full(3, 1.0 if detected else -1.0)}
        feed = {name: value[None].astype(np.float32) for name, value in inputs.items()}
        (actions,) = self._session.run(None, feed)
        self._action = np.clip(np.asarray(actions, dtype=float)[0], -self._clip, self._clip)
        self._steps += 1
        return (self._offset + self._scale * self._action)[self._outward]

    def _signal(self, term: Mapping[str, Any], signals: Mapping[str, Vector]) -> Vector:
        """Return the value of an observation term, before its scale."""
        if term["function"] == "zeros":
            first, stop = term["columns"]
            return np.zeros(stop - first)
        if term["function"] == "phase_clock":
            angle = 2.0 * math.pi * self._steps * self.policy_dt / term["period_s"]
            return np.array([math.sin(angle), math.cos(angle)])
        return signals[term["function"]]


def read_description(path: Path) -> dict[str, Any]:
    """Read an exported ``policy.json``; UmcError if the runner cannot feed the policy."""
    if not path.is_file():
        raise UmcError(f"no exported policy at {path}; make one with umc export")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UmcError(f"{path} is not JSON (line {error.lineno}); export the policy again") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UmcError(f"{path} does not have format {FORMAT}; export the policy again")
    unknown = [term["function"] for term in content["observations"]["policy"] if term["function"] not in MEASURABLE]
    if unknown:
        raise UmcError(f"the policy reads {', '.join(unknown)}, which no robot measures; train it without")
    return content


def _check(name: str, value: Vector, alive: NDArray[np.bool_]) -> None:
    """Refuse another shape, and values that are not finite where the sensor is alive."""
    if value.shape != alive.shape:
        raise UmcError(f"{name} has shape {value.shape}; the policy needs {alive.shape}")
    if not np.isfinite(value[alive]).all():
        raise UmcError(f"{name} is not finite: {value.tolist()}; name joints whose sensors are dead in dead")
