# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Put a trained policy into the package.

``./isaaclab.sh -p -m tools.publish_policy CHECKPOINT --recipe NAME --metrics report.json``

The file keeps the networks and drops the optimizer; weights are stored in half precision, statistics of observations in
full. What it computes is compared with the checkpoint before anything is written. Beside it, ``models.json`` says where
it comes from and how it was measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.rl.checkpoint import CheckpointInfo, checkpoint_info, read_checkpoint, trained_overrides, trained_terrain
from umc.rl.pretrained import FORMAT, MODELS, model_name, pretrained_folder, read_models
from umc.tasks.registry import checked_checkpoint
from umc.training.recipe import recipe_names
from umc.utils.cli import Parser, did_you_mean, run_main
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, sha256, write_json
from umc.utils.provenance import RUN_FILE, read_record

if TYPE_CHECKING:
    import torch
    from umc.rl.policy import LoadedPolicy

LARGEST_FILE = 2_000_000
"""Most bytes of a pretrained policy, as of any file of the repository."""

TOLERANCE = 0.01
"""Largest accepted difference of an action [action], 5 mrad at the tasks' action scale of 0.5; A1's MLP differs by
7e-4 where its actions reach 4."""

CHECK_ROWS = 256
"""Observations of the comparison."""

CHECK_SCALES = (0.3, 1.0)
"""Their spread: scaled observations of a walk lie about zero, mostly within one."""

MASKED_SHARE = 0.3
"""Share of masked joints in the comparison [-]."""

NO_RECIPE = "none"
"""What ``--recipe`` says of a policy that was trained without one."""

LICENCE = "BSD-3-Clause"
"""Licence of published weights, the package's."""

NETWORKS = ("actor_state_dict", "critic_state_dict")
"""What is kept; Stage 2 goes on from both."""

DIGITS = 4
"""Digits of the figures in ``models.json``."""

RATES = ("reached@", "failed")
"""Beginnings of the metrics that are kept of a report."""


