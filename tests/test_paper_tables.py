# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every row of the paper's settings tables, and what tasks, protocols and agents really use in its place."""

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

# Typed from the paper's LaTeX. Its figure for the transformer's parameters fits no natural layout: docs/models.md.
PAPER = r"""
A1 training
    Num Envs & 7400 \\ Random Damage Range & [2,4] \\ ROM Limit & Random 30\% \\ Motor Limit & 5 \\
    Velocity Limit & 3 \\ Track Width & 1.6 \\ Track Block Length & 2.0 \\ Border Size & 8 \\ Perlin Noise Seed & 1 \\
    Random Malfunction Seed & 42 \\ Episode Length & 1000 \\ Malfunction Timing & N/A \\
A1 inference
    Num Envs & 4000 \\ Random Damage Range & [4,5] \\ ROM Limit & Random 10\% \\ Motor Limit & 8 \\
    Velocity Limit & 3 \\ Track Width & 6.0 \\ Track Block Length & 6.0 \\ Border Size & 4 \\
    Perlin Noise Seed & [100, 25, 75] \\ Random Malfunction Seed & [1, 800, 50] \\
    Malfunction Timing & [75, 100, 125] \\ Episode Length & 750 \\
A1 ablation
    Task & A1 \\ Num Envs & 4000 \\ Random Damage Range & [4,5] \\ ROM Limit & Random 10\% \\ Motor Limit & 8 \\
    Velocity Limit & 3 \\ Track Width & 6.0 \\ Track Block Length & 6.0 \\ Border Size & 4 \\
    Perlin Noise Seed & 100 \\ Random Malfunction Seed & 1 \\ Malfunction Timing & 75 \\
H1 training
    Num Envs & 10000 \\ Random Damage Range & [2,4] \\ ROM Limit & Random 30\% \\ Motor Limit & 10 \\
    Velocity Limit & 5 \\ Random Malfunction Seed & 42 \\ Malfunction Timing & N/A \\ Episode Length & 1000 \\
H1 inference
    Num Envs & 8192 \\ Random Damage Range & [2,3] \\ ROM Limit & Random 30\% \\ Motor Limit & 8 \\
    Velocity Limit & 3 \\ Random Malfunction Seed & [1, 50, 75] \\ Malfunction Timing & [75, 100, 125] \\
    Episode Length & 750 \\
G1 training
    Num Envs & 8192 \\ Random Damage Range & [2,4] \\ ROM Limit & Random 30\% \\ Motor Limit for Hip Joints & 8 \\
    Motor Limit for Knee Joints & 13 \\ Motor Limit for Ankle Joints & 4 \\ Velocity Limit & 3 \\
    Random Malfunction Seed & 42 \\ Episode Length & 1000 \\ Malfunction Timing & N/A \\
G1 inference
    Num Envs & 10000 \\ Random Damage Range & [2,4] \\ ROM Limit & Random 30\% \\ Motor Limit for All Joints & 5 \\
    Velocity Limit & 3 \\ Random Malfunction Seed & [1, 50, 75] \\ Malfunction Timing & [75, 100, 125] \\
    Episode Length & 750 \\
Solo8 training
    Num Envs & 4096 \\ Random Damage Range & [1,3] \\ ROM Limit & Random 30\% \\ Motor Limit & 0.75 \\
    Velocity Limit & 5 \\ Random Malfunction Seed & 42 \\ Malfunction Timing & N/A \\ Episode Length & 1000 \\
Solo8 inference
    Num Envs & 4096 \\ Random Damage Range & [2,4] \\ ROM Limit & Random 30\% \\ Motor Limit for All Joints & 5 \\
    Velocity Limit & 3 \\ Random Malfunction Seed & 50 \\ Malfunction Timing & 100 \\ Episode Length & 1000 \\
mlp network
    Stage-One Epochs & 2500 \\ Stage-Two Epochs & 2500 \\ Encoder Layers & 4 \\ Embedding Input Size & N/A \\
    Feedforward Size & [256,512,256,256] \\ Attention Heads & N/A \\
transformer network
    Stage-One Epochs & 2500 \\ Stage-Two Epochs & 2500 \\ Encoder Layers & 4 \\ Embedding Input Size & 120 \\
    Feedforward Size & 128 \\ Attention Heads & 2 \\
"""
PARADIGM = ("no damage", "undetectable joint damage", "sensor-only damage", "detectable joint damage")
"""The curriculum's steps from section "Paradigms"."""

