# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From what a detector reports to what a policy reads: joint mask and fault flag."""

from __future__ import annotations

import torch
from torch import Tensor

from umc.detection.network import JOINT, SENSOR
from umc.faults.state import FAULT_FLAG_WIDTH


def mask_and_flag(reported: Tensor, any_fault: bool = False) -> tuple[Tensor, Tensor]:
    """Return the joint mask (B, J), bool, and the fault flag (B, 3), -1 or +1, of reports (B, J, 2).

    Joints with a reported sensor fault are masked. The flag is up where one joint has both faults, as the paper's is;
    with ``any_fault`` wherever a joint fault is reported.
    """
    sensor, joint = reported[..., SENSOR], reported[..., JOINT]
    raised = (joint if any_fault else joint & sensor).any(dim=1, keepdim=True)
    return sensor, (2.0 * raised.to(torch.float) - 1.0).expand(-1, FAULT_FLAG_WIDTH)
