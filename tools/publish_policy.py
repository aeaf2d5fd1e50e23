# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Put a trained policy into the package: ``python -m tools.publish_policy CHECKPOINT --recipe NAME --metrics JSON``.

The file keeps the networks without the optimizer; weights are stored in half precision, with ``--full_precision`` as
they are. Its actions are compared with the checkpoint's before anything is written. ``models.json`` beside it says
where it comes from and how it was measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt
from umc.rl.checkpoint import (
    WEIGHTS,
    CheckpointInfo,
    checkpoint_info,
    network_overrides,
    read_checkpoint,
    trained_overrides,
    trained_terrain,
)
from umc.rl.pretrained import FORMAT, MODELS, model_name, pretrained_folder, read_models
from umc.tasks.registry import checked_checkpoint
from umc.training.recipe import recipe_names
from umc.utils.cli import Parser, did_you_mean, run_main
from umc.utils.config import OpenFile, validated
from umc.utils.console import quiet
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write, sha256, write_json
from umc.utils.provenance import RUN_FILE, read_record
from umc.utils.text import read_json

if TYPE_CHECKING:
    import torch
    from umc.rl.policy import LoadedPolicy

LARGEST_FILE = 2_000_000
"""Most bytes of a pretrained policy, as of any file of the repository."""

TOLERANCE = 0.01
"""Largest accepted difference of an action [action]: 5 mrad at the tasks' scale. A1's MLP differs by 7e-4."""

CHECK_ROWS, CHECK_SCALES, MASKED_SHARE = 256, (0.3, 1.0), 0.3
"""Random observations of the comparison, their standard deviations and the share of masked joints; those of a walk
lie about zero, mostly within one."""

NO_RECIPE = "none"

RATES, DIGITS = ("reached@", "failed"), 4
"""Prefixes of the metrics that are kept of a report, and their digits."""


def main(argv: Sequence[str]) -> int:
    """Publish the policy that the command line names; return the exit status."""
    parser = Parser(prog="python -m tools.publish_policy", description="Put a trained policy into the package.")
    add = parser.add_argument
    add("checkpoint", help="model_<iteration>.pt, a run folder, or a pretrained file whose entry is to be changed")
    add("--recipe", help="recipe it was trained by (config/recipes); 'none' where it was trained without one")
    add("--metrics", type=Path, nargs="*", default=[], help="report.json and gait.json of scripts/evaluate.py about it")
    add("--commit", help="commit it was trained at; the one in the run's run.json without it")
    add("--note", help="anything else that a reader should know")
    add("--actor_only", action="store_true", help="leave the critic out, which only further training needs")
    add("--full_precision", action="store_true", help="store the weights as they are, in a file of twice the size")
    add("--replace", action="store_true", help="take the place of the policy of the same robot, agent and stage")
    add("--out", type=Path, default=pretrained_folder(), help="folder to write to; the package's without it")
    options = parser.parse_args(argv)
    checkpoint = checked_checkpoint(options.checkpoint)
    with quiet():
        from umc.utils.naming import load_tasks

        load_tasks()
        name, entry = publish(checkpoint, options)
    difference = f"actions differ by {entry['largest_difference']:.2g} at most"
    print(f"{options.out / name}.pt: {entry['bytes']:,} bytes, {difference}")
    print(f"{options.out / MODELS}: {name} is one of {len(read_models(options.out))} policies")
    return 0


