# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A masked task without a simulator, for both libraries."""

from __future__ import annotations

import math
from types import SimpleNamespace

import dummy_training as dummy
import gymnasium as gym
import torch
from isaaclab_rl.rsl_rl import RslRlPpoAlgorithmCfg
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from umc.rl.runner import UmcRunner
from umc.rl.skrl.packing import PackedEnv
from umc.rl.skrl.runner import SkrlRunner

JOINTS = dummy.JOINTS
ENVS, STEPS, BASE = 8, 4, 5
GROUPS = {"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["critic"]}
LENGTHS = [2, 2, 4, 4] * 2
"""Episode length of each env [env steps]: all end with an iteration, some also in its middle."""
TERMS = [
    ("base_lin_vel", 3),
    ("clock", 2),
    *((name, len(JOINTS)) for name in ("joint_pos", "joint_vel", "last_action")),
]
"""Terms of the groups `policy` and `critic`."""
FALLS = [False, True] * 4
"""Which envs' episodes end with a fall, the others' by time."""


class LabEnv:
    """What Isaac Lab's env offers to a wrapper. It rewards actions near 0.5; all chance lies in torch's generator.

    Env 0 has no dead joint, env 7 nothing but dead joints.
    """

    num_envs, max_episode_length = ENVS, STEPS
    single_action_space = gym.spaces.Box(-math.inf, math.inf, (len(JOINTS),))

    def __init__(self, on_step=None, finite=False, device="cpu"):
        self.device = device
        self.lengths, self.falls = (torch.tensor(values, device=device) for values in (LENGTHS, FALLS))
        self.on_step, self.steps, self.resets = on_step, 0, 0
        self.cfg = SimpleNamespace(is_finite_horizon=finite)
        self.episode_length_buf = torch.zeros(ENVS, dtype=torch.long, device=device)
        chance = torch.Generator().manual_seed(0)
        self.table = torch.randn(STEPS, ENVS, BASE + 3 * len(JOINTS), generator=chance).to(device)
        dead = torch.rand(STEPS, ENVS, len(JOINTS), generator=chance) < torch.linspace(0, 1, ENVS).unsqueeze(1)
        self.dead = dead.to(device)
        self.actions = self.rewards = torch.empty(0)
        # what mirror images need
        self.scene = {"robot": SimpleNamespace(joint_names=JOINTS)}
        groups = {"policy": TERMS, "critic": TERMS, "joint_mask": [("mask", len(JOINTS))], "fault_flag": [("flag", 3)]}
        self.observation_manager = dummy.observation_manager(groups)

    @property
    def unwrapped(self):
        return self

    def observe(self):
        now = (self.episode_length_buf, torch.arange(ENVS, device=self.device))
        policy, dead = self.table[now], self.dead[now]
        flag = torch.where(dead.any(1, keepdim=True), 1.0, -1.0).expand(-1, 3)
        # not in the order of the agents' obs_groups
        return {"critic": policy + 1.0, "fault_flag": flag, "joint_mask": dead.float(), "policy": policy}

    def reset(self, seed=None):
        assert seed is None
        self.resets += 1
        return self.observe(), {}

    def step(self, actions):
        self.steps += 1
        if self.on_step is not None:
            self.on_step(self.steps)
        self.actions = actions.clone()
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.lengths
        self.episode_length_buf[done] = 0
        self.rewards = -(actions - 0.5).square().sum(1)
        return self.observe(), self.rewards, done & self.falls, done & ~self.falls, {}


class RslRlView(VecEnv):
    """The same task as rsl_rl sees it (what Isaac Lab's RslRlVecEnvWrapper does, without its check of the env)."""

    num_envs, num_actions, max_episode_length, device, cfg = ENVS, len(JOINTS), STEPS, "cpu", {}

    def __init__(self, env):
        self.env = self.unwrapped = env
        self.obs, _ = env.reset()

    def get_observations(self):
        return TensorDict(self.obs, batch_size=[ENVS])

    def step(self, actions):
        self.obs, reward, terminated, truncated, _ = self.env.step(actions)
        return self.get_observations(), reward, (terminated | truncated).long(), {"time_outs": truncated}


def model(name="MaskedMlpModel", joint_start=BASE, **options):
    sizes = {"hidden_dims": [16]} if name == "MaskedMlpModel" else {"embed_dim": 8, "num_layers": 2}
    return {
        "class_name": f"umc.rl.models:{name}",
        "joint_names": JOINTS,
        "joint_start": joint_start,
        "obs_normalization": True,
        **sizes,
        **options,
    }


def rsl_rl_ppo(**changes):
    schedule = {"schedule": "adaptive", "learning_rate": dummy.LEARNING_RATE, "desired_kl": 0.01}
    passes = {"num_learning_epochs": 2, "num_mini_batches": 4, "gamma": 0.99, "lam": 0.95, "max_grad_norm": 1.0}
    loss = {"value_loss_coef": 1.0, "use_clipped_value_loss": True, "clip_param": 0.2, "entropy_coef": 0.01}
    return RslRlPpoAlgorithmCfg(**{**schedule, **passes, **loss, **changes})


def agent(ppo=None, network="MaskedMlpModel", save_interval=1000, std_type="scalar", **options):
    """An agent cfg, of either library."""
    base, values = dummy.agent(std_type, save_interval), (ppo or rsl_rl_ppo()).to_dict()
    unused = ("rnd_cfg", "symmetry_cfg", "share_cnn_encoders")
    return {
        **base,
        "num_steps_per_env": STEPS,
        "obs_groups": {name: list(groups) for name, groups in GROUPS.items()},
        "actor": model(network, distribution_cfg=base["actor"]["distribution_cfg"]),
        "critic": model(network),
        "algorithm": {name: value for name, value in values.items() if name not in unused},
        **options,
    }


def build(folder, env=None, cfg=None, save_every_s=1000.0, torch_seed=7, **info):
    torch.manual_seed(torch_seed)
    cfg, env = cfg or agent(), env or LabEnv()
    packed = PackedEnv(env, cfg["obs_groups"])
    says = dummy.info(**{"agent": "skrl_mlp_cfg_entry_point", **info})
    runner = SkrlRunner(packed, cfg, folder and str(folder), env.device, says, save_every_s)
    runner.env_counters["fault_episode"] = torch.zeros(ENVS, dtype=torch.long)
    return runner


def build_rsl_rl(folder, ppo=None, torch_seed=7, **options):
    torch.manual_seed(torch_seed)
    cfg = agent(ppo, **options)
    return UmcRunner(RslRlView(LabEnv()), cfg, str(folder), "cpu", dummy.info())


def weights(runner):
    """Weights and statistics of actor and critic, of a runner of either library."""
    data = runner.alg.save()
    sets = ("actor_state_dict", "critic_state_dict")
    return {f"{one}.{name}": tensor.clone() for one in sets for name, tensor in data[one].items()}
