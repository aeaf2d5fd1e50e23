# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Networks in pure torch: no simulator, no RL library."""

from .body_transformer import BodyTransformer
from .layout import JointColumns, JointLayout
from .mlp import MaskedMlp
from .normalization import MaskedNormalization
from .transformer import MaskedTransformer

__all__ = ["BodyTransformer", "JointColumns", "JointLayout", "MaskedMlp", "MaskedNormalization", "MaskedTransformer"]
