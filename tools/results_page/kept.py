# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The robots behind the results page, kept beside it: one small file for each policy, ground and engine.

The page is made of these alone. So one policy can be measured anew without the others, a page can be made again without
simulation on any machine, and everybody can look at single robots (:func:`umc.evaluation.study.load_study`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from umc.evaluation.study import PolicyResult, Study, load_study, save_study
from umc.utils.errors import UmcError

SUFFIX = ".study"
"""How the files end. They are read by ``weights_only=True``, as checkpoints are."""

NAME_LENGTH = 12
"""Characters of a checkpoint's SHA-256 in a file's name, as many as the page prints."""

OWN = ("command_line", "git", "time", "versions", "batches", "num_envs")
"""Facts of a study that may differ between policies that stand side by side: how they were simulated, not what."""


def kept_path(folder: Path, engine: str, checkpoint: str) -> Path:
    """Where the robots of one policy on one engine are kept."""
    return folder / engine / f"{checkpoint[:NAME_LENGTH]}{SUFFIX}"


def keep(study: Study, folder: Path, engine: str) -> None:
    """Keep every policy of a study in a file of its own, without the paths of the machine that simulated it."""
    about = {name: value for name, value in study.about.items() if name != "command_line"}
    for one in study.policies:
        said = {**one.about, "path": Path(str(one.about.get("path", ""))).name}
        path = kept_path(folder, engine, str(one.about["sha256"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        save_study(path, replace(study, about=about, policies=(replace(one, about=said),)))


def missing(folder: Path, engine: str, checkpoints: Iterable[str]) -> list[str]:
    """Policies of which nothing is kept."""
    return [one for one in checkpoints if not kept_path(folder, engine, one).is_file()]


def kept_study(folder: Path, engine: str, policies: Sequence[tuple[str, str]]) -> Study:
    """Read policies and set them side by side."""
    gone = [label for label, checkpoint in policies if missing(folder, engine, [checkpoint])]
    if gone:
        raise UmcError(f"nothing of {gone[0]} on {engine} is kept in {folder}; run without --report_only to measure it")
    studies = [load_study(kept_path(folder, engine, checkpoint)) for _, checkpoint in policies]
    first = studies[0]
    results: list[PolicyResult] = []
    for (label, checkpoint), study in zip(policies, studies, strict=True):
        (result,) = study.policies
        if not _alike(first, study):
            raise UmcError(
                f"{kept_path(folder, engine, checkpoint)} met other faults than {first.policies[0].label}; measure both"
                " again, with the same --num_envs, --device and overrides"
            )
        about = {**result.about, "simulated": (study.about.get("git") or {}).get("commit")}
        results.append(replace(result, label=label, about=about))
    return replace(first, policies=tuple(results))


def prune(folder: Path, engine: str, checkpoints: Iterable[str]) -> None:
    """Remove the policies that are no longer shown."""
    shown = {kept_path(folder, engine, one) for one in checkpoints}
    for path in (folder / engine).glob(f"*{SUFFIX}"):
        if path not in shown:
            path.unlink()


def _alike(one: Study, other: Study) -> bool:
    """Whether two studies of a policy each are of the same robots, which draw their faults by cell, member and seed."""
    facts = [{name: value for name, value in study.about.items() if name not in OWN} for study in (one, other)]
    if (one.protocol, one.step_dt, one.joint_names, facts[0]) != (
        other.protocol, other.step_dt, other.joint_names, facts[1]
    ):  # fmt: skip
        return False
    runs = [study.policies[0].run for study in (one, other)]
    return all(torch.equal(*(getattr(run, name) for run in runs)) for name in ("cell", "member", "onset"))
