# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A masked GRU remembers its episode, and only that, and learns to use what it remembers."""

import copy

import pytest
import torch
from dummy_robot import DummyRobotEnv, build_runner, term_groups, with_terms
from rsl_rl.algorithms import ppo
from tensordict import TensorDict
from umc.models import GruCfg, JointLayout, MaskedGru
from umc.rl.models import MaskedGruModel
from umc.rl.policy import LoadedPolicy
from umc.rl.symmetry import Mirror, OnePassSymmetry
from umc.robots import A1_JOINTS
from umc.utils.errors import UmcError

STEPS, ENVS = 6, 5


def network(**options):
    torch.manual_seed(0)
    return MaskedGru(JointLayout.term_major(A1_JOINTS, 48, 12), GruCfg(hidden_dims=(32,), memory_dim=8, **options))


def rollout(copies=1):
    torch.manual_seed(1)
    rows = copies * STEPS * ENVS
    masks = torch.rand(rows, 12) > 0.7
    return torch.randn(rows, 48), masks, torch.sign(torch.randn(rows, 3)), torch.randn(copies, ENVS, 8)


@pytest.mark.parametrize("copies", [1, 2])
def test_learning_from_a_rollout_sees_the_actions_that_were_taken(copies):
    gru, (obs, mask, flag, memory) = network(), rollout(copies)
    starts = torch.zeros(STEPS, ENVS, dtype=torch.bool)
    starts[2, 1] = starts[4, [1, 3]] = True
    learnt = gru.sequence(obs, mask, flag, memory, starts).view(copies, STEPS, ENVS, 12)
    for number in range(copies):
        now = memory[number]
        for step in range(STEPS):
            now = now.masked_fill(starts[step].unsqueeze(1), 0.0)
            rows = slice((number * STEPS + step) * ENVS, (number * STEPS + step + 1) * ENVS)
            acted, now = gru.step(obs[rows], mask[rows], flag[rows], now)
            torch.testing.assert_close(learnt[number, step], acted, rtol=0.0, atol=1e-6)


def test_the_past_of_an_episode_changes_its_actions_and_no_others():
    gru, (obs, mask, flag, memory) = network(), rollout()
    starts = torch.zeros(STEPS, ENVS, dtype=torch.bool)
    starts[3, 2] = True
    before = gru.sequence(obs, mask, flag, memory, starts).view(STEPS, ENVS, 12)
    changed = obs.clone()
    changed[2] += 1.0  # env 2 at step 0
    effect = (gru.sequence(changed, mask, flag, memory, starts).view(STEPS, ENVS, 12) - before).abs().amax(-1)
    assert (effect[:3, 2] > 1e-4).all()
    effect[:3, 2] = 0.0
    assert not effect.any()


def test_dead_joints_leave_no_trace_in_the_memory():
    gru, (obs, mask, flag, memory) = network(), rollout()
    starts = torch.zeros(STEPS, ENVS, dtype=torch.bool)
    before = gru.sequence(obs, mask, flag, memory, starts)
    dead = torch.cat([torch.zeros(len(obs), 12, dtype=torch.bool), *[mask] * 3], dim=1)
    assert torch.equal(gru.sequence(obs.masked_fill(dead, float("nan")), mask, flag, memory, starts), before)
    assert not torch.equal(gru.sequence(obs, torch.zeros_like(mask), flag, memory, starts), before)


class Recall(DummyRobotEnv):
    """Shows a number at the first step of an episode, and rewards actions near it at the others."""

    num_envs = 64

    def __init__(self):
        super().__init__("A1")
        self.groups["joint_mask"].zero_()
        for group in self.groups.values():
            group.zero_()
        self._begin(torch.ones(self.num_envs, dtype=torch.bool))

    def _begin(self, envs):
        number = torch.where(torch.rand(self.num_envs) > 0.5, 0.5, -0.5)
        self.number = torch.where(envs, number, getattr(self, "number", number))
        for name in ("policy", "critic"):
            self.groups[name] = torch.zeros_like(self.groups[name])
            self.groups[name][:, 0] = torch.where(envs, self.number, 0.0)

    def step(self, actions):
        error = (actions - self.number.unsqueeze(1)).square().mean(1)
        reward = torch.where(self.episode_length_buf > 0, -error, 0.0)
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[done] = 0
        self._begin(done)
        return self.groups.clone(), reward, done.long(), {"time_outs": done}


def recall_error(runner):
    """Mean squared error of the last step's actions of an episode, by the policy that evaluations would load."""
    env = Recall()
    policy = LoadedPolicy(runner.alg.get_policy(), *[None] * 4)  # type: ignore[arg-type]
    policy.reset(None)
    obs, errors = env.get_observations().clone(), []
    for step in range(12):
        actions, number = policy(obs), env.number.clone()
        obs, _, dones, _ = env.step(actions)
        policy.reset(dones.bool())
        if step % 4 == 3:
            errors.append((actions - number.unsqueeze(1)).square().mean())
    return float(torch.stack(errors).mean())


