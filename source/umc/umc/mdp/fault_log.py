# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Falls and episode lengths by scenario of faults, for the logs of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.faults import FaultState

LOG_EVERY = 24
"""Env steps between two entries: about one in an iteration. Each makes the host wait for the device once."""

NOT_A_FALL = "non_finite_state"
"""Termination of a simulation that failed, which is no fall."""


class FaultLog:
    """Counts episodes that ended, by the scenarios that were planned for them, and reports them for ``extras["log"]``.

    ``Faults/<scenario>/fall_rate`` is the part of the episodes that ended in a fall [-] and
    ``Faults/<scenario>/episode_length`` their mean length [env steps], since the last entry; a scenario of which none
    has ended is left out. ``Faults/share`` is the part of the envs that have a fault now [-].
    """

    def __init__(self, env: ManagerBasedRLEnv, state: FaultState) -> None:
        self._env = env
        self._state = state
        self.names = [scenario.name for scenario in state.source.scenarios]
        self._numbers = torch.arange(len(self.names), device=state.device)
        self._began = torch.zeros(state.num_envs, dtype=torch.long, device=state.device)
        self._sums = torch.zeros(len(self.names), 3, device=state.device)
        self._last = 0
        self._counts = dict.fromkeys(self.names, (0.0, 0.0))

    def episodes_end(self, env_ids: torch.Tensor) -> None:
        """Count the episodes of some envs, before their next plan is drawn."""
        now, plan = self._env.common_step_counter, self._state.plan
        # not episode_length_buf: rsl_rl starts a training in the middle of episodes
        steps = now - self._began[env_ids]
        self._began.index_fill_(0, env_ids, now)
        planned = plan.kinds[env_ids].any(dim=2)
        planned[:, 0] = True  # of a healthy scenario, too
        has = ((plan.scenario[env_ids, :, None] == self._numbers) & planned[:, :, None]).any(dim=1)
        has &= ((steps > 0) & (self._state.episode[env_ids] >= 0))[:, None]
        values = torch.stack([torch.ones_like(steps), self._falls(env_ids), steps], dim=1)
        self._sums += (has[:, :, None] * values[:, None].float()).sum(0)

    def _falls(self, env_ids: torch.Tensor) -> torch.Tensor:
        """Return which envs ended by a fall."""
        manager = self._env.termination_manager
        falls = manager.terminated[env_ids]
        if NOT_A_FALL in manager.active_terms:
            falls = falls & ~manager.get_term(NOT_A_FALL)[env_ids]
        return falls

    def entry(self) -> dict[str, float]:
        """Return what to log now, and start to count anew; empty where :data:`LOG_EVERY` has not passed."""
        now = self._env.common_step_counter
        if now - self._last < LOG_EVERY:
            return {}
        self._last = now
        share = self._state.active.float().mean().expand(1, 3)
        *rows, (part, _, _) = torch.cat([self._sums, share]).tolist()
        self._sums.zero_()
        found = {"Faults/share": part}
        for name, (episodes, falls, steps) in zip(self.names, rows, strict=True):
            before = self._counts[name]
            self._counts[name] = (before[0] + episodes, before[1] + falls)
            if episodes > 0:
                found[f"Faults/{name}/fall_rate"] = falls / episodes
                found[f"Faults/{name}/episode_length"] = steps / episodes
        return found

    def take_counts(self) -> dict[str, tuple[float, float]]:
        """Return episodes and falls by scenario in all entries since the last call."""
        counts, self._counts = self._counts, dict.fromkeys(self.names, (0.0, 0.0))
        return counts
