# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An exported policy on a robot: from raw sensor values to joint targets, with NumPy and ONNX Runtime only."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Optional

import numpy as np
import onnxruntime
from numpy.typing import ArrayLike, NDArray

from umc.deploy.detector_runner import DetectorRunner, load_session
from umc.utils.description import (
    AGAIN,
    DIGEST_KEY,
    JOINT_FIGURES,
    JOINT_LIMITS,
    MEMORY_INPUT,
    description_file,
    digest,
    read_description,
)
from umc.utils.errors import UmcError, shown

Vector = NDArray[np.float64]

Memory = Optional[NDArray[np.float32]]
"""What a network remembers, (1, 1, H); None for one without memory."""

MAX_INPUT = 1.0e3
"""Greatest magnitude of an input from a simulation [rad, rad/s, m/s]: one beyond has diverged, and a network turns it
into nonsense that its last action would keep."""

POSITION_TOLERANCE = 0.5
"""How far beyond a joint's limits its reading may be [rad]: stops give way, and encoders have offsets."""

MAX_POSITION = 4.0 * math.pi
"""Greatest angle of a joint without limits [rad]."""

SPEED_TOLERANCE = 3.0
"""Greatest speed of a joint in its speed limits [-]."""

LEAST_MAX_SPEED, MAX_SPEED = 50.0, 100.0
"""Speed that every joint may have, since landings push slow joints beyond :data:`SPEED_TOLERANCE`, and the greatest of
a joint without a speed limit [rad/s]."""

MAX_ANGULAR_VELOCITY = 50.0
"""Greatest angular velocity of the trunk about an axis [rad/s]; gyroscopes of legged robots end at 35."""

MAX_COMMAND = 10.0
"""Greatest commanded velocity [m/s, rad/s]."""

MAX_ACTION = 1.0e4
"""Greatest magnitude of an action [-]; trained policies stay below 100."""

GRAVITY_NORM = (0.9, 1.1)
"""Accepted lengths of the direction of gravity [-]."""


class RunnerError(UmcError):
    """A step that was refused; the runner is as it was before."""


class NonFiniteInput(RunnerError):
    """An input is NaN or infinite, or becomes so in the network's 32 bits."""


class ImplausibleInput(RunnerError):
    """An input is finite but beyond what this robot can measure, for example in degrees."""


class BadGravity(ImplausibleInput):
    """The direction of gravity is not a unit vector, for example an acceleration [m/s^2]."""


class NonFiniteOutput(RunnerError):
    """The network gave NaN, infinity or more than :data:`MAX_ACTION`."""


class WrongOutput(RunnerError):
    """The network gave another number of actions than the policy has joints."""


