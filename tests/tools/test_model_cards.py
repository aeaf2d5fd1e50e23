# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The model cards are those of the pretrained policies of now."""

import pytest
from umc.rl.pretrained import read_models

from tools.model_cards import PAGE, model_cards


def test_every_pretrained_policy_has_a_card():
    page = PAGE.read_text(encoding="utf-8")
    cards = {text.split("\n", 1)[0]: text for text in page.split("\n## ")[1:]}
    assert list(cards) == list(read_models())
    assert [name for name, entry in read_models().items() if entry["sha256"] not in cards[name]] == []
    assert "361 x 256 + 429 x 256: 4,853,760 env steps" in cards["g1_mlp_stage1"]
    assert "463 x 4096: 45,514,752 env steps" in cards["g1_mlp_stage2"]
    assert "forward -1 to 1 m/s, sideward and turning; pushes" in cards["g1_mlp_stage2"]
    assert "forward 0.3 to 0.7 m/s, straight ahead only; pushes" in cards["h1_mlp_stage2"]


@pytest.mark.slow
def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == model_cards(), "run ./isaaclab.sh -p -m tools.model_cards"
