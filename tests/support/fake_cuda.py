# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A GPU of shapes and devices alone (torch's fake tensors): what a real one would wait for or refuse raises here.

Tensors with ``device="cuda:0"`` exist inside :func:`fake_cuda`; no driver is needed and nothing is computed. An
operator on tensors of two devices raises at any time. Inside :meth:`FakeCuda.watched`, our code may neither make the
host wait for the device nor make a tensor elsewhere (:class:`OffDevice`). Other packages may: their answers are made
up.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import umc
from torch import nn
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils._python_dispatch import TorchDispatchMode
from umc.faults import random_kernels

CUDA = torch.device("cuda:0")
ATEN: Any = torch.ops.aten

UMC = f"{Path(umc.__file__).parent}/"
TESTS = f"{Path(__file__).parents[1]}/"
STAND_INS = f"{Path(__file__).parent}/"
"""Where our code is, and what stands in for that of others."""

TOOLS = ("/site-packages/torch/", "/site-packages/tensordict/")
"""Packages whose operators are their caller's."""

READS = (ATEN._local_scalar_dense.default, ATEN.equal.default, ATEN.nonzero.default, ATEN._linalg_check_errors.default)
"""Operators that wait for the device; fake tensors refuse others."""

INDEXING = (ATEN.index.Tensor, ATEN.index_put_.default, ATEN.index_put.default)


class OffDevice(AssertionError):
    """The host waits for the device, or a tensor is made on the CPU."""


class FakeCuda(TorchDispatchMode):
    """Watch over the operators of a fake GPU; ``may_wait`` are functions of ours that may wait for it."""

    def __init__(self, may_wait: Collection[str] = ()) -> None:
        super().__init__()
        self._may_wait = may_wait
        self._watches = False
        self.truth = False
        """What a mask says that is read where it may be."""
        self.operators = 0
        """Operators while it watched that a GPU would have to launch something for."""

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Run what has to leave the host free."""
        self._watches = True
        try:
            yield
        finally:
            self._watches = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten" and func._can_decompose():  # in inference mode they come whole
            with self:
                return func.decompose(*args, **kwargs)
        ours, place = _caller() if self._watches else (False, "")
        self.operators += self._watches and func.namespace == "aten" and not func.is_view
        if place.partition(":")[0] in self._may_wait:
            ours = False
        if ours and (reason := _waits(func, args)):
            raise OffDevice(f"{place}: {func} {reason}")
        if func is ATEN._thnn_fused_gru_cell.default:  # fake tensors do not know its shapes
            return torch.empty_like(args[2]), args[0].new_empty(len(args[2]), 5 * args[2].shape[1])
        try:
            result = self._made_up(func, args) if func in READS else func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise OffDevice(f"{place or _caller()[1]}: {func} reads the device") from error
        if ours:
            _check_result(func, args, result, place)
        return result

    def _made_up(self, func: Any, args: tuple[Any, ...]) -> Any:
        """Answer for the device."""
        if func is ATEN._local_scalar_dense.default:
            return {torch.bool: self.truth, torch.float32: 1.0, torch.float64: 1.0}.get(args[0].dtype, 0)
        if func is ATEN.nonzero.default:
            return args[0].new_zeros(len(args[0]), args[0].dim(), dtype=torch.long)
        return True if func is ATEN.equal.default else None


@contextlib.contextmanager
def fake_cuda(may_wait: Collection[str] = ()) -> Iterator[FakeCuda]:
    """Make tensors fake, and modules able to move to the fake GPU."""
    fuses = torch._C._jit_texpr_fuser_enabled()
    torch._C._jit_set_texpr_fuser_enabled(False)  # TorchScript would compile for the device
    try:
        modules, losses = _patched(nn.Module, "_apply", _apply), _patched(torch.Tensor, "backward", _backward)
        words = _patched(random_kernels, "philox_words", _philox_words)
        with modules, losses, words, FakeTensorMode(), FakeCuda(may_wait) as gpu:
            yield gpu
    finally:
        torch._C._jit_set_texpr_fuser_enabled(fuses)


@contextlib.contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _apply(self: nn.Module, change: Any, recurse: bool = True) -> nn.Module:
    """Replace parameters and buffers; torch's own swaps them in place, which fake tensors refuse."""
    for module in self.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(change(parameter.detach()), parameter.requires_grad)
        for name, buffer in module._buffers.items():
            module._buffers[name] = None if buffer is None else change(buffer)
    return self


def _backward(self: torch.Tensor, *_args: Any, **_kwargs: Any) -> None:
    """Give every parameter of a loss a gradient; torch's own engine asks the driver for the device."""
    nodes, known = [self.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in known:
            continue
        known.add(node)
        if (parameter := getattr(node, "variable", None)) is not None:
            parameter.grad = torch.zeros_like(parameter)
        nodes += [following for following, _ in node.next_functions]


def _philox_words(*given: torch.Tensor) -> torch.Tensor:
    """Check what the kernel takes; there is no device to launch it on."""
    shape = given[0].shape
    assert len(given) == 5
    assert all((one.shape, one.dtype, one.device) == (shape, torch.int64, CUDA) for one in given)
    assert len(shape) == 2
    return torch.empty(2, *shape, dtype=torch.int64, device=CUDA)


def _caller() -> tuple[bool, str]:
    """Return whether our code called the operator, and the file and function that did."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(STAND_INS) and file != __file__:
            return False, file
        if file.startswith((UMC, TESTS)) and file != __file__:
            place = file.removeprefix(UMC).removeprefix(TESTS)
            return True, f"{place} {frame.f_code.co_qualname}:{frame.f_lineno}"
        if "/site-packages/" in file and not any(tool in file for tool in TOOLS):
            return False, file
        frame = frame.f_back
    return True, "?"


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values if isinstance(values, list | tuple) else [values]:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _waits(func: Any, args: tuple[Any, ...]) -> str | None:
    """Return why the host would wait for the device; None if it would not."""
    if func in READS and args[0].device.type != "cpu":
        return "reads the device"
    if func in INDEXING:
        indices = [index for index in args[1] if index is not None]
        scalar = func is not ATEN.index.Tensor and args[2].dim() == 0 and args[2].device.type == "cpu"
        if any(index.device.type == "cpu" for index in indices):
            return "uploads an index; keep it on the device"
        if any(index.dtype == torch.bool for index in indices) and not (scalar and len(indices) == 1):
            return "counts what a mask selects; use torch.where"
        if scalar and indices[0].dtype != torch.bool:
            return "uploads a number; use index_fill_"
    return None


def _check_result(func: Any, args: tuple[Any, ...], result: Any, place: str) -> None:
    """Refuse copies between devices, and tensors that our code makes on the CPU; a number may be there."""
    copies = func in (ATEN._to_copy.default, ATEN.copy_.default)
    devices = {tensor.device.type for tensor in _tensors(args) if tensor.dim() or func is ATEN._to_copy.default}
    for tensor in _tensors(result):
        device = tensor.device.type
        if copies and devices - {device}:
            raise OffDevice(f"{place}: {func} copies between the devices")
        if device == "cpu" and tensor.dim():
            raise OffDevice(f"{place}: {func} makes a tensor on the CPU")
