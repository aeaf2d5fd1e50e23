# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The policies that come with the package: which there are, and that each is the one its entry describes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from umc.rl.agents import AGENTS, agent_spec
from umc.utils.errors import UmcError
from umc.utils.io import sha256

WORD = "pretrained"
"""What ``--checkpoint`` takes for a shipped policy; ``pretrained:a1_mlp_stage1`` names one."""

MODELS = "models.json"
"""File that describes the policies of its folder."""

FORMAT = 1
"""Version of its layout."""

ENTRY_KEYS = ("robot", "agent", "stage", "sha256")
"""What an entry cannot do without."""


def shipped_folder() -> Path:
    """Folder of the shipped policies."""
    return Path(str(files("umc.rl") / "data"))


def model_name(robot: str, agent: str, stage: int) -> str:
    """Name of a shipped policy, such as ``a1_mlp_stage2``; its file ends in ``.pt``."""
    return f"{robot}_{agent}_stage{stage}"


def read_models(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Reads ``models.json``.

    Args:
        folder: Folder that holds it; the package's without it.

    Returns:
        The entry of every policy, by name; empty where nothing is shipped.

    Raises:
        UmcError: If the file is damaged or of another version.
    """
    path = (folder or shipped_folder()) / MODELS
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UmcError(f"{path} is no JSON; restore it with git, or install umc again") from error
    models = content.get("models") if isinstance(content, dict) and content.get("format") == FORMAT else None
    if not isinstance(models, dict) or not all(
        isinstance(entry, dict) and all(key in entry for key in ENTRY_KEYS) for entry in models.values()
    ):
        raise UmcError(f"{path} is no list of policies of this version; restore it with git, or install umc again")
    return models


def verified(name: str, folder: Path | None = None) -> Path:
    """File of a shipped policy, byte for byte the one that its entry describes.

    Args:
        name: Name of the policy.
        folder: Folder that holds it; the package's without it.

    Returns:
        The file.

    Raises:
        UmcError: If there is no such policy, or its file is missing or another one.
    """
    folder = folder or shipped_folder()
    models = read_models(folder)
    if name not in models:
        raise UmcError(f"no shipped policy {name}; {offer(models)}")
    path = folder / f"{name}.pt"
    if not path.is_file():
        raise UmcError(f"{path} is missing although {MODELS} names it; restore it with git, or install umc again")
    found, wanted = sha256(path), models[name]["sha256"]
    if found != wanted:
        raise UmcError(
            f"{path} is not the file that {MODELS} describes (sha256 {found[:12]} instead of {str(wanted)[:12]}); "
            "restore it with git, or install umc again"
        )
    return path


def shipped_policy(robot: str, agent: str, stage: int) -> Path | None:
    """File of a robot's, agent's and stage's policy, or None where none is shipped.

    Raises:
        UmcError: If its file is missing or not the one that was shipped.
    """
    name = model_name(robot, agent, stage)
    return verified(name) if name in read_models() else None


def is_pretrained(text: str | None) -> bool:
    """Whether what was typed after ``--checkpoint`` asks for a shipped policy."""
    return text is not None and (text == WORD or text.startswith(f"{WORD}:"))


def find_pretrained(
    text: str, robot: str | None = None, agent: str | None = None, stage: int | None = None
) -> tuple[Path, str]:
    """The shipped policy that was asked for.

    Args:
        text: ``pretrained``, or ``pretrained:NAME``, which needs nothing else.
        robot: Robot in lower case.
        agent: Agent or its entry point; the first that is shipped for the robot, in the order of
            :data:`umc.rl.agents.AGENTS`, without it, those last of which there is only Stage 1 so far.
        stage: Its stage; the last one that is shipped without it.

    Returns:
        Its file, and a line that says which it is.

    Raises:
        UmcError: If nothing fits, or the file is not the one that was shipped.
    """
    models = read_models()
    if text != WORD:
        name = text.removeprefix(f"{WORD}:").removesuffix(".pt")
        return verified(name), describe(name, models.get(name, {}))
    if robot is None:
        raise UmcError(
            f"--checkpoint {WORD}: whose? give --robot, or a name: --checkpoint {WORD}:NAME; {offer(models)}"
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
        words = " ".join(["no shipped policy of", robot, *(["by", wanted] if wanted else [])])
        words += "" if stage is None else f" in Stage {stage}"
        raise UmcError(f"{words}; {offer(models)}, or train one")
    name = min(fitting)[-1]
    return verified(name), describe(name, models[name])


def is_last_stage(entry: Mapping[str, Any]) -> bool:
    """Whether a shipped policy has been through all stages of its agent."""
    spec = AGENTS.get(entry["agent"])
    return spec is None or entry["stage"] == spec.stages[-1]


def offer(models: Mapping[str, Any]) -> str:
    """What there is, in words."""
    return f"there are {', '.join(sorted(models))}" if models else "none are shipped with this version"


def describe(name: str, entry: Mapping[str, Any]) -> str:
    """A shipped policy in one line."""
    trained = entry.get("trained") or {}
    facts = [f"Stage {entry.get('stage')}"]
    facts += [f"{trained['iterations']} iterations"] if trained.get("iterations") else []
    facts += [f"trained on {trained['physics']}"] if trained.get("physics") else []
    facts += [f"{trained['terrain']} ground"] if trained.get("terrain") else []
    return f"{WORD}: {name} ({', '.join(facts)})"


def results_folder(checkpoint: Path) -> Path:
    """Folder for what is made of a checkpoint: its own, or under ``logs`` for a shipped one, which is the package's."""
    if checkpoint.resolve().parent == shipped_folder().resolve():
        return Path("logs") / WORD / checkpoint.stem
    return checkpoint.parent
