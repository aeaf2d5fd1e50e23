# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a device computes, made up: a ledger of real draws, and observations."""

from __future__ import annotations

import torch
from recorded_ledger import ENVS, JOINTS, MIXED, record
from umc.evaluation.devices import EPISODE, EPISODES, Recording
from umc.faults import FaultSchedule

STEPS, WIDTH = EPISODE * EPISODES, 48


def recording(folder) -> Recording:
    """A recording that is the same in every call."""
    ledger = folder / "ledger.jsonl"
    ledger.unlink(missing_ok=True)
    record(ledger, FaultSchedule(JOINTS, **MIXED))
    generator = torch.Generator().manual_seed(0)
    observations = {"policy": torch.randn(STEPS, ENVS, WIDTH, generator=generator)}
    observations["policy (base)"] = torch.randn(STEPS, ENVS, 9, generator=generator)
    observations["joint_mask"] = (observations["policy"][..., :12] > 1.0).float()
    return Recording(observations=observations, ledger=ledger.read_text(), engine="newton")
