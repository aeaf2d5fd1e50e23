# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What every network does with its inputs before it computes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from umc.faults import FAULT_FLAG_WIDTH
from umc.models.layout import JointColumns, JointLayout
from umc.utils.errors import UmcError

OUTPUTS = ("action", "value")
"""What a network can give: one action for each joint, or one value."""


@dataclass(frozen=True)
class CoreCfg:
    """Options of every network."""

    output: str = "action"
    """One of OUTPUTS."""
    masked: bool = True
    """Whether masked joints are blanked; else the joint mask is unused."""
    flagged: bool = True
    """Whether the network reads the fault flag; else it is unused."""
    mask_value: float = 0.0
    """What masked joints read (paper: 0)."""


class MaskedCore(nn.Module):
    """A network of (observation, joint mask, fault flag): checks them and blanks masked joints."""

    cfg_class = CoreCfg
    """Class of the network's options."""

    flag_layer: str | None = None
    """Name of the ``nn.Linear`` whose last columns read the fault flag, for ``agent.stage1_transfer.neutral_flag``; or
    None."""

    def __init__(self, layout: JointLayout, cfg: CoreCfg) -> None:
        super().__init__()
        if cfg.output not in OUTPUTS:
            raise UmcError(f"unknown output {cfg.output!r}, choose one of: {', '.join(OUTPUTS)}")
        self.layout = layout
        self.output = cfg.output
        self.masked = cfg.masked
        self.flagged = cfg.flagged
        self.mask_value = float(cfg.mask_value)
        self.columns = JointColumns(layout)
        self.context_dim = layout.base_dim + FAULT_FLAG_WIDTH * int(cfg.flagged)
        self.num_outputs = layout.num_joints if cfg.output == "action" else 1

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute actions (B, J) or values (B, 1).

        Args:
            obs: Observations (B, D).
            joint_mask: (B, J) bool or float, True or 1 = masked; needed when masked, else unused.
            fault_flag: (B, 3), -1 or +1; needed when flagged, else unused.
        """
        raise NotImplementedError

    def _check(self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> None:
        """Refuse a batch that does not fit, except in TorchScript, which knows no UmcError."""
        if not torch.jit.is_scripting():  # pyright: ignore[reportPrivateImportUsage]
            self._check_shapes(obs, joint_mask, fault_flag)

    @torch.jit.unused
    def _check_shapes(self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> None:
        expected: list[tuple[str, Tensor | None, int]] = [("observation", obs, self.layout.obs_dim)]
        if self.masked:
            expected.append(("joint_mask", joint_mask, self.layout.num_joints))
        if self.flagged:
            expected.append(("fault_flag", fault_flag, FAULT_FLAG_WIDTH))
        for name, tensor, width in expected:
            if tensor is None:
                raise UmcError(f"the network needs a {name} (B, {width}): pass one, or build it without")
            if tensor.dim() != 2 or tensor.shape[1] != width or tensor.shape[0] != obs.shape[0]:
                raise UmcError(
                    f"{name} has shape {tuple(tensor.shape)}, the network needs ({obs.shape[0]}, {width}) for"
                    f" {self.layout.num_joints} joints and {self.layout.obs_dim} observation columns"
                )

    def _with_flag(self, x: Tensor, fault_flag: Tensor | None) -> Tensor:
        """Append the fault flag to (B, C) where the network reads it."""
        if self.flagged:
            assert fault_flag is not None
            x = torch.cat([x, fault_flag.to(x.dtype)], dim=1)
        return x
