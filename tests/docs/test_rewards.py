# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/rewards.md are the reward terms of the tasks, in their order."""

import re
import sys
import types
from pathlib import Path

import pytest
from umc.tasks.a1 import A1Stage1EnvCfg
from umc.tasks.g1 import G1Stage1EnvCfg
from umc.tasks.go2 import Go2Stage1EnvCfg
from umc.tasks.h1 import H1Stage1EnvCfg
from umc.tasks.solo8 import Solo8Stage1EnvCfg

PAGE = (Path(__file__).resolve().parents[2] / "docs/rewards.md").read_text()
ROW = re.compile(r"^\| `(\w+)`(?: \((\w+)\))? \| (\S+) \| .* \| `(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("robot", "cfg", "section"),
    [
        ("A1", A1Stage1EnvCfg, "A1, Go2 and Solo8"),
        ("Go2", Go2Stage1EnvCfg, "A1, Go2 and Solo8"),
        ("Solo8", Solo8Stage1EnvCfg, "A1, Go2 and Solo8"),
        ("H1", H1Stage1EnvCfg, "H1 and G1"),
        ("G1", G1Stage1EnvCfg, "H1 and G1"),
    ],
)
def test_the_page_lists_the_terms_of_each_task(robot, cfg, section):
    rows = ROW.findall(PAGE.split(f"## {section}\n")[1].split("\n## ")[0])
    listed = [(term, float(weight), function) for term, only, weight, function in rows if only in ("", robot)]
    terms = vars(cfg().rewards).items()
    assert listed == [(name, term.weight, term.func.__name__) for name, term in terms]


def test_the_example_of_a_term_makes_a_cfg(monkeypatch):
    example = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", example)
    exec(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1], example.__dict__)
    rewards = example.SparingG1EnvCfg().rewards
    assert list(vars(rewards))[-2:] == ["spare", "only_positive"]
    assert rewards.torques.weight == -3.0e-4
