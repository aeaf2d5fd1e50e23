# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Export of a policy as ONNX and TorchScript, with a JSON that describes inputs, outputs, starts and falls."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch

from umc.deploy.detector_export import write_detector_onnx
from umc.deploy.onnx_files import CHECK_BATCHES, TOLERANCE, add_metadata, export_onnx, ignore_deprecation
from umc.deploy.robot_package import RUNNER, write_runner
from umc.detection import DetectorFile
from umc.rl.checkpoint import checkpoint_info, read_checkpoint
from umc.rl.external_networks import load_network
from umc.rl.io_descriptor import described_groups, group_widths, task_figures
from umc.rl.models import EXPORT_INPUTS, EXPORT_OUTPUTS, MEMORY_OUTPUT, MaskedModel
from umc.rl.policy import ACTOR_SET, LoadedPolicy, load_policy, stored_agent
from umc.tasks.parts import foot_names
from umc.utils.description import DIGEST_KEY, FILES, FORMAT, MEMORY_INPUT, digest, validate
from umc.utils.errors import UmcError
from umc.utils.io import atomic_path, sha256

DETECTOR = "detector.onnx"
"""File of a detector that is exported with the policy."""

OBSERVATION_NAMES = {
    "generated_commands": "command",
    "joint_pos_rel": "joint_pos",
    "joint_vel_rel": "joint_vel",
    "last_action": "actions",
}
"""What mjlab's tasks call the terms of these functions; other terms are named by their function."""

MEMORY = "h_out of the step before; zeros at the start of an episode"
"""What a policy with memory takes as :data:`MEMORY_INPUT`."""

TO_COME = {"file": DETECTOR, "sha256": "0" * 64, "largest_difference_to_torch": 0.0}
"""Stands for what is said of a network that is not written yet."""

CHECK_STEPS = 3
"""Steps of an episode in the check: what a network remembers shows from the second on."""


class Exported(NamedTuple):
    """Files of an exported policy."""

    onnx: Path
    torchscript: Path
    description: Path
    """``policy.json``."""


def export_checkpoint(
    checkpoint: Path | str,
    out: Path | str,
    env_cfg: Any,
    detector: DetectorFile | None = None,
    any_fault: bool = False,
) -> Exported:
    """Write ``policy.onnx``, ``policy.pt``, ``policy.json`` and their runner to the folder ``out``.

    A detector is written beside them as ``detector.onnx``; ``any_fault`` says whether it raises the flag for every
    joint fault.

    Raises:
        UmcError: If the checkpoint does not fit the task, the export does not agree with torch, or the folder cannot
            be written; files that were there before are left as they are.
    """
    path, folder = Path(checkpoint), Path(out)
    info = checkpoint_info(read_checkpoint(path), path)
    for group in stored_agent(path, info)["obs_groups"][ACTOR_SET]:
        if group not in EXPORT_INPUTS:
            raise UmcError(
                f"{path} reads the observation group {group}, which exported policies do not take; run it with umc "
                "evaluate, play or film"
            )
    widths = group_widths(env_cfg.observations, EXPORT_INPUTS, len(info.joint_names))
    policy = load_policy(path, widths)
    files = Exported(folder / "policy.onnx", folder / "policy.pt", folder / "policy.json")
    with contextlib.ExitStack() as stack:
        parts = Exported(*(stack.enter_context(atomic_path(file)) for file in files))
        content = describe(policy, env_cfg)  # first: takes no time and can fail
        read = json.loads(json.dumps({**content, **dict.fromkeys(FILES, TO_COME)}))
        validate(read, f"{info.task} cannot be exported", "correct the task's cfg and train with it")
        if detector is not None:
            detector.require(policy.info.robot, policy.info.joint_names)
            detector.require_layout(policy.actor.layout)
            part = stack.enter_context(atomic_path(folder / DETECTOR))
            difference = write_detector_onnx(detector.detector, part, any_fault, detector.held_out)
            content["detector"] = {
                "file": DETECTOR,
                "sha256": sha256(part),
                "largest_difference_to_torch": difference,
            }
        write_onnx(policy.actor, parts.onnx)
        add_metadata(parts.onnx, {**onnx_metadata(content, env_cfg), DIGEST_KEY: digest(content)})
        write_torchscript(policy.actor, parts.torchscript)
        for kind in ("onnx", "torchscript"):
            content[kind] = {
                "file": getattr(files, kind).name,
                "sha256": sha256(getattr(parts, kind)),
                "largest_difference_to_torch": check_export(policy.actor, getattr(parts, kind)),
            }
        parts.description.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        write_runner(stack.enter_context(atomic_path(folder / RUNNER)))
    return files


def write_onnx(actor: MaskedModel, path: Path) -> None:
    """Export an actor with a dynamic batch and named inputs."""
    module: Any = actor.as_onnx().eval()
    example = tuple(tensor.repeat_interleave(2, -2) for tensor in module.get_dummy_inputs())
    export_onnx(module, example, path, module.input_names, module.output_names, (MEMORY_INPUT, MEMORY_OUTPUT))
    model = onnx.load(str(path))
    unread = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", width])
        for name, width in zip(EXPORT_INPUTS, module.widths[: len(EXPORT_INPUTS)], strict=True)
        if name not in [given.name for given in model.graph.input]
    ]
    model.graph.input.extend(unread)  # the exporter leaves out what a network does not read
    onnx.save(model, str(path))
    onnx.checker.check_model(str(path))