class PolicyRunner:
    """An exported policy, run step by step, with its last action, its gait clock and its memory if it has one.

    Call it every :attr:`policy_dt` seconds; between two calls, the robot's motors hold the targets with :attr:`kp` and
    :attr:`kd`. A call that raises changes nothing: :attr:`last_target` stays, and the next call gives what it would
    have given without it.

    Attributes:
        joint_names: Order of all joint vectors.
        policy_dt: Time between two calls [s].
        default_position: Default pose [rad]. Shape is (J,).
        kp: Stiffness that the policy was trained with [N*m/rad]. Shape is (J,).
        kd: Damping [N*m*s/rad]. Shape is (J,).
        lower_limit: Lower joint limits [rad], -inf where there is none. Shape is (J,).
        upper_limit: Upper joint limits [rad], inf where there is none. Shape is (J,).
        detector: Detector that was exported with the policy; None without one. It decides which sensors are dead and
            whether a fault has been detected, beside what a call says, and has its ``diagnosis`` of each joint.

    Args:
        description: The folder of an exported policy, its ``policy.json`` or its ONNX file.
        joint_names: The robot's own order of joints; the policy's if not given.
        clamp: Whether targets are clamped to the joint limits. The simulation, in which the policy was trained, does
            not clamp them: a target beyond a limit presses a joint against its stop.
        max_rate: Greatest speed of a target [rad/s]; unlimited if None.
        simulated: Whether readings come from a simulation, whose faulty sensors drift without bounds: of finite
            readings, only those beyond :data:`MAX_INPUT` are refused.

    Raises:
        UmcError: If a file is missing, not valid or not the one that was exported, its weights are not finite, the
            joints are not the policy's, or an argument has another type.
    """

    _start: Memory = None
    detector: DetectorRunner | None = None
    uses_detector = True
    """Whether what the detector reports reaches the policy; a simulation that knows all faults turns it off."""

    def __init__(
        self,
        description: Path | str,
        joint_names: Sequence[str] | None = None,
        clamp: bool = True,
        max_rate: float | None = None,
        simulated: bool = False,
    ) -> None:
        path = description_file(description)
        content = read_description(path)
        self._configure(content, joint_names, clamp, max_rate, simulated)
        self._session = _load_network(path.with_name(content["onnx"]["file"]), content)
        self._start = _empty_memory(self._session)
        known = content.get("detector")
        if known is not None:
            self.detector = DetectorRunner(path.with_name(known["file"]), known["sha256"])
        self.reset()

    def _configure(
        self,
        content: Mapping[str, Any],
        joint_names: Sequence[str] | None,
        clamp: bool,
        max_rate: float | None,
        simulated: bool,
    ) -> None:
        """Take over everything of a description but its network."""
        joints: list[Mapping[str, Any]] = content["joints"]
        self._names: list[str] = [joint["name"] for joint in joints]
        self.joint_names = list(self._names) if joint_names is None else _names("joint_names", joint_names)
        if sorted(self.joint_names) != sorted(self._names):
            wrong = sorted(set(self.joint_names) ^ set(self._names)) or ["one that is named twice"]
            raise UmcError(
                f"joint_names needs the joints {', '.join(self._names)}, each once, in any order; correct "
                f"{', '.join(map(str, wrong))}"
            )
        is_speed = isinstance(max_rate, Real) and not isinstance(max_rate, bool) and 0.0 < max_rate < math.inf
        if max_rate is not None and not is_speed:
            raise UmcError(f"max_rate is {shown(max_rate)}; give a speed above 0 rad/s, or None")
        self._outward = [self._names.index(name) for name in self.joint_names]
        self._inward = [self.joint_names.index(name) for name in self._names]
        self._pose, kp, kd = (np.array([joint[key] for joint in joints], dtype=float) for key in JOINT_FIGURES)
        self.default_position, self.kp, self.kd = (one[self._outward] for one in (self._pose, kp, kd))
        self.lower_limit, self.upper_limit = (
            np.array([none if joint[key] is None else joint[key] for joint in joints], dtype=float)[self._outward]
            for key, none in zip(JOINT_LIMITS, (-math.inf, math.inf))
        )
        self._bounds = {} if _flag("simulated", simulated) else self._plausible(joints)
        self._clamp = _flag("clamp", clamp)
        control = content["control"]
        self.policy_dt: float = control["policy_dt_s"]
        self._stride = math.inf if max_rate is None else float(max_rate) * self.policy_dt
        self._scale, self._offset = np.array(control["action_scale"]), np.array(control["action_offset_rad"])
        self._clip: float = math.inf if control["action_clip"] is None else control["action_clip"]
        self._terms: list[dict[str, Any]] = content["observations"]["policy"]

    @property
    def last_target(self) -> Vector:
        """Targets of the last step that was not refused [rad]; the default pose after a reset. Shape is (J,)."""
        return self._target.copy()

    def reset(self) -> None:
        """Start an episode from the default pose: no last action, an empty memory, the gait clock at 0."""
        self._action: Vector = np.zeros(len(self._names))
        self._target: Vector = self.default_position.copy()
        self._steps = 0
        self._memory = self._start
        if self.detector is not None:
            self.detector.reset()

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

        The trunk's frame has x forward, y to the left and z up, and is right-handed.

        Args:
            joint_position: Joint angles [rad], zero and sign as in the robot's URDF; those of dead joints are ignored.
                Shape is (J,).
            joint_velocity: Joint speeds [rad/s], likewise. Shape is (J,).
            angular_velocity: Angular velocity of the trunk in its own frame, as its gyroscope measures it [rad/s], not
                [deg/s]: positive when it rolls to the right, pitches nose down, turns to the left. Shape is (3,).
            gravity: Unit vector that points down, in the trunk's frame [-]: (0, 0, -1) when level, (1, 0, 0) when its
                nose points down, (0, 1, 0) when it lies on its left side. An accelerometer at rest reads the opposite,
                times 9.81 m/s^2. Shape is (3,).
            command: Forward and sideward velocity [m/s] and yaw rate [rad/s] to walk with. Shape is (3,).
            dead: Names of the joints whose sensors are dead, besides those that the detector reports.
            detected: Whether one of ``dead`` has a fault of the joint, not only of its sensor; the detector may report
                one, too. Policies were trained with it beside a dead sensor only.

        Returns:
            Joint targets [rad]. Shape is (J,).

        Raises:
            NonFiniteInput: If a value is not finite where its sensor is alive. With an exported detector the joint
                counts as dead instead, unless all of them do.
            ImplausibleInput: If a living joint is more than 0.5 rad beyond its limits (4 pi rad from 0 without limits)
                or faster than 3 times its speed limit and 50 rad/s (100 rad/s without a limit), the angular velocity
                above 50 rad/s, or the command above 10 m/s or rad/s; BadGravity if gravity is not a unit vector.
                With an exported detector such joints count as dead instead, unless half of the living ones are.
            NonFiniteOutput: If the network's output is not finite.
            WrongOutput: If the network gives another number of actions than there are joints.
            UmcError: If a value has another shape or type, or a dead joint is not one of the robot's.
        """
        finder = self.detector
        reports = finder if self.uses_detector else None
        # in the policy's order, as all below
        unread = self._dead(dead)
        if finder is not None:
            found = self._unreadable({"joint_position": joint_position, "joint_velocity": joint_velocity})
            # many angles at once are no broken sensors, but a wrong unit: refused below
            angles = self._vector("joint_position", joint_position, len(found))[self._inward]
            wrong = found & ~unread & np.isfinite(angles)
            if 2 * wrong.sum() < (~unread).sum() and not (unread | found).all():
                unread |= found
        mask = unread if reports is None else unread | reports.mask
        detected = _flag("detected", detected) or (reports is not None and reports.flag)
        angle, speed = (
            self._checked(name, value, ~unread[self._outward])
            for name, value in (("joint_position", joint_position), ("joint_velocity", joint_velocity))
        )
        every = np.ones(3, dtype=bool)
        measured: dict[str, Vector] = {
            "joint_pos_rel": np.where(unread, 0.0, angle[self._inward] - self._pose),
            "joint_vel_rel": np.where(unread, 0.0, speed[self._inward]),
            "last_action": np.where(unread, 0.0, self._action),
            "base_ang_vel": self._checked("angular_velocity", angular_velocity, every),
            "projected_gravity": self._checked("gravity", gravity, every),
            "generated_commands": self._checked("command", command, every),
        }
        length = float(np.linalg.norm(measured["projected_gravity"]))
        # in a simulation sensors may be as wrong and noisy as faults and task make them
        if self._bounds and not GRAVITY_NORM[0] <= length <= GRAVITY_NORM[1]:
            raise BadGravity(f"gravity has length {length:.3g}; give the unit vector that points down")
        flag = np.full(3, 1.0 if detected else -1.0)
        # a network that reads the mask hides these joints itself, others see them as in the simulation
        signals = {**measured, "joint_mask": mask.astype(float), "fault_flag": flag}
        action = np.clip(self._infer(signals), -self._clip, self._clip)
        target = (self._offset + self._scale * action)[self._outward]
        if self._clamp:
            target = np.clip(target, self.lower_limit, self.upper_limit)
        target = np.clip(target, self._target - self._stride, self._target + self._stride)
        # the policy's own action is fed back, as in the training, not the clamped target
        if finder is not None:
            finder(self._columns(measured))  # what it finds counts from the next step on, as in evaluations
        self._action, self._target = action, target
        self._steps += 1
        return target.copy()

    def check_position(self, joint_position: ArrayLike, dead: Collection[str] = ()) -> None:
        """Refuse joint angles that the robot cannot measure, before it moves to the default pose; the state stays.

        Raises:
            NonFiniteInput: If an angle is not finite, with an exported detector, too.
            ImplausibleInput: As in a call, with an exported detector for each joint.
            UmcError: As in a call.
        """
        self._checked("joint_position", joint_position, ~self._dead(dead)[self._outward])

    def _dead(self, dead: Collection[str]) -> NDArray[np.bool_]:
        """Return which joints are named, in the policy's order; refuse names that are none of the robot's."""
        given = _names("dead", dead)
        unknown = sorted(set(given) - set(self._names))
        if unknown:
            raise UmcError(f"the robot has no joint {', '.join(unknown)}; name some of {', '.join(self._names)}")
        return np.isin(self._names, given)

    def _plausible(self, joints: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Vector, Vector, str]]:
        """Return the lowest and highest values that a robot measures, and their unit, in the robot's order."""
        lower, upper = self.lower_limit - POSITION_TOLERANCE, self.upper_limit + POSITION_TOLERANCE
        limits = [joint["velocity_limit_rad_per_s"] for joint in joints]
        speeds = [MAX_SPEED if one is None else max(SPEED_TOLERANCE * one, LEAST_MAX_SPEED) for one in limits]
        lowest, highest = np.where(lower > -np.inf, lower, -MAX_POSITION), np.where(upper < np.inf, upper, MAX_POSITION)
        speed = np.array(speeds)[self._outward]
        turn, command = np.full(3, MAX_ANGULAR_VELOCITY), np.full(3, MAX_COMMAND)
        return {
            "joint_position": (lowest, highest, "rad"),
            "joint_velocity": (-speed, speed, "rad/s"),
            "angular_velocity": (-turn, turn, "rad/s"),
            "command": (-command, command, "m/s or rad/s"),
        }

    def _vector(self, name: str, given: ArrayLike, length: int) -> Vector:
        """Return an input as a vector; refuse another shape."""
        try:
            value = np.asarray(given, dtype=float)
        except (TypeError, ValueError, OverflowError) as error:
            raise UmcError(f"{name} is {shown(given)}; give numbers") from error
        if value.shape != (length,):
            raise UmcError(f"{name} has shape {value.shape}; the policy needs {(length,)}")
        return value

    def _checked(self, name: str, given: ArrayLike, alive: NDArray[np.bool_]) -> Vector:
        """Return an input as a vector; refuse another shape, and values that no living sensor measures."""
        value = self._vector(name, given, len(alive))
        of_joints = name.startswith("joint")
        if not np.abs(value[alive]).max(initial=0.0) <= np.finfo(np.float32).max:
            fix = "name joints whose sensors are dead in dead" if of_joints else "read it again, or damp"
            raise NonFiniteInput(f"{name} is not finite: {shown(value.tolist())}; {fix}")
        every = np.full(alive.shape, MAX_INPUT)
        low, high, unit = self._bounds.get(name, (-every, every, "SI units"))
        beyond = np.flatnonzero(alive & ((value < low) | (value > high)))
        if len(beyond):
            at = beyond[0]
            joint, dead = (f" of {self.joint_names[at]}", ", or name the joint in dead") if of_joints else ("", "")
            raise ImplausibleInput(
                f"{name}{joint} is {value[at]:.3g}; it has to be from {low[at]:.3g} to {high[at]:.3g} {unit}: correct "
                f"its unit{dead}"
            )
        return value

    def _unreadable(self, readings: Mapping[str, ArrayLike]) -> NDArray[np.bool_]:
        """Return joints with a reading that no living sensor gives; they read 0, as dead sensors do in the training."""
        found = np.zeros(len(self._names), dtype=bool)
        every = np.full(len(self._names), MAX_INPUT)
        for name, given in readings.items():
            value = self._vector(name, given, len(self._names))
            low, high, _ = self._bounds.get(name, (-every, every, ""))
            found |= ~((value >= low) & (value <= high))[self._inward]
        return found

    def _columns(self, signals: Mapping[str, Vector]) -> Vector:
        """Return the observation."""
        return np.concatenate([self._signal(term, signals) * np.asarray(term["scale"]) for term in self._terms])

    def _infer(self, signals: Mapping[str, Vector]) -> Vector:
        """Return the network's action; raise RunnerError unless it is finite and one per joint."""
        others = {name: signals[name] for name in ("joint_mask", "fault_flag")}
        inputs = {"policy": self._columns(signals), **others}
        action, self._memory = _actions(self._session, inputs, self._memory)
        return action

    def _signal(self, term: Mapping[str, Any], signals: Mapping[str, Vector]) -> Vector:
        """Return the value of an observation term, before its scale."""
        if term["function"] == "zeros":
            first, stop = term["columns"]
            return np.zeros(stop - first)
        if term["function"] == "phase_clock":
            angle = 2.0 * math.pi * self._steps * self.policy_dt / term["period_s"]
            return np.array([math.sin(angle), math.cos(angle)])
        return signals[term["function"]]


