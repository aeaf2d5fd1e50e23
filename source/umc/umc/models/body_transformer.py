# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""BodyTransformer (Sferrazza et al. 2024, arXiv 2408.06316), the baseline that reads along the joint graph."""

from __future__ import annotations

from torch import nn

from umc.models.blocks import EncoderBlock, make_activation
from umc.models.layout import JointLayout
from umc.models.transformer import MaskedTransformer
from umc.utils.errors import UmcError

INIT_STD = 0.02
"""Initial standard deviation of positions and of the encoder's weights (public code, `Transformer.init_weights`)."""


class BodyTransformer(MaskedTransformer):
    """The public BodyTransformer for A1 as one more setting of the core: same functions, tokens in another order.

    It reads no faults: no joint is blanked, no key is masked, no flag is read. A token reads itself and its
    neighbours in the joint graph only, the base's token too. The defaults are those of the public A1
    configuration: 64 wide, 8 blocks, the mask in all of them, tanh over the mean action. Other robots have the same
    layout: the base's token carries all columns that belong to no joint.

    Args:
        layout, output, embed_dim, num_heads, feedforward_dim, num_layers, activation: As of MaskedTransformer.
        attention: "body" (published as BoT-Hard) or "body_mix" (BoT-Mix: masked and unmasked blocks alternate).
        output_activation: Activation over the mean action; None for none. A value has none.
    """

    reads_context = False

    def __init__(
        self,
        layout: JointLayout,
        output: str = "action",
        embed_dim: int = 64,
        num_heads: int = 2,
        feedforward_dim: int = 128,
        num_layers: int = 8,
        activation: str = "relu",
        attention: str = "body",
        output_activation: str | None = "tanh",
    ) -> None:
        if attention == "full":
            raise UmcError("a BodyTransformer reads along the joint graph: choose attention body or body_mix")
        super().__init__(
            layout,
            output,
            embed_dim,
            num_heads,
            feedforward_dim,
            num_layers,
            activation,
            attention,
            masked=False,
            flagged=False,
        )
        if output == "action" and output_activation is not None:
            self.output_activation = make_activation(output_activation)
        bound = embed_dim**-0.5  # as nn.Linear, which the public tokenizers and detokenizers are
        nn.init.uniform_(self.head.weight, -bound, bound)
        nn.init.uniform_(self.head.bias, -bound, bound)
        nn.init.normal_(self.positions, std=INIT_STD)
        for block in self.blocks:
            assert isinstance(block, EncoderBlock)
            for linear in (block.out, block.linear1, block.linear2):
                nn.init.normal_(linear.weight, std=INIT_STD)
                nn.init.zeros_(linear.bias)
