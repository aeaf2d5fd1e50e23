# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files of others as networks for many robots at once, with memory: TorchScript, ONNX, weights of checkpoints."""

from __future__ import annotations

import contextlib
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from umc.models.blocks import ACTIVATIONS
from umc.utils.errors import UmcError, shown
from umc.utils.io import read_torch

TOLERANCE = 1e-4
"""Largest difference between actions of a robot among others and alone [-]."""

RUN_ERRORS = (RuntimeError, IndexError, torch.jit.Error)
"""What a network raises that does not fit its inputs."""

OTHER_DEVICE = re.compile(r"same device|at least two devices|not on the expected device")
"""What torch says of tensors on two devices."""

STEPS = 3
"""Steps in which a network is tried before its first."""

STATE_IN, STATE_OUT = "_in", "_out"
"""Endings of an ONNX file's recurrent inputs and outputs, as rsl_rl exports them (``h_in``, ``h_out``)."""


@dataclass
class _File:
    path: Path
    num_envs: int
    device: str
    groups: tuple[str, ...] = field(default=(), init=False)
    """Observation groups that it reads beside its columns: the names of its other inputs."""


@dataclass
class TorchScriptNetwork(_File):
    """A TorchScript module; buffers that hold the state of one robot are widened to all envs, by its first step."""

    _state: list[tuple[Any, str, torch.Tensor]] | None = field(default=None, init=False)
    """Module, buffer and first value of what a robot remembers; None before the first step."""

    def __post_init__(self) -> None:
        self.module = self._load()
        if not hasattr(self.module, "forward"):
            raise UmcError(f"{self.path} has no forward method; export a module that has one")
        arguments = self.module.forward.schema.arguments[1:]  # without the module itself
        self.groups = tuple(one.name for one in arguments[1:] if not one.has_default_value())

    def _load(self) -> Any:
        try:
            return torch.jit.load(str(self.path), map_location=self.device).eval()
        except (RuntimeError, ValueError, OSError) as error:
            raise UmcError(
                f"{self.path} is no TorchScript file ({shown(str(error).splitlines()[0])}); export the policy with "
                "torch.jit.script, or to ONNX"
            ) from error

    def _find_state(self, widths: Sequence[int]) -> list[tuple[Any, str, torch.Tensor]]:
        """Return the buffers (layers, 1, cells), as torch's recurrent networks keep them, that steps change."""
        tried, generator = self._load(), torch.Generator().manual_seed(0)
        first = {name: value.clone() for name, value in tried.named_buffers()}
        for _ in range(STEPS):
            tried(*(torch.randn(1, width, generator=generator).to(self.device) for width in widths))
        changed = {
            name for name, value in tried.named_buffers() if value.dim() == 3 and not torch.equal(value, first[name])
        }
        owners = dict(self.module.named_modules())
        places = [(name, *name.rpartition(".")[::2]) for name in changed if first[name].shape[1] == 1]
        return [(owners[owner], name, first[full]) for full, owner, name in places]

    def __call__(self, columns: torch.Tensor, *groups: torch.Tensor) -> torch.Tensor:
        """Return actions for columns and the groups that it reads. Shapes are (num_envs, width)."""
        if self._state is None:
            self._state = self._find_state([columns.shape[-1], *(group.shape[-1] for group in groups)])
            self.reset(None)
        actions = self.module(columns, *groups)
        if not isinstance(actions, torch.Tensor):
            raise UmcError(f"{self.path} returns a {type(actions).__name__}; export one that returns the actions alone")
        return actions

    @torch.inference_mode()  # as its steps
    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in these envs, a mask, or in all."""
        for owner, name, first in self._state or ():
            if envs is None:
                setattr(owner, name, first.repeat(1, self.num_envs, 1))
            else:
                setattr(owner, name, torch.where(envs[:, None], first, getattr(owner, name)))


@dataclass
class OnnxNetwork(_File):
    """An ONNX file; its number of robots is made free, and recurrent inputs are kept from step to step."""

    def __post_init__(self) -> None:
        import onnxruntime  # slow to import

        model = _load_onnx(self.path)
        for value in (*model.graph.input, *model.graph.output):
            sizes = value.type.tensor_type.shape.dim
            robots = 1 if len(sizes) == 3 else 0
            if len(sizes) > robots:
                sizes[robots].dim_param = "robots"
        del model.graph.value_info[:]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = torch.get_num_threads()
        try:
            self.session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors share no base
            raise UmcError(
                f"{self.path} cannot be run ({shown(str(error).splitlines()[0])}); export it again"
            ) from error
        inputs = self.session.get_inputs()
        self._states = [one for one in inputs if one.name.endswith(STATE_IN)]
        columns = [one for one in inputs if not one.name.endswith(STATE_IN)]
        outputs = [one.name for one in self.session.get_outputs()]
        self._kept = [one.name.removesuffix(STATE_IN) + STATE_OUT for one in self._states]
        actions = [name for name in outputs if name not in self._kept]
        for one in inputs:
            shape, state = list(one.shape or ()), one in self._states
            if one.type != "tensor(float)":
                raise UmcError(f"{self.path}: its input {one.name} is a {one.type}; export it in float32")
            if len(shape) != (3 if state else 2) or (state and not all(isinstance(shape[at], int) for at in (0, 2))):
                wanted = "(layers, robots, cells), with fixed layers and cells" if state else "(robots, columns)"
                raise UmcError(f"{self.path}: its input {one.name} has shape {shape}; export it with shape {wanted}")
        if not columns or not actions or any(name not in outputs for name in self._kept):
            raise UmcError(
                f"{self.path} takes {', '.join(one.name for one in inputs)} and returns {', '.join(outputs)}; it has "
                f"to take an observation, and states NAME{STATE_IN} that it returns as NAME{STATE_OUT}"
            )
        self._inputs, self._output = columns, actions[0]
        self.groups = tuple(one.name for one in columns[1:])
        self.reset(None)

    def __call__(self, columns: torch.Tensor, *groups: torch.Tensor) -> torch.Tensor:
        """Return actions for columns and the groups that it reads. Shapes are (num_envs, width)."""
        feed = dict(self._state)
        for one, given in zip(self._inputs, (columns, *groups), strict=True):
            width = one.shape[-1]
            if isinstance(width, int) and width != given.shape[-1]:
                raise RuntimeError(f"its input {one.name} reads {width}")
            feed[one.name] = given.float().cpu().contiguous().numpy()
        try:
            actions, *kept = self.session.run([self._output, *self._kept], feed)
        except Exception as error:  # onnxruntime's errors share no base
            raise RuntimeError(str(error)) from error
        self._state = {one.name: np.array(value) for one, value in zip(self._states, kept, strict=True)}
        return torch.from_numpy(actions).to(self.device)

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in these envs, a mask, or in all."""
        if envs is None:
            self._state: dict[str, np.ndarray] = {
                one.name: np.zeros((one.shape[0], self.num_envs, one.shape[2]), np.float32) for one in self._states
            }
            return
        for value in self._state.values():
            value[:, envs.cpu().numpy()] = 0.0


