# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A checkpoint becomes the policy it was, or one clear error."""

import pytest
import torch
import yaml
from fresh_policy import WIDTHS, write_fresh
from tensordict import TensorDict
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, trained_overrides, trained_terrain
from umc.rl.policy import load_policy, registered_agent
from umc.robots import A1_JOINTS
from umc.utils.errors import UmcError

A1 = WIDTHS["a1"]


def observations(batch=3, widths=A1):
    return TensorDict({name: torch.randn(batch, width) for name, width in widths.items()}, batch_size=[batch])


def test_the_policy_gives_mean_actions_from_the_stored_weights(tmp_path):
    path = write_fresh(tmp_path)
    policy = load_policy(path, A1, robot="a1")
    obs = observations()
    actions = policy(obs)
    assert actions.shape == (3, 12)
    assert torch.equal(actions, policy(obs))
    for name, weight in read_checkpoint(path)["actor_state_dict"].items():
        assert torch.equal(weight, policy.actor.state_dict()[name])


def test_the_agent_cfg_of_the_run_wins_over_the_registered_one(tmp_path):
    """A run trained with agent.actor.hidden_dims=[32] has to load without repeating the override."""

    def narrow(cfg):
        cfg["actor"]["hidden_dims"] = [32]
        cfg["clip_actions"] = 0.01

    path = write_fresh(tmp_path, change=narrow)
    with pytest.raises(UmcError, match=r"do not fit .* put params/agent.yaml of its run folder beside it"):
        load_policy(path, A1)
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
    narrow(agent)
    (tmp_path / "params").mkdir()
    # as Isaac Lab writes it, tuples and all
    (tmp_path / "params" / "agent.yaml").write_text(yaml.dump(agent))
    assert "python/tuple" in (tmp_path / "params" / "agent.yaml").read_text()
    policy = load_policy(path, A1)
    assert sum(parameter.numel() for parameter in policy.actor.core.parameters()) == (51 + 1) * 32 + (32 + 1) * 12
    assert policy(observations(64)).abs().max() <= 0.01


