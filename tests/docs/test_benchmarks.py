# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc benchmark-speed``: when a ratio counts as slower, what is written, and the table of docs/benchmarks.md."""

import importlib
import json
from pathlib import Path

import pytest
from umc.cli import benchmark_speed
from umc.cli.main import main
from umc.faults import KINDS, FaultSchedule
from umc.utils.errors import UmcError

REPOSITORY = Path(__file__).resolve().parents[2]
SAVED = REPOSITORY / "benchmarks" / "speed.json"


@pytest.fixture
def ratios(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    return importlib.import_module("ratios")


@pytest.fixture
def speed(monkeypatch, ratios):
    """The command with one benchmark, whose ratios are those that the test puts in ``found``."""
    module = importlib.import_module("speed")
    monkeypatch.setattr(module, "PARTS", [part for part in module.PARTS if part.script == "step"])
    monkeypatch.setattr(module, "measure", lambda part, options: module.found)
    return module


@pytest.mark.parametrize(
    ("better", "before", "after", "is_slower"),
    [
        ("lower", [1.00, 1.01, 0.99], [1.11], True),
        ("lower", [1.00, 1.01, 0.99], [1.09], False),  # outside of the spread, less than 10 %
        ("lower", [1.00, 1.20, 0.99], [1.15], False),  # more than 10 %, inside of the spread
        ("lower", [1.00, 1.01, 0.99], [0.50], False),  # faster
        ("lower", [1.00, 1.01, 0.99], [1.0, 1.0, 5.0], False),  # the median counts
        ("higher", [1.50, 1.52, 1.48], [1.35], True),
        ("higher", [1.50, 1.52, 1.48], [1.40], False),
        ("higher", [1.50, 1.52, 1.30], [1.35], False),
        ("higher", [1.50, 1.52, 1.48], [3.00], False),
    ],
)
def test_a_ratio_is_slower_by_a_tenth_outside_of_its_spread(ratios, better, before, after, is_slower):
    def row(values, case="A1"):
        return ratios.Row(ratio="update / products", case=case, better=better, values=values)

    found = ratios.slower([row(before)], [row(after)])
    assert len(found) == is_slower
    assert all(line.startswith("update / products, A1: ") for line in found)
    assert ratios.slower([row(before, "G1")], [row(after)]) == []  # another case


def test_a_slower_ratio_is_a_warning_and_a_failure(speed, tmp_path, capsys):
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    speed.found = {"A1, 256 envs": [1.4, 1.3, 1.5]}
    assert speed.main(["--json", str(first)]) == 0
    assert "| env step / bare simulation | A1, 256 envs | lower | 1.40 (1.30 to 1.50) |" in capsys.readouterr().out
    assert speed.main(["--json", str(second), "--against", str(first)]) == 0
    speed.found = {"A1, 256 envs": [1.6, 1.7, 1.6]}
    assert speed.main(["--json", str(second), "--against", str(first)]) == 1
    said = capsys.readouterr().err
    assert "warning: env step / bare simulation, A1, 256 envs: 1.60 instead of 1.40 (1.30 to 1.50), 14% slower" in said
    written = json.loads(second.read_text())
    assert written["rows"][0]["values"] == [1.6, 1.7, 1.6]
    assert written["cpu"]
    assert written["cores"] >= 1


def test_a_file_that_is_no_table_is_refused_before_anything_runs(speed, ratios, tmp_path, capsys):
    speed.found = None  # measuring would fail
    (tmp_path / "other.json").write_text('{"rows": []}')
    assert speed.main(["--against", str(tmp_path / "other.json"), "--json", str(tmp_path / "out.json")]) == 2
    assert "is not a table of ratios" in capsys.readouterr().err
    table = json.loads(SAVED.read_text())
    table["rows"][0]["values"] = []
    (tmp_path / "other.json").write_text(json.dumps(table))
    with pytest.raises(UmcError, match="values"):
        ratios.read_table(tmp_path / "other.json")


@pytest.mark.usefixtures("ratios")
def test_the_cost_of_faults_is_measured_with_every_kind():
    measured = importlib.import_module("faults")
    assert sorted(measured.KINDS) == sorted(KINDS)
    FaultSchedule(list("abcd"), scenario=measured.SCENARIOS, severity=measured.SEVERITY)


def test_a_benchmark_that_fails_ends_the_command(monkeypatch, ratios, tmp_path, capsys):
    speed = importlib.import_module("speed")
    part = speed.Part("step", "a / b", "lower", flags="--robots nobody", full="", quick="", minutes=1)
    monkeypatch.setattr(speed, "PARTS", [part])
    with pytest.raises(SystemExit, match=r"(?s)invalid choice.*error: benchmarks/step.py ended with 2"):
        speed.main(["--json", str(tmp_path / "out.json")])


def test_without_a_clone_it_says_so_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(benchmark_speed, "SCRIPT", tmp_path / "speed.py")
    assert main(["benchmark-speed", "--quick"]) == 2
    assert capsys.readouterr().err.startswith("error: umc benchmark-speed needs")


def test_the_page_has_the_saved_table(ratios):
    assert ratios.read_table(SAVED).markdown() in (REPOSITORY / "docs" / "benchmarks.md").read_text()
