# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the exports of policies and detectors share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx
import torch
from torch import nn

OPSET = 18
"""ONNX operator set: the lowest that torch's exporter writes without conversion."""

TOLERANCE = 1.0e-4
"""Largest accepted difference between an export and torch; measured: 1e-6."""

CHECK_BATCHES = (1, 7)
"""Batch sizes of the check: one robot's, and one that no exporter has as a constant."""


def export_onnx(
    module: nn.Module,
    example: tuple[torch.Tensor, ...],
    path: Path,
    inputs: Sequence[str],
    outputs: Sequence[str],
    second: Sequence[str] = (),
) -> None:
    """Export a network with named inputs and outputs, whose batch is dynamic: the first axis, of ``second`` the second.

    ``example`` are inputs; a batch of 1 would broadcast.
    """
    with ignore_deprecation():
        # checks of shapes are not traced
        warnings.simplefilter("ignore", category=torch.jit.TracerWarning)  # pyright: ignore[reportPrivateImportUsage]
        # not torch.export: for these networks it writes the same operators, and takes 3.5 s of imports and tracing
        torch.onnx.export(
            module,
            example,
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: {int(name in second): "batch"} for name in (*inputs, *outputs)},
            opset_version=OPSET,
            dynamo=False,
        )


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
