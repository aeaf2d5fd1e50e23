# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""rsl_rl model classes around the networks of umc.models."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import HiddenState
from rsl_rl.modules.distribution import Distribution
from rsl_rl.utils import resolve_class
from tensordict import TensorDict
from torch import Tensor, nn

from umc.faults import FAULT_FLAG_WIDTH
from umc.models import (
    BodyTransformer,
    JointLayout,
    MaskedGru,
    MaskedMlp,
    MaskedNormalization,
    MaskedTransformer,
    MultiTaskMlp,
)
from umc.models.core import CoreCfg, MaskedCore
from umc.rl.patches import patch_rsl_rl_load
from umc.utils.description import MEMORY_INPUT
from umc.utils.errors import UmcError

EXPORT_INPUTS = ("policy", "joint_mask", "fault_flag")
"""Input names of an exported policy."""

EXPORT_OUTPUTS = ("actions",)
"""Output names of an exported policy."""

MEMORY_OUTPUT = "h_out"
"""What a policy with memory also returns, as rsl_rl names it."""


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """Options of every model beside those of its network; Isaac Lab passes unset fields as ``{}``."""

    joint_names: Sequence[str] = ()
    """Joint names in the order of observations, actions and masks."""
    joint_start: int | None = None
    """Column of the first joint's position in the observation."""
    neighbours: Sequence[Sequence[int]] = ()
    """The joint graph, see umc.models.JointLayout."""
    obs_normalization: bool = False
    """Whether observations are normalised; masked joints are blanked after it, and the statistics come from living
    sensors only. Mask and flag are never normalised."""
    distribution_cfg: dict[str, Any] | None = None
    """rsl_rl's config of the action distribution; None makes a value network."""
    mask_group: str = "joint_mask"
    """Observation group with the joint mask."""
    flag_group: str = "fault_flag"
    """Observation group with the fault flag."""


