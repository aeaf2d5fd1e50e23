# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuse, before anything is simulated, more envs and larger networks than fit into memory."""

from __future__ import annotations

import dataclasses
from typing import Any

from umc.models.size import check_network
from umc.utils.errors import UmcError
from umc.utils.memory import available_bytes


@dataclasses.dataclass(frozen=True)
class Need:
    """Memory of a training on a CPU [byte]."""

    start: float
    """Without any env: packages, ground, networks."""
    env: float
    """Of each env."""


NEEDS = {
    ("a1", "ovphysx"): Need(1.3e9, 3.5e6),
    ("a1", "newton_mjwarp"): Need(1.9e9, 3.3e6),
    ("g1", "ovphysx"): Need(1.3e9, 1.4e6),
    ("g1", "newton_mjwarp"): Need(1.4e9, 0.24e6),
}
"""By robot and engine, with an MLP and rollouts of :data:`ROLLOUT` steps: the table of ``benchmarks/memory.py``."""

LARGE_NETWORK = 4.7e6
"""What a large network takes more for each env [byte]: the transformer beside the MLP, for A1 on ovphysx."""

CERTAIN = 0.8
"""Share of that table's figures per env that is certain [-]: from 128 to 1,024 envs A1 takes 2.9 MB on ovphysx."""

LEAST_ON_GPU = 0.1e6
"""What an env takes of a GPU at least, without learning [byte]. Nothing was measured there: it is what is left of the
smallest above without its update."""

SAMPLE_ON_GPU = {False: 16e3, True: 480e3}
"""What a sample of a mini-batch takes at the peak of an update [byte], of a small and of a large network: A1's MLP and
transformer, actor and critic, counted on a CPU (``benchmarks/tensors.py``)."""

ROLLOUT = 24
"""Env steps of an iteration in that table; samples, and so the memory of learning, are proportional to them."""


def check_memory(
    env_cfg: Any, robot: str, device: str, rollout: int = 0, large: bool = False, samples: float = 0.0
) -> None:
    """Raise UmcError if the envs of a cfg need more memory than there is; ``rollout`` is 0 without learning.

    ``large`` says that the network is a large one, ``samples`` how many samples of each env a mini-batch has. On a GPU
    only what cannot fit by far is refused.
    """
    from umc.tasks.task_cfg import physics_name

    engine = physics_name(env_cfg)
    known = [need for (_, other), need in NEEDS.items() if other == engine] or list(NEEDS.values())
    need = NEEDS.get((robot, engine)) or max(known, key=lambda one: one.env)
    each, start = CERTAIN * need.env, need.start
    if device == "cpu":
        there = available_bytes()
        more = (LARGE_NETWORK if large else 0.0) + need.env * max(rollout / ROLLOUT - 1.0, 0.0)
        each += CERTAIN * more
    else:
        import torch

        there = torch.cuda.get_device_properties(device).total_memory
        each, start = LEAST_ON_GPU + CERTAIN * SAMPLE_ON_GPU[large] * samples, 0.0
    count = env_cfg.scene.num_envs
    if there is None or start + count * each <= there:
        return
    fits = max(int((there - start) / each), 0)
    fix = f"give --num_envs {fits} or fewer (in a recipe: num_envs)" if fits else "end other programs"
    fix += ", or more agent.algorithm.num_mini_batches" if device != "cpu" and samples else ""
    needed = (start + count * each) / 1e9
    has = f"{there / 1e9:,.1f} GB are free" if device == "cpu" else f"the GPU has {there / 1e9:,.1f} GB"
    raise UmcError(f"{count} envs need about {needed:,.0f} GB of memory, {has}; {fix}")


def check_networks(agent_cfg: Any, device: str) -> None:
    """Raise UmcError if the networks of an agent cfg are larger than memory; they are made on the CPU."""
    copies = 4 if device == "cpu" else 1
    for name in ("actor", "critic"):
        options = vars(getattr(agent_cfg, name))
        check_network(options, len(options["joint_names"]), f"agent.{name}", copies)
