# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the exports of policies and detectors share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx

OPSET = 18
"""ONNX operator set: the lowest that torch's exporter writes without conversion."""

TOLERANCE = 1.0e-4
"""Largest accepted difference between an export and torch; measured: 1e-6."""

CHECK_BATCHES = (1, 7)
"""Batch sizes of the check: one robot's, and one that no exporter has as a constant."""


def add_metadata(path: Path, metadata: Mapping[str, str]) -> None:
    """Add entries to an ONNX file."""
    model = onnx.load(str(path))
    onnx.helper.set_model_props(model, dict(metadata))
    onnx.save(model, str(path))


@contextlib.contextmanager
def ignore_deprecation() -> Iterator[None]:
    """Hide torch's advice to use torch.export, whose files C++ programs cannot load without a compiler."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=DeprecationWarning)
        yield
