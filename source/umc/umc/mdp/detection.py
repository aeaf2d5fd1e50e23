# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The cfg of what mask and flag report: ``env.detection.source=corrupted_oracle env.detection.delay=10``."""

from __future__ import annotations

from typing import Any

from isaaclab.utils import configclass

from umc.faults import FaultState
from umc.faults.detection import SOURCES, CorruptedOracle, NoDetection
from umc.utils.errors import UmcError


@configclass
class DetectionCfg:
    """Where the observation terms ``joint_mask`` and ``fault_flag`` get their faults from."""

    source: str = "oracle"
    """``oracle``: the simulator. ``corrupted_oracle``: the simulator, with the errors below. ``none``: no fault is
    ever reported."""

    delay: int = 0
    """How long after its onset a fault is found [env steps]."""

    missed: float = 0.0
    """Probability that a fault of a joint is not found in an episode [-]."""

    false_alarms: float = 0.0
    """False alarms of a robot [1/min]. Each masks a joint and raises the flag."""

    alarm_steps: int = 50
    """How long a false alarm lasts [env steps]."""


def make_detection(env_cfg: Any, state: FaultState, step_dt: float) -> CorruptedOracle | NoDetection | None:
    """Return what reports faults to the policy; None for the oracle, which is the state itself."""
    cfg: DetectionCfg = getattr(env_cfg, "detection", None) or DetectionCfg()
    errors = {name: getattr(cfg, name) for name in ("delay", "missed", "false_alarms", "alarm_steps")}
    if cfg.source not in SOURCES:
        raise UmcError(f"env.detection.source is {cfg.source!r}; choose one of {', '.join(SOURCES)}")
    if cfg.source == "corrupted_oracle":
        return CorruptedOracle(state, step_dt, **errors)
    changed = [name for name, value in errors.items() if value != getattr(DetectionCfg(), name)]
    if changed:
        raise UmcError(f"env.detection.{changed[0]} needs env.detection.source=corrupted_oracle")
    return NoDetection(state) if cfg.source == "none" else None