def test_a_checkpoint_alone_is_made_with_the_agent_overrides_of_its_run(tmp_path):
    """Neither the activation function nor the bound of the actions shows in the weights."""
    obs = observations(64)
    tokens = ["agent.actor.activation=relu", "agent.actor.hidden_dims=[32]", "agent.clip_actions=0.01"]

    def changed(cfg):
        torch.manual_seed(3)
        cfg["actor"] |= {"activation": "relu", "hidden_dims": [32]}

    path = write_fresh(tmp_path / "alone", change=changed, network_overrides=tokens)
    beside = write_fresh(tmp_path / "beside", change=changed)
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
    changed(agent)
    (tmp_path / "beside" / "params").mkdir()
    (tmp_path / "beside" / "params" / "agent.yaml").write_text(yaml.dump(agent))
    wanted = load_policy(beside, A1)(obs)
    assert torch.equal(load_policy(path, A1)(obs), wanted.clamp(-0.01, 0.01))
    assert wanted.abs().max() > 0.01
    bare = write_fresh(tmp_path / "bare", change=changed, network_overrides=tokens[1:2])
    assert not torch.allclose(load_policy(bare, A1)(obs), wanted)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("agent.actor.class_name=boom:Model", "names code outside UMC"),
        ("agent.actor.distribution_cfg={'class_name': 'boom:Normal'}", "names code outside UMC"),
        ("agent.actor=wide", "is no agent of UMC-A1-Stage2"),
        ("agent.actor.hidden_dims=[1000000000, 1000000000]", r"hidden_dims \[.* GB of memory"),
        ("agent.actor.hidden_dims.more=3", "hidden_dims holds no further names"),
    ],
)
def test_agent_overrides_of_a_checkpoint_that_would_run_code_or_are_not_valid_are_refused(tmp_path, token, words):
    path = write_fresh(tmp_path, network_overrides=[token])
    with pytest.raises(UmcError, match=words) as caught:
        load_policy(path, A1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "widths", "options", "message"),
    [
        ({"task": "UMC-G1-Stage1"}, A1, {"robot": "a1"}, r"trained for robot g1.*UMC-G1-Stage1"),
        ({}, A1, {"joint_names": list(A1_JOINTS[::-1])}, "joint order"),
        ({}, {"policy": 48, "fault_flag": 3}, {}, "joint_mask"),
        ({"agent": "rsl_rl_cnn_cfg_entry_point"}, A1, {}, "rsl_rl_cnn_cfg_entry_point is not registered"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, written, widths, options, message):
    path = write_fresh(tmp_path, **written)
    with pytest.raises(UmcError, match=message):
        load_policy(path, widths, **options)


MARK = "boom"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("actor: !!python/object/apply:os.getcwd []\nobs_groups: {}\n", "damaged"),
        ("actor: 3\nobs_groups: {actor: [policy]}\n", "is not an agent configuration"),
        ("[" * 5000, "nested more than 64 deep"),
        (lambda agent: agent.update(clip_actions="wide"), "is not an agent configuration"),
        (lambda agent: agent["actor"].update(class_name=f"{MARK}:Model"), "names code outside UMC"),
        (lambda agent: agent["actor"].update(class_name=f"{MARK}.Model"), "names code outside UMC"),
        (
            lambda agent: agent["actor"]["distribution_cfg"].update(class_name=f"{MARK}:Normal"),
            "names code outside UMC",
        ),
        (lambda agent: agent["actor"].update(class_name="umc.utils.io:write_json"), "is no model of umc"),
        (lambda agent: agent["actor"].update(class_name="umc.rl.models:Gone"), "no class_name that can be imported"),
        (
            lambda agent: agent["actor"].update(hidden_dims=[10**9, 10**9]),
            r"actor: .*hidden_dims \[.* GB of memory",
        ),
        (lambda agent: agent["actor"].update(hidden_dims="wide"), "the actor cannot be made from its cfg"),
    ],
)
def test_an_agent_cfg_that_would_run_code_or_is_not_valid_is_refused(tmp_path, monkeypatch, change, words):
    """``boom`` is a module that leaves a file behind when it is imported."""
    (tmp_path / f"{MARK}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Model: pass\nNormal = Model\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = write_fresh(tmp_path)
    load_policy(path, A1, joint_names=A1_JOINTS)
    text = change
    if callable(change):
        agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
        change(agent)
        text = yaml.dump(agent)
    (tmp_path / "params").mkdir()
    (tmp_path / "params" / "agent.yaml").write_text(text)
    with pytest.raises(UmcError, match=words) as caught:
        load_policy(path, A1)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("override", "refused"),
    [
        ("env.events.faults.func=os:abort", True),
        ("env.events.faults={func:os:abort}", True),
        ("env.events.faults.func=lambda *a: None", True),
        ("env.events.faults.func=${oc.env:HOME}", True),
        (r'env.events.faults.func="os\x3aabort"', True),
        ("env.events.faults.func='os' ':abort'", True),
        (r'env.events.faults.func="l\x61mbda *a\x3a None"', True),
        (r'env.events.faults.func="\x24{oc.env:HOME}"', True),
        (r"env.events.faults={'func': 'os\x3aabort'}", True),
        (r"env.events.faults.params={'a': [('os\x3aabort',)]}", True),
        ("env.events.faults={[]: 1}", True),
        (r"env.events.faults.func+='os\:abort'", True),
        ("env.scene.robot.actuators.legs.joint_names_expr=['.*_hip_joint', r'\\w+_knee']", False),
        ("env.sim.class_name=os.path", True),
        ("env.sim={class_name: os.path}", True),
        ("env.events.faults.func=isaaclab_tasks.x:y", False),
        ("env.events.faults.func=umc.mdp:reset_faults", False),
        ("env.events.faults.params.severity={rom:0.3,effort:null}", False),
    ],
)
def test_recorded_overrides_name_code_of_task_packages_only(tmp_path, override, refused):
    path = write_fresh(tmp_path, env_overrides=[override])
    info = checkpoint_info(read_checkpoint(path), path)
    if not refused:
        assert trained_overrides(path, info) == [override]
        return
    with pytest.raises(UmcError, match="names code outside UMC"):
        trained_overrides(path, info)


@pytest.mark.parametrize(
    ("override", "refused"),
    [
        ("env.scene.robot.spawn.usd_path=omniverse://server/a1.usd", True),
        (r'env.scene.robot.spawn={"usd\x5fpath": "a1"}', True),
        ("env.scene.robot.spawn={usd_path: a1}", True),
        ("env.scene.robot.actuators.legs.network_file=net", True),
        ("env.scene.robot.spawn.visual=/etc/hostname", True),
        (r"env.scene.robot.spawn.visual='\x2fetc'", True),
        ("env.scene.robot.prim_path=/World/Robot", False),
        ("env.scene.contact.filter_prim_paths_expr=['/World/Robot/.*']", False),
        ("env.decimation=4", False),
    ],
)
def test_a_recorded_override_names_a_file_only_if_the_user_does(tmp_path, override, refused):
    path = write_fresh(tmp_path, env_overrides=[override])
    info = checkpoint_info(read_checkpoint(path), path)
    if not refused:
        assert trained_overrides(path, info) == [override]
        return
    with pytest.raises(UmcError, match="names a file to be read"):
        trained_overrides(path, info)
    assert trained_overrides(path, info, [override]) == []
    assert trained_terrain(path, info) == ""


def test_what_reported_faults_in_the_training_is_not_repeated(tmp_path):
    tokens = ["env.detection.source=detector", "env.detection.file=checkpoints/a1_detector.pt", "env.decimation=4"]
    path = write_fresh(tmp_path, env_overrides=tokens)
    assert trained_overrides(path, checkpoint_info(read_checkpoint(path), path)) == ["env.decimation=4"]


def test_recorded_overrides_are_those_of_the_environment(tmp_path):
    path = write_fresh(tmp_path, env_overrides=["hydra.run.dir=x"])
    with pytest.raises(UmcError, match=r"no env\.\* override"):
        trained_overrides(path, checkpoint_info(read_checkpoint(path), path))
