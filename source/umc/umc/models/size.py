# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Refuse networks that do not fit into memory before anything of them is made."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from umc.utils.errors import UmcError, shown
from umc.utils.memory import available_bytes

WEIGHT_BYTES = 4

LAYER_BYTES, BLOCK_BYTES = 4e3, 27e3
"""What torch's objects of a layer and of an encoder block take besides weights [byte], measured at width 1
(``benchmarks/memory.py``; at least)."""

LISTS = ("hidden_dims", "head_dims")
"""Options that list widths of layers, one after the other."""

SIZES = (*LISTS, "embed_dim", "feedforward_dim", "num_layers", "memory_dim")
"""Options that decide how large a network is."""


def network_bytes(options: Mapping[str, Any], inputs: int, copies: int = 1) -> float:
    """Return the memory that a network with these options needs at least [byte].

    ``copies``: 1 for its weights, 4 with what Adam keeps of each. Options that are no valid sizes count as nothing.
    """
    lists = [listed for name in LISTS if isinstance(listed := options.get(name), list | tuple)]
    widths = [inputs, *(_size(one) for listed in lists for one in listed)]
    embed, feedforward, blocks, memory = (_size(options.get(name)) for name in SIZES[len(LISTS) :])
    weights = 3 * memory * (inputs + memory) + sum(width * following for width, following in pairwise(widths))
    weights += blocks * (4 * embed * embed + 2 * embed * feedforward)
    return copies * WEIGHT_BYTES * weights + LAYER_BYTES * (len(widths) - 1) + BLOCK_BYTES * blocks


def check_network(options: Mapping[str, Any], joints: int, where: str, copies: int = 1) -> None:
    """Raise UmcError if a network for so many joints needs more memory than there is; ``where`` names its options."""
    need, there = network_bytes(options, 3 * joints, copies), available_bytes()
    if there is None or need <= there:
        return
    sizes = ", ".join(f"{name} {shown(options[name])}" for name in SIZES if options.get(name))
    raise UmcError(
        f"{where}: a network with {sizes} needs {need / 1e9:,.0f} GB of memory, {there / 1e9:,.1f} GB are free; give "
        "smaller sizes"
    )


def _size(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
