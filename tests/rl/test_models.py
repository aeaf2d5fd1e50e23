# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""rsl_rl's PPO trains the networks: parts fit, weights learn, files load, and dead joints teach nothing."""

from __future__ import annotations

import importlib.metadata

import onnxruntime
import pytest
import torch
from dummy_skrl import GROUPS, rsl_rl_ppo
from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl import (
    RslRlMLPModelCfg,
    RslRlOnPolicyRunnerCfg,
    create_rsl_rl_runner,
    handle_deprecated_rsl_rl_cfg,
)
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from umc.rl.model_cfg import UmcBodyTransformerModelCfg, UmcMlpModelCfg, UmcTransformerModelCfg
from umc.rl.policy import build_model
from umc.utils.errors import UmcError

JOINTS = ["left_hip_joint", "left_knee_joint", "right_hip_joint", "right_knee_joint"]
J, START = len(JOINTS), 5
D = START + 3 * J + 2  # base columns on both sides, as G1's
COMMON = {"joint_names": JOINTS, "joint_start": START}
SIZES = {"embed_dim": 16, "feedforward_dim": 32, "num_layers": 1}
GRAPH = {"attention": "body", "neighbours": [[1, 4], [0], [3, 4], [2], [0, 2]]}
CFGS = {
    "mlp": lambda **options: UmcMlpModelCfg(**COMMON, hidden_dims=[32, 32], **options),
    "transformer": lambda **options: UmcTransformerModelCfg(**COMMON, **SIZES, **options),
    "body": lambda **options: UmcTransformerModelCfg(**COMMON, **SIZES, **GRAPH, **options),
    "body_mix": lambda **options: UmcTransformerModelCfg(
        **COMMON, **SIZES, **GRAPH | {"attention": "body_mix"}, **options
    ),
    "body_transformer": lambda **options: UmcBodyTransformerModelCfg(**COMMON, **SIZES, **GRAPH, **options),
}
FAULT_AWARE = ["mlp", "transformer", "body"]


class FlagEnv(VecEnv):
    """Rewards actions at +0.5 where the fault flag is +1 and at -0.5 where it is -1; an episode is one flag."""

    num_envs, num_actions, max_episode_length, device, cfg = 64, J, 4, "cpu", {}

    def __init__(self):
        self.episode_length_buf = torch.zeros(self.num_envs, dtype=torch.long)
        self.generator = torch.Generator().manual_seed(0)
        self.mask = torch.zeros(self.num_envs, J)
        self.draw(torch.ones(self.num_envs, dtype=torch.bool))

    def draw(self, which):
        drawn = (torch.rand(self.num_envs, J, generator=self.generator) < 0.2).float()
        self.mask = torch.where(which[:, None], drawn, self.mask)

    def get_observations(self):
        policy = torch.randn(self.num_envs, D, generator=self.generator)
        flag = (self.mask.amax(1, keepdim=True) * 2.0 - 1.0).expand(-1, 3)
        groups = {"policy": policy, "critic": torch.cat([policy, flag], 1), "joint_mask": self.mask, "fault_flag": flag}
        return TensorDict(groups, batch_size=[self.num_envs])

    def target(self):
        return 0.5 * (self.mask.amax(1) * 2.0 - 1.0)

    def step(self, actions):
        rewards = -(actions - self.target()[:, None]).square().mean(1)
        self.episode_length_buf += 1
        dones = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[dones] = 0
        self.draw(dones)
        return self.get_observations(), rewards, dones.long(), {"time_outs": dones.float()}


def make_runner(model, env=None, mixed_precision=False, **actor_options):
    """Make a runner as Isaac Lab's own train command does."""
    gaussian = RslRlMLPModelCfg.GaussianDistributionCfg(init_std=0.5)
    cfg = RslRlOnPolicyRunnerCfg(
        device="cpu",
        num_steps_per_env=8,
        max_iterations=1,
        save_interval=1000,
        experiment_name="test",
        obs_groups=GROUPS,
        actor=CFGS[model](distribution_cfg=gaussian, **actor_options),
        critic=CFGS[model](),
        algorithm=rsl_rl_ppo(
            num_learning_epochs=4,
            num_mini_batches=2,
            learning_rate=3.0e-3,
            schedule="fixed",
            gamma=0.5,
            lam=0.9,
            entropy_coef=0.0,
            use_mixed_precision=mixed_precision,
        ),
    )
    torch.manual_seed(0)
    return create_rsl_rl_runner(
        env or FlagEnv(), handle_deprecated_rsl_rl_cfg(cfg, importlib.metadata.version("rsl-rl-lib"))
    )


