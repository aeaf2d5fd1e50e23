# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The masked MLP with a memory, for actors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from umc.models.layout import JointLayout
from umc.models.mlp import MaskedMlp, MlpCfg
from umc.utils.errors import UmcError


@dataclass(frozen=True)
class GruCfg(MlpCfg):
    """Options of a masked GRU."""

    memory_dim: int = 128
    """Width H of the memory."""


class MaskedGru(MaskedMlp):
    """MLP that also reads a memory of the episode: a GRU over the observations with masked joints blanked.

    The memory (B, H) is zero at the start of an episode.
    """

    cfg_class = GruCfg

    def __init__(self, layout: JointLayout, cfg: GruCfg = GruCfg()) -> None:
        if cfg.memory_dim < 1:
            raise UmcError(f"memory_dim must be positive, not {cfg.memory_dim}")
        super().__init__(layout, cfg, cfg.memory_dim)
        self.memory_dim = cfg.memory_dim
        self.memory = nn.GRUCell(layout.obs_dim, cfg.memory_dim)

    def forward(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute the outputs of an episode's first step; see MaskedCore.forward."""
        return self.step(obs, joint_mask, fault_flag, obs.new_zeros(obs.shape[0], self.memory_dim))[0]

    @torch.jit.export
    def step(
        self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None, memory: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute outputs as MaskedCore.forward does, and the memory after this step, from the one before it."""
        self._check(obs, joint_mask, fault_flag)
        obs = self._blanked(obs, joint_mask)
        memory = self.memory(obs, memory)
        return self._output(torch.cat([obs, memory], dim=1), fault_flag), memory

    @torch.jit.unused
    def sequence(
        self, obs: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None, memory: Tensor, starts: Tensor
    ) -> Tensor:
        """Compute the outputs of C copies of N envs over T steps, with gradients through the memory.

        Args:
            obs: Observations (C * T * N, D); copies, then steps, then envs.
            joint_mask: (C * T * N, J), see MaskedCore.forward.
            fault_flag: (C * T * N, 3).
            memory: Memory before the first step, (C, N, H).
            starts: Whether an episode starts at a step, (T, N) bool.

        Returns:
            Actions (C * T * N, J).
        """
        self._check(obs, joint_mask, fault_flag)
        obs = self._blanked(obs, joint_mask)
        cell, (steps, envs) = self.memory, starts.shape
        # the inputs of all steps at once: only the memory's own product has to wait for the step before; autocast would
        # return bfloat16, which lerp does not mix
        gates = (
            nn.functional.linear(obs, cell.weight_ih, cell.bias_ih).float().view(-1, steps, envs, 3 * self.memory_dim)
        )
        kept = (~starts).to(obs.dtype).unsqueeze(-1)
        memories = []
        for step in range(steps):
            memory = memory * kept[step]
            own = nn.functional.linear(memory, cell.weight_hh, cell.bias_hh).float()
            reset, update, new = gates[:, step].chunk(3, dim=-1)
            own_reset, own_update, own_new = own.chunk(3, dim=-1)
            candidate = torch.tanh(new + torch.sigmoid(reset + own_reset) * own_new)
            memory = torch.lerp(candidate, memory, torch.sigmoid(update + own_update))
            memories.append(memory)
        remembered = torch.stack(memories, dim=1).flatten(0, 2)
        return self._output(torch.cat([obs, remembered], dim=1), fault_flag)
