# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Updates give the weights of rsl_rl's own PPO, and its checkpoints."""

import pytest
import torch
from dummy_robot import WIDTHS, DummyRobotEnv, build_runner, term_groups, with_terms
from rsl_rl.extensions import Symmetry
from rsl_rl.storage import RolloutStorage
from umc.rl.symmetry import OnePassSymmetry
from umc.robots import A1_JOINTS

AGREEMENT = 1e-6
"""Largest difference between weights after an update [-]."""


class OnePassLoss(OnePassSymmetry):
    """Mirror images by rsl_rl, anew in every epoch."""

    augment_batch = Symmetry.augment_batch


def updated(folder, monkeypatch, agent, mirror, symmetry=None, per_batch=False):
    """An agent after one rollout and one update of three epochs; with ``symmetry`` by rsl_rl's own PPO and that."""
    terms = term_groups(len(A1_JOINTS))
    del terms["live_faults"]
    assert {name: sum(width for _, width in names) for name, names in terms.items()} == WIDTHS["A1"]
    env = with_terms(DummyRobotEnv("A1"), "A1")

    def change(cfg):
        cfg.mirror, cfg.mirror_loss, cfg.algorithm.num_learning_epochs = mirror, 1.0, 3
        cfg.algorithm.normalize_advantage_per_mini_batch = per_batch

    with monkeypatch.context() as patch:
        if symmetry is not None:
            patch.setattr("umc.rl.runner.speed_up", lambda alg: None)
            patch.setattr("umc.rl.symmetry.OnePassSymmetry", symmetry)
        runner = build_runner(folder, agent, env=env, change=change)
    runner.train(1)
    return runner


def weights(runner):
    return {**runner.alg.actor.state_dict(), **{f"critic.{k}": v for k, v in runner.alg.critic.state_dict().items()}}


@pytest.fixture
def dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


@pytest.mark.parametrize(
    ("dtype", "agent", "mirror", "per_batch"),
    [
        (torch.float32, "mlp", False, False),
        (torch.float32, "mlp", True, False),
        (torch.float64, "mlp", True, False),
        (torch.float64, "mlp", True, True),
        (torch.float64, "transformer_small32", False, False),
        (torch.float64, "transformer_small32", True, False),
    ],
    indirect=["dtype"],
)
def test_an_update_gives_rsl_rls_weights(tmp_path, monkeypatch, dtype, agent, mirror, per_batch):
    """Adam divides gradients by their size: where they are zero but for rounding, single precision moves weights by it.

    So do a transformer's offsets of keys, always, and a few of the MLP's weights if the mirror loss takes two passes.
    Double precision shows that nothing else differs.
    """
    ours = updated(tmp_path / "ours", monkeypatch, agent, mirror, symmetry=None, per_batch=per_batch)
    after_ours = torch.rand(1)
    symmetry = OnePassLoss if dtype is torch.float32 else Symmetry
    theirs = updated(tmp_path / "theirs", monkeypatch, agent, mirror, symmetry, per_batch=per_batch)
    assert torch.rand(1) == after_ours  # the same random numbers are drawn: the next rollout is the same
    assert type(theirs.alg.storage) is RolloutStorage is not type(ours.alg.storage)
    assert ours.alg.learning_rate == theirs.alg.learning_rate
    wanted = weights(theirs)
    for name, weight in weights(ours).items():
        assert weight.dtype == dtype
        torch.testing.assert_close(weight, wanted[name], rtol=0.0, atol=AGREEMENT)


def test_mini_batches_are_gathered_once_and_changed_in_one_epoch_only(tmp_path, monkeypatch):
    runner = updated(tmp_path, monkeypatch, "mlp", mirror=True)
    first, *_, last = runner.alg.storage.mini_batch_generator(1, 2)
    assert first.observations is last.observations
    first.advantages = None
    runner.alg.symmetry.augment_batch(last, 16)
    assert last.observations.batch_size[0] == len(last.advantages) == 32


def test_checkpoints_do_not_say_how_adam_is_computed(tmp_path, monkeypatch):
    ours = updated(tmp_path / "ours", monkeypatch, "mlp", mirror=False)
    theirs = updated(tmp_path / "theirs", monkeypatch, "mlp", mirror=False, symmetry=Symmetry)
    state, wanted = ours.alg.optimizer.state_dict(), theirs.alg.optimizer.state_dict()
    assert state["param_groups"] == wanted["param_groups"]
    assert {name: value.shape for name, value in state["state"][0].items()} == {
        name: value.shape for name, value in wanted["state"][0].items()
    }
    ours.alg.optimizer.load_state_dict(wanted)
    assert all(group["fused"] for group in ours.alg.optimizer.param_groups)