def make_model(model, obs_set="actor", output_dim=J, **options):
    torch.manual_seed(0)
    gaussian = {"class_name": "GaussianDistribution", "init_std": 0.5, "std_type": "scalar"}
    cfg = {**to_dict(CFGS[model]()), "distribution_cfg": gaussian, **options}
    widths = {name: group.shape[1] for name, group in FlagEnv().get_observations().items()}
    return build_model({obs_set: cfg, "obs_groups": GROUPS}, widths, output_dim, obs_set)


def mean_error(actor, env):
    with torch.no_grad():
        return (actor(env.get_observations()) - env.target()[:, None]).abs().mean().item()


def all_weights(runner):
    networks = (runner.alg.actor, runner.alg.critic)
    return [parameter.detach().clone() for network in networks for parameter in network.parameters()]


@pytest.mark.parametrize("model", FAULT_AWARE)
def test_ppo_learns_to_follow_the_fault_flag_and_its_checkpoint_gives_the_same_actions(model, tmp_path):
    env = FlagEnv()
    runner = make_runner(model, env, obs_normalization=True)
    before, error = all_weights(runner), mean_error(runner.alg.actor, env)
    runner.learn(25)
    assert not any(torch.equal(old, new) for old, new in zip(before, all_weights(runner), strict=True))
    assert error > 0.35
    assert mean_error(runner.alg.actor, env) < 0.15
    runner.save(str(tmp_path / "model_1.pt"))
    fresh, obs = make_runner(model, env, obs_normalization=True), env.get_observations()
    assert not torch.equal(fresh.alg.actor(obs), runner.alg.actor(obs))
    fresh.alg.load(torch.load(tmp_path / "model_1.pt", weights_only=True), None, True)
    assert torch.equal(fresh.alg.actor(obs), runner.alg.actor(obs))
    assert torch.equal(fresh.alg.critic(obs), runner.alg.critic(obs))


@pytest.mark.parametrize("model", FAULT_AWARE)
def test_mixed_precision_update_stays_finite(model):
    runner = make_runner(model, mixed_precision=True)
    runner.learn(2)
    assert all(torch.isfinite(value).all() for value in all_weights(runner))


@pytest.mark.parametrize("model", FAULT_AWARE)
def test_deterministic_is_the_mean_action_and_ignores_dead_sensors(model):
    actor = make_model(model, obs_normalization=True)
    obs = FlagEnv().get_observations()
    actor.update_normalization(obs)
    mean = actor(obs)
    actor(obs, stochastic_output=True)
    assert torch.equal(actor.output_mean, mean)
    garbage = obs["policy"].clone()
    garbage[:, START : START + 3 * J].masked_fill_(obs["joint_mask"].bool().repeat(1, 3), torch.nan)
    assert garbage.isnan().any()
    assert torch.equal(actor.deterministic(garbage, obs["joint_mask"], obs["fault_flag"]), mean)


def test_normaliser_learns_from_living_sensors_and_never_from_mask_or_flag():
    actor = make_model("mlp", obs_normalization=True)
    obs = FlagEnv().get_observations()
    policy, dead = obs["policy"], obs["joint_mask"].bool()
    for feature, reported in enumerate((0.0, torch.nan, 1e9)):
        policy[:, START + feature * J : START + (feature + 1) * J].masked_fill_(dead, reported)
    actor.update_normalization(obs)
    assert actor.obs_normalizer.mean.shape == (D,)
    for column in range(START, START + 3 * J):
        living = policy[~dead[:, (column - START) % J], column]
        assert actor.obs_normalizer.count[column] == len(living)
        torch.testing.assert_close(actor.obs_normalizer.mean[column], living.mean())


@pytest.mark.parametrize("mask_value", [0.0, -100.0])
@pytest.mark.parametrize("model", FAULT_AWARE)
def test_dead_joints_read_exactly_the_mask_value_after_normalisation(model, mask_value):
    actor = make_model(model, obs_normalization=True, mask_value=mask_value)
    obs = FlagEnv().get_observations()
    obs["policy"] += 7.0  # so that a normalised 0 is far from 0
    actor.update_normalization(obs)
    seen = []
    first_layer = actor.core.layers if model == "mlp" else actor.core.tokenizer
    first_layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    actor(obs)
    dead = obs["joint_mask"].bool()
    joints = actor.core.columns.split(seen[0][:, :D])[1] if model == "mlp" else seen[0]
    assert (joints[dead] == mask_value).all()
    assert (joints[~dead] != mask_value).all()
    if model != "mlp":  # the attention that is shown is that of the same normalised tokens
        actor.attention(obs)
        assert torch.equal(seen[0], seen[1])


@pytest.mark.parametrize("model", FAULT_AWARE)
def test_critic_has_neither_mask_nor_flag(model):
    critic = make_model(model, obs_set="critic", output_dim=1, distribution_cfg=None)
    obs = FlagEnv().get_observations()
    values = critic(obs)
    assert values.shape == (FlagEnv.num_envs, 1)
    obs["joint_mask"], obs["fault_flag"] = 1.0 - obs["joint_mask"], -obs["fault_flag"]
    assert torch.equal(critic(obs), values)
    obs["critic"] = obs["critic"] + 1.0
    assert not torch.equal(critic(obs), values)


