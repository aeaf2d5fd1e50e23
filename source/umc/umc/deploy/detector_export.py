# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Export of a detector as ONNX, with its state as input and output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

from umc.deploy.detector_runner import INPUTS, METADATA_KEY, OUTPUTS
from umc.deploy.onnx_files import CHECK_BATCHES, TOLERANCE, add_metadata, export_onnx
from umc.detection import JOINT_KINDS, SENSOR_KINDS, Detector
from umc.utils.errors import UmcError

CHECK_STEPS = 8
"""Env steps of the check: a report takes three."""


class _Plain(nn.Module):
    """A detector whose outputs are numbers."""

    def __init__(self, detector: Detector) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, obs: Tensor, state: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        found = self.detector(obs, state)
        return found.sensor, found.joint, found.severity, found.reported.to(obs.dtype), found.state


def write_detector_onnx(detector: Detector, path: Path, any_fault: bool = False, held_out: Sequence[str] = ()) -> float:
    """Write a detector as ONNX; return its largest difference to torch, UmcError if that is too large.

    ``any_fault`` says whether the flag goes up for every joint fault (:func:`umc.detection.mask_and_flag`),
    ``held_out`` what its training left out.
    """
    layout, plain = detector.layout, _Plain(detector).eval()
    export_onnx(plain, (torch.zeros(2, layout.obs_dim), detector.start(2)), path, INPUTS, OUTPUTS)
    about = {
        "joint_names": list(layout.joint_names),
        "state_dim": detector.state_dim,
        "sensors": list(SENSOR_KINDS),
        "joints": list(JOINT_KINDS),
        "any_fault": any_fault,
        "hold_out": list(held_out),
    }
    add_metadata(path, {METADATA_KEY: json.dumps(about)})
    return _check(plain, path)


def _check(plain: _Plain, path: Path) -> float:
    """Return the largest difference between ONNX Runtime and torch over an episode."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    generator, largest = torch.Generator().manual_seed(0), 0.0
    for batch in CHECK_BATCHES:
        state = plain.detector.start(batch)
        known = state.numpy()
        for _ in range(CHECK_STEPS):
            obs = torch.randn(batch, plain.detector.layout.obs_dim, generator=generator)
            with torch.inference_mode():
                wanted = plain(obs, state)
            given = [np.asarray(one) for one in session.run(list(OUTPUTS), {"obs": obs.numpy(), "state": known})]
            state, known = wanted[-1], given[-1]
            gaps = [float(np.abs(mine - theirs.numpy()).max()) for mine, theirs in zip(given, wanted, strict=True)]
            largest = max(largest, *gaps)
    if not largest <= TOLERANCE:
        raise UmcError(
            f"the exported detector differs from torch by {largest:.2g}; nothing was written: install torch and "
            "onnxruntime as in requirements.lock"
        )
    return largest
