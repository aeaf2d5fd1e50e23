# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Samples in the mirror: which joint becomes which, what the groups become, and what cannot be mirrored."""

from types import SimpleNamespace

import pytest
import torch
from dummy_robot import ROBOTS, DummyRobotEnv, build_runner, term_groups, with_terms
from rsl_rl.extensions import Symmetry
from tensordict import TensorDict
from umc.mdp import phase_clock
from umc.rl.symmetry import Mirror, mirror_of
from umc.robots import A1_JOINTS, G1_JOINTS
from umc.robots.mirror import mirrored_joints
from umc.utils.errors import UmcError

TURNED = {"A1": 4, "Go2": 4, "G1": 6, "H1": 4, "Solo8": 0}
"""Joints about the forward or vertical axis."""


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_joint_has_a_partner_on_the_other_side(robot):
    names = ROBOTS[robot]
    columns, signs = mirrored_joints(names)
    assert sum(sign < 0 for sign in signs) == TURNED[robot]
    for column, name in enumerate(names):
        partner = names[columns[column]]
        assert columns[columns[column]] == column != columns[column]
        assert signs[column] == signs[columns[column]]
        assert partner.split("_")[1:] == name.split("_")[1:]


def test_the_mirror_of_the_mirror_is_the_original_and_the_first_mirror_is_not():
    layout = term_groups(len(A1_JOINTS))
    mirror = Mirror(layout, list(A1_JOINTS))
    obs = TensorDict({name: torch.randn(5, sum(width for _, width in terms)) for name, terms in layout.items()}, [5])
    once = mirror.observations(obs)
    twice = mirror.observations(once)
    for name in layout:
        assert torch.equal(twice[name], obs[name])
        assert torch.equal(once[name], obs[name]) == (name == "fault_flag")
    actions = torch.randn(5, len(A1_JOINTS))
    assert torch.equal(mirror.actions(mirror.actions(actions)), actions)


def test_a_robot_that_leans_left_with_a_dead_left_knee_leans_right_with_a_dead_right_one():
    names = list(A1_JOINTS)
    left, right = names.index("FL_calf_joint"), names.index("FR_calf_joint")
    hip, other_hip = names.index("FL_hip_joint"), names.index("FR_hip_joint")
    mirror = Mirror(term_groups(len(names)), names)
    obs = TensorDict(
        {name: torch.zeros(1, width) for name, width in (("policy", 48), ("joint_mask", 12), ("critic", 64))}, [1]
    )
    obs["policy"][0, [3, 7, 9, 10, 11, 12 + left, 12 + hip]] = torch.tensor([0.1, 0.2, 1.0, 0.3, 0.4, 0.5, 0.6])
    obs["joint_mask"][0, left] = 1.0
    obs["critic"][0, [48, 49, 50, 52 + left]] = torch.tensor([1.1, 0.05, 0.02, 0.9])
    obs["live_faults"] = torch.eye(36)[[12 + left]]  # the second of three kinds
    seen = mirror.observations(obs)
    assert seen["live_faults"].nonzero().tolist() == [[0, 12 + right]]
    expected = torch.zeros(48)
    expected[[3, 7, 9, 10, 11, 12 + right, 12 + other_hip]] = torch.tensor([-0.1, -0.2, 1.0, -0.3, -0.4, 0.5, -0.6])
    assert torch.equal(seen["policy"][0], expected)
    assert seen["joint_mask"][0].nonzero().flatten().tolist() == [right]
    assert torch.equal(seen["critic"][0, [48, 49, 50, 52 + right]], torch.tensor([1.1, 0.05, -0.02, 0.9]))
    assert seen["critic"][0, 52 + left] == 0


def test_isaac_labs_names_of_the_same_terms_have_the_same_mirror_image():
    joints = len(A1_JOINTS)
    ours = term_groups(joints)["policy"]
    stock = {"command": "velocity_commands", "last_action": "actions"}
    theirs = [(stock.get(name, name), width) for name, width in ours]
    obs = TensorDict({"policy": torch.randn(2, sum(width for _, width in ours))}, [2])
    one, other = (Mirror({"policy": terms}, list(A1_JOINTS)).observations(obs) for terms in (ours, theirs))
    assert torch.equal(one["policy"], other["policy"])


@pytest.mark.parametrize(
    ("layout", "names", "message"),
    [
        ({"policy": [("height_scan", 7)]}, A1_JOINTS, "observation height_scan of width 7"),
        ({"policy": [("joint_pos", 11)]}, A1_JOINTS, "observation joint_pos of width 11"),
        ({"policy": []}, ("FL_calf_joint", "RR_calf_joint"), "joint FL_calf_joint has no mirror image FR_calf_joint"),
    ],
)
def test_what_has_no_mirror_image_is_named(layout, names, message):
    with pytest.raises(UmcError, match=message):
        Mirror(layout, list(names))


