# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every flag that a command has had goes on being taken."""

import re

import pytest
from umc.cli.main import main

LAUNCHER = """--anim_recording_enabled --anim_recording_start_time --anim_recording_stop_time
--deterministic --experience --info --kit_args --livestream --max_visible_envs --verbose --visualizer --xr"""
"""Isaac Lab's own."""
LAUNCHED = ("train", "evaluate", "play")
FLAGS = {
    "train": """--agent --checkpoint --device --distributed --evaluate --jobs --logs --max_iterations --no_pretrained
    --num_envs --quick --ray --ray_address --recipe --restart --resume --rl_library --run_name --seed --show --sweep
    --task --video --video_length --video_interval --headless""",
    "evaluate": """--agent --checkpoint --device --episodes --healthy --labels --num_envs --out --protocol --quick
    --radii --ray --ray_address --report_only --robot --scenarios --seed --share --sweep --task""",
    "play": """--agent --checkpoint --device --host --ledger --labels --num_envs --onset --out --port --quick --robot
    --scenario --seed --side --steps --task""",
    "film": """--agent --checkpoint --device --labels --onset --out --quick --robot --scenario --seed --side --steps
    --task --view""",
    "export": "--agent --checkpoint --out --robot --task",
    "sim2sim": """--against --contact_time --episodes --healthy --ledger --out --policy --protocol --radii --robot
    --scenarios --seed --steps --substeps --workers""",
}


@pytest.mark.parametrize("command", FLAGS)
def test_help_lists_every_flag(command, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    assert main([command, "--help"]) == 0
    flags = set(re.findall(r"--[a-z_]+", capsys.readouterr().out))
    expected = set(FLAGS[command].split()) | set(LAUNCHER.split() if command in LAUNCHED else ())
    assert expected - flags == set()
