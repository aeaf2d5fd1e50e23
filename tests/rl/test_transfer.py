# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A Stage 1 policy whose fault flag is folded away is the baseline's, with the same outputs."""

import pytest
import torch
from umc.models import MaskedMlp, MaskedTransformer
from umc.models.layout import JointLayout
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.transfer import fold_flag, main
from umc.utils.errors import UmcError

JOINTS = ["left_hip", "left_knee", "right_hip", "right_knee"]
LAYOUT = JointLayout.term_major(JOINTS, 5 + 3 * len(JOINTS), 5)
NETWORKS = {
    "mlp": lambda **options: MaskedMlp(LAYOUT, hidden_dims=[32, 32], **options),
    "transformer": lambda **options: MaskedTransformer(
        LAYOUT, embed_dim=16, feedforward_dim=32, num_layers=1, **options
    ),
}


def checkpoint_of(network, model, stage=1):
    umc = {
        "robot": "a1",
        "task": f"UMC-A1-Stage{stage}",
        "stage": stage,
        "model": model,
        "joint_names": JOINTS,
        "seed": 1,
        "iteration": 7,
        "umc_version": "0.1.0",
        "agent": f"rsl_rl_{model}_cfg_entry_point",
        "experiment": f"umc_a1_{model}_stage{stage}",
    }
    actor = {f"core.{name}": weight for name, weight in network.state_dict().items()}
    critic = {"layers.0.bias": torch.ones(2)}
    return {"actor_state_dict": actor, "critic_state_dict": critic, "iter": 7, "infos": {"umc": umc}}


@pytest.mark.parametrize("model", NETWORKS)
def test_the_baseline_acts_as_the_policy_did_on_healthy_robots(model, tmp_path):
    torch.manual_seed(0)
    aware, baseline = NETWORKS[model](), NETWORKS[model](masked=False, flagged=False)
    torch.nn.init.normal_(aware.get_parameter({"mlp": "layers.0.bias", "transformer": "context.bias"}[model]))
    write_checkpoint(tmp_path / "model_7.pt", checkpoint_of(aware, model))
    assert main([str(tmp_path / "model_7.pt")]) == 0
    folded = read_checkpoint(tmp_path / "folded" / "nm_model_7.pt")
    info = checkpoint_info(folded, "folded")
    assert (info.model, info.experiment, info.stage) == (f"nm_{model}", f"umc_a1_nm_{model}_stage1", 1)
    # what training goes on with is all there
    assert folded["critic_state_dict"]["layers.0.bias"].tolist() == [1.0, 1.0]
    assert folded["iter"] == 7
    weights = {name.removeprefix("core."): weight for name, weight in folded["actor_state_dict"].items()}
    baseline.load_state_dict(weights)
    obs = torch.randn(64, LAYOUT.obs_dim)
    nothing_dead, healthy = torch.zeros(64, len(JOINTS)), -torch.ones(64, 3)
    torch.testing.assert_close(baseline(obs), aware(obs, nothing_dead, healthy), rtol=1e-5, atol=1e-6)
    assert (baseline(obs) - aware(obs, nothing_dead, -healthy)).abs().max() > 1e-3  # the flag does matter


def test_what_has_no_baseline_is_refused(tmp_path, capsys):
    with pytest.raises(UmcError, match="has seen faults"):
        fold_flag(checkpoint_of(NETWORKS["mlp"](), "mlp", stage=2), "file")
    with pytest.raises(UmcError, match="no baseline nm_body_transformer"):
        fold_flag(checkpoint_of(NETWORKS["mlp"](), "body_transformer"), "file")
    assert main([str(tmp_path / "nothing.pt")]) == 2
    assert "no checkpoint at" in capsys.readouterr().err
