# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector predicted in a rollout, and all faults that happened in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from umc.detection import JOINT_KINDS, SENSOR_KINDS

if TYPE_CHECKING:
    from umc.diagnosis.rollout import Rollout

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Recording:
    """T env steps of E robots with J joints; the last axis, of 2, is sensor and joint faults."""

    step_dt: float
    """Length of an env step [s]."""
    joint_names: tuple[str, ...]
    starts: NDArray[np.bool_]
    """Where episodes begin. Shape is (T, E)."""
    label: NDArray[np.int8]
    """Labels, as umc.detection.labels.Labels has them. Shape is (T, E, J, 2)."""
    severity: NDArray[np.float16]
    """Shape is (T, E, J, 2)."""
    faulty: NDArray[np.float16]
    """Predicted probability of a fault. Shape is (T, E, J, 2)."""
    kind: NDArray[np.int8]
    """Likeliest fault of a kind, from 1 on. Shape is (T, E, J, 2)."""
    reported: NDArray[np.bool_]
    """Shape is (T, E, J, 2)."""
    hinders: NDArray[np.bool_]
    """Joints whose motion their joint fault changed. Shape is (T, E, J)."""
    speed: NDArray[np.float16]
    """Speed over ground [m/s]. Shape is (T, E)."""
    kinds: tuple[tuple[str, ...], tuple[str, ...]] = (SENSOR_KINDS, JOINT_KINDS)
    """Sensor and joint kinds by their labels; those that a detector tells apart come first."""


def record(rollout: Rollout, steps: int, after_step: Callable[[], object] = lambda: None) -> Recording:
    """Let robots walk and record what their detector predicts; ``after_step`` is called after every env step."""
    columns: dict[str, list[Array]] = {
        name: [] for name in ("starts", "label", "severity", "faulty", "kind", "reported", "hinders", "speed")
    }
    for _ in range(steps):
        step = rollout.step()
        predicted, label = step.detection, step.labels
        faulty = 1.0 - torch.stack((predicted.sensor[..., 0], predicted.joint[..., 0]), dim=-1)
        kind = (
            torch.stack((predicted.sensor[..., 1:].argmax(dim=-1), predicted.joint[..., 1:].argmax(dim=-1)), dim=-1) + 1
        )
        row = {
            "starts": step.starts,
            "label": torch.stack((label.sensor, label.joint), dim=-1).to(torch.int8),
            "severity": label.severity.half(),
            "faulty": faulty.half(),
            "kind": kind.to(torch.int8),
            "reported": predicted.reported,
            "hinders": step.hinders,
            "speed": step.speed.half(),
        }
        for name, value in row.items():
            columns[name].append(value.cpu().numpy().copy())
        after_step()
    stacked = {name: np.stack(values) for name, values in columns.items()}
    about = {"joint_names": rollout.detector.layout.joint_names, "kinds": rollout.labeller.kinds}
    return Recording(rollout.env.step_dt, **about, **stacked)  # type: ignore[arg-type]
