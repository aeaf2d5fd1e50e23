# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Which of several processes that train together this one is, by the variables that torchrun sets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from umc.utils.errors import UmcError

SEED_STRIDE = 100_003
"""From one process's seed to the next one's. Greater than every seed that ``--seed -1`` draws, so that runs of a sweep
share no random numbers (with Isaac Lab's stride of 1, rank 1 of seed 42 draws what rank 0 of seed 43 does)."""

LARGEST_SEED = 2**32 - 1
"""NumPy takes seeds up to this."""

VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets."""


class SharedError(UmcError):
    """A user's mistake that every process knows of; the first one says it."""


class PeerLost(Exception):
    """Another process of the run has died or does not answer."""

    def __init__(self, error: BaseException) -> None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        super().__init__(f"another process of the run is gone ({lines[0][:160]})")


@dataclasses.dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    """Its number, counted from 0 over all machines."""
    local_rank: int = 0
    """Its number on its machine."""
    world_size: int = 1
    """Number of processes on all machines."""

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.world_size > 1

    @property
    def first(self) -> bool:
        """Whether this process prints and writes for all."""
        return self.rank == 0

    def first_env(self, num_envs: int) -> int:
        """Number of this process's env 0 among the envs of all processes, which have equally many each.

        Args:
            num_envs: Envs of one process.

        Returns:
            The number. Faults are drawn by it: two processes of 64 envs meet the faults of one with 128.
        """
        return self.rank * num_envs

    def seed(self, seed: int) -> int:
        """This process's seed of the simulation and of the action noise.

        Args:
            seed: Seed of the run, which is that of process 0.

        Returns:
            A seed that no other process has.
        """
        return (seed + self.rank * SEED_STRIDE) % (LARGEST_SEED + 1)


def ranks_from_env(variables: Mapping[str, str] | None = None) -> Ranks:
    """Read what torchrun says.

    Args:
        variables: Environment variables; this process's own by default.

    Returns:
        This process among the others; the only one where nothing is said.

    Raises:
        UmcError: If a variable is no number, or they contradict each other.
    """
    variables = os.environ if variables is None else variables
    numbers = {}
    for name, default in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
        text = variables.get(name) or default
        if not text.isdigit():
            raise UmcError(f"the environment variable {name} is {text!r}, no number; let torchrun set it")
        numbers[name] = int(text)
    rank, local_rank, world_size = numbers.values()
    if world_size < 1 or not (local_rank <= rank < world_size):
        raise UmcError(
            f"the environment variables RANK={rank}, LOCAL_RANK={local_rank}, WORLD_SIZE={world_size} contradict each "
            "other; let torchrun set them"
        )
    return Ranks(rank, local_rank, world_size)


def without_ranks(variables: Mapping[str, str]) -> dict[str, str]:
    """Environment variables for a child that works alone."""
    return {
        name: value
        for name, value in variables.items()
        if name not in VARIABLES and not name.startswith("TORCHELASTIC_") and name not in ("GROUP_RANK", "ROLE_RANK")
    }
