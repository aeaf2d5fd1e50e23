# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""TorchScript and ONNX files as networks for many robots at once, which may remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from umc.utils.errors import UmcError, shown

STATE_IN, STATE_OUT = "_in", "_out"
"""Endings of an ONNX file's recurrent inputs and outputs, as rsl_rl exports them (``h_in``, ``h_out``)."""


@dataclass
class TorchScriptNetwork:
    """A TorchScript module; buffers that hold the state of one robot are widened to all envs."""

    path: Path
    num_envs: int
    device: str
    _state: list[tuple[Any, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        try:
            self.module: Any = torch.jit.load(str(self.path), map_location=self.device).eval()
        except (RuntimeError, ValueError, OSError) as error:
            raise UmcError(
                f"{self.path} is no TorchScript file ({shown(str(error).splitlines()[0])}); export the policy with "
                "torch.jit.script, or to ONNX"
            ) from error
        for owner in self.module.modules():
            for name, value in owner.named_buffers(recurse=False):
                # torch's recurrent networks keep (layers, robots, cells)
                if value.dim() == 3 and value.shape[1] == 1:
                    self._state.append((owner, name))
        self._size(self.num_envs)

    def _size(self, count: int) -> None:
        for owner, name in self._state:
            value = getattr(owner, name)
            setattr(owner, name, torch.zeros(value.shape[0], count, value.shape[2], device=self.device))

    def sized(self, count: int) -> TorchScriptNetwork:
        """Return the same network for another number of envs."""
        return TorchScriptNetwork(self.path, count, self.device)

    def __call__(self, columns: torch.Tensor) -> torch.Tensor:
        """Return actions for columns. Shapes are (num_envs, width)."""
        return self.module(columns)

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in the masked envs, or in all."""
        for owner, name in self._state:
            value = getattr(owner, name)
            if envs is None:
                value.zero_()
            else:
                value[:, envs] = 0.0


@dataclass
class OnnxNetwork:
    """An ONNX file; its number of robots is made free, and recurrent inputs are kept from step to step."""

    path: Path
    num_envs: int
    device: str

    def __post_init__(self) -> None:
        import onnx  # slow to import
        import onnxruntime

        try:
            model = onnx.load(str(self.path))
        except Exception as error:  # protobuf's own errors share no base
            raise UmcError(f"{self.path} is no ONNX file; export the policy to ONNX again") from error
        for value in (*model.graph.input, *model.graph.output):
            sizes = value.type.tensor_type.shape.dim
            robots = 1 if len(sizes) == 3 else 0
            if len(sizes) > robots:
                sizes[robots].dim_param = "robots"
        del model.graph.value_info[:]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors share no base
            raise UmcError(
                f"{self.path} cannot be run ({shown(str(error).splitlines()[0])}); export it again"
            ) from error
        inputs = self.session.get_inputs()
        self._states = [one for one in inputs if one.name.endswith(STATE_IN)]
        columns = [one for one in inputs if not one.name.endswith(STATE_IN)]
        outputs = [one.name for one in self.session.get_outputs()]
        self._kept = [one.name.removesuffix(STATE_IN) + STATE_OUT for one in self._states]
        actions = [name for name in outputs if name not in self._kept]
        if len(columns) != 1 or not actions or any(name not in outputs for name in self._kept):
            raise UmcError(
                f"{self.path} takes {', '.join(one.name for one in inputs)} and returns {', '.join(outputs)}; it has "
                f"to take one observation, and states NAME{STATE_IN} that it returns as NAME{STATE_OUT}"
            )
        self._input, self._output = columns[0], actions[0]
        self.reset(None)

    def sized(self, count: int) -> OnnxNetwork:
        """Return the same network for another number of envs."""
        return OnnxNetwork(self.path, count, self.device)

    def __call__(self, columns: torch.Tensor) -> torch.Tensor:
        """Return actions for columns. Shapes are (num_envs, width)."""
        feed = {self._input.name: columns.float().cpu().contiguous().numpy(), **self._state}
        width = self._input.shape[-1]
        if isinstance(width, int) and width != columns.shape[-1]:
            raise RuntimeError(f"it reads {width}")
        actions, *kept = self.session.run([self._output, *self._kept], feed)
        self._state = {one.name: np.array(value) for one, value in zip(self._states, kept, strict=True)}
        return torch.from_numpy(actions).to(self.device)

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in the masked envs, or in all."""
        if envs is None:
            self._state: dict[str, np.ndarray] = {
                one.name: np.zeros((one.shape[0], self.num_envs, one.shape[2]), np.float32) for one in self._states
            }
            return
        for value in self._state.values():
            value[:, envs.cpu().numpy()] = 0.0
