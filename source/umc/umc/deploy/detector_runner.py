# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An exported detector on a robot, step by step, with NumPy and ONNX Runtime only."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from umc.utils.description import AGAIN
from umc.utils.errors import UmcError, shown

MAX_NETWORK_BYTES = 256 * 2**20
"""Largest ONNX file that is read [byte]; the largest agent's is 4 MiB."""

METADATA_KEY = "umc_detector"
"""Entry of the ONNX file's metadata with what describes the detector, as JSON."""

INPUTS = ("obs", "state")
OUTPUTS = ("sensor", "joint", "severity", "reported", "next_state")
"""Names of the exported network's inputs and outputs."""


@dataclass(frozen=True)
class JointDiagnosis:
    """Diagnosis of a joint."""

    sensor: float
    """Probability of a sensor fault [-]."""
    sensor_kind: str
    """Likeliest kind of it."""
    joint: float
    """Probability of a joint fault [-]."""
    joint_kind: str
    """Likeliest kind of it."""
    reported: tuple[bool, bool]
    """Whether a sensor fault and a joint fault are reported."""


class DetectorRunner:
    """An exported detector, called with the observation of every policy step.

    Args:
        path: ONNX file of ``umc export --detector``.
        wanted: SHA-256 that the file has to have.

    Raises:
        UmcError: If the file is missing, or another one.
    """

    def __init__(self, path: Path, wanted: str) -> None:
        self._session = load_session(path, wanted)
        metadata = self._session.get_modelmeta().custom_metadata_map[METADATA_KEY]
        self._about: Mapping[str, Any] = json.loads(metadata)
        joints, state_dim = len(self._about["joint_names"]), self._about["state_dim"]
        self._empty = np.zeros((1, joints, state_dim), dtype=np.float32)
        self.reset()

    @property
    def held_out(self) -> list[str]:
        """Kinds, or severities of kinds, that its training left out."""
        return list(self._about.get("hold_out", []))

    def reset(self) -> None:
        """Start an episode: nothing is remembered, nothing is reported."""
        self._state = self._empty
        joints = len(self._about["joint_names"])
        self.reported: NDArray[np.bool_] = np.zeros((joints, 2), dtype=bool)
        """Whether a sensor fault and a joint fault of each joint are reported. Shape is (J, 2)."""
        self.probabilities: tuple[NDArray[Any], NDArray[Any]] = (
            np.eye(1, 1 + len(self._about["sensors"]))[[0] * joints],
            np.eye(1, 1 + len(self._about["joints"]))[[0] * joints],
        )
        """Probability of no fault and of each kind, of sensors and of joints. Shape is (J, 1 + kinds)."""

    def __call__(self, obs: NDArray[Any]) -> None:
        """Take in an observation (D,), as the policy gets it but with no joint masked."""
        feed = {"obs": obs[None].astype(np.float32), "state": self._state}
        sensor, joint, _, reported, self._state = self._session.run(list(OUTPUTS), feed)
        self.probabilities = np.asarray(sensor)[0], np.asarray(joint)[0]
        self.reported = np.asarray(reported)[0] > 0.5

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Joints that the policy has to mask. Shape is (J,)."""
        return self.reported[:, 0]

    @property
    def flag(self) -> bool:
        """Whether the fault flag is up."""
        joint = self.reported[:, 1]
        return bool((joint if self._about["any_fault"] else joint & self.reported[:, 0]).any())

    @property
    def diagnosis(self) -> dict[str, JointDiagnosis]:
        """Diagnosis of each joint, by name."""
        sensors, joints = self.probabilities
        return {
            name: JointDiagnosis(
                sensor=1.0 - float(sensors[number, 0]),
                sensor_kind=self._about["sensors"][int(sensors[number, 1:].argmax())],
                joint=1.0 - float(joints[number, 0]),
                joint_kind=self._about["joints"][int(joints[number, 1:].argmax())],
                reported=(bool(self.reported[number, 0]), bool(self.reported[number, 1])),
            )
            for number, name in enumerate(self._about["joint_names"])
        }


def load_session(path: Path, wanted: str) -> onnxruntime.InferenceSession:
    """Load an ONNX file; UmcError unless it is the one that was exported, of SHA-256 ``wanted``."""
    where = shown(str(path))
    if not os.path.isfile(path):
        raise UmcError(f"{where} is missing; copy it beside policy.json, or {AGAIN}")
    try:
        with path.open("rb") as file:
            network = file.read(MAX_NETWORK_BYTES + 1)
    except OSError as error:
        raise UmcError(f"{where} cannot be read ({error.strerror}); make it readable") from error
    if len(network) > MAX_NETWORK_BYTES:
        raise UmcError(f"{where} is larger than {MAX_NETWORK_BYTES // 2**20} MiB; {AGAIN}")
    found = hashlib.sha256(network).hexdigest()
    if found != wanted:
        raise UmcError(
            f"{where} is not the file that policy.json describes (sha256 {found[:12]} instead of {wanted[:12]}); "
            f"copy both from one export, or {AGAIN}"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # for a single observation, more threads only cost time
    options.log_severity_level = 4  # what it would log is raised, too
    try:
        return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UmcError(f"{where} is no network that ONNX Runtime can load ({type(error).__name__}); {AGAIN}") from error