class MaskedModel(MLPModel):
    """A network of umc.models with the interface that rsl_rl's PPO asks of a model.

    A living sensor that reports NaN makes the actions of its own env NaN and leaves all others unchanged; the
    statistics of the normaliser leave it out, and rsl_rl's runner stops before it learns from it (check_for_nan).

    The observation groups named mask_group and flag_group are the joint mask and the fault flag; all other groups
    of the set are the observation, in their order. A set without these groups (the critic's) makes a network
    without mask and flag.

    ``obs_set`` is "actor" or "critic", ``output_dim`` the number of actions, or 1 for a value; options are the fields
    of ModelOptions and of the network's cfg class.
    """

    core_class: type[MaskedCore]
    """Class of the network."""

    def __init__(
        self, obs: TensorDict, obs_groups: dict[str, list[str]], obs_set: str, output_dim: int, **options: Any
    ) -> None:
        # not MLPModel's, which would build the network that this class replaces
        nn.Module.__init__(self)
        core_cfg = self._take_core_cfg(options)
        cfg = ModelOptions(**options)
        if not cfg.joint_names or not isinstance(cfg.joint_start, int):
            raise UmcError(f"the {obs_set} model needs joint_names and joint_start: set both in the agent config")
        self.obs_groups, _ = self._get_obs_dim(obs, obs_groups, obs_set)
        self.sensor_groups = [group for group in self.obs_groups if group not in (cfg.mask_group, cfg.flag_group)]
        if not self.sensor_groups:
            raise UmcError(f"obs_groups[{obs_set!r}] holds no observation beside {self.obs_groups}: add one")
        self.mask_group = cfg.mask_group if core_cfg.masked and cfg.mask_group in self.obs_groups else None
        self.flag_group = cfg.flag_group if core_cfg.flagged and cfg.flag_group in self.obs_groups else None
        self.obs_dim = sum(obs[group].shape[-1] for group in self.sensor_groups)
        self.layout = JointLayout.term_major(cfg.joint_names, self.obs_dim, cfg.joint_start, cfg.neighbours)
        self._check_width(obs, self.mask_group, self.layout.num_joints)
        self._check_width(obs, self.flag_group, FAULT_FLAG_WIDTH)
        self.distribution = self._make_distribution(cfg.distribution_cfg, output_dim)
        self.obs_normalization = cfg.obs_normalization
        self.obs_normalizer = MaskedNormalization(self.obs_dim) if cfg.obs_normalization else nn.Identity()
        core_cfg = dataclasses.replace(
            core_cfg,
            output="value" if self.distribution is None else "action",
            masked=self.mask_group is not None,
            flagged=self.flag_group is not None,
        )
        self.core = self.core_class(self.layout, core_cfg)

    def _take_core_cfg(self, options: dict[str, Any]) -> CoreCfg:
        """Move the network's own options out of the model's."""
        cfg_class = self.core_class.cfg_class
        names = [field.name for field in dataclasses.fields(cfg_class)]
        for unused in ("hidden_dims", "activation"):  # fields of every rsl_rl model cfg
            if unused not in names and options.pop(unused, None):
                own = [name for name in names if name not in CoreCfg.__dataclass_fields__]
                raise UmcError(f"a {self.core_class.__name__} has no {unused}: set {', '.join(own)} instead")
        core_cfg = cfg_class(**{name: options.pop(name) for name in names if name in options})
        if not core_cfg.masked and core_cfg.mask_value != 0.0:
            raise UmcError("a network without joint mask masks nothing: leave mask_value at 0.0")
        return core_cfg

    def _make_distribution(self, cfg: dict[str, Any] | None, output_dim: int) -> Distribution | None:
        if cfg is None:
            if output_dim != 1:
                raise UmcError(f"a model with {output_dim} outputs needs a distribution_cfg (a value has one output)")
            return None
        distribution_class, options = resolve_class(cfg)
        distribution = cast(Distribution, distribution_class(output_dim, **options))
        if distribution.input_dim != output_dim:
            raise UmcError("the network gives one number for each action: use GaussianDistribution")
        if output_dim != self.layout.num_joints:
            raise UmcError(
                f"the env takes {output_dim} actions, joint_names has {self.layout.num_joints} names: name all"
            )
        return distribution

    def forward(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
        stochastic_output: bool = False,
    ) -> Tensor:
        """Compute sampled or mean actions (B, J), or values (B, 1), from observation groups (B, width)."""
        output = self._output(obs, masks, hidden_state)
        if self.distribution is None:
            return output
        if stochastic_output:
            self.distribution.update(output)
            return self.distribution.sample()
        return self.distribution.deterministic_output(output)

    def deterministic(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute the mean actions (B, J) or values (B, 1) from plain tensors, as MaskedCore.forward takes them."""
        output = self._core_output(obs, joint_mask, fault_flag)
        return output if self.distribution is None else self.distribution.deterministic_output(output)

    def attention(self, obs: TensorDict) -> Tensor | None:
        """Return MaskedTransformer.attention of observation groups; None for a network without attention."""
        if not isinstance(self.core, MaskedTransformer):
            return None
        sensors, joint_mask, fault_flag = self._inputs(obs)
        return self.core.attention(self.obs_normalizer(sensors), joint_mask, fault_flag)

    def update_normalization(self, obs: TensorDict) -> None:
        """Learn the observation statistics from groups of shape (B, width), living sensors only."""
        if isinstance(self.obs_normalizer, MaskedNormalization):
            sensors, joint_mask, _ = self._inputs(obs)
            columns = self.core.columns
            dead = None if joint_mask is None else columns.masked_columns(columns.masked_tokens(joint_mask))
            self.obs_normalizer.update(sensors, dead)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights; another model's raise one UmcError instead of a list of all parameters, and change nothing."""
        mine = self.state_dict()
        missing, extra = sorted(mine.keys() - state_dict.keys()), sorted(state_dict.keys() - mine.keys())
        other = [name for name in mine.keys() & state_dict.keys() if mine[name].shape != state_dict[name].shape]
        if other or (strict and (missing or extra)):
            raise UmcError(
                f"these are the weights of another model: {len(missing)} of {len(mine)} are missing, {len(extra)} are"
                f" unknown, {len(other)} have another shape (first: {[*missing, *extra, *sorted(other)][0]}); load"
                " them into the model, robot and sizes that they were trained with"
            )
        return super().load_state_dict(state_dict, strict, assign)

    def as_jit(self) -> nn.Module:
        """Return a copy that torch.jit.script takes."""
        return ExportedPolicy(self)

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return a copy that torch.onnx.export takes."""
        return ExportedPolicy(self)

    def _output(self, obs: TensorDict, starts: Tensor | None, memory: HiddenState) -> Tensor:
        """Compute what the network gives; one without memory computes each sample by itself."""
        return self._core_output(*self._inputs(obs))

    def _core_output(self, sensors: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> Tensor:
        """Normalise first, then let the network blank dead joints, so that they read mask_value exactly."""
        return self.core(self.obs_normalizer(sensors), joint_mask, fault_flag)

    def _inputs(self, obs: TensorDict) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Pick observation, joint mask and fault flag out of the groups."""
        sensors = [obs[group] for group in self.sensor_groups]
        return (
            sensors[0] if len(sensors) == 1 else torch.cat(sensors, dim=-1),
            None if self.mask_group is None else obs[self.mask_group],
            None if self.flag_group is None else obs[self.flag_group],
        )

    @staticmethod
    def _check_width(obs: TensorDict, group: str | None, width: int) -> None:
        if group is not None and obs[group].shape[-1] != width:
            raise UmcError(
                f"observation group {group!r} is {obs[group].shape[-1]} wide, the model needs {width}: correct its "
                "joint_names"
            )


patch_rsl_rl_load(MaskedModel)


class MaskedMlpModel(MaskedModel):
    """The masked MLP for rsl_rl."""

    core_class = MaskedMlp


class MaskedGruModel(MaskedModel):
    """The masked GRU for rsl_rl.

    While it acts it keeps the memory of each env, (C, num_envs, H): C is 1, or 2 where it also remembers what the env's
    mirror image would have observed. It learns from the rollouts of ``umc.rl.update.CachedRolloutStorage``.
    """

    core_class = MaskedGru
    core: MaskedGru
    is_recurrent = True
    mirror: Callable[[TensorDict], TensorDict] | None = None
    """Mirrors observation groups; set before it acts."""
    _memory: Tensor | None = None

    def reset(self, dones: Tensor | None = None, hidden_state: HiddenState = None) -> None:
        """Forget the envs that are done, or all, or take another memory."""
        if dones is None:
            self._memory = cast("Tensor | None", hidden_state)
        elif self._memory is not None:
            self._memory = self._memory.masked_fill(dones.bool().view(-1, 1), 0.0)

    def get_hidden_state(self) -> HiddenState:
        """Return the memory before the next step; None before the first one."""
        return self._memory

    def as_jit(self) -> nn.Module:
        """Return a copy that torch.jit.script takes, with the memory inside."""
        return ExportedGru(self)

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return a copy that torch.onnx.export takes, with the memory as an input and an output."""
        return ExportedGruStep(self)

    def _output(self, obs: TensorDict, starts: Tensor | None, memory: HiddenState) -> Tensor:
        if starts is not None:
            sensors, joint_mask, fault_flag = self._inputs(obs)
            return self.core.sequence(
                self.obs_normalizer(sensors), joint_mask, fault_flag, cast(Tensor, memory), starts
            )
        if self.mirror is None:
            return self._core_output(*self._inputs(obs))
        both: Any = torch.cat([obs, self.mirror(obs)])  # type: ignore[list-item]
        return self._core_output(*self._inputs(both))[: len(obs)]

    def _core_output(self, sensors: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> Tensor:
        """Act, and remember; rows are the envs, then their mirror images."""
        memory = self._memory
        if memory is None:
            memory = sensors.new_zeros(1 if self.mirror is None else 2, 1, self.core.memory_dim)
            memory = memory.expand(-1, len(sensors) // len(memory), -1)
        output, after = self.core.step(self.obs_normalizer(sensors), joint_mask, fault_flag, memory.flatten(0, 1))
        self._memory = after.detach().view(memory.shape)
        return output


class MaskedTransformerModel(MaskedModel):
    """The masked transformer for rsl_rl."""

    core_class = MaskedTransformer


class BodyTransformerModel(MaskedModel):
    """BodyTransformer for rsl_rl.

    It reads neither mask nor flag: their groups may be in the set, so that a task needs no other groups for it.
    """

    core_class = BodyTransformer


class MultiTaskModel(MaskedModel):
    """MT-FTC's network for rsl_rl; the group ``flag_group`` holds the fault class."""

    core_class = MultiTaskMlp


class ExportedPolicy(nn.Module):
    """A model's normaliser, network and mean action, for TorchScript and ONNX; refuses a value network.

    Maps (policy (B, D), joint_mask (B, J), fault_flag (B, 3)), all float, whether the model reads them all or not, to
    actions (B, J).
    """

    is_recurrent: bool = False

    def __init__(self, model: MaskedModel) -> None:
        super().__init__()
        if model.distribution is None:
            raise UmcError("only an actor can be exported: this model has no action distribution")
        self.normalizer = copy.deepcopy(model.obs_normalizer)
        self.core = copy.deepcopy(model.core)
        self.mean_action = model.distribution.as_deterministic_output_module()
        self.widths = [model.obs_dim, model.layout.num_joints, FAULT_FLAG_WIDTH]
        self.input_names = list(EXPORT_INPUTS)
        self.output_names = list(EXPORT_OUTPUTS)

    def forward(self, policy: Tensor, joint_mask: Tensor, fault_flag: Tensor) -> Tensor:
        """Compute mean actions (B, J)."""
        return self.mean_action(self.core(self.normalizer(policy), joint_mask, fault_flag))

    @torch.jit.export
    def reset(self) -> None:
        """Do nothing: the networks keep no state."""

    def get_dummy_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs of batch 1: no joint masked, no fault detected."""
        return torch.zeros(1, self.widths[0]), torch.zeros(1, self.widths[1]), -torch.ones(1, self.widths[2])


class ExportedGru(ExportedPolicy):
    """The same for a model with memory; it keeps the memory of each robot from call to call, until ``reset``."""

    is_recurrent: bool = True

    def __init__(self, model: MaskedGruModel) -> None:
        super().__init__(model)
        self.memory_dim = model.core.memory_dim
        self.hidden_state: Tensor
        self.register_buffer("hidden_state", torch.zeros(1, 1, self.memory_dim))  # as rsl_rl's exports name it

    def forward(self, policy: Tensor, joint_mask: Tensor, fault_flag: Tensor) -> Tensor:
        """Compute mean actions (B, J); another number of robots begins anew."""
        if self.hidden_state.shape[1] != policy.shape[0]:
            self.hidden_state = policy.new_zeros(1, policy.shape[0], self.memory_dim)
        actions, self.hidden_state = self.step(policy, joint_mask, fault_flag, self.hidden_state)
        return actions

    @torch.jit.export
    def step(self, policy: Tensor, joint_mask: Tensor, fault_flag: Tensor, h_in: Tensor) -> tuple[Tensor, Tensor]:
        """Compute mean actions (B, J), and the memory after this step, (1, B, H), from the one before it."""
        output, memory = self.core.step(self.normalizer(policy), joint_mask, fault_flag, h_in[0])
        return self.mean_action(output), memory.unsqueeze(0)

    @torch.jit.export
    def reset(self) -> None:
        """Forget everything."""
        self.hidden_state = torch.zeros_like(self.hidden_state)


class ExportedGruStep(nn.Module):
    """A model with memory as a function of its inputs and the memory ``h_in`` (1, B, H), which returns ``h_out``."""

    is_recurrent: bool = True

    def __init__(self, model: MaskedGruModel) -> None:
        super().__init__()
        self.policy = ExportedGru(model)
        self.widths = [*self.policy.widths, self.policy.memory_dim]
        self.input_names = [*EXPORT_INPUTS, MEMORY_INPUT]
        self.output_names = [*EXPORT_OUTPUTS, MEMORY_OUTPUT]

    def forward(self, policy: Tensor, joint_mask: Tensor, fault_flag: Tensor, h_in: Tensor) -> tuple[Tensor, Tensor]:
        """Compute mean actions (B, J) and ``h_out`` (1, B, H)."""
        return self.policy.step(policy, joint_mask, fault_flag, h_in)

    def get_dummy_inputs(self) -> tuple[Tensor, ...]:
        """Return inputs of batch 1: no joint masked, no fault detected, an empty memory."""
        return *self.policy.get_dummy_inputs(), torch.zeros(1, 1, self.policy.memory_dim)
