# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets every robot of an evaluation start as its seed says, wherever in a batch it is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg, ManagerTermBase

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv

STARTS_TERM = "seeded_starts"
"""Name of the event term that starts robots."""

START = "start"
"""Mode of the terms that randomise a robot's physics and state; they run when an evaluation starts it."""

_ODD = 0x9E3779B1
"""Knuth's multiplier, which spreads members over the seeds."""


def seed_starts(events: Any) -> None:
    """Moves all randomisation of an env cfg into the start of an evaluation.

    Isaac Lab draws physics and starts for all envs at once from one generator, so that a robot's friction depends on
    its neighbours. Here the same terms run for one env after the other, each with the seed of its robot.

    Args:
        events: Events of an env cfg; changed in place.
    """
    for name, term in vars(events).items():
        if getattr(term, "mode", None) in ("startup", "reset") and name != "begin_faults":
            term.mode = START
    func: Any = SeededStarts
    setattr(events, STARTS_TERM, EventTermCfg(func=func, mode="reset"))


class SeededStarts(ManagerTermBase):
    """Starts robots when asked to; resets those that fall to the default state in between."""

    def __init__(self, cfg: EventTermCfg, env: ManagerBasedEnv) -> None:
        super().__init__(cfg, env)
        self._seeds: list[int] | None = None

    def prepare(self, seed: torch.Tensor, member: torch.Tensor) -> None:
        """Says how the robots start at the next reset of all envs.

        Args:
            seed: Seed of each env, dtype int64. Shape is (num_envs,).
            member: Which robot of this seed each env is, dtype int64. Shape is (num_envs,).
        """
        self._seeds = ((seed * _ODD + member) % 2**31).tolist()

    def __call__(self, env: ManagerBasedEnv, env_ids: torch.Tensor | slice) -> None:
        """Resets some envs.

        Args:
            env: The environment.
            env_ids: The envs.
        """
        lab.reset_scene_to_default(env, torch.arange(env.num_envs, device=env.device)[env_ids])
        if self._seeds is None:
            return
        with torch.random.fork_rng():
            for number, seed in enumerate(self._seeds):
                torch.manual_seed(seed)
                env.event_manager.apply(mode=START, env_ids=torch.tensor([number], device=env.device))
        self._seeds = None


def starts_of(env: ManagerBasedEnv) -> SeededStarts:
    """The term that starts an evaluation's robots.

    Args:
        env: An environment made with :func:`seed_starts`.

    Returns:
        The term.
    """
    term = env.event_manager.get_term_cfg(STARTS_TERM).func
    assert isinstance(term, SeededStarts)
    return term
