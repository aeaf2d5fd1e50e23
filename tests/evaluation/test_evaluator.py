# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluations in batches and shares: each robot once, no part reused for other conditions, workers without a disk."""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import grimp
import pytest
import torch
import umc
from fresh_policy import write_fresh
from held_lock import held_lock
from made_up_study import FEET, JOINTS, made_up_study
from umc.cli import evaluate as command
from umc.cli.main import main
from umc.detection import Detector, DetectorFile, write_detector
from umc.evaluation.arguments import parse
from umc.evaluation.checkpoints import with_detections
from umc.evaluation.estimates import Estimates
from umc.evaluation.evaluate import _default_folder, choose_protocol, measure_gait, simulate_plan, worker_arguments
from umc.evaluation.evaluator import NOT_SIMULATED, Batches, Evaluator, code_fingerprint
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.report.page import summary
from umc.evaluation.session import open_session, prepare
from umc.evaluation.study import STUDY, EpisodeBatch, load_study, save_study
from umc.faults import find_kind
from umc.models import JointLayout
from umc.robots import A1_JOINTS
from umc.training.sweep_file import read_sweep_file
from umc.utils.cli import run_main
from umc.utils.errors import UmcError
from umc.utils.executor import FOLDER, LocalExecutor, Result
from umc.utils.io import sha256

PROTOCOL = protocol_for("a1")


@pytest.mark.parametrize(("num_envs", "episodes"), [(24, 1), (50, 2), (7, 3), (100, 11), (1, 2), (256, None)])
def test_batches_hold_every_robot_once_in_the_same_order(num_envs, episodes):
    batches = Batches.plan(PROTOCOL, num_envs, episodes)
    assert batches.num_envs <= num_envs
    robots, onsets = [], []
    for batch in range(batches.count):
        cell, member, onset = (value[: batches.size(batch)] for value in vars(batches.assignment(batch)).values())
        robots += zip(member.tolist(), cell.tolist(), strict=True)
        onsets += onset.tolist()
    expected = episodes or num_envs // 24
    assert robots == [(member, cell) for member in range(expected) for cell in range(24)]
    assert onsets == [setting.onset for setting, _ in PROTOCOL.cells] * expected
    # another process makes the same batches from the size of these
    assert Batches.plan(PROTOCOL, batches.num_envs, batches.episodes) == batches


def prepared(*argv):
    """What a command line is about to evaluate."""
    options, overrides = parse(["--device", "cpu", *map(str, argv)], command.add_arguments)
    return prepare(options, overrides, stage=2)


def put_detector(path, **about):
    write_detector(path, DetectorFile(Detector(JointLayout.term_major(A1_JOINTS, 48, 12)), "a1", about))


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    paths = [write_fresh(folder / name, model=name) for name in ("mlp", "transformer_small32")]
    return prepared("--checkpoint", *paths, "--labels", "a", "b", "--quick")


@pytest.fixture
def names(session, tmp_path):
    """Names of all parts."""

    def of(protocol=PROTOCOL, num_envs=24, episodes=2):
        return [part.path.name for part in Evaluator(session, protocol, num_envs, episodes, tmp_path).parts]

    return of


