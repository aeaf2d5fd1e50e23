# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""rsl_rl's PPO trains the networks: parts fit, weights learn, files load, and dead joints teach nothing."""

from __future__ import annotations

import copy
import importlib.metadata
from functools import partial

import onnxruntime
import pytest
import torch
from isaaclab.utils import to_dict
from isaaclab_rl.rsl_rl import (
    RslRlMLPModelCfg,
    RslRlOnPolicyRunnerCfg,
    RslRlPpoAlgorithmCfg,
    create_rsl_rl_runner,
    handle_deprecated_rsl_rl_cfg,
)
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from umc.rl.model_cfg import UmcBodyTransformerModelCfg, UmcMlpModelCfg, UmcTransformerModelCfg
from umc.rl.models import BodyTransformerModel, MaskedMlpModel, MaskedTransformerModel
from umc.utils.errors import UmcError

JOINTS = ["left_hip_joint", "left_knee_joint", "right_hip_joint", "right_knee_joint"]
J, START = len(JOINTS), 5
D = START + 3 * J + 2  # base columns on both sides, as G1's
GAUSSIAN = RslRlMLPModelCfg.GaussianDistributionCfg(init_std=0.5)
NEIGHBOURS = [[1, 4], [0], [3, 4], [2], [0, 2]]
SIZES = {"embed_dim": 16, "feedforward_dim": 32, "num_layers": 1}
PLACE = {"joint_names": JOINTS, "joint_start": START}
SMALL = {
    "mlp": lambda **options: UmcMlpModelCfg(**PLACE, hidden_dims=[32, 32], **options),
    "transformer": lambda **options: UmcTransformerModelCfg(**PLACE, **SIZES, **options),
    "body": lambda **options: UmcTransformerModelCfg(
        **PLACE, **SIZES, attention="body", neighbours=NEIGHBOURS, **options
    ),
    "body_transformer": lambda **options: UmcBodyTransformerModelCfg(
        **PLACE, **SIZES, neighbours=NEIGHBOURS, **options
    ),
}
MODELS = ["mlp", "transformer", "body"]  # those that know faults
CLASSES = {
    "mlp": MaskedMlpModel,
    "transformer": MaskedTransformerModel,
    "body": partial(MaskedTransformerModel, attention="body", neighbours=NEIGHBOURS),
    "body_transformer": partial(BodyTransformerModel, neighbours=NEIGHBOURS),
}


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


