# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Default device of tasks and agents."""

import torch

DEFAULT_DEVICE = "cuda:0" if torch.cuda.is_available() else "cpu"
"""The first GPU where there is one, else the CPU (Isaac Lab's own default is a GPU, present or not)."""