@dataclass
class CheckpointNetwork(_File):
    """The actor in a checkpoint of rsl_rl or skrl: normalization, then an LSTM or GRU if it has one, then an MLP."""

    activation: str = "elu"

    def __post_init__(self) -> None:
        weights = _actor_weights(self.path)
        layers = [name for name in weights if f"{name[:-6]}bias" in weights and name.endswith(".weight")]
        memory = next((name.removesuffix("weight_ih_l0") for name in weights if name.endswith("weight_ih_l0")), None)
        self._memory: nn.LSTM | nn.GRU | None = None
        width = None
        try:
            self._normalize = _normalization(weights, self.device)
            # skrl's last layer has no container
            owners = {
                name.removesuffix(".weight").rpartition(".")[0] for name in layers if name != "policy_layer.weight"
            }
            if len(owners) > 1:
                raise ValueError(f"its layers are of {', '.join(sorted(owners))}, in an order that it does not say")
            if memory is not None:
                own = {name.removeprefix(memory): value for name, value in weights.items() if name.startswith(memory)}
                (rows, inputs), cells = own["weight_ih_l0"].shape, own["weight_hh_l0"].shape[1]
                depth = sum(name.startswith("weight_ih_l") for name in own)
                self._memory = (nn.LSTM if rows == 4 * cells else nn.GRU)(inputs, cells, depth).to(self.device)
                self._memory.load_state_dict(own)
                width = cells
            modules: list[nn.Module] = []
            for name in layers:
                weight, bias = weights[name], weights[f"{name[:-6]}bias"]
                if weight.dim() != 2 or (width is not None and weight.shape[1] != width):
                    raise ValueError(f"{name} does not follow the layer before")
                layer = nn.Linear(weight.shape[1], weight.shape[0], device=self.device)
                layer.load_state_dict({"weight": weight, "bias": bias})
                modules += [layer, ACTIVATIONS[self.activation]()]
                width = weight.shape[0]
            if not modules:
                raise ValueError("it has no layers")
        except (KeyError, ValueError, RuntimeError) as error:
            reason = shown(str(error).splitlines()[0])
            raise UmcError(f"{self.path} is no MLP, LSTM or GRU ({reason}); export the policy to ONNX") from error
        self._layers = nn.Sequential(*modules[:-1])
        self._state: Any = None

    def __call__(self, columns: torch.Tensor) -> torch.Tensor:
        """Return actions for columns. Shapes are (num_envs, width)."""
        columns = self._normalize(columns)
        if self._memory is not None:
            columns, self._state = self._memory(columns[None], self._state)
            columns = columns[0]
        return self._layers(columns)

    def reset(self, envs: torch.Tensor | None) -> None:
        """Forget what was seen in these envs, a mask, or in all."""
        if envs is None:
            self._state = None
        elif self._state is not None:
            for value in self._state if isinstance(self._state, tuple) else (self._state,):
                value.masked_fill_(envs[:, None], 0.0)