def _load_network(path: Path, content: Mapping[str, Any]) -> onnxruntime.InferenceSession:
    """Load an ONNX file; UmcError unless it is the one that was exported with the description, and finite."""
    where = shown(str(path))
    session = load_session(path, content["onnx"]["sha256"])
    if session.get_modelmeta().custom_metadata_map.get(DIGEST_KEY) != digest(content):
        raise UmcError(f"policy.json is not as it was exported with {where}; copy both from one export, or {AGAIN}")
    groups, joints = content["observations"], len(content["joints"])
    wanted_shapes: dict[str, int | None] = {
        name: groups[name][-1]["columns"][1] for name in ("policy", "joint_mask", "fault_flag")
    }
    shapes = {one.name: one.shape[1] if len(one.shape) == 2 else None for one in session.get_inputs()}
    outputs = [one.shape for one in session.get_outputs()]
    memories = [one.shape for one in session.get_inputs() if one.name == MEMORY_INPUT]
    if MEMORY_INPUT in content["inputs"] and all(len(one) == 3 and isinstance(one[2], int) for one in memories):
        wanted_shapes[MEMORY_INPUT] = None
    if shapes != wanted_shapes or [one[-1:] for one in outputs] != [[joints], *(one[-1:] for one in memories)]:
        raise UmcError(f"{where} has other inputs or outputs than policy.json describes; {AGAIN}")
    _check_runs(session, wanted_shapes, where)
    return session


