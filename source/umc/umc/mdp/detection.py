# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The cfg of what mask and flag report: ``env.detection.source=corrupted_oracle env.detection.delay=10``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.utils import configclass

from umc.detection import Detection, DetectorFile, mask_and_flag, read_detector
from umc.detection.network import JOINT, JOINT_KINDS
from umc.faults import FaultState, JointKind, find_kind
from umc.faults.detection import SOURCES, CorruptedOracle, NoDetection
from umc.faults.state import FAULT_FLAG_WIDTH, known_empty
from umc.mdp.observations import joint_layout
from umc.utils.config import read_yaml
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv

GROUP = "policy"
"""Observation group that a detector reads."""

ERRORS = ("delay", "missed", "false_alarms", "alarm_steps")
"""Fields of the corrupted oracle."""

RANGE_KINDS = [
    number
    for number, kind in enumerate(map(find_kind, JOINT_KINDS))
    if isinstance(kind, JointKind) and kind.reduces_range
]
"""Positions in JOINT_KINDS of those that reduce a joint's range."""


@configclass
class DetectionCfg:
    """Where the observation terms ``joint_mask`` and ``fault_flag`` get their faults from."""

    source: str | None = "oracle"
    """``oracle``: the simulator. ``corrupted_oracle``: the simulator, with the errors below. ``detector``: the detector
    in ``file``. ``none``, which Isaac Lab's overrides make None: no fault is ever reported."""

    delay: int = 0
    """How long after its onset a fault is found [env steps]; a further fault of the joint is found at once."""

    missed: float = 0.0
    """Probability that a fault of a joint is not found in an episode [-]."""

    false_alarms: float = 0.0
    """False alarms of a robot [1/min]. Each masks a joint and raises the flag."""

    alarm_steps: int = 50
    """How long a false alarm lasts [env steps]."""

    file: str | None = None
    """Detector that ``umc train-detector`` has written."""

    any_fault: bool = False
    """Whether a detector raises the flag for every joint fault; else only where the joint's sensor is faulty, too, as
    the paper's flag is."""


def read_detection(text: str) -> DetectionCfg:
    """Read ``detector:file=logs/detector.pt`` or ``corrupted_oracle:delay=10,missed=0.1``: a source and its fields."""
    source, _, rest = text.partition(":")
    cfg = DetectionCfg(source=source)
    for part in rest.split(",") if rest else ():
        name, equals, value = part.partition("=")
        if not equals or name == "source" or name not in vars(cfg):
            raise UmcError(f"{text}: {part!r} is no field of a detection, such as delay=10; see docs/detection.md")
        typed = value if name == "file" else read_yaml(value, f"{name} of {text}")
        expected = type(getattr(cfg, name))
        if name != "file" and type(typed) not in ((int, float) if expected is float else (expected,)):
            raise UmcError(f"{text}: {name} is {value}, which is no {expected.__name__}")
        setattr(cfg, name, typed)
    return cfg


