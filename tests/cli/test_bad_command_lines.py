# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Bad command lines and files (bad_command_lines.txt): one line, exit status 2, nothing simulated or left behind."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fresh_policy import write_fresh
from tiny_recipe import written
from umc.cli.main import main
from umc.deploy.export import export_checkpoint
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.tasks.task_cfg import resolve_cfgs

TABLE = [
    tuple(line.split(" => "))
    for line in Path(__file__).with_suffix(".txt").with_stem("bad_command_lines").read_text().splitlines()
    if line and not line.startswith("#")
]
SHARED = 64
"""Each test works through so many lines: what a line costs is a tenth of what pytest takes for a test of its own."""


def put_checkpoints(folder: Path) -> dict[str, Path]:
    """Checkpoints of two robots and two models, and files that are none."""
    good = write_fresh(folder / "a1")
    data = read_checkpoint(good)
    umc = data["infos"]["umc"]

    def changed(name, **parts):
        path = folder / name / "model_0.pt"
        write_checkpoint(path, {**data, **parts})
        return path

    weights = {name: torch.full_like(value, torch.nan) for name, value in data["actor_state_dict"].items()}
    words = {
        "CHECKPOINT": good,
        "OTHER_ROBOT": write_fresh(folder / "g1", task="UMC-G1-Stage2"),
        "SIM_DT": write_fresh(folder / "sim", env_overrides=["env.sim.dt=0.004"]),
        "TRANSFORMER": write_fresh(folder / "transformer", model="transformer_small32", change=None),
        "NAN": changed("nan", actor_state_dict=weights),
        "NO_POLICY": folder / "no_policy.pt",
        "NO_HEADER": changed("no_header", infos={}),
        "HEADER_LIST": changed("header_list", infos={"umc": {**umc, "joint_names": 5, "task": 7}}),
        "MIXED": changed("mixed", infos={"umc": {**umc, "robot": "g1"}}),
        "TRUNCATED": folder / "truncated.pt",
        "ZIP": folder / "zip.pt",
    }
    torch.save({"weights": [1]}, words["NO_POLICY"])
    words["TRUNCATED"].write_bytes(good.read_bytes()[:-2000])
    with zipfile.ZipFile(words["ZIP"], "w") as archive:
        archive.writestr("data.pkl", b"cos\nsystem\n")
    return words


