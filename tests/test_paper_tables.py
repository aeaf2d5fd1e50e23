# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the paper's settings tables, and what tasks, protocols and agents use in its place."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import umc.tasks  # noqa: F401 - registers the ids
import yaml
from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
from umc.evaluation.protocol import protocol_for
from umc.evaluation.report.paper import paper_tables
from umc.rl.agents import AGENTS
from umc.utils.naming import entry_point

PAGE = (Path(__file__).parents[1] / "docs" / "robots.md").read_text(encoding="utf-8")
# The paper's figure for the transformer's parameters fits no natural layout: docs/models.md.
NETWORKS = {
    "mlp": {"hidden_dims": [256, 512, 256, 256]},
    "transformer": {"num_layers": 4, "embed_dim": 120, "feedforward_dim": 128, "num_heads": 2},
}
PARADIGM = ("no damage", "undetectable joint damage", "sensor-only damage", "detectable joint damage")
"""The curriculum's steps from section "Paradigms"."""

ROBOTS = ("A1", "H1", "G1", "Solo8")


def read_tables() -> dict[tuple[str, str], dict[str, str]]:
    """The paper's tables of settings, which docs/robots.md shows, by robot and kind."""
    tables: dict[tuple[str, str], dict[str, str]] = {}
    for kind, body in re.findall(r"^\| (training|inference) (\|.*\n(?:\|.*\n)+)", PAGE, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.strip().split("\n")]
        for place, title in enumerate(head, 1):
            robot, _, ablation = title.partition(", ")
            cells = {row[0].partition(" [")[0]: row[place] for row in rows}
            tables[robot, ablation or kind] = {name: cell for name, cell in cells.items() if cell}
    return tables


TABLES = read_tables()


def shown(*values: float | str) -> str:
    """Figures as the page writes them."""
    return ", ".join(one if isinstance(one, str) else f"{one:,}" if one >= 1000 else f"{one:g}" for one in values)


def task(robot: str) -> Any:
    return resolve_presets(load_cfg_from_registry(f"UMC-{robot}-Stage2", "env_cfg_entry_point"), [])


def agent(robot: str, name: str, stage: int) -> Any:
    return load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", entry_point(name))


def fault_rows(num_joints: Any, severity: dict[str, Any], joints: tuple[str, ...]) -> dict[str, str]:
    """The rows on how many joints fail, and how hard."""
    effort = severity["effort"]
    patterns = effort if isinstance(effort, dict) else {".*": effort}
    limits = {joint: next(value for key, value in patterns.items() if re.fullmatch(key, joint)) for joint in joints}
    parts = {part: {limits[joint] for joint in joints if part in joint} for part in ("hip", "knee", "ankle")}
    alike = len(set(limits.values())) == 1
    motors = [next(iter(limits.values()))] if alike else [f"{part} {shown(*found)}" for part, found in parts.items()]
    return {
        "Random Damage Range": "{} to {}".format(*num_joints),
        "ROM Limit": f"random {100 * severity['rom']:g} %",
        "Motor Limit": shown(*motors),
        "Velocity Limit": shown(severity["velocity"]),
    }


def track_rows(block: float, width: float, border: float, seeds: list[int]) -> dict[str, str]:
    names = ("Track Block Length", "Track Width", "Border Size")
    return {**dict(zip(names, map(shown, (block, width, border)), strict=True)), "Perlin Noise Seed": shown(*seeds)}


@pytest.mark.parametrize("robot", ROBOTS)
def test_training_tables(robot):
    cfg = task(robot)
    faults, grid = cfg.events.faults.params, cfg.scene.terrain.terrain_generator
    used = {
        "Num Envs": shown(cfg.scene.num_envs),
        **fault_rows(faults["num_joints"], faults["severity"], tuple(cfg.scene.robot.joint_ordering)),
        **(track_rows(*grid.size, grid.border_width, list(grid.seeds) or [grid.seed]) if grid else {}),
        "Random Malfunction Seed": shown(faults["seed"]),
        "Malfunction Timing": shown(faults.get("onset") or "N/A"),
        "Episode Length": shown(round(cfg.episode_length_s / (cfg.sim.dt * cfg.decimation))),
    }
    assert used == TABLES[robot, "training"]


@pytest.mark.parametrize(("robot", "table"), [*((robot, "inference") for robot in ROBOTS), ("A1", "ablations")])
def test_inference_tables(robot, table):
    name = {"inference": "umc_paper", "ablations": "umc_paper_ablation"}[table]
    protocol, joints = protocol_for(robot.lower(), name=name), tuple(task(robot).scene.robot.joint_ordering)
    used = {
        "Num Envs": shown(protocol.num_envs),
        **fault_rows(protocol.num_joints, dict(protocol.severity), joints),
        "Random Malfunction Seed": shown(*(one.seed for one in protocol.settings)),
        "Malfunction Timing": shown(*(one.onset for one in protocol.settings)),
    }
    if track := protocol.track:
        seeds = [one.perlin_seed for one in protocol.settings]
        used |= track_rows(track["block_length"], track["width"], track["border"], seeds)
    assert used | ({"Episode Length": shown(protocol.steps)} if table == "inference" else {}) == TABLES[robot, table]


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("network", NETWORKS)
def test_network_table(robot, network):
    first, second = (agent(robot, network, stage) for stage in (1, 2))
    assert (first.max_iterations, second.max_iterations) == (2500, 2500)
    assert first.actor.to_dict() == second.actor.to_dict()
    assert NETWORKS[network].items() <= second.actor.to_dict().items()


def swept(name: str) -> list[str]:
    """Agents of a sweep, for the transformer."""
    sweep = yaml.safe_load((files("umc") / "config" / "sweeps" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert sweep["protocol"] == "umc_paper_ablation"
    return [entry.replace("NETWORK", sweep["network"]) for entry in sweep["agents"]]


def rows_of(table: str) -> set[str]:
    """Rows of an ablation table of the paper."""
    (found,) = (one for one in paper_tables() if one.name == table)
    return {row.removeprefix("Default(").removesuffix(")") for row in found.rows}


def test_ratio_ablation():
    used = set()
    for name in swept("ablation_ratio"):
        changes = {"ratios": task("A1").events.faults.params["ratios"]}
        for path, value in AGENTS[name].env_overrides.items():
            assert path == "events.faults.params.ratios"
            changes["ratios"] = value
        used.add(":".join(f"{ratio:g}" for ratio in changes["ratios"]))
    assert used == rows_of("ratio")


def test_masking_value_ablation():
    used = [agent("A1", name, 2).actor.mask_value for name in swept("ablation_mask_value")]
    assert set(used) == set(map(float, rows_of("mask_value")))


def test_paradigms():
    assert swept("ablation_paradigm") == ["transformer", "transformer_one_stage", "transformer_curriculum"]
    words = ("no damage", "sensor-only damage", "detectable joint damage", "undetectable joint damage")
    odds = [ratios for _, ratios in AGENTS["transformer_curriculum"].curriculum]
    assert tuple(words[ratios.index(1)] for ratios in odds) == PARADIGM
    assert all(sum(ratios) == 1 for ratios in odds)
    assert agent("A1", "transformer_one_stage", 2).max_iterations == 2500  # paper: does not converge within 2500
