# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The help of every command: shown without the packages that take seconds to import, Isaac Lab's flags at the end."""

import argparse
import subprocess
import sys

import pytest
from umc.cli.main import COMMANDS, main
from umc.utils.isaaclab_flags import LAUNCHER_FLAGS, OVERRIDES

SLOW = ("torch", "isaaclab", "isaaclab_tasks", "gymnasium", "matplotlib", "warp")
CODE = """
import sys
from umc.cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as stop:
    status = stop.code
print("imported:", *sys.modules.keys() & set({slow!r}))
sys.exit(status)
"""


@pytest.mark.parametrize("imports", [False, True])
def test_a_stopped_command_says_what_is_kept(monkeypatch, capsys, imports):
    def stop(_):
        if imports:  # as onnxruntime does
            raise ImportError("initialization failed") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setattr("umc.cli.benchmark.main", stop)
    assert main(["benchmark"]) == 130
    assert "finished batches are kept" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_imports_nothing_slow(command):
    words = [word for word in (command, "--help") if word]
    code = [sys.executable, "-c", CODE.format(slow=SLOW), *words]
    shown = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "imported:"
    assert shown.startswith(f"usage: umc {command or 'COMMAND'} ")
    if command not in ("", "list"):
        assert shown.count("\n  umc ") in (3, 4)  # examples


def test_own_flags_come_first_and_headless_is_taken(capsys):
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    order = [shown.index(word) for word in ("--task TASK", "--recipe", "--headless", "--kit_args", "examples:")]
    assert order == sorted(order)


def test_frozen_conditions_offer_no_seed_and_old_names_of_flags_are_hidden(capsys):
    shown = {}
    for command in ("benchmark", "evaluate", "film", "play"):
        assert main([command, "--help"]) == 0
        shown[command] = capsys.readouterr().out
        assert ("--seed" in shown[command]) == (command != "benchmark")
        assert "--labels" in shown[command]
        assert "--names" not in shown[command]
    assert "one seed for all settings" in shown["evaluate"]


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ("train", "physics env agent sweep"),
        ("evaluate", "physics env protocol sweep parts"),
        ("film", "physics env protocol parts"),
        ("train-detector", "physics env parts"),
        ("benchmark", "physics"),
        ("sim2sim", "env protocol"),
        ("export", "env"),
        ("tune", ""),
    ],
)
def test_the_help_names_the_overrides_that_the_command_takes(command, takes, capsys):
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert ("[overrides]" in shown) == bool(takes)
    lines = shown.split("overrides:\n")[-1].splitlines()
    named = [name for name in OVERRIDES if any(line.startswith(f"  {name}") for line in lines)]
    assert sorted(named) == sorted(takes.split())


def test_the_help_lists_isaac_labs_launcher_flags():
    from isaaclab.app import add_launcher_args

    parser = argparse.ArgumentParser(add_help=False)
    add_launcher_args(parser)
    theirs = {flag: action.nargs == 0 for action in parser._actions for flag in action.option_strings}
    ours = {flag: metavar is None for flags, metavar, _ in LAUNCHER_FLAGS for flag in flags}
    assert ours == {flag: switch for flag, switch in theirs.items() if flag != "--device"}


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [([], 2, "usage: umc COMMAND"), (["trian"], 2, "did you mean train?"), (["--version"], 0, "umc ")],
)
def test_umc_itself(argv, status, words, capsys):
    assert main(argv) == status
    assert words in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("tasks", "UMC-A1-Stage2"),
        ("robots", "g1"),
        ("agents", "mlp "),
        ("pretrained", "pretrained:a1_mlp_stage2 ("),
        ("recipes", "a1_mlp_gpu"),
        ("recipes", "a1_mlp_paper"),
    ],
)
def test_list(kind, line, capsys):
    assert main(["list", kind]) == 0
    assert any(one.startswith(line) for one in capsys.readouterr().out.splitlines())
    assert main(["list", "task"]) == 2