def _check_runs(session: onnxruntime.InferenceSession, widths: Mapping[str, int | None], where: str) -> None:
    """Run a network on made-up observations; UmcError if it fails or its weights are not finite."""
    memory = _empty_memory(session)
    for mask in (0.0, 1.0):
        inputs = {name: np.full(width, mask) for name, width in widths.items() if width is not None}
        try:
            _, memory = _actions(session, {**inputs, "fault_flag": np.full(3, 2.0 * mask - 1.0)}, memory)
        except NonFiniteOutput as error:
            raise UmcError(f"the weights of {where} are not finite; {AGAIN} from another checkpoint") from error
        except WrongOutput as error:
            raise UmcError(f"{where}: {error}") from error
        except Exception as error:
            raise UmcError(f"ONNX Runtime cannot run {where} ({type(error).__name__}); {AGAIN}") from error


def _empty_memory(session: onnxruntime.InferenceSession) -> Memory:
    """Return what a network remembers at the start of an episode; None if it has no memory."""
    widths = [one.shape[2] for one in session.get_inputs() if one.name == MEMORY_INPUT]
    return np.zeros((1, 1, widths[0]), np.float32) if widths else None


def _actions(
    session: onnxruntime.InferenceSession, inputs: Mapping[str, NDArray[Any]], memory: Memory
) -> tuple[Vector, Memory]:
    """Return the network's action for one observation, and its memory after it.

    Raises RunnerError unless the action is finite and one per joint.
    """
    feed = {name: value[None].astype(np.float32) for name, value in inputs.items()}
    if memory is not None:
        feed[MEMORY_INPUT] = memory
    actions, *after = map(np.asarray, session.run(None, feed))
    action = checked_action(actions, len(inputs["joint_mask"]))
    if after and not np.isfinite(after[0]).all():
        raise NonFiniteOutput("the network's memory is not finite; use last_target")
    return action, after[0] if after else None