def test_ppo_learns_to_act_by_what_was_seen_before(tmp_path):
    def change(cfg):
        cfg.num_steps_per_env, cfg.algorithm.num_learning_epochs, cfg.algorithm.num_mini_batches = 8, 4, 1
        cfg.actor.hidden_dims, cfg.actor.memory_dim, cfg.critic.hidden_dims = [32], 16, [32]
        cfg.algorithm.entropy_coef, cfg.actor.distribution_cfg.init_std = 0.0, 0.3
        cfg.algorithm.learning_rate, cfg.algorithm.schedule = 1e-2, "fixed"

    runner = build_runner(tmp_path, "gru", env=Recall(), change=change)
    assert recall_error(runner) > 0.2
    runner.train(60)
    assert recall_error(runner) < 0.05  # 0.25 without memory


def test_a_mirrored_robot_remembers_what_it_would_have_seen(tmp_path):
    mirror = Mirror(term_groups(12), A1_JOINTS)
    policy = build_runner(tmp_path, "gru").alg.get_policy()
    assert isinstance(policy, MaskedGruModel)
    torch.manual_seed(2)
    widths = {"policy": 48, "joint_mask": 12, "fault_flag": 3}
    seen = [TensorDict({name: torch.randn(4, w) for name, w in widths.items()}, batch_size=[4]) for _ in range(3)]
    policy.mirror = mirror.observations
    with torch.inference_mode():
        both = [policy(obs) for obs in seen]
        memory = policy.get_hidden_state()
        policy.mirror = None
        for copy, view in enumerate((lambda obs: obs, mirror.observations)):
            policy.reset()
            alone = [policy(view(obs)) for obs in seen]
            torch.testing.assert_close(memory[copy], policy.get_hidden_state()[0])
            # not to the bit: some CPUs round a batch of another size otherwise
            same = [torch.allclose(mine, theirs, atol=1e-5) for mine, theirs in zip(both, alone, strict=True)]
            assert all(same) == (copy == 0)


def test_mirror_images_are_learnt_from_with_their_own_memory(tmp_path, monkeypatch):
    def change(cfg):
        cfg.mirror, cfg.algorithm.num_mini_batches = True, 2

    runner = build_runner(tmp_path, "gru", env=with_terms(DummyRobotEnv("A1"), "A1"), change=change)
    ratios = []
    log_prob = MaskedGruModel.get_output_log_prob

    def recorded(self, actions):
        result = log_prob(self, actions)
        if torch.is_grad_enabled():
            ratios.append(result.detach())
        return result

    taken = []
    augment = OnePassSymmetry.augment_batch

    def augmented(self, batch, size):
        augment(self, batch, size)
        taken.append(batch.old_actions_log_prob.squeeze(-1))

    monkeypatch.setattr(MaskedGruModel, "get_output_log_prob", recorded)
    monkeypatch.setattr(OnePassSymmetry, "augment_batch", augmented)
    runner.train(1)
    # before the first step of the optimizer the true half is as likely as when it was taken
    half = len(ratios[0]) // 2
    torch.testing.assert_close(ratios[0][:half], taken[0][:half], rtol=0.0, atol=1e-4)
    assert not torch.allclose(ratios[0][half:], ratios[0][:half])


def test_it_learns_in_mixed_precision(tmp_path):
    def change(cfg):
        cfg.algorithm.use_mixed_precision = True

    runner = build_runner(tmp_path, "gru", change=change)
    before = runner.alg.get_policy().core.memory.weight_hh.clone()
    runner.train(1)
    assert not torch.equal(runner.alg.get_policy().core.memory.weight_hh, before)


def test_it_learns_compiled(tmp_path, monkeypatch):
    # as rsl_rl compiles, without code for a device
    monkeypatch.setattr(ppo, "compile_model", lambda model, mode: torch.compile(model, backend="eager"))

    def change(cfg):
        cfg.mirror, cfg.algorithm.num_mini_batches, cfg.torch_compile_mode = True, 2, "default"

    runner = build_runner(tmp_path, "gru", env=with_terms(DummyRobotEnv("A1"), "A1"), change=change)
    assert runner.alg.actor is not runner.alg.get_policy()
    assert runner.alg.get_policy().mirror is not None
    before = runner.alg.get_policy().core.memory.weight_hh.clone()
    runner.train(1)
    assert not torch.equal(runner.alg.get_policy().core.memory.weight_hh, before)


def test_what_cannot_learn_from_whole_rollouts_is_refused(tmp_path):
    def more_batches(cfg):
        cfg.algorithm.num_mini_batches = 5

    with pytest.raises(UmcError, match="4 envs are too few for 5 mini-batches"):
        build_runner(tmp_path, "gru", change=more_batches)

    def single_steps(cfg):
        cfg.num_steps_per_env = 1

    with pytest.raises(UmcError, match=r"give agent\.num_steps_per_env=2"):
        build_runner(tmp_path, "gru", change=single_steps)

    def recurrent_critic(cfg):
        cfg.critic = copy.deepcopy(cfg.actor)
        cfg.critic.distribution_cfg = None

    with pytest.raises(UmcError, match="only as the actor"):
        build_runner(tmp_path, "nm_gru", change=recurrent_critic)
