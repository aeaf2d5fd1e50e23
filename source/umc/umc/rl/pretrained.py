# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The pretrained policies of the package: list them, find one, and check that each is the one its entry describes."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from umc.rl.agents import AGENTS, agent_spec
from umc.utils.cli import did_you_mean
from umc.utils.config import FileModel, FolderName, OpenFile, validated
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.text import read_json

PRETRAINED = "pretrained"
"""What ``--checkpoint`` takes for a pretrained policy; ``pretrained:a1_mlp_stage1`` names one."""

MODELS = "models.json"
"""File that describes the policies of its folder."""

FORMAT = 1
"""Version of its layout."""

REINSTALL = "restore it with git, or install umc again"


class _Trained(OpenFile):
    iterations: int | None = None
    physics: str | None = None
    terrain: str | None = None


class _Entry(OpenFile):
    """What is read of an entry; the rest, such as its metrics, is for the documentation."""

    robot: str
    agent: str
    stage: Literal[1, 2]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    trained: _Trained | None = None


class _Models(FileModel):
    format: Literal[FORMAT]  # pyright: ignore[reportInvalidTypeForm]
    models: dict[FolderName, _Entry]


def pretrained_folder() -> Path:
    """Return the folder of the pretrained policies."""
    return Path(str(files("umc.rl") / "data"))


def model_name(robot: str, agent: str, stage: int) -> str:
    """Return the name of a pretrained policy, such as ``a1_mlp_stage2``; its file ends in ``.pt``."""
    return f"{robot}_{agent}_stage{stage}"


def read_models(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Read ``models.json`` of a folder (default: the package's): entries by policy name, empty if there are none."""
    path = (folder or pretrained_folder()) / MODELS
    if not path.is_file():
        return {}
    content = read_json(path, REINSTALL)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UmcError(f"{path} is no list of policies of this version; {REINSTALL}")
    validated(_Models, content, f"{path} is damaged ({REINSTALL})")
    return content["models"]


def verified_file(name: str, folder: Path | None = None) -> Path:
    """Return the file of a pretrained policy after checking its SHA-256; ``folder`` defaults to the package's."""
    folder = folder or pretrained_folder()
    models = read_models(folder)
    if name not in models:
        raise UmcError(f"no pretrained policy {name};{did_you_mean(name, models)} umc list pretrained shows all")
    path = folder / f"{name}.pt"
    if not path.is_file():
        raise UmcError(f"{path} is missing although {MODELS} names it; {REINSTALL}")
    found, wanted = sha256(path), models[name]["sha256"]
    if found != wanted:
        raise UmcError(
            f"{path} is not the file that {MODELS} describes (sha256 {found[:12]} instead of {str(wanted)[:12]}); "
            f"{REINSTALL}"
        )
    return path


def pretrained_file(robot: str, agent: str, stage: int) -> Path | None:
    """Return the checked file of a robot's, agent's and stage's policy; None if there is none."""
    name = model_name(robot, agent, stage)
    return verified_file(name) if name in read_models() else None


def is_pretrained(text: str | None) -> bool:
    """Return whether the value of ``--checkpoint`` asks for a pretrained policy."""
    return text is not None and (text == PRETRAINED or text.startswith(f"{PRETRAINED}:"))


def find_pretrained(
    text: str, robot: str | None = None, agent: str | None = None, stage: int | None = None
) -> tuple[Path, str]:
    """Find the policy that ``pretrained`` or ``pretrained:NAME`` asks for: its file, and a line that describes it.

    By default it is the last stage of the robot's first agent in :data:`umc.rl.agents.AGENTS`.
    """
    models = read_models()
    if text != PRETRAINED:
        name = text.removeprefix(f"{PRETRAINED}:").removesuffix(".pt")
        return verified_file(name), describe(name, models.get(name, {}))
    if robot is None:
        raise UmcError(
            f"--checkpoint {PRETRAINED}: of which robot? give --robot, or a name that umc list pretrained shows: "
            f"--checkpoint {PRETRAINED}:NAME"
        )
    wanted = None if agent is None else spec.name if (spec := agent_spec(agent)) else agent
    order = list(AGENTS)
    fitting = [
        (
            stage is None and not is_last_stage(entry),
            order.index(entry["agent"]) if entry["agent"] in order else len(order),
            -entry["stage"],
            name,
        )
        for name, entry in models.items()
        if entry["robot"] == robot and wanted in (None, entry["agent"]) and stage in (None, entry["stage"])
    ]
    if not fitting:
        words = " ".join(["no pretrained policy of", robot, *(["by", wanted] if wanted else [])])
        words += "" if stage is None else f" in Stage {stage}"
        others = ", ".join(sorted(name for name, entry in models.items() if entry["robot"] == robot))
        raise UmcError(
            f"{words}; " + (f"there are {others}" if others else "umc list pretrained shows those of others")
        )
    name = min(fitting)[-1]
    return verified_file(name), describe(name, models[name])


def is_last_stage(entry: Mapping[str, Any]) -> bool:
    """Return whether a pretrained policy has been through all stages of its agent."""
    spec = AGENTS.get(entry["agent"])
    return spec is None or entry["stage"] == spec.stages[-1]


def describe(name: str, entry: Mapping[str, Any]) -> str:
    """Return one line about a pretrained policy."""
    trained = entry.get("trained") or {}
    facts = [f"Stage {entry.get('stage')}"]
    facts += [f"{trained['iterations']} iterations"] if trained.get("iterations") else []
    facts += [f"trained on {trained['physics']}"] if trained.get("physics") else []
    facts += [f"{trained['terrain']} ground"] if trained.get("terrain") else []
    return f"{PRETRAINED}: {name} ({', '.join(facts)})"


def results_folder(checkpoint: Path) -> Path:
    """Return the folder for what is made of a checkpoint: its own, or one under ``logs`` for a pretrained one."""
    if checkpoint.resolve().parent == pretrained_folder().resolve():
        return Path("logs") / PRETRAINED / checkpoint.stem
    return checkpoint.parent