def checked_action(actions: Any, num_joints: int) -> Vector:
    """Return a network's action for one robot; raise RunnerError unless it is finite and one per joint."""
    shape = (1, num_joints)
    action = np.asarray(actions, dtype=float)
    if action.shape != shape:
        raise WrongOutput(f"the network's output has shape {action.shape} instead of {shape}; {AGAIN}")
    action = action[0]
    if not np.abs(action).max() <= MAX_ACTION:  # NaN compares False
        raise NonFiniteOutput(
            f"the network's output is not finite or above {MAX_ACTION:g}: {shown(action.tolist())}; use last_target"
        )
    return action


def _names(key: str, given: Collection[str]) -> list[str]:
    """Return an argument of joint names as a list; UmcError if it is something else."""
    if isinstance(given, str):
        raise UmcError(f"{key} is '{shown(given)}'; give a list of joint names, such as ['{shown(given)}']")
    try:
        names: list[Any] = list(given)
    except TypeError:
        names = [given]
    if not all(isinstance(name, str) for name in names):
        raise UmcError(f"{key} is {shown(given)}; give a list of joint names")
    return names


def _flag(key: str, given: bool) -> bool:
    """Return an argument that is True or False; UmcError if it is something else."""
    if not isinstance(given, (bool, np.bool_)):
        raise UmcError(f"{key} is {shown(given)}; give True or False")
    return bool(given)
