# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Stage 2 finds its Stage 1 and loads its weights; without mask and flag Stage 1 is the baseline's."""

from __future__ import annotations

import dataclasses

import dummy_training as dummy
import pytest
import torch
from dummy_robot import build_runner
from umc.models import MaskedMlp, MaskedTransformer, MlpCfg, TransformerCfg
from umc.models.layout import JointLayout
from umc.rl import transfer
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, write_checkpoint
from umc.rl.transfer import add_neutral_flag, find_stage1, fold_flag_into_bias, load_stage1_weights
from umc.utils.errors import UmcError

JOINTS = ["left_hip", "left_knee", "right_hip", "right_knee"]
LAYOUT = JointLayout.term_major(JOINTS, 5 + 3 * len(JOINTS), 5)
NETWORKS = {
    "mlp": lambda **options: MaskedMlp(LAYOUT, MlpCfg(hidden_dims=[32, 32], **options)),
    "transformer": lambda **options: MaskedTransformer(
        LAYOUT, TransformerCfg(embed_dim=16, feedforward_dim=32, num_layers=1, **options)
    ),
}


def checkpoint_of(network, model, stage=1, **more):
    info = dummy.info(task=f"UMC-A1-Stage{stage}", stage=stage, model=model, joint_names=JOINTS, **more)
    actor = {f"core.{name}": weight for name, weight in network.state_dict().items()}
    critic, infos = {"layers.0.bias": torch.ones(2)}, {"umc": dataclasses.asdict(info)}
    return {"actor_state_dict": actor, "critic_state_dict": critic, "iter": 7, "infos": infos}


@pytest.mark.parametrize("model", NETWORKS)
def test_the_baseline_acts_as_the_policy_did_on_healthy_robots(model, tmp_path):
    torch.manual_seed(0)
    aware, baseline = NETWORKS[model](), NETWORKS[model](masked=False, flagged=False)
    torch.nn.init.normal_(aware.get_parameter({"mlp": "layers.0.bias", "transformer": "context.bias"}[model]))
    path = tmp_path / "model_7.pt"
    write_checkpoint(path, fold_flag_into_bias(checkpoint_of(aware, model), path))
    folded = read_checkpoint(path)
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


@pytest.mark.parametrize("model", NETWORKS)
def test_a_baseline_becomes_a_stage_1_that_acts_as_it_does(model, tmp_path):
    torch.manual_seed(0)
    aware, baseline = NETWORKS[model](), NETWORKS[model](masked=False, flagged=False)
    path = tmp_path / "model_7.pt"
    write_checkpoint(path, add_neutral_flag(checkpoint_of(baseline, f"nm_{model}"), path))
    data = read_checkpoint(path)
    info = checkpoint_info(data, "aware")
    assert (info.model, info.agent, info.experiment) == (
        model,
        f"rsl_rl_{model}_cfg_entry_point",
        f"umc_a1_{model}_stage1",
    )
    aware.load_state_dict({name.removeprefix("core."): weight for name, weight in data["actor_state_dict"].items()})
    obs, nothing_dead = torch.randn(64, LAYOUT.obs_dim), torch.zeros(64, len(JOINTS))
    for flag in (-torch.ones(64, 3), torch.ones(64, 3)):
        torch.testing.assert_close(aware(obs, nothing_dead, flag), baseline(obs), rtol=1e-5, atol=1e-6)


def test_a_baseline_keeps_the_agent_overrides_of_its_run_but_that_of_the_mask():
    tokens = ["agent.actor.activation=relu", "agent.actor.mask_value=100.0", "agent.clip_actions=2.0"]
    folded = fold_flag_into_bias(checkpoint_of(NETWORKS["mlp"](), "mlp", network_overrides=tokens), "file")
    assert checkpoint_info(folded, "folded").network_overrides == [tokens[0], tokens[2]]


def test_what_has_no_baseline_is_refused():
    with pytest.raises(UmcError, match="has seen faults"):
        fold_flag_into_bias(checkpoint_of(NETWORKS["mlp"](), "mlp", stage=2), "file")
    data = checkpoint_of(NETWORKS["mlp"](), "mlp")
    del data["critic_state_dict"]
    with pytest.raises(UmcError, match="file has no critic"):
        fold_flag_into_bias(data, "file")
    with pytest.raises(UmcError, match="no baseline nm_body_transformer"):
        fold_flag_into_bias(checkpoint_of(NETWORKS["mlp"](), "body_transformer"), "file")
    with pytest.raises(UmcError, match="is no baseline"):
        add_neutral_flag(checkpoint_of(NETWORKS["mlp"](), "mlp"), "file")


def test_stage_1_of_the_same_robot_and_model_only(tmp_path, monkeypatch):
    pretrained = tmp_path / "package" / "a1_mlp_stage1.pt"
    monkeypatch.setattr(transfer, "pretrained_file", lambda *who: {("a1", "mlp", 1): pretrained}.get(who))

    def put(experiment):
        path = tmp_path / "rsl_rl" / experiment / "run" / "model_5.pt"
        path.parent.mkdir(parents=True)
        path.touch()
        return path

    for experiment in ("umc_a1_mlp_stage2", "umc_a1_transformer_stage1", "umc_g1_mlp_stage1"):
        put(experiment)
    assert find_stage1(tmp_path, "a1", "mlp") == pretrained
    assert find_stage1(tmp_path, "a1", "mlp", pretrained=False) is None
    assert find_stage1(tmp_path, "g1", "transformer") is None
    own = put("umc_a1_mlp_stage1")
    assert find_stage1(tmp_path, "a1", "mlp") == own