def test_a_parts_name_depends_on_all_that_decides_its_result(names, session, monkeypatch, tmp_path):
    before = names()
    assert names() == before
    assert len(set(before)) == 4  # policies x batches
    found = [
        before,
        names(replace(PROTOCOL, steps=749)),
        names(replace(PROTOCOL, settings=(*PROTOCOL.settings[:2], Setting(51, 125, 75)))),
        names(num_envs=48),
    ]
    monkeypatch.setattr(session.env_cfg, "decimation", 5)
    found.append(names())
    monkeypatch.undo()
    monkeypatch.setattr("umc.utils.provenance.versions", lambda: {"newton": "2"})
    found.append(names())
    monkeypatch.undo()
    monkeypatch.setattr("umc.evaluation.evaluator.code_fingerprint", lambda: "of other code")
    found.append(names())
    monkeypatch.undo()
    # and on the code of other packages whose functions it has
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "terms.py").write_text("def up(env):\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(session.env_cfg.events, "own", {"func": "own_package.terms:up"}, raising=False)
    found.append(names())
    (package / "terms.py").write_text("def up(env):\n    return 2\n")
    found.append(names())
    own = type("Own", (type(find_kind("rom")),), {"__module__": "own_package.terms"})
    monkeypatch.setattr("umc.evaluation.evaluator.find_kind", lambda name: own())
    monkeypatch.setattr(session.env_cfg.events, "own", None)
    found.append(names())
    (package / "__init__.py").unlink()
    (package / "terms.py").write_text("def up(env):\n    return 3\n")
    invalidate_caches()
    found.append(names())
    monkeypatch.undo()
    for device in ("cuda:0", "cuda:1"):
        monkeypatch.setattr(session, "device", device)
        monkeypatch.setattr(session.env_cfg.sim, "device", device)
        found.append(names())
    assert found[-1] == found[-2]  # several GPUs of a machine share an evaluation
    assert len({name for one in found[:-1] for name in one}) == sum(map(len, found[:-1]))
    # more episodes reuse the batches with the same robots; of 3 a cell, the last batch has 2 robots in its 7 envs
    few, more = names(num_envs=7, episodes=3), names(num_envs=7, episodes=4)
    assert (few[9] == more[9], few[10] == more[10]) == (True, False)


def test_observations_are_as_noisy_as_in_the_training_only_where_the_protocol_says_so(tmp_path):
    noisy = prepared("--checkpoint", write_fresh(tmp_path))
    evaluator = Evaluator(noisy, replace(PROTOCOL, noise=True), 24, 1, tmp_path)
    assert evaluator._about()["noise"] == "as in the training"
    groups = noisy.env_cfg.observations
    assert (groups.policy.enable_corruption, groups.critic.enable_corruption) == (True, False)
    assert Evaluator(noisy, PROTOCOL, 24, 1, tmp_path)._about()["pushes"] == "off"
    assert not groups.policy.enable_corruption


def test_a_described_policy_reads_as_much_noise_as_the_others(tmp_path):
    torch.jit.script(torch.nn.Linear(27, 12)).save(str(tmp_path / "walk.pt"))
    (tmp_path / "walk.yaml").write_text("file: walk.pt\nobservations: [joint_pos, joint_vel, command]\n")
    session = prepared("--task", "UMC-A1-Stage2", "--policy", tmp_path / "walk.yaml", "--trust")
    group = session.env_cfg.observations.external_policy_0
    assert not group.enable_corruption  # a teacher labels what it reads without noise
    for noise in (True, False):
        Evaluator(session, replace(PROTOCOL, noise=noise), 24, 1, tmp_path)
        assert group.enable_corruption is noise
    assert group.term_0_joint_pos.params["noise"] is not None


def test_policies_act_without_the_rounding_of_a_gpu(tmp_path, monkeypatch):
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    for one in flags:
        monkeypatch.setattr(one, "allow_tf32", True)

    @contextlib.contextmanager
    def opened(*_):
        assert not any(one.allow_tf32 for one in flags)
        raise UmcError("the simulation starts")
        yield

    monkeypatch.setattr("umc.tasks.simulation.simulation", opened)
    session = prepared("--checkpoint", write_fresh(tmp_path))
    session.env_cfg.scene.num_envs = 1  # whatever memory is free
    with pytest.raises(UmcError, match="the simulation starts"), open_session(session):
        pass


@pytest.mark.parametrize("noise", [True, False])
def test_a_gait_is_measured_with_the_noise_of_the_protocol(noise, tmp_path, monkeypatch):
    def opened(_session):
        raise UmcError("the simulation starts")

    walking = prepared("--checkpoint", write_fresh(tmp_path))
    monkeypatch.setattr("umc.evaluation.evaluate.open_session", opened)
    with pytest.raises(UmcError, match="the simulation starts"):
        measure_gait(walking, replace(PROTOCOL, noise=noise), tmp_path)
    assert walking.env_cfg.observations.policy.enable_corruption is noise


def test_training_seeds_are_one_group_of_each_source_of_detection(tmp_path):
    paths = [write_fresh(tmp_path / str(seed), seed=seed) for seed in (1, 2, 3)]
    seeds = prepared("--checkpoint", *paths)
    seeds.checkpoints = with_detections(seeds.checkpoints, ["oracle", "none"], seeds.env_cfg)
    evaluator = Evaluator(seeds, PROTOCOL, 24, 1, tmp_path)
    assert evaluator.groups == ["mlp, oracle", "mlp, none"] * 3


@pytest.mark.parametrize("by_flag", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_a_detector_of_another_policy_is_named_on_the_screen_and_in_the_report(other, by_flag, tmp_path, monkeypatch):
    path, file = write_fresh(tmp_path), tmp_path / "detector.pt"
    put_detector(file, policy={"name": "walk.pt", "sha256": "another" if other else sha256(path)})
    overrides = [] if by_flag else ["env.detection.source=detector", f"env.detection.file={file}"]
    walking = prepared("--checkpoint", path, *overrides)
    if by_flag:
        sources = ["oracle", f"detector:file={file}", f"detector:file={file},any_fault=true"]
        walking.checkpoints = with_detections(walking.checkpoints, sources, walking.env_cfg)

    def remarks(lines):
        return sum("trained beside another policy (walk.pt)" in line for line in lines)

    evaluator = Evaluator(walking, PROTOCOL, 24, 1, tmp_path)
    assert remarks(evaluator.describe()) == other
    study = replace(made_up_study(members=2), about=evaluator._about())
    assert remarks(summary(Estimates(study, resamples=10))[1]) == other
    monkeypatch.setattr("umc.evaluation.evaluate.open_session", lambda session: pytest.fail("it walks"))
    with pytest.raises(pytest.fail.Exception, match="it walks"):
        measure_gait(walking, PROTOCOL, tmp_path)
    assert remarks(walking.remarks) == other


def test_two_policies_of_one_name_are_refused_before_the_simulation(tmp_path):
    torch.jit.script(torch.nn.Linear(27, 12)).save(str(tmp_path / "walk.pt"))
    files = [tmp_path / name for name in ("walk.yaml", "walk.yml")]
    for file, read in zip(files, ("joint_pos, joint_vel", "joint_vel, joint_pos"), strict=True):
        file.write_text(f"file: walk.pt\nobservations: [{read}, command]\n")
    argv = ["--task", "UMC-A1-Stage2", "--policy", *files, "--trust"]
    with pytest.raises(UmcError, match="two policies have the name walk; give each its own by --labels"):
        Evaluator(prepared(*argv), PROTOCOL, 24, 1, tmp_path)
    assert Evaluator(prepared(*argv, "--labels", "a", "b"), PROTOCOL, 24, 1, tmp_path).labels == ["a", "b"]


def test_another_protocol_or_source_of_detection_and_a_quick_run_replace_no_report():
    one = SimpleNamespace(sha256="0", stem="model_0")

    def folder(*sources, protocol="umc_paper", quick=False):
        session = SimpleNamespace(
            checkpoints=[one] * max(1, len(sources)),
            checkpoint=Path("run/model_0.pt"),
            options=SimpleNamespace(sweep=None, detection=sources or None, logs=Path("logs"), quick=quick),
            info=SimpleNamespace(robot="a1"),
        )
        return _default_folder(session, protocol, "evaluation")

    alone = [folder(), folder(protocol="real_world"), folder(quick=True)]
    assert [str(one) for one in alone] == [f"run/evaluation/model_0{end}" for end in ("", "_real_world", "_quick")]
    several = [folder(*sources) for sources in (["oracle"], ["none"], ["oracle", "none"])]
    several += [folder("oracle", protocol="real_world"), folder("oracle", quick=True)]
    assert len({*alone, *several}) == 3 + 5


def test_a_report_that_is_written_again_can_have_other_names(tmp_path, monkeypatch):
    save_study(tmp_path / STUDY, made_up_study(members=1))
    written = []
    monkeypatch.setattr("umc.evaluation.evaluate.report_study", lambda study, _: written.append(study))
    again = ["--report_only", str(tmp_path)]
    assert main(["evaluate", *again]) == main(["evaluate", *again, "--labels", "x", "y", "z"]) == 0
    first, second = ([one.label for one in study.policies] for study in written)
    assert (first, second) == (["example A", "example B", "example C"], ["x", "y", "z"])


# Stands in for `umc evaluate` on a worker: writes into each part how it was called and what came with it.
WORKER = """
import json, os, sys
from pathlib import Path
argv = sys.argv[1:]
plan = json.loads(Path(argv[argv.index("--plan") + 1]).read_text())
out, checkpoints = Path(argv[argv.index("--out") + 1]), argv[argv.index("--checkpoint") + 1 :]
if "fail" in argv:
    sys.exit("no engine here")
(out / "partial").mkdir(parents=True)
for policy, batch, name in plan["parts"]:
    path = Path(checkpoints[policy])
    seen = [argv[: argv.index("--plan")], path.read_bytes().hex(), (path.parent / "params/agent.yaml").exists(), batch]
    (out / "partial" / name).write_text(json.dumps([*seen, plan["code"], plan["protocol"]["steps"]]))
"""


def test_shares_travel_to_workers_and_their_parts_back(session, tmp_path, monkeypatch):
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr("umc.utils.process.UMC", (str(tmp_path / "worker.py"),))
    agent = session.checkpoint.parent / "params" / "agent.yaml"
    agent.parent.mkdir()
    agent.write_text("actor: {}\nobs_groups: {actor: [policy]}\n")
    evaluator = Evaluator(session, PROTOCOL, 24, 2, tmp_path / "out")
    executor = LocalExecutor(3, "cpu")
    with pytest.raises(UmcError, match="a worker ended with 1: no engine here"):
        evaluator.simulate_on(executor, evaluator.missing(), ["fail"])
    evaluator.simulate_on(executor, evaluator.missing(), ["--device", "cpu"])
    assert evaluator.missing() == []
    for part in evaluator.parts:
        one = session.checkpoints[part.policy]
        head = ["evaluate", "--device", "cpu"]
        seen = [head, one.path.read_bytes().hex(), part.policy == 0, part.batch, code_fingerprint(), 750]
        assert json.loads(part.path.read_text()) == seen
    shutil.rmtree(agent.parent)


def test_policies_of_others_travel_to_workers_with_what_describes_them(tmp_path):
    """A worker prepares the same policies, under the names of the user."""
    (tmp_path / "here").mkdir()
    own, network = write_fresh(tmp_path / "run"), tmp_path / "here" / "walk.pt"
    torch.jit.script(torch.nn.Linear(27, 12)).save(str(network))
    described = tmp_path / "walk.yaml"
    described.write_text("file: here/walk.pt\nobservations: [{term: joint_pos, scale: 1.0e-5}, joint_vel, command]\n")

    argv = ["--checkpoint", str(own), "--policy", str(described), "--trust", "--labels", "ours", "theirs"]
    argv += ["--ray", "2", "physics=ovphysx"]
    session = prepared(*argv)
    evaluator = Evaluator(session, PROTOCOL, 24, 1, tmp_path / "out")
    assert evaluator.labels == ["ours", "theirs"]
    job = evaluator._job(evaluator.parts, worker_arguments(session, command.launcher_arguments(argv)))
    for name, content in job.inputs.items():
        (tmp_path / "worker" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "worker" / name).write_bytes(content)
    sent = list(job.arguments)[list(job.arguments).index("evaluate") + 1 :]
    worker = prepared(*(word.replace(FOLDER, str(tmp_path / "worker")) for word in sent))
    assert [one.sha256 for one in worker.checkpoints] == [one.sha256 for one in session.checkpoints]
    here, there = (one.checkpoints[1].external.description for one in (session, worker))
    assert there == here.model_copy(update={"file": "walk.pt"})


@pytest.mark.parametrize(
    ("differs", "words"), [({"code": "other"}, "another version of umc"), ({"device": "cuda"}, "give --device cpu")]
)
def test_a_worker_with_other_code_or_another_device_refuses(session, differs, words):
    plan = {"code": code_fingerprint(), "device": "cpu", "protocol": {}, "num_envs": 1, "episodes": 1, "parts": []}
    with pytest.raises(UmcError, match=words):
        simulate_plan(session, {**plan, **differs})


@pytest.mark.engine
def test_two_workers_of_ray_simulate_an_evaluation(tmp_path):
    # ovphysx starts fastest; Ray's own limit on its start is too short for a busy machine
    arguments = ["--checkpoint", str(write_fresh(tmp_path)), "physics=ovphysx", "env.scene.terrain=flat", "--quick"]
    arguments += ["--num_envs", "8", "--episodes", "3", "--device", "cpu", "--ray", "2", "--out", str(tmp_path / "out")]
    env = {**os.environ, "RAY_raylet_start_wait_time_s": "400"}
    command = [sys.executable, "-m", "umc", "evaluate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "3 batches on 2 workers of Ray" in done.stdout
    assert load_study(tmp_path / "out" / STUDY).policies[0].run.cell.tolist() == [*range(8)] * 3


def test_a_part_comes_back_from_its_file_and_a_damaged_one_is_refused(session, tmp_path):
    part = Evaluator(session, PROTOCOL, 24, 1, tmp_path).parts[0]
    run = made_up_study(members=1).policies[0].run
    part.save(run, JOINTS, FEET)
    back, joints, feet = part.load(24)
    assert (joints, feet) == (tuple(JOINTS), FEET)
    torch.testing.assert_close(back.tensors(), run.tensors(), rtol=0, atol=0, equal_nan=True)
    bare = EpisodeBatch.join([run, replace(run, severity=None, stance=None)])
    assert (len(bare.cell), bare.severity, bare.stance) == (48, None, None)
    part.save(run.select(slice(5)), JOINTS, FEET[:3])
    with pytest.raises(UmcError, match=r"is damaged .stance is no tensor .*; delete it"):
        part.load(24)
    part.path.write_bytes(b"PK nothing")
    with pytest.raises(UmcError, match=r"is damaged .*; delete it") as error:
        part.load(24)
    assert "\n" not in str(error.value)


def replace_simulation(monkeypatch, run_faults):
    """Start no engine; ``run_faults`` returns batches."""
    monkeypatch.setattr("umc.evaluation.evaluator.open_session", lambda _: contextlib.nullcontext((None, [0, 1])))
    monkeypatch.setattr("umc.mdp.fault_state", lambda _: SimpleNamespace(joint_names=JOINTS))
    monkeypatch.setattr("umc.evaluation.rollout.feet_sensor", lambda *_: (None, FEET))
    monkeypatch.setattr("umc.evaluation.rollout.run_faults", run_faults)


@pytest.mark.parametrize("limit", [1, 3000])  # bytes of a file; a batch has more
def test_a_full_disk_ends_an_evaluation_in_one_line_and_keeps_what_is_done(
    limit, session, tmp_path, monkeypatch, capsys
):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    evaluator = Evaluator(session, PROTOCOL, 24, 2, tmp_path)
    study = made_up_study(members=1)

    def simulate(*_):
        if len(evaluator.missing()) == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        return study.policies[0].run

    replace_simulation(monkeypatch, simulate)
    capsys.readouterr()
    try:
        status = run_main(lambda _: evaluator.simulate(evaluator.missing()) or 0, [])
        batches = capsys.readouterr().err
        statuses = status, run_main(lambda _: save_study(tmp_path / STUDY, study) or 0, [])
        result = capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert statuses == (2, 2)
    for printed, name in ((batches, evaluator.parts[2].path), (result, tmp_path / STUDY)):
        (line,) = [line for line in printed.splitlines() if not re.search(r"it/s|step/s|^\W*$", line)]  # but the bar
        assert line.startswith(f"error: cannot write {name}: File too large; ")
    assert [part.load(24)[2] for part in evaluator.parts if part.path.exists()] == [FEET, FEET]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == sorted(one.path.name for one in evaluator.parts[:2])


def test_a_batch_has_the_noise_of_its_number_whatever_was_simulated_before(session, tmp_path, monkeypatch):
    evaluator, noise = Evaluator(session, PROTOCOL, 24, 2, tmp_path), []

    def simulate(*_):
        noise.append(torch.rand(3).tolist())
        return made_up_study(members=1).policies[0].run

    replace_simulation(monkeypatch, simulate)
    evaluator.simulate(evaluator.parts)
    evaluator.simulate(evaluator.parts[1:2])
    assert noise[:2] == noise[2:4]  # both policies
    assert noise[0] != noise[1] == noise[4]


def test_the_bar_of_a_share_has_its_batches_alone(session, tmp_path, monkeypatch):
    evaluator = Evaluator(session, PROTOCOL, 24, 2, tmp_path)
    replace_simulation(monkeypatch, lambda *_: made_up_study(members=1).policies[0].run)
    bar = MagicMock(return_value=contextlib.nullcontext(MagicMock()))
    monkeypatch.setattr("umc.utils.console.progress_bar", bar)
    evaluator.simulate(evaluator.missing((1, 4)))
    assert (bar.call_args.args, bar.call_args.kwargs) == ((PROTOCOL.steps, "evaluating"), {})  # one of four batches


def test_a_quick_sweep_is_one_batch(session, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr("umc.evaluation.evaluate._simulate_missing", lambda one, *_: found.append(one.batches.count))
    argv = ["--checkpoint", str(session.checkpoint), "--device", "cpu", "--out", str(tmp_path), "--share", "1/2"]
    assert main(["evaluate", *argv, "--sweep", "severity_joint_onset", "--quick"]) == 0
    assert found == [1]


def test_a_protocol_on_flat_ground_has_no_terrain_seeds(session):
    for ground in ("perlin", "flat"):
        protocol = choose_protocol(
            prepared("--checkpoint", session.checkpoint, f"env.scene.terrain={ground}"), None, {}
        )
        assert (protocol == protocol.without_track()) == (ground == "flat")


def test_an_evaluation_at_another_rate_says_how_long_it_lasts(session):
    faster = prepared("--checkpoint", session.checkpoint, "env.decimation=2")
    choose_protocol(faster, None, {})
    assert "s at 100 Hz; protocol.steps=" in faster.remarks[-1]


def test_a_film_on_flat_ground_claims_no_track(session, tmp_path, monkeypatch):
    filmed = []
    monkeypatch.setattr("umc.rendering.film.film", lambda _, protocol, cfg: filmed.append(protocol) or 0)
    argv = ["film", "--checkpoint", str(session.checkpoint), "--device", "cpu", "--out", str(tmp_path)]
    for ground in ("perlin", "flat"):
        assert main([*argv, f"env.scene.terrain={ground}"]) == 0
    assert [one == one.without_track() for one in filmed] == [False, True]


def test_a_severity_in_whose_place_the_settings_have_their_own_is_refused(session, tmp_path):
    sweep, own = read_sweep_file("severity", {}), tmp_path / "own.yaml"
    with pytest.raises(UmcError, match=r"protocol.severity.rom: the settings of .* \(in a sweep sweep.grid.severity="):
        choose_protocol(session, sweep, {"severity.rom": 0.9})
    own.write_text("name: own\nextends: umc_paper\noverrides: {settings.severity: [{rom: 0.1}, {rom: 0.2}, {}]}\n")
    changed = prepared("--checkpoint", session.checkpoint, "--protocol", str(own))
    walking = prepared("--checkpoint", session.checkpoint, "--healthy")  # reads the protocol's severities alone
    assert choose_protocol(walking, sweep, {"severity.rom": 0.9}).severity["rom"] == 0.9
    assert choose_protocol(changed, None, {"severity.rom": 0.9}).settings[0].severity == {"rom": 0.1}


def test_a_folder_into_which_another_process_evaluates_is_refused_by_name(session, tmp_path, monkeypatch, capsys):
    simulated = []
    monkeypatch.setattr("umc.evaluation.evaluate._simulate_missing", lambda *_: simulated.append(1))
    argv = ["--checkpoint", str(session.checkpoint), "--device", "cpu", "--out", str(tmp_path), "--share"]
    save_study(tmp_path / STUDY, made_up_study(members=1))
    with held_lock(tmp_path, ".lock_1_of_2") as other:
        owner = f"process {other.pid} on {socket.gethostname()} (since 2"
        assert main(["evaluate", *argv, "1/2"]) == 2
        assert owner in capsys.readouterr().err
        assert main(["evaluate", *argv, "2/2"]) == 0
    assert simulated == [1]
    with held_lock(tmp_path) as other:
        for words in (argv[:-1], ["--report_only", str(tmp_path)]):
            assert main(["evaluate", *words]) == 2
            assert f"process {other.pid} on" in capsys.readouterr().err
    assert simulated == [1]


def test_all_code_that_a_simulation_imports_decides_its_result():
    left_out = {f"umc.{name.removesuffix('.py').replace('/', '.')}" for name in NOT_SIMULATED}
    graph = grimp.build_graph("umc")
    imported = set()
    for name in ("session", "conditions", "rollout", "starts", "study", "gait"):
        imported |= graph.find_upstream_modules(f"umc.evaluation.{name}")
    assert {"umc.rl.checkpoint", "umc.evaluation.protocol", "umc.evaluation.checkpoints"} < imported
    assert not [name for name in imported if any(f"{name}.".startswith(f"{room}.") for room in left_out)]


def test_batches_of_other_code_are_simulated_again_and_those_of_another_report_are_not(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "*.pt", "*.xml", "*.urdf")
    package = Path(shutil.copytree(Path(umc.__file__).parent, tmp_path / "umc", ignore=ignored))
    before = code_fingerprint()
    assert code_fingerprint(package) == before
    for name in ("evaluation/report/plots.py", "evaluation/labels.py", "cli/evaluate.py", "config/recipes/new.yaml"):
        (package / name).write_text("\n")
        assert code_fingerprint(package) == before, name
    for name in ("rl/checkpoint.py", "evaluation/evaluator.py", "faults/data/umc_paper.yaml", "robots/data/a1.usda"):
        (package / name).write_text((package / name).read_text() + "\n")
        after = code_fingerprint(package)
        assert after != before, name
        before = after
    (package / "faults" / "new.py").write_text("")
    assert code_fingerprint(package) != before


def test_what_a_worker_that_fails_had_finished_is_kept(session, tmp_path, monkeypatch):
    evaluator = Evaluator(session, PROTOCOL, 24, 2, tmp_path)
    first, *_ = evaluator.missing()
    ended = Result(137, "killed", {first.output: b"finished"})
    monkeypatch.setattr("umc.evaluation.evaluator.run_all", lambda executor, jobs: [(0, ended)])
    with pytest.raises(UmcError, match="ended with 137"):
        evaluator.simulate_on(SimpleNamespace(count=1), evaluator.missing(), [])
    assert first.path.read_bytes() == b"finished"


def test_a_detector_that_was_trained_again_is_another_condition(names, session, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr(session.env_cfg.detection, "file", str(tmp_path / "detector.pt"))
    for seed in (1, 2):
        put_detector(tmp_path / "detector.pt", seed=seed)
        found += names()
    assert len(set(found)) == len(found)
