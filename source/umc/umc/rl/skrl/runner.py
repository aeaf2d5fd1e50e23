# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Training runs of skrl's PPO with the checkpoints, progress and logs of rsl_rl's."""

from __future__ import annotations

import time

import torch
from rsl_rl.utils import check_nan

from umc.rl.runner import TrainingRunner
from umc.rl.skrl.packing import PackedEnv
from umc.rl.skrl.ppo import SYMMETRY_LOSS, SkrlAlgorithm, make_agent
from umc.utils.errors import UmcError

LOSSES = {
    "value": "Loss / Value loss",
    "surrogate": "Loss / Policy loss",
    "entropy_loss": "Loss / Entropy loss",
    "symmetry": SYMMETRY_LOSS,
}
"""Names in the logs, and skrl's names."""

UPDATE_TIME = "Stats / Algorithm update time (ms)"
"""skrl's name for the time of an update."""


class SkrlRunner(TrainingRunner):
    """skrl's runner for every UMC policy."""

    env: PackedEnv

    def _make_algorithm(self, log_dir: str | None) -> None:
        if torch.device(self.device) != self.env.device:
            raise UmcError(
                f"skrl learns where the environment is, on {self.env.device}, not on {self.device}; give one device"
            )
        self.agent = make_agent(self.env, self.cfg)
        self.alg = SkrlAlgorithm(self.agent)

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        first = self.current_learning_iteration
        total = first + iterations
        if init_at_random_ep_len:
            inner = self.env.unwrapped
            inner.episode_length_buf = torch.randint_like(inner.episode_length_buf, int(inner.max_episode_length))
        self.logger.init_logging_writer()
        for iteration in range(first, total):
            self._iterate(iteration, first, total)
        if self.logger.writer is not None:
            self.save(str(self._checkpoint_path(self.current_learning_iteration)))
            self.logger.stop_logging_writer()

    def _iterate(self, iteration: int, first: int, total: int) -> None:
        """Collect, learn, log; save at the interval."""
        start = time.time()
        steps = self.cfg["num_steps_per_env"]
        for step in range(steps):
            self._step(iteration * steps + step, total * steps)
        self.current_learning_iteration = iteration
        tracked = {name: sum(values) / len(values) for name, values in self.agent.tracking_data.items()}
        self.agent.tracking_data.clear()
        learn_time = tracked[UPDATE_TIME] / 1000.0
        self.logger.log(
            it=iteration,
            start_it=first,
            total_it=total,
            collect_time=time.time() - start - learn_time,
            learn_time=learn_time,
            loss_dict={name: tracked[theirs] for name, theirs in LOSSES.items() if theirs in tracked},
            learning_rate=self.alg.learning_rate,
            action_std=self.alg.get_policy().output_std,
            rnd_weight=None,
        )
        if self.logger.writer is not None and iteration % self.cfg["save_interval"] == 0:
            self.save(str(self._checkpoint_path(iteration)))

    def _step(self, timestep: int, timesteps: int) -> None:
        """Act once; after the last step of an iteration skrl learns."""
        env, agent = self.env, self.agent
        observations, states = env.reset()[0], env.state()
        with torch.no_grad():
            actions, _ = agent.act(observations, states, timestep=timestep, timesteps=timesteps)
            next_observations, rewards, terminated, truncated, infos = env.step(actions)
            next_states = env.state()
            done = (terminated | truncated).squeeze(1)
            if self.cfg.get("check_for_nan", True):
                seen = (env.actor_packing.unpack(next_observations), env.critic_packing.unpack(next_states))
                for groups in seen:
                    check_nan(groups, rewards, done)
            agent.record_transition(
                observations=observations,
                states=states,
                actions=actions,
                rewards=rewards,
                next_observations=next_observations,
                next_states=next_states,
                terminated=terminated,
                truncated=truncated,
                infos=infos,
                timestep=timestep,
                timesteps=timesteps,
            )
            self.logger.process_env_step(rewards.squeeze(1), done.long(), infos, None)
        agent.post_interaction(timestep=timestep, timesteps=timesteps)