def test_the_baseline_trains_in_the_same_groups_and_reads_neither_mask_nor_flag():
    env = FlagEnv()
    runner = make_runner("body_transformer", env)
    before = all_weights(runner)
    runner.learn(2)
    assert not any(torch.equal(old, new) for old, new in zip(before, all_weights(runner), strict=True))
    actor, obs = runner.alg.actor, env.get_observations()
    actions = actor(obs)
    assert actions.abs().max() <= 1.0  # tanh
    obs["joint_mask"], obs["fault_flag"] = 1.0 - obs["joint_mask"], -obs["fault_flag"]
    assert torch.equal(actor(obs), actions)


@pytest.mark.parametrize("model", CFGS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_rsl_rls_own_exporters_write_the_same_policy(model, tmp_path):
    env = FlagEnv()
    runner = make_runner(model, env, obs_normalization=True)
    runner.learn(1)
    runner.export_policy_to_jit(str(tmp_path))
    runner.export_policy_to_onnx(str(tmp_path))
    scripted = torch.jit.load(str(tmp_path / "policy.pt"))
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"), providers=["CPUExecutionProvider"])
    obs = env.get_observations()[:1]  # rsl_rl's ONNX export fixes the batch at 1
    inputs = {name: obs[name] for name in ("policy", "joint_mask", "fault_flag")}
    actions = runner.alg.actor(obs)
    torch.testing.assert_close(scripted(*inputs.values()), actions, atol=1e-6, rtol=0.0)
    exported = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
    torch.testing.assert_close(torch.from_numpy(exported), actions.detach(), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        # how Isaac Lab passes unset fields
        ("mlp", {"joint_names": {}, "joint_start": {}}, "needs joint_names and joint_start"),
        ("mlp", {"joint_names": JOINTS[:3]}, "'joint_mask' is 4 wide, the model needs 3"),
        ("mlp", {"joint_start": START + 3}, "check joint_names and joint_start"),
        ("mlp", {"output_dim": 5}, "takes 5 actions, joint_names has 4"),
        ("mlp", {"distribution_cfg": None}, "needs a distribution_cfg"),
        ("mlp", {"distribution_cfg": {"class_name": "BetaDistribution"}}, "use GaussianDistribution"),
        ("transformer", {"hidden_dims": [64]}, "MaskedTransformer has no hidden_dims: set embed_dim, num_heads"),
        ("body_transformer", {"hidden_dims": [64]}, "no hidden_dims"),
        ("body_transformer", {"mask_value": 1.0}, "masks nothing"),
        ("body_transformer", {"neighbours": []}, "needs the joint graph"),
    ],
)
def test_configs_that_do_not_fit_the_env_are_one_line_errors(model, options, words):
    with pytest.raises(UmcError, match=words):
        make_model(model, **options)


def test_unknown_options_and_uses_are_refused():
    with pytest.raises(TypeError, match="embedding_dim"):
        make_model("transformer", embedding_dim=120)
    with pytest.raises(UmcError, match="only an actor"):
        make_model("mlp", obs_set="critic", output_dim=1, distribution_cfg=None).as_jit()


@pytest.mark.parametrize("model", CFGS)
def test_nan_in_a_living_sensor_stays_in_its_env_and_out_of_the_statistics(model):
    actor = make_model(model, obs_normalization=True)
    obs = FlagEnv().get_observations()
    obs["joint_mask"] = torch.zeros_like(obs["joint_mask"])
    actor.update_normalization(obs)
    before = actor(obs)
    obs["policy"][3, START], obs["policy"][5, START + 1] = torch.nan, torch.inf
    actions = actor(obs)
    assert actions[[3, 5]].isnan().any(1).all()
    healthy = [row for row in range(len(actions)) if row not in (3, 5)]
    assert torch.equal(actions[healthy], before[healthy])
    actor.update_normalization(obs)
    assert torch.isfinite(actor.obs_normalizer.mean).all()
    assert torch.isfinite(actor.obs_normalizer.var).all()


def test_weights_of_another_model_are_one_line_and_change_nothing():
    mlp, transformer = make_model("mlp"), make_model("transformer")
    before = {name: value.clone() for name, value in mlp.state_dict().items()}
    with pytest.raises(UmcError, match="weights of another model: 6 of 7 are missing") as error:
        mlp.load_state_dict(transformer.state_dict())
    assert "\n" not in str(error.value)
    wider = make_model("mlp", hidden_dims=[128, 64])
    with pytest.raises(UmcError, match=r"have another shape .first: core\.layers"):
        mlp.load_state_dict(wider.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in mlp.state_dict().items())