def agent_cfg(model, **actor_options):
    cfg = RslRlOnPolicyRunnerCfg(
        device="cpu",
        num_steps_per_env=8,
        max_iterations=1,
        save_interval=1000,
        experiment_name="test",
        obs_groups={"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["critic"]},
        actor=SMALL[model](distribution_cfg=copy.deepcopy(GAUSSIAN), **actor_options),
        critic=SMALL[model](),
        algorithm=RslRlPpoAlgorithmCfg(
            num_learning_epochs=4,
            num_mini_batches=2,
            learning_rate=3.0e-3,
            schedule="fixed",
            gamma=0.5,
            lam=0.9,
            entropy_coef=0.0,
            desired_kl=0.01,
            max_grad_norm=1.0,
            value_loss_coef=1.0,
            use_clipped_value_loss=True,
            clip_param=0.2,
        ),
    )
    return handle_deprecated_rsl_rl_cfg(cfg, importlib.metadata.version("rsl-rl-lib"))


def make_runner(model, env=None, log_dir=None, **actor_options):
    """As Isaac Lab's own train command makes it."""
    torch.manual_seed(0)
    return create_rsl_rl_runner(env or FlagEnv(), agent_cfg(model, **actor_options), log_dir=log_dir)


def make_model(model, obs=None, obs_set="actor", output_dim=J, **options):
    obs = FlagEnv().get_observations() if obs is None else obs
    groups = {"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["critic"]}
    defaults = {"joint_names": JOINTS, "joint_start": START, "distribution_cfg": to_dict(GAUSSIAN)}
    torch.manual_seed(0)
    return CLASSES[model](obs, groups, obs_set, output_dim, **(defaults | options))


def mean_error(actor, env):
    with torch.no_grad():
        return (actor(env.get_observations()) - env.target()[:, None]).abs().mean().item()


@pytest.mark.parametrize("model", MODELS)
def test_ppo_learns_to_follow_the_fault_flag(model):
    env = FlagEnv()
    runner = make_runner(model, env)
    actor, critic = runner.alg.actor, runner.alg.critic
    before = {name: value.clone() for name, value in [*actor.named_parameters(), *critic.named_parameters()]}
    error = mean_error(actor, env)
    losses = []
    update = runner.alg.update
    runner.alg.update = lambda: losses.append(update()) or losses[-1]
    runner.learn(25)
    assert len(losses) == 25
    assert all(torch.isfinite(torch.tensor(list(loss.values()))).all() for loss in losses)
    for name, value in [*actor.named_parameters(), *critic.named_parameters()]:
        assert not torch.equal(value, before[name]), name
    assert error > 0.35
    assert mean_error(actor, env) < 0.15


@pytest.mark.parametrize("model", MODELS)
def test_checkpoints_load_without_pickled_code_and_give_the_same_actions(model, tmp_path):
    env = FlagEnv()
    runner = make_runner(model, env, obs_normalization=True)
    runner.learn(1)
    runner.save(str(tmp_path / "model_1.pt"), infos={"umc": {"joint_names": JOINTS}})
    checkpoint = torch.load(tmp_path / "model_1.pt", weights_only=True)
    fresh = make_runner(model, env, obs_normalization=True)
    obs = env.get_observations()
    assert not torch.equal(fresh.alg.actor(obs), runner.alg.actor(obs))
    fresh.alg.load(checkpoint, None, True)
    assert torch.equal(fresh.alg.actor(obs), runner.alg.actor(obs))
    assert torch.equal(fresh.alg.critic(obs), runner.alg.critic(obs))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_deterministic_is_the_mean_action_and_ignores_dead_sensors(model, normalized):
    env = FlagEnv()
    actor = make_model(model, obs_normalization=normalized)
    obs = env.get_observations()
    actor.update_normalization(obs)
    mean = actor(obs)
    actor(obs, stochastic_output=True)
    assert torch.equal(actor.output_mean, mean)
    garbage = obs["policy"].clone()
    garbage[:, START : START + 3 * J].masked_fill_(obs["joint_mask"].bool().repeat(1, 3), torch.nan)
    assert garbage.isnan().any()
    assert torch.equal(actor.deterministic(garbage, obs["joint_mask"], obs["fault_flag"]), mean)


@pytest.mark.parametrize("model", MODELS)
def test_normaliser_learns_from_living_sensors_and_never_from_mask_or_flag(model):
    env = FlagEnv()
    actor = make_model(model, obs_normalization=True)
    obs = env.get_observations()
    policy = obs["policy"]
    dead = obs["joint_mask"].bool()
    policy[:, START : START + J].masked_fill_(dead, 0.0)
    policy[:, START + J : START + 2 * J].masked_fill_(dead, torch.nan)
    policy[:, START + 2 * J : START + 3 * J].masked_fill_(dead, 1e9)
    actor.update_normalization(obs)
    assert actor.obs_normalizer.mean.shape == (D,)
    for joint in range(J):
        for feature in range(3):
            column = START + feature * J + joint
            living = policy[~dead[:, joint], column]
            assert actor.obs_normalizer.count[column] == len(living)
            torch.testing.assert_close(actor.obs_normalizer.mean[column], living.mean())


@pytest.mark.parametrize("model", MODELS)
def test_dead_joints_read_exactly_the_mask_value_after_normalisation(model):
    actor = make_model(model, obs_normalization=True)
    env = FlagEnv()
    obs = env.get_observations()
    obs["policy"] += 7.0  # so that a normalised 0 is far from 0
    actor.update_normalization(obs)
    seen = {}
    hooked = "layers" if model == "mlp" else "tokenizer"
    getattr(actor.core, hooked).register_forward_pre_hook(lambda _, inputs: seen.update(x=inputs[0]))
    actor(obs)
    dead = obs["joint_mask"].bool()
    joints = actor.layout.split(seen["x"][:, :D])[1] if model == "mlp" else seen["x"]
    assert (joints[dead] == 0.0).all()
    assert (joints[~dead] != 0.0).all()


@pytest.mark.parametrize("model", MODELS)
def test_critic_has_neither_mask_nor_flag(model):
    env = FlagEnv()
    critic = make_model(model, obs_set="critic", output_dim=1, distribution_cfg=None)
    obs = env.get_observations()
    values = critic(obs)
    assert values.shape == (env.num_envs, 1)
    obs["joint_mask"] = 1.0 - obs["joint_mask"]
    obs["fault_flag"] = -obs["fault_flag"]
    assert torch.equal(critic(obs), values)
    obs["critic"] = obs["critic"] + 1.0
    assert not torch.equal(critic(obs), values)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_rsl_rls_own_exporters_write_the_same_policy(model, normalized, tmp_path):
    env = FlagEnv()
    runner = make_runner(model, env, obs_normalization=normalized)
    runner.learn(1)
    runner.export_policy_to_jit(str(tmp_path))
    runner.export_policy_to_onnx(str(tmp_path))
    scripted = torch.jit.load(str(tmp_path / "policy.pt"))
    session = onnxruntime.InferenceSession(str(tmp_path / "policy.onnx"), providers=["CPUExecutionProvider"])
    assert [node.name for node in session.get_inputs()] == ["policy", "joint_mask", "fault_flag"]
    obs = env.get_observations()[:1]  # rsl_rl's ONNX export fixes the batch at 1
    inputs = {name: obs[name] for name in ("policy", "joint_mask", "fault_flag")}
    actions = runner.alg.actor(obs)
    torch.testing.assert_close(scripted(*inputs.values()), actions, atol=1e-6, rtol=0.0)
    exported = session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]
    torch.testing.assert_close(torch.from_numpy(exported), actions.detach(), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("model", MODELS)
def test_configs_that_do_not_fit_the_env_are_one_line_errors(model):
    obs = FlagEnv().get_observations()
    with pytest.raises(UmcError, match="needs joint_names and joint_start"):
        make_model(model, joint_names={}, joint_start={})  # how Isaac Lab hands over unset fields
    with pytest.raises(UmcError, match="'joint_mask' is 4 wide, the model needs 3"):
        make_model(model, joint_names=JOINTS[:3], neighbours=[])
    with pytest.raises(UmcError, match="check joint_names and joint_start"):
        make_model(model, joint_start=START + 3)
    with pytest.raises(UmcError, match="takes 5 actions, joint_names has 4"):
        make_model(model, output_dim=5)
    with pytest.raises(UmcError, match="needs a distribution_cfg"):
        make_model(model, distribution_cfg=None)
    with pytest.raises(UmcError, match="use GaussianDistribution"):
        make_model(model, distribution_cfg={"class_name": "BetaDistribution"})
    with pytest.raises(UmcError, match="recurrent"):
        make_model(model)(obs, masks=torch.ones(1))
    with pytest.raises(UmcError, match="only an actor"):
        make_model(model, obs_set="critic", output_dim=1, distribution_cfg=None).as_jit()
    with pytest.raises(TypeError, match="embedding_dim"):
        make_model(model, embedding_dim=120)


def test_transformer_refuses_hidden_dims():
    with pytest.raises(UmcError, match="no hidden_dims"):
        make_model("transformer", hidden_dims=[64])


def test_the_baseline_trains_in_the_same_groups_and_reads_neither_mask_nor_flag():
    env = FlagEnv()
    runner = make_runner("body_transformer", env)
    before = {name: value.clone() for name, value in runner.alg.actor.named_parameters()}
    runner.learn(2)
    actor = runner.alg.actor
    assert all(not torch.equal(value, before[name]) for name, value in actor.named_parameters())
    obs = env.get_observations()
    actions = actor(obs)
    assert actions.abs().max() <= 1.0  # tanh
    obs["joint_mask"], obs["fault_flag"] = 1.0 - obs["joint_mask"], -obs["fault_flag"]
    assert torch.equal(actor(obs), actions)
    assert actor.obs_dim == D


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_baseline_is_exported_with_the_same_three_inputs(tmp_path):
    env = FlagEnv()
    runner = make_runner("body_transformer", env, obs_normalization=True)
    runner.learn(1)
    runner.export_policy_to_jit(str(tmp_path))
    scripted = torch.jit.load(str(tmp_path / "policy.pt"))
    obs = env.get_observations()
    inputs = [obs[name] for name in ("policy", "joint_mask", "fault_flag")]
    torch.testing.assert_close(scripted(*inputs), runner.alg.actor(obs), atol=1e-6, rtol=0.0)


def test_options_that_the_baseline_has_not_are_refused():
    with pytest.raises(UmcError, match="masks nothing"):
        make_model("body_transformer", mask_value=1.0)
    with pytest.raises(UmcError, match="no hidden_dims"):
        make_model("body_transformer", hidden_dims=[64])
    with pytest.raises(UmcError, match="needs the joint graph"):
        make_model("body_transformer", neighbours=[])


@pytest.mark.parametrize("model", MODELS)
def test_mixed_precision_update_stays_finite(model):
    env = FlagEnv()
    cfg = agent_cfg(model)
    cfg.algorithm.use_mixed_precision = True
    runner = create_rsl_rl_runner(env, cfg)
    runner.learn(2)
    assert all(torch.isfinite(value).all() for value in runner.alg.actor.parameters())


@pytest.mark.parametrize("model", CLASSES)
def test_nan_in_a_living_sensor_stays_in_its_env_and_out_of_the_statistics(model):
    env = FlagEnv()
    env.mask = torch.zeros_like(env.mask)
    actor = make_model(model, obs_normalization=True)
    obs = env.get_observations()
    actor.update_normalization(obs)
    before = actor(obs)
    obs["policy"][3, START] = torch.nan
    obs["policy"][5, START + 1] = torch.inf
    actions = actor(obs)
    assert actions[[3, 5]].isnan().any(1).all()
    healthy = [row for row in range(env.num_envs) if row not in (3, 5)]
    assert torch.equal(actions[healthy], before[healthy])
    actor.update_normalization(obs)
    assert torch.isfinite(actor.obs_normalizer.mean).all()
    assert torch.isfinite(actor.obs_normalizer.var).all()


def test_training_stops_at_a_nan_in_a_living_sensor_and_learns_nothing_from_it():
    env = FlagEnv()
    runner = make_runner("mlp", env, obs_normalization=True)
    runner.learn(1)
    before = {name: value.clone() for name, value in runner.alg.actor.state_dict().items()}
    observe = env.get_observations

    def broken():
        obs = observe()
        obs["policy"][3, START] = torch.nan
        return obs

    env.step = lambda actions, step=env.step: (broken(), *step(actions)[1:])
    with pytest.raises(ValueError, match=r"group 'policy' .* contains NaN"):
        runner.learn(1)
    assert all(torch.equal(value, before[name]) for name, value in runner.alg.actor.state_dict().items())


def test_weights_of_another_model_are_one_line_and_change_nothing():
    mlp, transformer = make_model("mlp"), make_model("transformer")
    before = {name: value.clone() for name, value in mlp.state_dict().items()}
    with pytest.raises(UmcError, match="weights of another model: 10 of 11 are missing") as error:
        mlp.load_state_dict(transformer.state_dict())
    assert "\n" not in str(error.value)
    wider = make_model("mlp", hidden_dims=[128, 64])
    with pytest.raises(UmcError, match=r"have another shape .first: core\.layers"):
        mlp.load_state_dict(wider.state_dict())
    assert all(torch.equal(value, before[name]) for name, value in mlp.state_dict().items())


def test_the_attention_that_is_shown_is_that_of_the_same_normalised_tokens():
    actor = make_model("transformer", obs_normalization=True)
    obs = FlagEnv().get_observations()
    obs["policy"] += 7.0  # so that statistics matter
    actor.update_normalization(obs)
    seen = []
    actor.core.tokenizer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    actor(obs)
    actor.attention(obs)
    assert torch.equal(*seen)
