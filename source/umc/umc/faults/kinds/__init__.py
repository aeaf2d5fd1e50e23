# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of faults: of joints, of sensors, of the IMU and of commands; :func:`register_kind` adds your own."""

from umc.faults.kinds.base import (
    ACTION,
    ADDED,
    ANGULAR_VELOCITY,
    GRAVITY,
    KINDS,
    NO_LIMIT,
    POSITION,
    VELOCITY,
    CommandContext,
    CommandKind,
    FaultKind,
    ImuContext,
    ImuKind,
    JointKind,
    JointLimits,
    MotionContext,
    OnsetState,
    SensorContext,
    SensorKind,
    find_kind,
    is_detected,
    register_kind,
)
from umc.faults.kinds.command import LONGEST_DELAY, Backlash, BurstLoss, CommandError, Delayed, Dropped, GrowingDelay
from umc.faults.kinds.imu import ImuBias, ImuDead, ImuDrift, ImuError, ImuFrozen
from umc.faults.kinds.joint import (
    Braking,
    Derating,
    Effort,
    Friction,
    Locked,
    PowerLoss,
    RangeOfMotion,
    Velocity,
    rom_window,
)
from umc.faults.kinds.sensor import NOISE_RATE, Bias, Dead, Drift, Frozen, Noise, SensorError