ROBOTS = ("A1", "H1", "G1", "Solo8")


def read_value(text: str) -> Any:
    """A cell of a table: a number, a list, or None."""
    if text == "N/A":
        return None
    if percent := re.fullmatch(r"Random (\d+)\\%", text):
        return int(percent[1]) / 100
    return text if text in ROBOTS else yaml.safe_load(text)


def read_tables(text: str) -> dict[str, dict[str, Any]]:
    """Rows by table."""
    tables: dict[str, dict[str, Any]] = {}
    for title, body in re.findall(r"^(\w+ \w+)\n((?:    .*\n)+)", text, re.MULTILINE):
        rows = [row.split("&") for row in body.split("\\\\\n") for row in row.split("\\\\ ") if row.strip()]
        tables[title] = {name.strip(): read_value(value.strip()) for name, value in rows}
    return tables


TABLES = read_tables(PAPER)


def task(robot: str, stage: int = 2) -> Any:
    return resolve_presets(load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", "env_cfg_entry_point"), [])


def agent(robot: str, name: str, stage: int) -> Any:
    return load_cfg_from_registry(f"UMC-{robot}-Stage{stage}", entry_point(name))


def motor_rows(effort: Any, joints: tuple[str, ...], asked: list[str]) -> dict[str, Any]:
    """The rows on motors that a table has, from the limit of every joint that they speak of."""
    patterns = effort if isinstance(effort, dict) else {".*": effort}
    limits = {joint: next(value for key, value in patterns.items() if re.fullmatch(key, joint)) for joint in joints}
    rows = {}
    for row in asked:
        part = next((part for part in ("hip", "knee", "ankle") if part in row.lower()), "")
        (rows[row],) = {limit for joint, limit in limits.items() if part in joint}
    return rows


def one_or_list(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def used_in_training(robot: str) -> dict[str, Any]:
    """What the Stage 2 task does."""
    cfg = task(robot)
    faults = cfg.events.faults.params
    rows = {
        "Num Envs": cfg.scene.num_envs,
        "Random Damage Range": list(faults["num_joints"]),
        "ROM Limit": faults["severity"]["rom"],
        "Velocity Limit": faults["severity"]["velocity"],
        "Random Malfunction Seed": faults["seed"],
        "Malfunction Timing": faults.get("onset"),
        "Episode Length": round(cfg.episode_length_s / (cfg.sim.dt * cfg.decimation)),
    }
    asked = [row for row in TABLES[f"{robot} training"] if row.startswith("Motor")]
    rows |= motor_rows(faults["severity"]["effort"], tuple(cfg.scene.robot.joint_ordering), asked)
    grid = cfg.scene.terrain.terrain_generator
    if grid is not None:
        names = ("Track Block Length", "Track Width", "Border Size", "Perlin Noise Seed")
        rows |= dict(zip(names, (*grid.size, grid.border_width, one_or_list(list(grid.seeds))), strict=True))
    return rows


def used_in_inference(robot: str, table: str) -> dict[str, Any]:
    """What the evaluation does."""
    name = {"inference": "umc_paper", "ablation": "umc_paper_ablation"}[table]
    protocol, joints = protocol_for(robot.lower(), name=name), tuple(task(robot).scene.robot.joint_ordering)
    rows = {
        "Num Envs": protocol.num_envs,
        "Random Damage Range": list(protocol.num_joints),
        "ROM Limit": protocol.severity["rom"],
        "Velocity Limit": protocol.severity["velocity"],
        "Random Malfunction Seed": one_or_list([one.seed for one in protocol.settings]),
        "Malfunction Timing": one_or_list([one.onset for one in protocol.settings]),
    }
    asked = [row for row in TABLES[f"{robot} {table}"] if row.startswith("Motor")]
    rows |= motor_rows(protocol.severity["effort"], joints, asked)
    if protocol.track:
        rows |= {"Track Width": protocol.track["width"], "Track Block Length": protocol.track["block_length"]}
        rows |= {"Border Size": protocol.track["border"]}
        rows |= {"Perlin Noise Seed": one_or_list([one.perlin_seed for one in protocol.settings])}
    return rows | ({"Task": robot} if table == "ablation" else {"Episode Length": protocol.steps})


def used_by_agent(robot: str, name: str) -> dict[str, Any]:
    """What the agent is and how long it learns."""
    first, actor = agent(robot, name, 1), agent(robot, name, 2).actor
    assert first.actor.to_dict() == actor.to_dict()
    is_mlp = name == "mlp"
    return {
        "Stage-One Epochs": first.max_iterations,
        "Stage-Two Epochs": agent(robot, name, 2).max_iterations,
        "Encoder Layers": len(actor.hidden_dims) if is_mlp else actor.num_layers,
        "Embedding Input Size": None if is_mlp else actor.embed_dim,
        "Feedforward Size": list(actor.hidden_dims) if is_mlp else actor.feedforward_dim,
        "Attention Heads": None if is_mlp else actor.num_heads,
    }


def test_every_row_of_the_transcription_is_read():
    assert len(TABLES) == 11
    assert sum(map(len, TABLES.values())) == PAPER.count("&") == 12 + 12 + 12 + 8 + 8 + 10 + 8 + 8 + 8 + 6 + 6


@pytest.mark.parametrize("robot", ROBOTS)
def test_training_tables(robot):
    assert used_in_training(robot) == TABLES[f"{robot} training"]


@pytest.mark.parametrize(("robot", "table"), [*((robot, "inference") for robot in ROBOTS), ("A1", "ablation")])
def test_inference_tables(robot, table):
    assert used_in_inference(robot, table) == TABLES[f"{robot} {table}"]


def shown(value: Any) -> str:
    """A figure of the paper as docs/robots.md writes it."""
    if value is None:
        return "N/A"
    values = value if isinstance(value, list) else [value]
    return ", ".join(f"{one:,g}" if one < 1000 else f"{one:,}" for one in values)


def shown_rows(table: dict[str, Any]) -> dict[str, str]:
    """The rows of one of the paper's tables as docs/robots.md writes them."""
    rows = {name: shown(value) for name, value in table.items() if name != "Task" and "Motor" not in name}
    low, high = table["Random Damage Range"]
    rows |= {"Random Damage Range": f"{low} to {high}", "ROM Limit": f"{100 * table['ROM Limit']:g} %"}
    motors = [(re.sub(r"Motor Limit|for|Joints|All", "", name).strip(), name) for name in table if "Motor" in name]
    rows["Motor Limit"] = ", ".join(f"{part.lower()} {table[name]:g}".strip() for part, name in motors)
    return rows


def test_the_robots_page_has_every_figure():
    page = (Path(__file__).parents[1] / "docs" / "robots.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for kind, body in re.findall(r"^\| (training|inference) (\|.*\n(?:\|.*\n)+)", page, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.strip().split("\n")]
        for place, title in enumerate(head):
            table = f"{title.split(',')[0]} {'ablation' if 'ablations' in title else kind}"
            cells = {row[0].split(" [")[0]: row[place + 1] for row in rows}
            found[table] = {name: cell for name, cell in cells.items() if cell}
    assert found == {name: shown_rows(table) for name, table in TABLES.items() if not name.endswith("network")}


@pytest.mark.parametrize("robot", ROBOTS)
@pytest.mark.parametrize("network", ["mlp", "transformer"])
def test_network_table(robot, network):
    assert used_by_agent(robot, network) == TABLES[f"{network} network"]


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
