# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The network of the MT-FTC baseline: a shared layer, and a head for each class of faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from umc.faults import FAULT_CLASSES
from umc.models.blocks import hidden_layers
from umc.models.core import CoreCfg, MaskedCore
from umc.models.layout import JointLayout
from umc.utils.errors import UmcError


@dataclass(frozen=True)
class MultiTaskCfg(CoreCfg):
    """Options of a multi-task network; the defaults are the public Solo8 configuration's."""

    masked: bool = False
    hidden_dims: Sequence[int] = (128,)
    """Widths of the layers that all heads share."""
    head_dims: Sequence[int] = (64, 32)
    """Hidden widths of each head."""
    activation: str = "elu"
    """Activation after each hidden layer."""


class MultiTaskMlp(MaskedCore):
    """The baseline of Hou et al. 2024 (arXiv 2402.08996, "MT-FTC"): one head acts, that of the robot's fault class.

    In place of a fault flag it reads the fault class (B, 3): the largest of its columns chooses the head, in the order
    of ``umc.faults.FAULT_CLASSES``. It masks nothing. On Solo8 (30 observations) the actor has 35,768 parameters
    and the critic 35,075.
    """

    cfg_class = MultiTaskCfg

    def __init__(self, layout: JointLayout, cfg: MultiTaskCfg = MultiTaskCfg()) -> None:
        super().__init__(layout, cfg)
        if cfg.masked or not cfg.flagged:
            raise UmcError("a multi-task network reads the fault class and no mask; set agent.obs_groups so")
        widths = [layout.obs_dim, *cfg.hidden_dims]
        head = [*cfg.hidden_dims[-1:], *cfg.head_dims]
        if not cfg.hidden_dims or not cfg.head_dims or min(*widths, *head) < 1:
            raise UmcError("hidden_dims and head_dims must be lists of positive widths")
        self.shared = nn.Sequential(*hidden_layers(widths, cfg.activation))
        self.heads = nn.ModuleList(
            nn.Sequential(*hidden_layers(head, cfg.activation), nn.Linear(head[-1], self.num_outputs))
            for _ in FAULT_CLASSES
        )

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute actions (B, J) or values (B, 1); see MaskedCore.forward. ``fault_flag`` is the fault class (B, 3)."""
        self._check(obs, joint_mask, fault_flag)
        assert fault_flag is not None
        shared = self.shared(obs)
        outputs = torch.stack([head(shared) for head in self.heads], dim=1)
        chosen = fault_flag.argmax(dim=1).view(-1, 1, 1).expand(-1, 1, self.num_outputs)
        return outputs.gather(1, chosen).squeeze(1)
