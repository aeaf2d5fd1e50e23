# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How much training a machine can carry."""

from __future__ import annotations

import dataclasses
import os

from umc.rl.agents import STAGE_ITERATIONS, AgentSpec


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How big a run is."""

    num_envs: int
    """Envs simulated at once."""
    max_iterations: int
    """Learning iterations."""


CPU_SIZES = {
    "mlp": Sizes(num_envs=256, max_iterations=1000),
    "transformer_small32": Sizes(num_envs=256, max_iterations=1000),
    "transformer_small64": Sizes(num_envs=256, max_iterations=1000),
}
"""What one to two CPU cores carry in one stage, by network. MLP: 256 envs learned more per minute than 512, and A1
walked after 700 iterations (37 min, ovphysx, measured on two shared cores). Of the small transformers, which learn from
about 3,500 and 2,000 samples/s, an iteration of as many envs learns for 9 s and 15 s."""

CPU_SIZES_LARGE_MODEL = Sizes(num_envs=256, max_iterations=300)
"""The same for every other model. The transformer and its critic learn from about 1,900 samples/s on two threads
(``benchmarks/learning.py``): 256 envs x 24 steps x 5 epochs are 16 s an iteration; A1 walked after 282."""

QUICK_SIZES = Sizes(num_envs=16, max_iterations=3)
"""Of ``--quick``, for each stage: enough to pass through every part, far too little to learn."""

SMALL_MACHINE_CORES = 4
"""Up to this many cores one thread of torch was faster than more (measured with 2)."""


def cpu_sizes(spec: AgentSpec) -> Sizes:
    """Sizes for a CPU.

    Args:
        spec: The agent; one that trains both stages' iterations at once does so here, too.

    Returns:
        What a CPU carries.
    """
    sizes = CPU_SIZES_LARGE_MODEL if is_large(spec) else CPU_SIZES[spec.network.removeprefix("nm_")]
    return dataclasses.replace(sizes, max_iterations=sizes.max_iterations * spec.iterations // STAGE_ITERATIONS)


def is_large(spec: AgentSpec) -> bool:
    """Whether an agent's network is one of those whose products are worth several threads."""
    return spec.network.removeprefix("nm_") not in CPU_SIZES


def cpu_threads(large_model: bool = False) -> int | None:
    """Threads that torch should use on a CPU, or None to leave its own choice (or ``OMP_NUM_THREADS``) alone.

    Args:
        large_model: Whether a large network learns: the transformer learns 1.6 times as fast on two threads as on one
            (``benchmarks/models.py``).

    Returns:
        The number of threads, or None.
    """
    if large_model or "OMP_NUM_THREADS" in os.environ:
        return None
    return 1 if (os.cpu_count() or 1) <= SMALL_MACHINE_CORES else None