Network = TorchScriptNetwork | OnnxNetwork | CheckpointNetwork
"""From the columns of all envs, and of the groups that it names, to their actions."""


def load_network(path: Path, num_envs: int = 1, device: str = "cpu", activation: str = "elu") -> Network:
    """Load a file as a network; ``activation`` is for a checkpoint, which does not say. UmcError if it holds none."""
    if path.suffix == ".onnx":
        return OnnxNetwork(path, num_envs, device)
    if is_torchscript(path):
        return TorchScriptNetwork(path, num_envs, device)
    return CheckpointNetwork(path, num_envs, device, activation)


def exact_products() -> contextlib.AbstractContextManager[Any]:
    """Return a context in which actions do not depend on the batch.

    By default a GPU rounds the factors of products to 10 bits, by other kernels for one robot than for many.
    """
    from isaaclab_rl.entrypoints.common import scoped_torch_backend_flags  # slow to import

    return scoped_torch_backend_flags(
        cuda_matmul_allow_tf32=False, cudnn_allow_tf32=False, cudnn_deterministic=True, cudnn_benchmark=False
    )


def require_fits(path: Path, network: Network, widths: Sequence[int], about: str, num_actions: int) -> None:
    """Raise UmcError unless a network takes its inputs, and robots side by side get what each gets alone.

    After a reset they have to get it again, and a robot that another's reset does not concern has to go on.
    ``widths`` are the columns of its inputs, ``about`` says what the first holds.
    """
    robots, generator = 2, torch.Generator().manual_seed(0)
    seen = [
        [torch.randn(robots, width, generator=generator).to(network.device) for width in widths] for _ in range(STEPS)
    ]

    def walk(one: Network, rows: slice) -> torch.Tensor:
        actions = torch.stack([one(*(given[rows] for given in step)) for step in seen])
        count = len(seen[0][0][rows])
        if actions.dim() != 3 or actions.shape[1] != count:
            raise RuntimeError(f"for {count} robots it returns shape {tuple(actions.shape[1:])}")
        return actions

    with exact_products(), torch.inference_mode():
        singles, both = [replace(network, num_envs=1) for _ in range(robots)], replace(network, num_envs=robots)
        rows = [slice(robot, robot + 1) for robot in range(robots)]
        try:
            alone = torch.cat([walk(*one) for one in zip(singles, rows, strict=True)], dim=1)
        except RUN_ERRORS as error:
            if network.device != "cpu" and OTHER_DEVICE.search(str(error)):
                raise UmcError(
                    f"{path} has tensors on the CPU built in; script the policy instead of tracing it, or give "
                    "--device cpu"
                ) from error
            raise UmcError(
                f"{path} does not take the {widths[0]} columns of the task ({about}): {_reason(error)}; "
                "describe what it reads in a YAML file (docs/external_policies.md)"
            ) from error
        try:
            together = walk(both, slice(None))
        except RUN_ERRORS as error:
            raise UmcError(
                f"{path} runs one robot at a time ({_reason(error)}); export it with a dynamic batch, or by "
                "torch.onnx.export with dynamo=False"
            ) from error
        _require_same(path, alone, together, "other actions among others than alone")
        both.reset(None)
        _require_same(path, alone, walk(both, slice(None)), "other actions after a reset than at first")
        both.reset(torch.tensor([True, False], device=network.device))
        wanted = torch.cat([alone[:, :1], walk(singles[1], rows[1])], dim=1)
        _require_same(path, wanted, walk(both, slice(None)), "other actions after its reset, or that of another")
    if together.shape[-1] != num_actions:
        raise UmcError(f"{path} returns {together.shape[-1]} actions, the task takes {num_actions}")


