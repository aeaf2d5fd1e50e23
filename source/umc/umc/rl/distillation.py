# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Train an actor to act as a teacher does, in states that the actor itself reaches (DAgger).

The critic learns the returns of the actor meanwhile, so that PPO can go on from the checkpoint. rsl_rl's own algorithm
trains no critic, and learns from each rollout once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper
from rsl_rl.algorithms import PPO
from rsl_rl.utils import resolve_callable
from tensordict import TensorDict

from umc.rl.checkpoint import checkpoint_info, checkpoints_in, read_checkpoint, require_match
from umc.rl.external import (
    EXPORTED,
    ExternalFile,
    add_group,
    confirm_code,
    load_external,
    load_source,
    read_external,
    require_as_exported,
)
from umc.rl.external_networks import is_torchscript, is_umc_checkpoint, read_weights
from umc.rl.model_cfg import DistillationCfg
from umc.rl.policy import Policy, load_policy_for
from umc.rl.pretrained import find_pretrained, is_pretrained
from umc.rl.runner import UmcRunner
from umc.utils.errors import UmcError
from umc.utils.io import fingerprint, sha256

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

LABELS = "teacher_actions"
"""Observation group with what the teacher would do."""

LEAST_LEARNING_RATE = 0.01
"""Learning rate at the end, of that at the start [-]."""


@dataclass(frozen=True)
class Teacher:
    """A policy to imitate, before the simulation starts."""

    text: str
    """As typed."""
    sha256: str
    """Of what decides its actions: the file, and what describes it."""
    stage: int
    """Last stage in which it can be imitated: a policy that UMC did not train sees true values, whatever fails."""
    source: ExternalFile | Path
    """A policy that UMC did not train, or a checkpoint of UMC."""
    robot: str
    groups: tuple[str, ...] = ()
    """Observation groups of the task that it reads by name."""

    def add_observations(self, env_cfg: Any) -> None:
        """Add the observations that it reads to an env cfg, in place; UmcError if it was exported for others."""
        if isinstance(self.source, ExternalFile):
            require_as_exported(self.source, env_cfg, self.robot)
            add_group(env_cfg, self.source, self.groups)

    def load(self, env: ManagerBasedRLEnv) -> Policy:
        """Make the policy for a running environment; UmcError if it does not fit."""
        if isinstance(self.source, ExternalFile):
            return load_external(self.source, env)
        return load_policy_for(self.source, env, self.robot)

    @property
    def group(self) -> str | None:
        """Observation group that only the teacher reads; a function has none."""
        return self.source.group if isinstance(self.source, ExternalFile) and self.source.function is None else None


def read_teacher(text: str, robot: str, trust: bool) -> Teacher:
    """Read what ``--teacher`` names: what ``--policy`` of ``umc evaluate`` takes, or a checkpoint or run of UMC.

    Raises UmcError for TorchScript without ``trust`` or a yes on the terminal.
    """
    if not text:
        raise UmcError("--teacher is empty; give a file, a run folder, or package.module:function")
    path = find_pretrained(text, robot)[0] if is_pretrained(text) else Path(text)
    if path.is_dir() and not (path / f"{EXPORTED}.onnx").is_file():
        files = checkpoints_in(path)
        if not files:
            raise UmcError(f"--teacher {path} holds no model_<iteration>.pt; give a run folder that has one, or a file")
        path = files[-1]
    if path.suffix == ".pt" and path.is_file() and not is_torchscript(path) and is_umc_checkpoint(read_weights(path)):
        info = checkpoint_info(read_checkpoint(path), path)
        require_match(info, path, robot)
        return Teacher(text, sha256(path), info.stage, path, robot)
    external = read_external(text if path == Path(text) else str(path), teacher=True)
    if external.is_code and not trust:
        confirm_code(external.path)
    network = load_source(external)  # what is no policy is refused before the simulation starts
    said = [external.sha256, external.description.model_dump(mode="json")]
    return Teacher(text, fingerprint(said), 2, external, robot, getattr(network, "groups", ()))


class TeacherEnvWrapper(RslRlVecEnvWrapper):
    """An env that adds the teacher's actions to its observations, in place of the group that only the teacher reads."""

    def __init__(self, env: Any, clip_actions: float | None, teacher: Teacher) -> None:
        super().__init__(env, clip_actions)
        self._teacher, self._group = teacher.load(self.unwrapped), teacher.group  # type: ignore[arg-type]
        self._teacher.reset(None)
        self._obs: TensorDict | None = None

    def get_observations(self) -> TensorDict:
        """Return the observations after the last step."""
        if self._obs is None:  # a teacher with memory is asked once per step
            self._obs = self._labelled(super().get_observations())
        return self._obs

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        """Step the env; the teacher forgets the episodes that have ended."""
        obs, rewards, dones, extras = super().step(actions)
        self._teacher.reset(dones.bool())
        self._obs = self._labelled(obs)
        return self._obs, rewards, dones, extras

    def _labelled(self, obs: TensorDict) -> TensorDict:
        labels = self._teacher(obs)
        kept = {name: value for name, value in obs.items() if name != self._group}
        return TensorDict({**kept, LABELS: labels}, batch_size=obs.batch_size)