def put_texts(folder: Path) -> dict[str, Path]:
    """YAML files that are wrong, each in its own way."""
    contents = {
        "TEXT": b"hello\n",
        "NOT_UTF8.yaml": b"name: \xff\xfe\n",
        "BROKEN_YAML.yaml": b"a: [1, 2\nb: }",
        "DEEP_YAML.yaml": b"a: " + b"[" * 5000 + b"]" * 5000,
        "LIST_YAML.yaml": b"- 1\n- 2\n",
        "EMPTY_YAML.yaml": b"",
        "TAGGED_YAML.yaml": b"a: !!python/object/apply:os.system ['true']\n",
        "SWEEP_NAME.yaml": b"name: ../../evil\nseeds: [1]\n",
        "PROTOCOL_NAME.yaml": b"name: [1]\nscenarios: [1]\nrobots: {a1: {}}\n",
        "RECIPE_ITSELF.yaml": b"extends: RECIPE_ITSELF\n",
        "CODE_YAML.yaml": b"file: os.path:exists\n",
        "TERM_YAML.yaml": b"file: walk.onnx\nobservations: [joint_poss]\n",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    words = {Path(name).stem: folder / name for name in contents}
    phase = {"iterations": 1}
    for name, changes in {
        "RECIPE_ROBOT": {"robot": ["a1"]},
        "RECIPE_KEY": {"robbot": "a1"},
        "RECIPE_OVERRIDE": {"overrides": ["env.scen.num_envs=3"]},
        "RECIPE_DECIMATION": {"overrides": ["env.decimation=0"]},
        "RECIPE_NO_PHASE": {"stages": {1: [], 2: []}},
    }.items():
        words[name] = Path(written(folder, name, **{"stages": {1: [phase], 2: [phase]}, **changes}))
    return words


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> dict[str, str]:
    """What the words in capitals stand for."""
    folder = tmp_path_factory.mktemp("files")
    found: dict[str, object] = {**put_checkpoints(folder), **put_texts(folder)}
    folders = {name: folder / name.lower() for name in ("EMPTY", "BAD_STATE", "BAD_STUDY", "STUDY_FORMAT", "FULL")}
    folders["FOLDER_AS_FILE"], folders["FOLDER_AS_FILM"] = folder / "model_7.pt", folder / "film.mp4"
    for path in folders.values():
        path.mkdir()
    (folder / "bad_export").mkdir()
    (folder / "bad_export" / "policy.json").write_text('{"trained": 3}')
    (folder / "bad_study" / "study.pt").write_text("hello")
    torch.save({"format": 1}, folder / "study_format" / "study.pt")
    state = folder / "bad_state" / "recipes" / "a1_mlp_cpu_seed1" / "state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"format": 2, "phases": [3]}')
    (folder / "link").symlink_to(folder / "gone" / "away")
    env_cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, [])
    export_checkpoint(found["CHECKPOINT"], folder / "export", env_cfg)
    return {
        **{name: str(path) for name, path in {**found, **folders}.items()},
        "HAS_CHECKPOINT": str(Path(found["CHECKPOINT"]).parent),
        "BAD_EXPORT": str(folder / "bad_export"),
        "EXPORT": str(folder / "export"),
        "LINK": str(folder / "link"),
        "LONG": "x" * 300,
        "WIDE": "名" * 60,
        "NESTED": "[" * 900 + "]" * 900,
        "HUGE": "[" * 9000,
    }


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch, tmp_path):
    """A command that gets as far as a simulation, another process or a rollout fails the test."""
    import_module("isaaclab.utils.warp")  # says once per process that its own setting is old

    def started(*_, **__):
        pytest.fail("something was started")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("isaaclab.app.launch_simulation", started)
    monkeypatch.setattr("umc.utils.process.spawn", started)
    monkeypatch.setattr("umc.utils.executor.spawn", started)
    monkeypatch.setattr("umc.deploy.export.write_onnx", started)
    monkeypatch.setattr("umc.sim2sim.rollout.Simulation", started)
    monkeypatch.setitem(sys.modules, "ray", None)
    disk_usage = shutil.disk_usage
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: SimpleNamespace(free=3e6) if path.name == "full" else disk_usage(path)
    )


def arguments(line: str, words: dict[str, str]) -> list[str]:
    """Split a line of the table and put in what its words in capitals stand for."""
    task = ["--task", "UMC-A1-Stage1"]
    if line.startswith("train"):
        task = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]
    found: list[str] = []
    for word in shlex.split(line):
        if word == "A1":
            found += task
        else:
            name = next((name for name in words if name in word.replace("=", "/").split("/")), None)
            found.append(word if name is None else word.replace(name, words[name], 1))
    return found


def mistakes_of(line: str, part: str, words: dict[str, str], capfd) -> str | None:
    """Run a line; return what is wrong with how it was refused, or None."""
    capfd.readouterr()
    try:
        status = main(arguments(line, words))
    except Exception as error:  # noqa: BLE001 - it is what the table looks for
        return f"{type(error).__name__}: {error}"
    except pytest.fail.Exception as error:
        return str(error)
    shown = [one for one in capfd.readouterr().err.splitlines() if one.strip()]
    if status != 2 or len(shown) != 1:
        return f"status {status}, {len(shown)} lines: {shown[:3]}"
    if part not in shown[-1] or len(shown[-1]) > 700:
        return f"says: {shown[-1][:700]}"
    left = list(Path.cwd().rglob("*"))
    return f"left {left}" if left else None


@pytest.mark.parametrize("first", range(0, len(TABLE), SHARED))
def test_a_bad_command_line_is_refused_in_one_line(first, words, capfd):
    found = {}
    for line, part in TABLE[first : first + SHARED]:
        if (mistake := mistakes_of(line, part, words, capfd)) is not None:
            found[line] = mistake
            shutil.rmtree(Path.cwd() / "logs", ignore_errors=True)
    assert not found, json.dumps(found, indent=1)


@pytest.mark.parametrize("command", ["train --task UMC-A1-Stage1", "evaluate --robot a1", "film --scenario 3"])
def test_an_unknown_flag_is_refused_before_packages_are_loaded(command):
    program = (
        "import sys; from umc.cli.main import main\n"
        "status = main(sys.argv[1:]); print(status, sorted({'torch', 'isaaclab', 'warp'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", program, *command.split(), "--nonsense"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2 []\n", "error: unknown flag --nonsense; --help lists all flags\n")