def onnx_metadata(content: Mapping[str, Any], env_cfg: Any) -> dict[str, str]:
    """Return what the ONNX file says about itself: the keys of mjlab's exporter, lists joined by commas.

    ``observation_scales`` is our own key, one figure per column of the input ``policy``. Runners that read these keys
    add the action to ``default_joint_pos``: a policy with another offset has no metadata.
    """
    joints, control, terms = content["joints"], content["control"], content["observations"]["policy"]
    pose = [joint["default_position_rad"] for joint in joints]
    if control["action_offset_rad"] != pose:
        return {}
    lists = {
        "joint_names": [joint["name"] for joint in joints],
        "joint_stiffness": [joint["kp_Nm_per_rad"] for joint in joints],
        "joint_damping": [joint["kd_Nms_per_rad"] for joint in joints],
        "default_joint_pos": pose,
        "action_scale": control["action_scale"],
        "observation_names": [OBSERVATION_NAMES.get(term["function"], term["function"]) for term in terms],
        "observation_history_lengths": [1 for _ in terms],
        "observation_scales": [
            scale
            for term in terms
            for scale in np.broadcast_to(term["scale"], term["columns"][1] - term["columns"][0]).tolist()
        ],
        "command_names": [
            name for name, term in getattr(env_cfg.commands, "__dict__", {}).items() if hasattr(term, "class_type")
        ],
    }
    run = f"{content['trained']['experiment']}/{content['checkpoint']['file']}"
    return {"run_path": run, **{key: ",".join(map(str, values)) for key, values in lists.items()}}


def write_torchscript(actor: MaskedModel, path: Path) -> None:
    """Export an actor as TorchScript."""
    with ignore_deprecation():
        torch.jit.script(actor.as_jit().eval()).save(str(path))  # pyright: ignore[reportPrivateImportUsage]


def check_export(actor: MaskedModel, path: Path) -> float:
    """Return the largest difference of a file's action to torch, over batches and masks; UmcError above TOLERANCE."""
    joints, columns = actor.layout.num_joints, actor.obs_dim
    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for batch in CHECK_BATCHES:
        network = load_network(path, batch)
        some = (torch.rand(batch, joints, generator=generator) < 0.3).float()
        for mask in (torch.zeros(batch, joints), some, torch.ones(batch, joints)):
            flag = torch.where(mask.any(1, keepdim=True), 1.0, -1.0).expand(batch, 3).contiguous()
            read = {"joint_mask": mask, "fault_flag": flag}
            network.reset(None)
            actor.reset()
            for _ in range(CHECK_STEPS if actor.is_recurrent else 1):
                obs = torch.randn(batch, columns, generator=generator)
                with torch.inference_mode():
                    given = network(obs, *(read[name] for name in network.groups)).numpy()
                    wanted = actor.deterministic(obs, mask, flag).numpy()
                difference = float(np.abs(given - wanted).max()) if given.shape == wanted.shape else float("nan")
                if not difference <= TOLERANCE:
                    raise UmcError(
                        f"the exported policy differs from torch by {difference:.2g} (batch {batch}); "
                        "nothing was written: install torch and onnxruntime as in requirements.lock"
                    )
                largest = max(largest, difference)
    return largest


def describe(policy: LoadedPolicy, env_cfg: Any) -> dict[str, Any]:
    """Return the content of ``policy.json``; UmcError if the task's columns are not those of the training."""
    names = policy.info.joint_names
    robot = env_cfg.scene.robot
    if isinstance(robot.joint_ordering, list | tuple) and list(robot.joint_ordering) != list(names):
        raise UmcError(f"the robot of {policy.info.task} has other joints than {policy.path}; train it again")
    groups = described_groups(policy.path, env_cfg.observations, EXPORT_INPUTS, names)
    positions = next((term["columns"][0] for term in groups["policy"] if term["function"] == "joint_pos_rel"), None)
    if positions != policy.actor.layout.joint_columns[0][0]:
        raise UmcError("the task's joint columns are not where the policy expects them; correct joint_start")
    figures = task_figures(env_cfg, names, foot_names(env_cfg))
    figures["control"]["action_clip"] = policy.clip
    return {
        "format": FORMAT,
        "checkpoint": {"file": policy.path.name, "sha256": policy.sha256},
        "trained": asdict(policy.info),
        "inputs": {
            "policy": "observations times their scale, without noise; the entries of dead joints are 0",
            "joint_mask": "1 where a joint's sensor is dead, else 0",
            "fault_flag": "three times +1 where a joint fault has been detected, else three times -1",
            **({MEMORY_INPUT: MEMORY} if policy.actor.is_recurrent else {}),
        },
        "output": f"{EXPORT_OUTPUTS[0]}: one per joint, mean of the policy",
        "observations": groups,
        "normalizer": "inside the network" if policy.actor.obs_normalization else None,
        **figures,
    }
