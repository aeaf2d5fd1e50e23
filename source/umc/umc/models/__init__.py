# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Networks in pure torch: no simulator, no RL library."""

from umc.models.gru import GruCfg, MaskedGru
from umc.models.layout import JointColumns, JointLayout
from umc.models.mlp import MaskedMlp, MlpCfg
from umc.models.multi_task import MultiTaskCfg, MultiTaskMlp
from umc.models.normalization import MaskedNormalization
from umc.models.transformer import BodyTransformer, BodyTransformerCfg, MaskedTransformer, TransformerCfg
