# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""docs/model_cards.md: a card for every pretrained policy: ``./isaaclab.sh -p -m tools.model_cards``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template
from umc.evaluation.report.renderers import percent
from umc.evaluation.study import load_study
from umc.rl.pretrained import read_models
from umc.tasks.task_cfg import resolve_cfgs
from umc.training.recipe import read_recipe
from umc.utils.cli import Parser, run_main
from umc.utils.io import atomic_write
from umc.utils.naming import display_name, load_tasks

from tools.results_page.acceptance import acceptance_reached, main_rates
from tools.results_page.kept import NAME_LENGTH
from tools.results_page.page import ENGINES, GROUNDS

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "model_cards.md", ROOT / "docs" / "results"


def model_cards() -> str:
    """Render the page from ``models.json``, the tasks and the kept studies."""
    load_tasks()
    models = read_models()
    names = {entry[key]: name for name, entry in models.items() for key in ("sha256", "source_sha256")}
    text = Path(__file__).with_suffix(".md.jinja").read_text(encoding="utf-8")
    template = Template(text, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    return template.render(cards=[_card(name, entry, names) for name, entry in models.items()]) + "\n"


def _card(name: str, entry: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    trained = entry["trained"]
    task = f"UMC-{display_name(entry['robot'])}-Stage{entry['stage']}"
    phases = _phases(entry)
    env_cfg, _ = resolve_cfgs(task, None, [token for token in trained["overrides"] if token.startswith("env.")])
    velocity = env_cfg.commands.base_velocity
    forward, sideward, turn = (getattr(velocity.ranges, axis) for axis in ("lin_vel_x", "lin_vel_y", "ang_vel_z"))
    return {
        **{key: entry[key] for key in ("agent", "stage", "licence", "sha256", "recipe", "commit", "seed", "note")},
        "device": trained["device"],
        "phases": " + ".join(f"{iterations:,} x {num_envs}" for iterations, num_envs in phases),
        "name": name,
        "robot": display_name(entry["robot"]),
        "kilobytes": round(entry["bytes"] / 1000),
        "engine": ENGINES.get(trained["physics"], trained["physics"]),
        "ground": GROUNDS[trained["terrain"]],
        "env_steps": trained["num_steps_per_env"] * sum(iterations * num_envs for iterations, num_envs in phases),
        "parent": trained["parent_sha256"] and names.get(trained["parent_sha256"], "an unpublished run"),
        "forward": " to ".join(f"{speed:g}" for speed in dict.fromkeys(forward)),
        "straight": not velocity.heading_command and not any((*sideward, *turn)),
        "pushed": getattr(env_cfg.events, "push", None) is not None,
        "gait": entry["metrics"].get("healthy"),
        "results": _results(entry["sha256"][:NAME_LENGTH]),
    }


def _phases(entry: dict[str, Any]) -> list[tuple[int, int]]:
    """Iterations and envs of each phase of the policy's stage; the entry itself knows the last run only."""
    if entry["recipe"] is None:
        return [(entry["trained"]["iterations"], entry["trained"]["num_envs"])]
    phases = [phase for phase in read_recipe(entry["recipe"]).phases if phase.stage == entry["stage"]]
    return [(phase.iterations, phase.num_envs or entry["trained"]["num_envs"]) for phase in phases]


def _results(policy: str) -> list[list[str]]:
    """Rates over all scenarios of every kept evaluation of a policy: the cells of its rows."""
    rows = []
    for path in sorted(RESULTS.glob(f"*/*/{policy}.study")):
        if path.parent.name not in ENGINES:
            continue  # torque limits without effect, of some scenarios
        study, engine = load_study(path), path.parent.name
        (result,), key = study.policies, acceptance_reached(study.protocol.robot)
        ground = "tracks" if study.protocol.track and engine != "mujoco" else "flat ground"
        found = [percent(one) for one in main_rates(study, result)]
        rows.append([ENGINES[engine], ground, str(len(result.run.cell)), key, *found])
    return sorted(rows)


def main(argv: list[str]) -> int:
    """Write the page; return the exit status."""
    Parser(description=__doc__).parse_args(argv)
    with atomic_write(PAGE) as file:
        file.write(model_cards().encode())
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