def publish(checkpoint: Path, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Write a policy and its entry; return its name and the entry."""
    import torch
    from umc.utils.naming import library_of

    data, folder = read_checkpoint(checkpoint), options.out
    info = checkpoint_info(data, checkpoint)
    agent = info.agent.removesuffix("_cfg_entry_point").removeprefix(f"{library_of(info.agent)}_")
    name = model_name(info.robot, agent, info.stage)
    path, models = folder / f"{name}.pt", read_models(folder)
    present = models.get(name)
    # a published file, of this folder or another, keeps what its entry says about training
    beside = read_models(checkpoint.parent).get(name)
    revised = beside if beside is not None and beside["sha256"] == sha256(checkpoint) else None
    if present is not None and checkpoint.resolve() != path.resolve() and not options.replace:
        origin = f"recipe {present['recipe'] or NO_RECIPE}, seed {present['seed']}"
        raise UmcError(f"{name} is in {folder} already ({origin}); --replace puts this one in its place")
    recipe = _recipe(options.recipe, revised)
    origin = _origin(checkpoint, info, data["iter"] + 1, revised)
    if options.commit:
        origin["commit"] = options.commit
    if origin["commit"] is None:
        raise UmcError(f"{checkpoint.parent / RUN_FILE} does not say at which commit it was trained; give --commit")
    info = dataclasses.replace(
        info,
        physics=origin["trained"]["physics"],
        terrain=origin["trained"]["terrain"],
        env_overrides=trained_overrides(checkpoint, info),
        network_overrides=network_overrides(origin["trained"]["overrides"]),
    )
    buffer = io.BytesIO()
    torch.save(stripped(data, info, options.actor_only, options.full_precision), buffer)
    content = buffer.getvalue()
    if len(content) > LARGEST_FILE:
        fix = "train a smaller network" if options.actor_only else "leave the critic out with --actor_only"
        raise UmcError(f"{path.name} would have {len(content):,} bytes, more than {LARGEST_FILE:,}; {fix}")
    difference = _checked(checkpoint, info, content, path)
    metrics = {} if revised is None else dict(revised["metrics"])
    for report in options.metrics:
        metrics |= metrics_of(report, {sha256(checkpoint), origin["source_sha256"]})
    with atomic_write(path) as file:
        file.write(content)
    models[name] = {
        "robot": info.robot,
        "agent": agent,
        "network": info.model,
        "stage": info.stage,
        "sha256": sha256(path),
        "bytes": len(content),
        "licence": "BSD-3-Clause",
        "recipe": recipe,
        "commit": origin["commit"],
        "seed": info.seed,
        "trained": origin["trained"],
        "source_sha256": origin["source_sha256"],
        # to what was trained, not to the published file itself
        "largest_difference": round(max(difference, revised["largest_difference"] if revised else 0.0), 6),
        "metrics": metrics,
        "note": options.note or (revised["note"] if revised else None),
    }
    write_json(folder / MODELS, {"format": FORMAT, "models": dict(sorted(models.items()))})
    return name, models[name]


def _recipe(typed: str | None, revised: Mapping[str, Any] | None) -> str | None:
    """Return the recipe that ``--recipe`` names, or else that of the entry; None for a policy without one."""
    if typed is None and revised is not None:
        return revised["recipe"]
    if typed is None:
        raise UmcError("--recipe is missing; name the recipe it was trained by, or --recipe none")
    if typed not in (NO_RECIPE, *recipe_names()):
        hint = did_you_mean(typed, recipe_names())
        raise UmcError(f"no recipe {typed} in config/recipes;{hint} save it there, or give --recipe {NO_RECIPE}")
    return None if typed == NO_RECIPE else typed


def _origin(
    checkpoint: Path, info: CheckpointInfo, iterations: int, revised: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return commit and conditions of a training, as far as entry, checkpoint and ``run.json`` know them."""
    if revised is not None:
        return {key: revised[key] for key in ("commit", "trained", "source_sha256")}
    from umc.tasks.task_cfg import resolve_cfgs
    from umc.terrains import ground_name

    if not (checkpoint.parent / RUN_FILE).is_file():
        raise UmcError(f"no {RUN_FILE} beside {checkpoint} says how it was trained; publish it from its run folder")
    record = read_record(checkpoint.parent)
    terrain = trained_terrain(checkpoint, info)
    if not terrain:  # runs of UMC 0.1 say only what was overridden
        env_cfg, _ = resolve_cfgs(info.task, None, trained_overrides(checkpoint, info))
        terrain = ground_name(env_cfg.scene.terrain)
    git = (record.get("starts") or [{}])[-1].get("git") or {}
    trained = {
        "physics": info.physics or record.get("physics", ""),
        "terrain": terrain,
        "device": record.get("device", "").split(":")[0],
        "iterations": iterations,
        "num_envs": record.get("num_envs"),
        "num_steps_per_env": record.get("num_steps_per_env"),
        "overrides": record.get("overrides", [*(info.env_overrides or []), *info.network_overrides]),
        "parent_sha256": (record.get("parent") or {}).get("sha256"),
        "umc_version": info.umc_version,
    }
    commit = git.get("commit")
    commit = f"{commit} with changes" if commit and git.get("dirty") else commit
    return {"commit": commit, "trained": trained, "source_sha256": sha256(checkpoint)}


def stripped(
    data: Mapping[str, Any], info: CheckpointInfo, actor_only: bool = False, full_precision: bool = False
) -> dict[str, Any]:
    """Return what is published of a checkpoint: networks with half-precision weights by default, no optimizer."""
    networks = WEIGHTS[:1] if actor_only else WEIGHTS  # Stage 2 starts from both
    missing = [network for network in networks if network not in data]
    if missing:
        raise UmcError(f"the checkpoint has no {missing[0]}; publish the actor alone with --actor_only")
    return {
        **{
            network: {name: tensor if full_precision else _half(name, tensor) for name, tensor in data[network].items()}
            for network in networks
        },
        "iter": data["iter"],
        "infos": {"umc": dataclasses.asdict(info)},
    }


def _half(name: str, tensor: torch.Tensor) -> torch.Tensor:
    # statistics reach further than weights: a variance of 1e-8 would become 0
    if not tensor.is_floating_point() or "normalizer" in name:
        return tensor.clone()
    half = tensor.half()
    if not half.isfinite().all():
        raise UmcError(f"{name} holds weights that half precision cannot hold, or that are no numbers; train it again")
    return half


def _checked(checkpoint: Path, info: CheckpointInfo, content: bytes, path: Path) -> float:
    """Load the file without its run's settings, as a user will, and compare it with the checkpoint."""
    from umc.rl.io_descriptor import group_widths
    from umc.rl.policy import ACTOR_SET, load_policy, stored_agent
    from umc.tasks.task_cfg import resolve_cfgs

    env_cfg, _ = resolve_cfgs(info.task, None, info.env_overrides or [])
    groups = stored_agent(checkpoint, info)["obs_groups"][ACTOR_SET]
    widths = group_widths(env_cfg.observations, groups, len(info.joint_names))
    path.parent.mkdir(parents=True, exist_ok=True)
    trial = path.with_name(f".{path.stem}.trial")
    try:
        trial.write_bytes(content)
        difference = largest_difference(load_policy(checkpoint, widths), load_policy(trial, widths), widths)
    finally:
        trial.unlink(missing_ok=True)
    if not difference <= TOLERANCE:
        raise UmcError(
            f"actions of the file would differ from {checkpoint} by {difference:.2g}, more than {TOLERANCE:g}; "
            "give --full_precision, or train with the agent as it is registered"
        )
    return difference


def largest_difference(first: LoadedPolicy, second: LoadedPolicy, widths: Mapping[str, int]) -> float:
    """Compare the actions of two policies over observations and masks of every kind; NaN if one of them is."""
    import torch
    from tensordict import TensorDict

    generator = torch.Generator().manual_seed(0)

    def made_up(group: str, scale: float) -> torch.Tensor:
        shape = (CHECK_ROWS, widths[group])
        faulty = torch.arange(CHECK_ROWS)[:, None] >= CHECK_ROWS // 4  # healthy robots, too
        if group == "joint_mask":
            return ((torch.rand(shape, generator=generator) < MASKED_SHARE) & faulty).float()
        if group == "fault_flag":
            return torch.where((torch.rand(CHECK_ROWS, 1, generator=generator) < 0.5) & faulty, 1.0, -1.0).expand(shape)
        if group == "fault_class":
            return torch.eye(widths[group])[torch.randint(widths[group], (CHECK_ROWS,), generator=generator)]
        return torch.randn(shape, generator=generator) * scale

    differences = []
    for scale in CHECK_SCALES:
        groups = TensorDict({group: made_up(group, scale) for group in widths}, batch_size=[CHECK_ROWS])
        differences.append((first(groups) - second(groups)).abs().max())
    return float(torch.stack(differences).max())


def metrics_of(path: Path, known: set[str]) -> dict[str, Any]:
    """Return the figures of a report of evaluate.py about a policy with one of the ``known`` SHA-256."""
    report = read_json(path, "give a report.json or gait.json")
    kind = str(report.get("kind")) if isinstance(report, dict) else ""
    if kind not in REPORTS:
        raise UmcError(f"{path} is no report of scripts/evaluate.py; give a report.json or gait.json")
    report = rounded(validated(REPORTS[kind], report, str(path)).model_dump())
    if kind == "healthy":
        if report["checkpoint"]["sha256"] not in known:
            raise UmcError(f"{path} is about {report['checkpoint']['path']}, another file; evaluate this one")
        return {"healthy": {**_conditions(report), "robots": report["num_envs"], **report["gait"]}}
    oracle = [one for one in report["policies"] if one["about"].get("detection", "oracle") == "oracle"]
    figures = next((one for one in oracle if one["about"].get("sha256") in known), None)
    if figures is None:
        raise UmcError(f"{path} does not hold this policy; evaluate it with scripts/evaluate.py --checkpoint")

    def rates(of: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in of.items() if key.startswith(RATES)}

    return {
        "faults": {
            "protocol": report["protocol"]["name"],
            **_conditions(report["about"]),
            "robots": report["about"].get("robots_per_cell"),
            "departures_from_paper": report["departures_from_paper"],
            "average": rates(figures["average"]),
            "scenarios": {name: rates(values) for name, values in figures["scenarios"].items()},
        }
    }


class _Checkpoint(OpenFile):
    path: str
    sha256: str


class _Gait(OpenFile):
    command: Annotated[list[float], Field(min_length=3, max_length=3)]


class HealthyReport(OpenFile):
    """What is read of a gait.json."""

    checkpoint: _Checkpoint
    num_envs: PositiveInt
    gait: _Gait


class _Policy(OpenFile):
    about: dict[str, Any]
    average: dict[str, Any]
    scenarios: dict[str, dict[str, Any]]


class _Named(OpenFile):
    name: str


class FaultsReport(OpenFile):
    """What is read of a report.json."""

    protocol: _Named
    about: dict[str, Any]
    departures_from_paper: list[str]
    policies: list[_Policy]


REPORTS = {"healthy": HealthyReport, "faults": FaultsReport}
"""What is read of a report, by its kind."""


def rounded(value: Any) -> Any:
    """Return plain values with their floats rounded."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, DIGITS) if isinstance(value, float) else value


def _conditions(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: about.get(key) for key in ("task", "physics", "seed")}


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
