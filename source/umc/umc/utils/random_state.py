# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The random number generators of a process: a checkpoint holds their states, a resumed run restores them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def random_states(device: str) -> dict[str, Any]:
    """Return the states of the random number generators, as tensors and plain values; ``device`` learns."""
    _, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (torch.from_numpy(np.asarray(keys).astype(np.int64)), int(position), int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        "cuda": [torch.cuda.get_rng_state(device)] if torch.device(device).type == "cuda" else [],
    }


def seed_all(seed: int) -> None:
    """Seed all random number generators."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def set_random_states(states: dict[str, Any], device: str) -> None:
    """Restore what :func:`random_states` returned; ``device`` learns."""
    random.setstate(states["python"])
    keys, position, has_gauss, gauss = states["numpy"]
    np.random.set_state(("MT19937", keys.cpu().numpy().astype(np.uint32), position, has_gauss, gauss))
    # torch wants these on the CPU, whatever device the checkpoint was mapped to
    torch.set_rng_state(states["torch"].cpu())
    if states["cuda"] and torch.device(device).type == "cuda":
        # UMC 0.1 stored one state for each GPU of the machine
        number = torch.device(device).index or 0
        torch.cuda.set_rng_state(states["cuda"][number if number < len(states["cuda"]) else 0].cpu(), device)