def _reason(error: Exception) -> str:
    """Return the last line of an error, in which the engines say what is wrong."""
    lines = [line.split("Error: ")[-1] for line in str(error).splitlines() if line.strip()]
    return shown(lines[-1] if lines else type(error).__name__)


def _require_same(path: Path, wanted: torch.Tensor, found: torch.Tensor, what: str) -> None:
    """Raise UmcError unless actions of all steps are the same."""
    if not torch.allclose(wanted, found, atol=TOLERANCE):
        raise UmcError(
            f"{path} gives a robot {what}: it keeps state in a way that UMC does not know; write a function that makes "
            "the policy (package.module:function)"
        )


def is_torchscript(path: Path) -> bool:
    """Return whether a file is a TorchScript archive, which holds code; a checkpoint holds weights only."""
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("/constants.pkl") for name in archive.namelist())
    except zipfile.BadZipFile as error:
        raise UmcError(f"{path} is damaged ({shown(str(error))}); copy it again, or export the policy again") from error


def onnx_data(path: Path) -> tuple[Path, ...]:
    """Return the files beside an ONNX file that hold its weights; UmcError if one is missing."""
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data  # slow to import

    model = _load_onnx(path, load_external_data=False)
    names = {ExternalDataInfo(one).location for one in model.graph.initializer if uses_external_data(one)}
    for name in sorted(names):
        if Path(name).name != name or not (path.parent / name).is_file():
            raise UmcError(f"{path} has its weights in {shown(name)}; copy that file beside it, or export it in one")
    return tuple(path.parent / name for name in sorted(names))


def _load_onnx(path: Path, load_external_data: bool = True) -> Any:
    import onnx  # slow to import

    try:
        return onnx.load(str(path), load_external_data=load_external_data)
    except Exception as error:  # protobuf's own errors share no base
        raise UmcError(f"{path} is no ONNX file; export the policy to ONNX again") from error


def is_umc_checkpoint(data: Any) -> bool:
    """Return whether the content of a file is a checkpoint of UMC."""
    return isinstance(data, dict) and isinstance(data.get("infos"), dict) and "umc" in data["infos"]


def read_weights(path: Path) -> Any:
    """Return the content of a checkpoint of any library without running code; UmcError if it is damaged or none."""
    if not zipfile.is_zipfile(path):
        raise UmcError(
            f"{path} is no zip file, as torch.save writes since version 1.6: it is damaged or older; copy it again, or "
            "save what torch.load reads of it with a later torch"
        )
    return read_torch(path, "give a TorchScript or ONNX file, or a checkpoint of rsl_rl or skrl", "checkpoint")


def _actor_weights(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of an actor and its normalization; rsl_rl before 5 and skrl keep them beside a critic's."""
    data = read_weights(path)
    if is_umc_checkpoint(data):
        raise UmcError(f"{path} is a checkpoint of UMC; give it to --checkpoint")
    for key, starts in (
        ("actor_state_dict", ("",)),
        ("model_state_dict", ("actor.", "memory_a.", "actor_obs_normalizer.")),
        ("policy", ("",)),
    ):
        found = data.get(key) if isinstance(data, dict) else None
        if isinstance(found, dict):
            scaler = data.get("observation_preprocessor") or data.get("state_preprocessor") or {}
            weights = {name: value for name, value in found.items() if name.startswith(starts)}
            scaler = {"policy": scaler, "model_state_dict": data.get("obs_norm_state_dict") or {}}.get(key, {})
            weights |= {f"scaler.{name}": value for name, value in scaler.items()}
            return {
                name: value.float()
                for name, value in weights.items()
                if isinstance(value, torch.Tensor) and not name.startswith(("critic", "value"))
            }
    raise UmcError(f"{path} holds no actor of rsl_rl or skrl; export the policy to ONNX")


def _normalization(weights: dict[str, torch.Tensor], device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return what a checkpoint does to its columns first, as its library does it."""
    ends = {name.rpartition(".")[2]: value.reshape(-1).to(device) for name, value in weights.items()}
    if "_mean" in ends:  # rsl_rl's EmpiricalNormalization
        mean, scale = ends["_mean"], ends["_std"] + 0.01
        return lambda columns: (columns - mean) / scale
    if "running_mean" in ends:  # skrl's RunningStandardScaler
        mean, scale = ends["running_mean"], ends["running_variance"].sqrt() + 1e-8
        return lambda columns: ((columns - mean) / scale).clamp(-5.0, 5.0)
    return lambda columns: columns
