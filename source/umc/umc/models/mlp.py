# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The paper's masked MLP, for actor and critic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from umc.faults import FAULT_FLAG_WIDTH
from umc.models.blocks import hidden_layers
from umc.models.core import CoreCfg, MaskedCore
from umc.models.layout import JointLayout
from umc.utils.errors import UmcError


@dataclass(frozen=True)
class MlpCfg(CoreCfg):
    """Options of a masked MLP."""

    hidden_dims: Sequence[int] = (256, 512, 256, 256)
    """Hidden widths (paper, table "Detailed Parameters of the Actor Model")."""
    activation: str = "elu"
    """Activation after each hidden layer."""


class MaskedMlp(MaskedCore):
    """MLP on the observation with masked joints blanked and the fault flag appended; gives actions or a value.

    On A1 (48 observations and the flag) the actor has the paper's 345,100 parameters.
    """

    cfg_class = MlpCfg
    flag_layer = "layers.0"

    def __init__(self, layout: JointLayout, cfg: MlpCfg = MlpCfg(), memory_dim: int = 0) -> None:
        super().__init__(layout, cfg)
        hidden_dims = cfg.hidden_dims
        if not hidden_dims or min(hidden_dims) < 1:
            raise UmcError(f"hidden_dims must be a list of positive widths, not {list(hidden_dims)}")
        widths = [layout.obs_dim + memory_dim + FAULT_FLAG_WIDTH * int(cfg.flagged), *hidden_dims]
        hidden = hidden_layers(widths, cfg.activation)
        self.layers = nn.Sequential(*hidden, nn.Linear(widths[-1], self.num_outputs))

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute actions (B, J) or values (B, 1); see MaskedCore.forward."""
        self._check(obs, joint_mask, fault_flag)
        return self._output(self._blanked(obs, joint_mask), fault_flag)

    def _blanked(self, obs: Tensor, joint_mask: Tensor | None) -> Tensor:
        if self.masked:
            assert joint_mask is not None
            obs = self.columns.fill_masked(obs, self.columns.masked_tokens(joint_mask), self.mask_value)
        return obs

    def _output(self, x: Tensor, fault_flag: Tensor | None) -> Tensor:
        return self.layers(self._with_flag(x, fault_flag))
