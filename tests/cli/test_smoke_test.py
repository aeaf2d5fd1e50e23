# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc smoke-test``: what it starts, what it reports, and that a GPU that differs from the CPU fails it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dummy_training import put_checkpoint
from recorded_device import recording
from umc.cli.main import main
from umc.cli.smoke_test import GPU_ENVS, GPU_ITERATIONS, REPORT
from umc.evaluation.device_speed import Speed
from umc.tasks import task_cfg
from umc.training import plan, quick
from umc.utils.io import write_json, write_torch
from umc.utils.naming import load_tasks
from umc.utils.process import ChildFailed
from umc.utils.provenance import write_progress


class Machine:
    """Stands in for the commands that the test starts; a device may compute something else, and a command fail."""

    def __init__(self, folder: Path):
        self.calls: list[tuple[str, dict[str, str], list[str]]] = []
        self.reports: list[str] = []
        self.folder = folder
        self.noise = 1e-6
        self.fails: dict[str, int] = {}
        self.says = "last line of"

    def run_umc(self, command, arguments, log):
        options = dict(zip(arguments[::2], arguments[1::2], strict=False))
        self.calls.append((command, options, list(arguments)))
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"first line\n{self.says} {command}\n")
        self.reports.append(report())
        if command in self.fails:
            raise ChildFailed(command, self.fails[command])
        if command == "train":
            experiment = options["--task"].lower().replace("-", "_").replace("stage", "mlp_stage")
            path = put_checkpoint(Path(options["--logs"]) / "rsl_rl" / experiment / "run")
            write_progress(path.parent, {"iteration": 25, "iterations": 25, "env_steps_per_s": 54321.0, "eta_s": 0.0})
        elif "--record" in options:
            content = recording(self.folder)
            if options["--device"] != "cpu":
                content.observations["policy"] += self.noise
            write_torch(Path(options["--record"]), dict(content))
        elif "--measure" in options:
            speed = Speed(num_envs=4096, steps=48, seconds=2.0, waits={"umc/a.py f:1": 48}, gpu_bytes=3 * 10**9)
            write_json(Path(options["--measure"]), speed.model_dump())


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose GPU is made up."""
    load_tasks()
    found = Machine(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quick, "run_umc", found.run_umc)
    for module in (task_cfg, plan, quick):
        monkeypatch.setattr(module, "pick_device", lambda device: "cpu" if device == "cpu" else "cuda:0")
    return found


def report() -> str:
    (path,) = Path("logs/quick").glob(f"*/{REPORT}")
    return path.read_text()


def test_it_trains_evaluates_films_compares_and_measures(machine, capsys):
    assert main(["smoke-test", "--device", "cuda"]) == 0
    commands = [command for command, _, _ in machine.calls]
    assert commands == ["train", "train", "evaluate", "film", *["smoke-test"] * 3]
    train, recorded, measured = machine.calls[1], machine.calls[4:6], machine.calls[6]
    assert (train[1]["--num_envs"], train[1]["--max_iterations"]) == (str(GPU_ENVS), str(GPU_ITERATIONS))
    assert [options["--device"] for _, options, _ in recorded] == ["cpu", "cuda:0"]
    assert measured[1]["--num_envs"] == str(GPU_ENVS)
    for _, options, words in (*recorded, measured):
        assert options["--task"] == "UMC-A1-Stage2"
        # the same engine on both devices
        assert {"physics=newton_mjwarp", "env.scene.terrain=flat"} <= set(words)
    shown = capsys.readouterr().out
    assert report() in shown
    assert "smoke test passed; please attach the report to an issue: " in shown
    for words in ("| result | passed |", "54,321", "98,304", "3.00", "48 in 48 env steps", "umc/a.py f:1"):
        assert words in report()
    assert "Failures" not in report()
    # a command that hangs leaves a report that names it
    assert all("| result | unfinished |" in text for text in machine.reports)
    names = ["Stage 1", "Stage 2", "evaluation", "video", "recording on cpu", "recording on cuda:0", "speed on cuda:0"]
    for name, text in zip(names, machine.reports, strict=True):
        assert f"| {name} | 0 | running |" in text
        assert text.count("| passed |") == names.index(name)


def test_a_gpu_that_differs_fails_it(machine, capsys):
    machine.noise = 0.01
    assert main(["smoke-test", "--device", "cuda"]) == 1
    assert "smoke test failed" in capsys.readouterr().out
    assert "| result | failed |" in report()
    assert "- policy is 0.01 apart" in report()


def test_a_cpu_is_compared_with_itself(machine):
    assert main(["smoke-test", "--device", "cpu", "--task", "UMC-A1-Stage1"]) == 0
    commands = [command for command, _, _ in machine.calls]
    assert commands == ["train", "evaluate", "film", *["smoke-test"] * 3]
    assert machine.calls[0][1]["--num_envs"] == str(quick.NUM_ENVS)
    # there are faults in Stage 2 only
    assert {options["--task"] for _, options, _ in machine.calls[3:]} == {"UMC-A1-Stage2"}
    assert {options["--device"] for _, options, _ in machine.calls} == {"cpu"}


def test_a_gpu_that_computes_to_the_bit_what_the_cpu_does_has_not_computed(machine):
    machine.noise = 0.0
    assert main(["smoke-test", "--device", "cuda"]) == 1
    assert "equal to the bit" in report()


def test_what_follows_a_failed_command_runs_and_the_report_has_the_end_of_its_output(machine):
    machine.fails = {"train": 1}
    assert main(["smoke-test", "--device", "cuda"]) == 1
    assert [command for command, _, _ in machine.calls] == ["train", *["smoke-test"] * 3]
    assert "- Stage 1: umc train ended with 1: last line of train\n" in report()
    assert "last line of smoke-test" not in report()
    assert "98,304" in report()


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "give fewer --num_envs"),
        ("RuntimeError: CUDA graph capture failed. CUDA error 900", "env.sim.physics.use_cuda_graph=false"),
        ("CUDA error: no kernel image is available for execution on the device", "compute capability 7.5"),
    ],
)
def test_known_errors_of_a_gpu_come_with_what_to_try(machine, said, hint):
    machine.fails, machine.says = {"train": 1}, said
    assert main(["smoke-test", "--device", "cuda"]) == 1
    (line,) = [line for line in report().splitlines() if line.startswith("- Stage 1: ")]
    assert said in line
    assert line.count(hint) == 1


def test_a_film_that_fails_leaves_the_speed_of_the_training(machine):
    machine.fails = {"film": 1}
    assert main(["smoke-test", "--device", "cuda"]) == 1
    assert "54,321" in report()


def test_a_stopped_command_ends_it_and_leaves_a_report(machine, capsys):
    machine.fails = {"evaluate": 130}
    assert main(["smoke-test", "--device", "cuda"]) == 130
    assert [command for command, _, _ in machine.calls] == ["train", "train", "evaluate"]
    shown = capsys.readouterr()
    assert "umc evaluate was stopped" in shown.err
    assert "smoke test unfinished; " in shown.out
    assert "| result | unfinished |" in report()
    assert "| evaluation | 0 | 130 |" in report()
    assert "Not made." in report()
    assert "54,321" in report()


def test_the_speed_is_that_of_the_envs_that_are_asked_for(monkeypatch, tmp_path):
    class Started(Exception):
        """The simulation would start."""

    def open_session(session):
        raise Started(session.env_cfg.scene.num_envs)

    monkeypatch.setattr("umc.evaluation.session.open_session", open_session)
    with pytest.raises(Started, match=r"^8$"):
        main(["smoke-test", "--task", "UMC-A1-Stage2", "--measure", str(tmp_path / "speed.json"), "--num_envs", "8"])