def test_the_clock_of_a_gait_is_half_a_period_later_in_the_mirror():
    """Left and right legs change places: who stood swings."""
    env = SimpleNamespace(episode_length_buf=torch.tensor([3, 23]), step_dt=0.02, num_envs=2, device="cpu")
    now, later = phase_clock(env, period=0.8)  # 40 steps
    mirror = Mirror({"policy": [("clock", 2)]}, list(G1_JOINTS))
    torch.testing.assert_close(mirror.observations(TensorDict({"policy": now[None]}, [1]))["policy"][0], later)


def mirrored_run(folder, mirror, mask="mask", iterations=1, mirror_loss=0.0):
    """A1's MLP after some iterations on the dummy env with a task's terms, and the sizes of its mini-batches."""
    env = with_terms(DummyRobotEnv("A1"), "A1", joint_mask=[(mask, len(A1_JOINTS))])

    def change(cfg):
        cfg.mirror, cfg.mirror_loss = mirror, mirror_loss

    runner = build_runner(folder, "mlp", env=env, change=change)
    batches = []
    runner.alg.get_policy().core.register_forward_hook(
        lambda module, inputs, output: batches.append(len(output)) if torch.is_grad_enabled() else None
    )
    runner.train(iterations)
    return runner, batches


def asymmetry(runner):
    """Mean squared difference between the action in the mirror and the mirrored action."""
    mirror, seen = mirror_of(runner.env), runner.env.get_observations()
    policy = runner.alg.get_policy()
    with torch.no_grad():
        return (policy(mirror.observations(seen)) - mirror.actions(policy(seen))).square().mean().item()


def test_the_mirror_loss_makes_a_policy_symmetric(tmp_path):
    without, _ = mirrored_run(tmp_path / "without", mirror=True, iterations=10)
    with_it, _ = mirrored_run(tmp_path / "with", mirror=True, iterations=10, mirror_loss=10.0)
    assert asymmetry(with_it) < 0.5 * asymmetry(without)


def test_the_mirror_loss_in_one_pass_is_rsl_rls_own(tmp_path, monkeypatch):
    once, passes = mirrored_run(tmp_path / "once", mirror=True, iterations=3, mirror_loss=2.0)
    monkeypatch.setattr("umc.rl.symmetry.OnePassSymmetry", Symmetry)
    own, more = mirrored_run(tmp_path / "own", mirror=True, iterations=3, mirror_loss=2.0)
    assert 2 * len(passes) == len(more)
    pairs = zip(once.alg.get_policy().parameters(), own.alg.get_policy().parameters(), strict=True)
    assert all(torch.allclose(weight, other, atol=1e-5) for weight, other in pairs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mirror_loss": -1.0}, r"agent\.mirror_loss is -1\.0; it has to be 0 or more"),
        ({"mask": "height_scan"}, "observation height_scan of width 12"),
    ],
)
def test_what_cannot_be_mirrored_is_refused_before_learning(tmp_path, options, words):
    with pytest.raises(UmcError, match=words):
        mirrored_run(tmp_path, mirror=True, **options)


def test_what_only_a_policy_that_umc_did_not_train_reads_needs_no_mirror_image():
    env = with_terms(DummyRobotEnv("A1"), "A1")
    manager = env.observation_manager
    manager.active_terms["external"], manager.group_obs_term_dim["external"] = ["term_0_clock"], [(5, 7)]
    manager.group_obs_concatenate["external"] = False
    assert "external" not in mirror_of(env).observations(env.groups)


def test_joints_that_do_not_say_on_which_side_they_are_have_no_mirror_image():
    for names in (["LF_HAA", "RF_HAA"], ["hip_left", "hip_right"], ["FL_hip_joint", "FR_hip_joint", "BL_hip_joint"]):
        with pytest.raises(UmcError, match="leave mirror off"):
            mirrored_joints(names)
    for names in (["FL_HipX_joint", "FR_HipX_joint"], ["FL_abad_joint", "FR_abad_joint"], ["waist_tilt_joint"]):
        with pytest.raises(UmcError, match=r"its name does not say about which axis it turns.*leave mirror off"):
            mirrored_joints(names)
    assert mirrored_joints(["HL_hip_joint", "HR_hip_joint", "torso_joint"]) == ([1, 0, 2], [-1.0, -1.0, -1.0])