class Distillation(PPO):
    """DAgger for the actor, and PPO's regression of returns for the critic.

    The networks, the rollout and the checkpoints are those of PPO.
    """

    options = DistillationCfg()
    done, total = 0, 1
    """Iterations so far, and of the whole run."""
    _seen: TensorDict | None = None
    """What the actor reads and the teacher's actions, of the last rollouts: (rollouts, steps, envs)."""
    _starts: torch.Tensor
    """Where episodes start in them."""
    _memories: torch.Tensor | None = None
    """What an actor with memory remembered before each of them, (rollouts, envs, width)."""
    _filled, _next = 0, 0
    _compared = False
    """Whether the ranges of actor and teacher have been compared."""

    def act(self, obs: TensorDict) -> torch.Tensor:
        """Return the actor's mean actions; at first the teacher's for some envs."""
        super().act(obs)
        assert self.transition.distribution_params is not None
        actions, labels = self.transition.distribution_params[0], obs[LABELS]
        share = 1.0 - self.done / self.options.mixing if self.done < self.options.mixing else 0.0
        if share > 0.0:
            actions = torch.where(torch.rand(len(labels), 1, device=labels.device) < share, labels, actions)
        self.transition.actions = actions
        return actions

    def update(self) -> dict[str, float]:
        """Learn from what was seen so far; return the mean losses."""
        options = self.options
        self.learning_rate = options.learning_rate * max(1.0 - self.done / self.total, LEAST_LEARNING_RATE)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self._remember()
        self._compare_ranges()
        # a resumed run has fewer samples than this many iterations collect: it learns less from them, as often
        share = self._filled / min(self.done + 1, len(self._starts))
        imitation = [self._learn_labels() for _ in range(math.ceil(options.updates * share))]
        value = [
            self._step((self.critic(batch.observations) - batch.returns).square().mean(), self.critic)
            for batch in self.storage.mini_batch_generator(self.num_mini_batches, options.critic_epochs)
        ]
        obs = self.storage.observations.flatten(0, 1)  # type: ignore[union-attr]
        self.actor.update_normalization(obs)
        self.critic.update_normalization(obs)
        self.storage.clear()
        self.done += 1
        losses = torch.stack([*imitation, *value]).tolist()  # one read of the device
        parts = {"imitation": losses[: len(imitation)], "value": losses[len(imitation) :]}
        return {name: sum(part) / len(part) for name, part in parts.items()}

    def _remember(self) -> None:
        """Replace the oldest rollout by the new one."""
        storage: Any = self.storage
        obs = storage.observations.select(*self.actor.obs_groups, LABELS)
        seen = self._seen
        if seen is None:
            size = max(self.options.samples // obs.numel(), 1)
            self._seen = seen = obs.new_zeros(size, *obs.batch_size)
            self._starts = torch.zeros(size, *obs.batch_size, dtype=torch.bool, device=self.device)
            if self.actor.is_recurrent:
                memory = storage.saved_hidden_state_a[0][0, 0]
                self._memories = memory.new_zeros(size, *memory.shape)
        seen[self._next] = obs
        self._starts[self._next, 1:] = storage.dones[:-1].squeeze(-1).bool()
        if self._memories is not None:
            self._memories[self._next] = storage.saved_hidden_state_a[0][0, 0]
        self._filled = max(self._filled, self._next + 1)
        self._next = (self._next + 1) % len(seen)

    def _compare_ranges(self) -> None:
        """Say once if the teacher acts beyond the bounds of the actor, which then cannot learn to act as it does."""
        if not self._compared and isinstance(getattr(self.actor.core, "output_activation", None), torch.nn.Tanh):
            largest = float(self.storage.observations[LABELS].abs().max())  # type: ignore[index]
            if largest > 1.0:
                print(
                    f"the teacher's actions reach {largest:.2g}, the actor's end at 1 (tanh); "
                    "set agent.actor.output_activation=null",
                    flush=True,
                )
        self._compared = True

    def _learn_labels(self) -> torch.Tensor:
        """Learn from random samples, or from random rollouts of envs if the actor has a memory."""
        assert self._seen is not None
        seen, size = self._seen[: self._filled], self.options.batch_size
        if self._memories is None:
            seen = seen.flatten()
            batch = seen[torch.randint(len(seen), (size,), device=seen.device)]
            labels = batch[LABELS]
            if self.symmetry is not None:
                batch, labels = self.symmetry.data_augmentation_func(self.symmetry.env, batch, labels)
            return self._step((self.actor(batch) - labels).square().mean(), self.actor)
        rollouts, steps, envs = seen.batch_size
        count = max(size // steps, 1)
        picked_rollouts = torch.randint(rollouts, (count,), device=seen.device)
        picked = picked_rollouts, slice(None), torch.randint(envs, (count,), device=seen.device)
        # an index beside a slice comes first: (count, steps)
        batch = seen[picked].transpose(0, 1).flatten()
        memory = self._memories[picked[0], picked[2]].unsqueeze(0)
        actions = self.actor(batch, masks=self._starts[picked].T, hidden_state=memory)
        return self._step((actions - batch[LABELS]).square().mean(), self.actor)

    def _step(self, loss: torch.Tensor, network: torch.nn.Module) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss.backward()
        if self.is_multi_gpu:
            self.reduce_parameters()
        torch.nn.utils.clip_grad_norm_(network.parameters(), self.max_grad_norm)
        self.optimizer.step()
        return loss.detach()


class DistillationRunner(UmcRunner):
    """The runner of a training that imitates a teacher."""

    alg: Distillation

    def _make_algorithm(self, log_dir: str | None) -> None:
        self.cfg["algorithm"]["class_name"] = f"{__name__}:{Distillation.__name__}"
        if resolve_callable(self.cfg["actor"]["class_name"]).is_recurrent:  # type: ignore[attr-defined]
            self.cfg["mirror"] = False  # no mirrored robot has lived through what it would remember
        super()._make_algorithm(log_dir)
        self.alg.options = DistillationCfg(**self.cfg["distillation"])

    def _learn(self, iterations: int, init_at_random_ep_len: bool) -> None:
        self.alg.done = self.current_learning_iteration
        self.alg.total = self.alg.done + iterations
        super()._learn(iterations, init_at_random_ep_len)