@pytest.mark.parametrize("std_type", ["scalar", "log"])
@pytest.mark.parametrize(
    ("reset_noise", "reset_optimizer"), [(True, True), (True, False), (False, True), (False, False)]
)
def test_stage_2_loads_weights_and_resets_what_the_agent_says(tmp_path, std_type, reset_noise, reset_optimizer):
    resets = {"reset_noise": reset_noise, "reset_optimizer": reset_optimizer}
    cfg = {**dummy.agent(std_type), "stage1_transfer": resets}
    started = dummy.build(tmp_path / "new", cfg=cfg).alg.save()["actor_state_dict"]
    first = dummy.build(tmp_path / "one", cfg=cfg)
    path = first.train(4)
    # neither the learning rate of this run nor that which PPO adapted may pass for the other
    adapted = first.alg.learning_rate
    assert adapted != dummy.LEARNING_RATE
    second = dummy.build(tmp_path / "two", cfg=cfg, stage=2, task="UMC-A1-Stage2")
    second.train(2)  # leaves Adam's moments, a learning rate and an iteration behind
    load_stage1_weights(second, path, "a1", "mlp")

    old, new = first.alg.save(), second.alg.save()
    for network in ("actor_state_dict", "critic_state_dict"):
        assert old[network].keys() == new[network].keys()
        for name, weight in old[network].items():
            if name.startswith("distribution."):
                assert not torch.equal(weight, started[name])
                torch.testing.assert_close(new[network][name], started[name] if reset_noise else weight)
            else:
                assert torch.equal(weight, new[network][name])
    assert bool(second.alg.optimizer.state) != reset_optimizer
    rate = dummy.LEARNING_RATE if reset_optimizer else adapted
    assert second.alg.learning_rate == rate
    assert {group["lr"] for group in second.alg.optimizer.param_groups} == {rate}
    assert second.current_learning_iteration == 0


@pytest.mark.parametrize("model", ["mlp", "transformer", "gru"])
def test_an_actor_that_reads_no_flag_starts_with_the_actions_of_its_stage_1(model, tmp_path):
    first = build_runner(tmp_path / "one", model)
    reader = first.alg.get_policy().core
    torch.nn.init.normal_(reader.get_submodule(reader.flag_layer).weight)
    saved = first.alg.save() | {"iter": 0, "infos": {"umc": vars(first.info) | {"stage": 1}}}
    torch.save(saved, tmp_path / "model_0.pt")

    def without(cfg):
        cfg.obs_groups = {**cfg.obs_groups, "actor": ["policy"]}

    second = build_runner(tmp_path / "two", model, change=without)
    load_stage1_weights(second, tmp_path / "model_0.pt", "a1", model)
    obs = first.env.get_observations()
    obs["fault_flag"][:], obs["joint_mask"][:] = -1.0, 0.0
    wanted = first.alg.get_policy()(obs)
    torch.testing.assert_close(second.alg.get_policy()(obs), wanted, rtol=1e-4, atol=1e-5)
    obs["fault_flag"][:] = 1.0
    assert (first.alg.get_policy()(obs) - wanted).abs().max() > 1e-3

    second.cfg["stage1_transfer"]["reset_optimizer"] = False
    with pytest.raises(UmcError, match=r"without the fault flag of its Stage 1 needs a new optimizer"):
        load_stage1_weights(second, tmp_path / "model_0.pt", "a1", model)


def test_an_optimizer_that_is_not_there_is_one_clear_error(tmp_path):
    path = dummy.build(tmp_path / "one").train(1)
    data = read_checkpoint(path)
    del data["optimizer_state_dict"]  # as in a pretrained policy
    write_checkpoint(path, data)
    cfg = {**dummy.agent(), "stage1_transfer": {"reset_noise": True, "reset_optimizer": False}}
    with pytest.raises(UmcError, match="has no optimizer_state_dict"):
        load_stage1_weights(dummy.build(tmp_path / "two", cfg=cfg), path, "a1", "mlp")
    load_stage1_weights(dummy.build(tmp_path / "three"), path, "a1", "mlp")


def test_weights_of_another_robot_model_or_joint_order_are_refused(tmp_path):
    path = dummy.build(tmp_path / "one").train(1)
    runner = dummy.build(tmp_path / "two")
    before = [weight.clone() for weight in runner.alg.get_policy().parameters()]
    with pytest.raises(UmcError, match="trained for robot a1"):
        load_stage1_weights(runner, path, "g1", "mlp")
    with pytest.raises(UmcError, match="holds the mlp model"):
        load_stage1_weights(runner, path, "a1", "transformer")
    other = dummy.build(tmp_path / "three", joint_names=dummy.JOINTS[::-1])
    with pytest.raises(UmcError, match="another joint order"):
        load_stage1_weights(other, path, "a1", "mlp")
    assert all(torch.equal(a, b) for a, b in zip(before, runner.alg.get_policy().parameters(), strict=True))
