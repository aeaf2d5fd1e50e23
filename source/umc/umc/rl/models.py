# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""rsl_rl model classes around the networks of umc.models."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from rsl_rl.models import MLPModel
from rsl_rl.modules import HiddenState
from rsl_rl.modules.distribution import Distribution
from rsl_rl.utils import resolve_class
from tensordict import TensorDict
from torch import Tensor, nn

from umc.models import BodyTransformer, JointLayout, MaskedMlp, MaskedNormalization, MaskedTransformer
from umc.models.core import MaskedCore
from umc.models.layout import FAULT_FLAG_WIDTH
from umc.models.mlp import HIDDEN_DIMS
from umc.utils.errors import UmcError

EXPORT_INPUTS = ("policy", "joint_mask", "fault_flag")
"""Input names of an exported policy."""

EXPORT_OUTPUTS = ("actions",)
"""Output names of an exported policy."""


NO_HIDDEN_DIMS = "a transformer has no hidden_dims: set embed_dim, feedforward_dim and num_layers instead"


class MaskedModel(MLPModel):
    """A network of umc.models with what rsl_rl's PPO asks of a model.

    A living sensor that reports NaN makes the actions of its own env NaN and leaves all others alone; the statistics
    of the normaliser leave it out, and rsl_rl's runner stops before it learns from it (check_for_nan).

    The observation groups named mask_group and flag_group are the joint mask and the fault flag; all other groups
    of the set are the observation, in their order. A set without these groups (the critic's) makes a network
    without mask and flag.

    Attributes:
        core: The network, a pure torch module.
        layout: Columns of the flat observation.

    Args:
        obs: Observations of the env.
        obs_groups: Observation groups of each set.
        obs_set: The model's set, "actor" or "critic".
        output_dim: Number of actions, or 1 for a value.
        core_class: Class of the network.
        core_cfg: Options of the network.
        fault_aware: Whether the network takes mask and flag at all; else it gets neither, whatever the set holds.
        joint_names: Joint names in the order of observations, actions and masks.
        joint_start: Column of the first joint's position in the observation.
        neighbours: The joint graph, see umc.models.JointLayout.
        obs_normalization: Whether observations are normalised; dead joints are blanked after it, and the statistics
            come from living sensors only. Mask and flag are never normalised.
        distribution_cfg: rsl_rl's config of the action distribution; None makes a value network.
        mask_value: What dead joints read.
        mask_group: Name of the observation group with the joint mask.
        flag_group: Name of the observation group with the fault flag.

    Raises:
        UmcError: When the config does not fit the env.
    """

    core: MaskedCore

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        *,
        core_class: type[MaskedCore],
        core_cfg: Mapping[str, Any],
        fault_aware: bool = True,
        joint_names: Sequence[str] = (),
        joint_start: int | None = None,
        neighbours: Sequence[Sequence[int]] = (),
        obs_normalization: bool = False,
        distribution_cfg: dict | None = None,
        mask_value: float = 0.0,
        mask_group: str = "joint_mask",
        flag_group: str = "fault_flag",
    ) -> None:
        # Not MLPModel's: it would build the network that this class replaces.
        nn.Module.__init__(self)
        # Isaac Lab hands unset config fields over as {}.
        if not joint_names or not isinstance(joint_start, int):
            raise UmcError(f"the {obs_set} model needs joint_names and joint_start: set both in the agent config")
        self.obs_groups, _ = self._get_obs_dim(obs, obs_groups, obs_set)
        self.sensor_groups = [group for group in self.obs_groups if group not in (mask_group, flag_group)]
        if not self.sensor_groups:
            raise UmcError(f"obs_groups[{obs_set!r}] holds no observation beside {self.obs_groups}: add one")
        self.mask_group = mask_group if fault_aware and mask_group in self.obs_groups else None
        self.flag_group = flag_group if fault_aware and flag_group in self.obs_groups else None
        self.obs_dim = sum(obs[group].shape[-1] for group in self.sensor_groups)
        self.layout = JointLayout.term_major(joint_names, self.obs_dim, joint_start, neighbours)
        self._check_width(obs, self.mask_group, self.layout.num_joints)
        self._check_width(obs, self.flag_group, FAULT_FLAG_WIDTH)

        self.distribution: Distribution | None = None
        if distribution_cfg is not None:
            distribution_class, options = resolve_class(distribution_cfg)
            self.distribution = cast(Distribution, distribution_class(output_dim, **options))
            if self.distribution.input_dim != output_dim:
                raise UmcError("the network gives one number for each action: use GaussianDistribution")
            if output_dim != self.layout.num_joints:
                raise UmcError(f"the env takes {output_dim} actions, joint_names has {self.layout.num_joints} names")
        elif output_dim != 1:
            raise UmcError(f"a model with {output_dim} outputs needs a distribution_cfg (a value has one output)")

        self.obs_normalization = obs_normalization
        self.obs_normalizer = MaskedNormalization(self.obs_dim) if obs_normalization else nn.Identity()
        options: dict[str, Any] = {"output": "value" if self.distribution is None else "action", **core_cfg}
        if fault_aware:
            options |= {"masked": self.mask_group is not None, "flagged": self.flag_group is not None}
            options["mask_value"] = mask_value
        self.core = core_class(self.layout, **options)

    def forward(
        self,
        obs: TensorDict,
        masks: Tensor | None = None,
        hidden_state: HiddenState = None,
        stochastic_output: bool = False,
    ) -> Tensor:
        """Compute actions or values.

        Args:
            obs: Observation groups, each (B, width).
            masks: rsl_rl's padding masks of recurrent training (not joint masks); must be None.
            hidden_state: Unused, the networks are not recurrent.
            stochastic_output: Whether to sample from the action distribution.

        Returns:
            Sampled or mean actions (B, J), or values (B, 1).

        Raises:
            UmcError: When padding masks arrive, since the other model is recurrent.
        """
        if masks is not None:
            raise UmcError("UMC models do not train beside a recurrent model: use one of them for actor and critic")
        output = self._core_output(*self._inputs(obs))
        if self.distribution is None:
            return output
        if stochastic_output:
            self.distribution.update(output)
            return self.distribution.sample()
        return self.distribution.deterministic_output(output)

    def deterministic(self, obs: Tensor, joint_mask: Tensor | None = None, fault_flag: Tensor | None = None) -> Tensor:
        """Compute the mean action or the value from plain tensors.

        Args:
            obs: Observations (B, D), not normalised.
            joint_mask: (B, J) bool or float, True or 1 = masked; needed where the model has the group.
            fault_flag: (B, 3), -1 or +1; needed where the model has the group.

        Returns:
            Mean actions (B, J) or values (B, 1).
        """
        output = self._core_output(obs, joint_mask, fault_flag)
        return output if self.distribution is None else self.distribution.deterministic_output(output)

    def attention(self, obs: TensorDict) -> Tensor | None:
        """Tell who reads whom in the network; a pass of its own that nothing else pays for.

        Args:
            obs: Observation groups, each (B, width).

        Returns:
            Shares (blocks, B, heads, J + 1, J + 1), see MaskedTransformer.attention; None for a network without
            attention.
        """
        if not isinstance(self.core, MaskedTransformer):
            return None
        sensors, joint_mask, fault_flag = self._inputs(obs)
        return self.core.attention(self.obs_normalizer(sensors), joint_mask, fault_flag)

    def update_normalization(self, obs: TensorDict) -> None:
        """Learn the observation statistics from a batch, living sensors only.

        Args:
            obs: Observation groups, each (B, width).
        """
        if isinstance(self.obs_normalizer, MaskedNormalization):
            sensors, joint_mask, _ = self._inputs(obs)
            columns = self.core.columns
            dead = None if joint_mask is None else columns.dead_columns(columns.dead_tokens(joint_mask))
            self.obs_normalizer.update(sensors, dead)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights; another model's are one clear error instead of a list of all parameters.

        Args:
            state_dict: Weights by name.
            strict: Whether names must be the same.
            assign: Whether to take the tensors themselves.

        Returns:
            What torch returns: names that are missing or unexpected.

        Raises:
            UmcError: When names or shapes are another model's; the model is left as it was.
        """
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
        """Return a copy that torch.jit.script takes, see ExportedPolicy."""
        return ExportedPolicy(self)

    def as_onnx(self, verbose: bool = False) -> nn.Module:
        """Return a copy that torch.onnx.export takes, see ExportedPolicy."""
        return ExportedPolicy(self)

    def _core_output(self, sensors: Tensor, joint_mask: Tensor | None, fault_flag: Tensor | None) -> Tensor:
        """Normalise first, then let the network blank dead joints: so they read mask_value exactly."""
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
        """Refuse an observation group of another width."""
        if group is not None and obs[group].shape[-1] != width:
            raise UmcError(f"observation group {group!r} is {obs[group].shape[-1]} wide, the model needs {width}")


class MaskedTransformerModel(MaskedModel):
    """The masked transformer for rsl_rl; options as in umc.models.MaskedTransformer, all others as in MaskedModel."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        embed_dim: int = 120,
        num_heads: int = 2,
        feedforward_dim: int = 128,
        num_layers: int = 4,
        activation: str = "relu",
        attention: str = "full",
        hidden_dims: Sequence[int] = (),
        **options: Any,
    ) -> None:
        if hidden_dims:
            raise UmcError(NO_HIDDEN_DIMS)
        core_cfg = {
            "embed_dim": embed_dim,
            "num_heads": num_heads,
            "feedforward_dim": feedforward_dim,
            "num_layers": num_layers,
            "activation": activation,
            "attention": attention,
        }
        super().__init__(
            obs, obs_groups, obs_set, output_dim, core_class=MaskedTransformer, core_cfg=core_cfg, **options
        )