class DetectorInEnv:
    """Joint mask and fault flag as a detector reports them, from the observations of the env step before.

    The observation of this step is still being made; on a robot, too, detector and policy run side by side.

    Args:
        env: The environment.
        state: Its faults, for the numbers of episode and step.
        file: The detector; UmcError at the first observation that has other columns than it reads.
        any_fault: Whether the flag goes up for every joint fault.
    """

    def __init__(self, env: ManagerBasedEnv, state: FaultState, file: DetectorFile, any_fault: bool) -> None:
        self._env, self._state, self._detector, self._any_fault = env, state, file.detector, any_fault
        self._unchecked: DetectorFile | None = file
        self._memory = file.detector.start(state.num_envs, state.device)
        self._at = torch.full((2, state.num_envs), -1, dtype=torch.long, device=state.device)
        """Episode and env step of the last :meth:`update`."""
        self._seen = -1
        """Version of the state then."""
        shape = (state.num_envs, len(state.joint_names))
        self.joint_mask = torch.zeros(shape, dtype=torch.bool, device=state.device)
        self.has_joint_fault, self.range_reduced = self.joint_mask.clone(), self.joint_mask.clone()
        """Joints with a reported joint fault, and those of them whose most probable one reduces the range, (E, J)."""
        self.fault_flag = torch.full((state.num_envs, FAULT_FLAG_WIDTH), -1.0, device=state.device)
        self.faulty = torch.zeros(*shape, 2, device=state.device)
        """Probability of a sensor fault and of a joint fault of each joint. Shape is (E, J, 2)."""
        self.reported = torch.zeros(*shape, 2, dtype=torch.bool, device=state.device)
        """Whether these are reported. Shape is (E, J, 2)."""

    def update(self) -> None:
        """Look at the last observation; a second call in the same step changes nothing."""
        if self._seen == self._state.version:  # a GPU cannot tell so cheaply that no env has gone on
            return
        self._seen = self._state.version
        now = torch.stack((self._state.episode, self._state.step))
        new = (now != self._at).any(dim=0)
        if known_empty(new):
            return
        first = now[0] != self._at[0]  # the last observation is of the episode before
        self._at.copy_(now)
        obs: Any = getattr(self._env, "obs_buf", {}).get(GROUP)
        if obs is None:  # before the first observation
            return
        if self._unchecked is not None:  # there are no columns before the first observation
            self._unchecked.require_layout(joint_layout(self._env, GROUP))
            self._unchecked = None
        with torch.no_grad():
            found = self._detector(obs, self._memory)
        looked, forgotten = new[:, None, None], first[:, None, None]
        self._memory = torch.where(looked, found.state, self._memory).masked_fill(forgotten, 0.0)
        faulty = 1.0 - torch.stack((found.sensor[..., 0], found.joint[..., 0]), dim=-1)
        self.faulty = torch.where(looked, faulty, self.faulty).masked_fill(forgotten, 0.0)
        self.reported = torch.where(looked, found.reported, self.reported).masked_fill(forgotten, False)
        mask, flag = mask_and_flag(found.reported, self._any_fault)
        broken, reduced = reported_joints(found)
        for name, now in (("joint_mask", mask), ("has_joint_fault", broken), ("range_reduced", reduced)):
            kept = torch.where(looked[..., 0], now, getattr(self, name))
            setattr(self, name, kept.masked_fill(forgotten[..., 0], False))
        self.fault_flag = torch.where(looked[..., 0], flag, self.fault_flag).masked_fill(forgotten[..., 0], -1.0)


def reported_joints(found: Detection) -> tuple[torch.Tensor, torch.Tensor]:
    """Return joints with a reported joint fault, and those whose most probable one reduces their range, (E, J)."""
    broken, kind = found.reported[..., JOINT], found.joint[..., 1:].argmax(dim=-1)
    reduces = torch.zeros_like(broken)
    for number in RANGE_KINDS:
        reduces |= kind == number
    return broken, broken & reduces


def check_detection(cfg: DetectionCfg) -> None:
    """Raise UmcError for an unknown source, and for fields that it does not have."""
    chosen = "none" if cfg.source is None else cfg.source
    if chosen not in SOURCES:
        raise UmcError(f"env.detection.source is {chosen!r}; choose one of {', '.join(SOURCES)}")
    for source, names in (("corrupted_oracle", ERRORS), ("detector", ("file", "any_fault"))):
        changed = [name for name in names if getattr(cfg, name) != getattr(DetectionCfg(), name)]
        if changed and chosen != source:
            raise UmcError(f"env.detection.{changed[0]} needs env.detection.source={source}")
    if chosen == "detector" and cfg.file is None:
        raise UmcError("env.detection.source=detector needs env.detection.file, which umc train-detector writes")


def make_detection(
    env: Any, state: FaultState, cfg: DetectionCfg | None = None
) -> CorruptedOracle | NoDetection | DetectorInEnv | None:
    """Return what reports faults to the policy, as a cfg says, by default the env's; None for the oracle.

    The oracle is the state itself.
    """
    chosen: DetectionCfg = cfg or getattr(env.cfg, "detection", None) or DetectionCfg()
    check_detection(chosen)
    if chosen.source == "corrupted_oracle":
        return CorruptedOracle(state, env.step_dt, **{name: getattr(chosen, name) for name in ERRORS})
    if chosen.source == "detector":
        file = read_detector(Path(str(chosen.file)), env.device)
        file.require(None, state.joint_names)
        return DetectorInEnv(env, state, file, chosen.any_fault)
    return None if chosen.source == "oracle" else NoDetection(state)
