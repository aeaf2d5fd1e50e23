# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a rollout remembers of its faults."""

import torch
from umc.diagnosis.rollout import Effects


def test_a_fault_has_shown_itself_from_its_first_effect_to_its_end():
    effects = Effects(2, 1)
    label, starts = torch.tensor([[4], [4]]), torch.tensor([False, False])
    assert not effects.before(label, starts).any()
    effects.after(torch.tensor([[True], [False]]))
    assert effects.before(label, starts).tolist() == [[True], [False]]
    effects.after(torch.tensor([[False], [False]]))
    assert effects.before(label, starts).tolist() == [[True], [False]]  # it need not do so in every step
    assert not effects.before(torch.tensor([[5], [4]]), starts).any()  # another fault
    effects.after(torch.tensor([[True], [True]]))
    assert effects.before(torch.tensor([[5], [4]]), torch.tensor([True, False])).tolist() == [[False], [True]]