class BodyTransformerModel(MaskedModel):
    """BodyTransformer for rsl_rl; options as in umc.models.BodyTransformer, all others as in MaskedModel.

    It reads neither mask nor flag: their groups may be in the set, so that a task needs no other groups for it.
    """

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        embed_dim: int = 64,
        num_heads: int = 2,
        feedforward_dim: int = 128,
        num_layers: int = 8,
        activation: str = "relu",
        attention: str = "body",
        output_activation: str | None = "tanh",
        mask_value: float = 0.0,
        hidden_dims: Sequence[int] = (),
        **options: Any,
    ) -> None:
        if hidden_dims:
            raise UmcError(NO_HIDDEN_DIMS)
        if mask_value != 0.0:
            raise UmcError("a BodyTransformer masks nothing: leave mask_value at 0.0")
        core_cfg = {
            "embed_dim": embed_dim,
            "num_heads": num_heads,
            "feedforward_dim": feedforward_dim,
            "num_layers": num_layers,
            "activation": activation,
            "attention": attention,
            "output_activation": output_activation,
        }
        super().__init__(
            obs,
            obs_groups,
            obs_set,
            output_dim,
            core_class=BodyTransformer,
            core_cfg=core_cfg,
            fault_aware=False,
            **options,
        )


class MaskedMlpModel(MaskedModel):
    """The masked MLP for rsl_rl; options as in umc.models.MaskedMlp, all others as in MaskedModel."""

    def __init__(
        self,
        obs: TensorDict,
        obs_groups: dict[str, list[str]],
        obs_set: str,
        output_dim: int,
        hidden_dims: Sequence[int] = HIDDEN_DIMS,
        activation: str = "elu",
        **options: Any,
    ) -> None:
        core_cfg = {"hidden_dims": hidden_dims, "activation": activation}
        super().__init__(obs, obs_groups, obs_set, output_dim, core_class=MaskedMlp, core_cfg=core_cfg, **options)


class ExportedPolicy(nn.Module):
    """A model's normaliser, network and mean action, for TorchScript and ONNX.

    Takes (policy (B, D), joint_mask (B, J), fault_flag (B, 3)), all float, whether the model reads them all or not,
    and gives actions (B, J).

    Args:
        model: The model to copy.

    Raises:
        UmcError: When the model is a value network.
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
