# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A model that UMC does not have: an MLP whose layers add to what they read."""

from __future__ import annotations

from dataclasses import dataclass

from isaaclab.utils import configclass
from torch import Tensor, nn
from umc.faults import FAULT_FLAG_WIDTH
from umc.models import JointLayout
from umc.models.core import CoreCfg, MaskedCore
from umc.rl.model_cfg import UmcModelCfg
from umc.rl.models import MaskedModel
from umc.tasks.ppo import Network


@dataclass(frozen=True)
class ResidualMlpCoreCfg(CoreCfg):
    """Options of the network."""

    width: int = 128
    """Width of the hidden state."""
    num_layers: int = 3
    """Layers between the first and the last."""


class ResidualMlp(MaskedCore):
    """Set dead joints to ``mask_value``, append the fault flag, then add ``num_layers`` layers to a hidden state."""

    cfg_class = ResidualMlpCoreCfg
    flag_layer = "first"

    def __init__(self, layout: JointLayout, cfg: ResidualMlpCoreCfg) -> None:
        super().__init__(layout, cfg)
        self.first = nn.Linear(layout.obs_dim + FAULT_FLAG_WIDTH * int(cfg.flagged), cfg.width)
        self.layers = nn.ModuleList(nn.Linear(cfg.width, cfg.width) for _ in range(cfg.num_layers))
        self.last = nn.Linear(cfg.width, self.num_outputs)

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute actions (B, J) or values (B, 1); see MaskedCore.forward."""
        self._check(obs, joint_mask, fault_flag)
        if self.masked:
            assert joint_mask is not None
            obs = self.columns.fill_masked(obs, self.columns.masked_tokens(joint_mask), self.mask_value)
        hidden = self.first(self._with_flag(obs, fault_flag))
        for layer in self.layers:
            hidden = hidden + nn.functional.elu(layer(hidden))
        return self.last(hidden)


class ResidualMlpModel(MaskedModel):
    """The network for rsl_rl and skrl: normalization, action noise and export come from MaskedModel."""

    core_class = ResidualMlp


@configclass
class ResidualMlpCfg(UmcModelCfg):
    """Fields that the command line can change: ``agent.actor.width=256``."""

    class_name: str = "my_extension.model:ResidualMlpModel"
    """The model class."""

    width: int = 128
    """Width of the hidden state."""

    num_layers: int = 3
    """Layers between the first and the last."""


RESIDUAL_MLP = Network(ResidualMlpCfg)
"""Model cfgs of agents with this network; the actor reads joint mask and fault flag."""