def main(argv: Sequence[str]) -> int:
    """Publish the policy that the command line names; return the exit status."""
    return run_main(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = Parser(prog="python -m tools.publish_policy", description="Put a trained policy into the package.")
    add = parser.add_argument
    add("checkpoint", help="model_<iteration>.pt, a run folder, or a pretrained file whose entry is to be changed")
    add("--recipe", help="recipe it was trained by (config/recipes); 'none' where it was trained without one")
    add("--metrics", type=Path, nargs="*", default=[], help="report.json and gait.json of scripts/evaluate.py about it")
    add("--commit", help="commit it was trained at; the one in the run's run.json without it")
    add("--note", help="anything else that a reader should know")
    add("--actor_only", action="store_true", help="leave the critic out, which only further training needs")
    add("--replace", action="store_true", help="take the place of the policy of the same robot, agent and stage")
    add("--out", type=Path, default=pretrained_folder(), help="folder to write to; the package's without it")
    options = parser.parse_args(argv)
    checkpoint = checked_checkpoint(options.checkpoint)
    assert checkpoint is not None
    with quiet():
        from umc.tasks.registry import load_tasks

        load_tasks()
        name, entry = publish(checkpoint, options)
    difference = f"actions differ by {entry['largest_difference']:.2g} at most"
    print(f"{options.out / name}.pt: {entry['bytes']:,} bytes, {difference}")
    print(f"{options.out / MODELS}: {name} is one of {len(read_models(options.out))} policies")
    return 0


def publish(checkpoint: Path, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Write a policy and its entry."""
    import torch
    from umc.utils.naming import library_of

    data = read_checkpoint(checkpoint)
    info = checkpoint_info(data, checkpoint)
    folder: Path = options.out
    agent = info.agent.removesuffix("_cfg_entry_point").removeprefix(f"{library_of(info.agent)}_")
    name = model_name(info.robot, agent, info.stage)
    models = read_models(folder)
    before, again = models.get(name), checkpoint.resolve() == (folder / f"{name}.pt").resolve()
    if before is not None and not again and not options.replace:
        raise UmcError(f"{name} is in {folder} already ({summary(before)}); --replace puts this one in its place")
    recipe = options.recipe or ((before["recipe"] or NO_RECIPE) if again and before else None)
    if recipe is None:
        raise UmcError("--recipe is missing; name the recipe it was trained by, or --recipe none")
    if recipe != NO_RECIPE and recipe not in (known := recipe_names()):
        raise UmcError(
            f"no recipe {recipe} in config/recipes;{did_you_mean(recipe, known)} save the one it was trained by there, "
            f"or give --recipe {NO_RECIPE}"
        )
    provenance = _provenance(checkpoint, info, data)
    if again and before is not None:
        provenance = {**provenance, **{key: before[key] for key in ("commit", "trained", "source_sha256")}}
    if options.commit:
        provenance["commit"] = options.commit
    if provenance["commit"] is None:
        raise UmcError(f"no {RUN_FILE} beside {checkpoint} says at which commit it was trained; give --commit")
    if not provenance["trained"]["terrain"]:  # runs of UMC 0.1 say only what was overridden
        provenance["trained"] = {**provenance["trained"], "terrain": _ground(info, trained_overrides(checkpoint, info))}
    info = dataclasses.replace(
        info,
        physics=provenance["trained"]["physics"],
        terrain=provenance["trained"]["terrain"],
        env_overrides=trained_overrides(checkpoint, info),
    )
    buffer = io.BytesIO()
    torch.save(stripped(data, info, options.actor_only), buffer)
    content = buffer.getvalue()
    if len(content) > LARGEST_FILE:
        fix = "leave the critic out with --actor_only" if not options.actor_only else "train a smaller network"
        raise UmcError(f"{name}.pt would have {len(content):,} bytes, more than {LARGEST_FILE:,}; {fix}")
    folder.mkdir(parents=True, exist_ok=True)
    difference = _checked(checkpoint, info, content, folder, name)
    if again and before is not None:  # that to what was trained, not to itself
        difference = max(difference, before["largest_difference"])
    path = folder / f"{name}.pt"
    kept = dict((before or {}).get("metrics") or {}) if again else {}
    known = {sha256(checkpoint), provenance["source_sha256"]}
    for report in options.metrics:
        kept.update(metrics_of(report, known))
    with atomic_write(path) as file:
        file.write(content)
    entry = {
        "robot": info.robot,
        "agent": agent,
        "network": info.model,
        "stage": info.stage,
        "sha256": sha256(path),
        "bytes": len(content),
        "licence": LICENCE,
        "recipe": None if recipe == NO_RECIPE else recipe,
        "commit": provenance["commit"],
        "seed": info.seed,
        "trained": provenance["trained"],
        "source_sha256": provenance["source_sha256"],
        "largest_difference": round(difference, 6),
        "metrics": kept,
        "note": options.note or ((before or {}).get("note") if again else None),
    }
    models[name] = entry
    write_json(folder / MODELS, {"format": FORMAT, "models": dict(sorted(models.items()))})
    return name, entry


def stripped(data: Mapping[str, Any], info: CheckpointInfo, actor_only: bool = False) -> dict[str, Any]:
    """Return what is published of a checkpoint: networks with half-precision weights, no optimizer."""
    networks = NETWORKS[:1] if actor_only else NETWORKS
    missing = [network for network in networks if network not in data]
    if missing:
        raise UmcError(f"the checkpoint has no {missing[0]}; publish the actor alone with --actor_only")
    return {
        **{network: {name: _half(name, tensor) for name, tensor in data[network].items()} for network in networks},
        "iter": data["iter"],
        "infos": {"umc": dataclasses.asdict(info)},
    }


def _half(name: str, tensor: torch.Tensor) -> torch.Tensor:
    import torch

    # statistics reach further than weights: a variance of 1e-8 would become 0
    if not tensor.is_floating_point() or "normalizer" in name:
        return tensor.clone()
    half = tensor.half()
    if not torch.isfinite(half).all():
        raise UmcError(f"{name} holds weights that half precision cannot hold, or that are no numbers; train it again")
    return half


def _ground(info: CheckpointInfo, overrides: list[str]) -> str:
    """The ground that a task has with a run's overrides."""
    from umc.terrains import ground_name
    from umc.training.task_cfg import resolve_cfgs

    return ground_name(resolve_cfgs(info.task, None, overrides)[0].scene.terrain)


def _checked(checkpoint: Path, info: CheckpointInfo, content: bytes, folder: Path, name: str) -> float:
    """Load the file where no run's settings lie, as a user will, and compare it with the checkpoint."""
    from umc.deploy.io_descriptor import group_widths
    from umc.rl.models import EXPORT_INPUTS
    from umc.rl.policy import load_policy
    from umc.training.task_cfg import resolve_cfgs

    env_cfg, _ = resolve_cfgs(info.task, None, info.env_overrides or [])
    widths = group_widths(env_cfg.observations, EXPORT_INPUTS, len(info.joint_names))
    trial = folder / f".{name}.trial"
    try:
        with atomic_write(trial) as file:
            file.write(content)
        difference = largest_difference(load_policy(checkpoint, widths), load_policy(trial, widths), widths)
    finally:
        trial.unlink(missing_ok=True)
    if not difference <= TOLERANCE:
        raise UmcError(
            f"actions of the file would differ from {checkpoint} by {difference:.2g}, more than {TOLERANCE:g}; "
            "train with the agent as it is registered, or with smaller weights"
        )
    return difference


def largest_difference(first: LoadedPolicy, second: LoadedPolicy, widths: Mapping[str, int]) -> float:
    """Compare two policies over observations and masks of every kind."""
    import torch
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(0)
    largest = 0.0
    for scale in CHECK_SCALES:
        mask = (torch.rand(CHECK_ROWS, widths["joint_mask"], generator=generator) < MASKED_SHARE).float()
        mask[: CHECK_ROWS // 4] = 0.0
        flag = torch.where(mask.any(1, keepdim=True), 1.0, -1.0).expand(-1, widths["fault_flag"]).contiguous()
        obs = torch.randn(CHECK_ROWS, widths["policy"], generator=generator) * scale
        groups = TensorDict({"policy": obs, "joint_mask": mask, "fault_flag": flag}, batch_size=[CHECK_ROWS])
        difference = float((first(groups) - second(groups)).abs().max())
        largest = difference if difference != difference else max(largest, difference)
        if largest != largest:
            break
    return largest


def _provenance(checkpoint: Path, info: CheckpointInfo, data: Mapping[str, Any]) -> dict[str, Any]:
    """Commit and conditions of a training, as far as checkpoint and ``run.json`` know them."""
    record = read_record(checkpoint.parent) if (checkpoint.parent / RUN_FILE).is_file() else {}
    starts = record.get("starts") or [{}]
    git = starts[-1].get("git") or {}
    trained = {
        "physics": info.physics or record.get("physics", ""),
        "terrain": trained_terrain(checkpoint, info),
        "device": record.get("device", "").split(":")[0],
        "iterations": data["iter"] + 1,
        "num_envs": record.get("num_envs"),
        "num_steps_per_env": record.get("num_steps_per_env"),
        "overrides": record.get("overrides", info.env_overrides or []),
        "parent_sha256": (record.get("parent") or {}).get("sha256"),
        "umc_version": info.umc_version,
    }
    commit = git.get("commit")
    if commit and git.get("dirty"):
        commit += " with changes"
    return {"commit": commit, "trained": trained, "source_sha256": sha256(checkpoint)}


def metrics_of(path: Path, known: set[str]) -> dict[str, Any]:
    """The figures of a report of evaluate.py about this policy."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UmcError(f"cannot read {path} ({type(error).__name__}); give a report.json or gait.json") from error
    kind = report.get("kind") if isinstance(report, dict) else None
    if kind == "healthy":
        if report["checkpoint"]["sha256"] not in known:
            raise UmcError(f"{path} is about {report['checkpoint']['path']}, another file; evaluate this one")
        return {"healthy": {**_conditions(report, report["num_envs"]), **_rounded(report["gait"])}}
    if kind != "faults":
        raise UmcError(f"{path} is no report of scripts/evaluate.py; give a report.json or gait.json")
    mine = [one for one in report["policies"] if one["about"].get("sha256") in known]
    if not mine:
        raise UmcError(f"{path} does not hold this policy; evaluate it with scripts/evaluate.py --checkpoint")
    (figures,) = mine[:1]

    def rates(of: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _rounded(value) for key, value in of.items() if key.startswith(RATES)}

    return {
        "faults": {
            "protocol": report["protocol"]["name"],
            **_conditions(report["about"], report["about"].get("robots_per_cell")),
            "departures_from_paper": report["departures_from_paper"],
            "average": rates(figures["average"]),
            "scenarios": {name: rates(values) for name, values in figures["scenarios"].items()},
        }
    }


def _conditions(about: Mapping[str, Any], robots: int | None) -> dict[str, Any]:
    return {"task": about.get("task"), "physics": about.get("physics"), "seed": about.get("seed"), "robots": robots}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return value


def summary(entry: Mapping[str, Any]) -> str:
    """A policy's origin and figures in a few words."""
    words = [f"recipe {entry.get('recipe') or 'none'}", f"seed {entry.get('seed')}"]
    average = ((entry.get("metrics") or {}).get("faults") or {}).get("average", {})
    words += [f"{key} {100 * value['value']:.0f} %" for key, value in average.items() if value]
    return ", ".join(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
