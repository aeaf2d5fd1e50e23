# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every command of README, docs and the other pages runs, with small sizes, in a scratch folder of its page."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from umc.rl.pretrained import find_pretrained
from umc.utils.errors import UmcError

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for pattern in ("README.md", "docs/*.md", "examples/**/*.md", "checkpoints/*.md")
    for page in sorted(REPOSITORY.glob(pattern))
    if re.search(r"^```(bash|python)$", page.read_text(), re.MULTILINE)
]
LIMIT_S = 600.0
"""Longest run of one command [s]."""

JOBS = 2
"""Pages that run at once; the commands of a page run one after another, since they use what the former wrote."""

WRITTEN = {  # what a page asks its reader for
    r"UMC_1 .* BASELINE_3": "pretrained:a1_mlp_stage2 pretrained:a1_nm_mlp_stage1",
    r"(?<=a1_ablations/)\*\.pt": "a1_transformer_small32_stage2.pt",
    r"a\.pt b\.pt": "pretrained:a1_transformer_stage2 pretrained:a1_nm_mlp_stage1 --labels mlp transformer --out OUT",
    r"logs/rsl_rl/umc_g1_mlp_stage2/RUN pretrained": "pretrained:g1_nm_mlp_stage1 pretrained",
    r"(?<=checkpoint )RUN pretrained:a1_mlp_stage2": "pretrained:a1_transformer_stage2 pretrained:a1_mlp_stage2",
    r"a\.pt|(?<=checkpoint )RUN(?= )|(?<!/)RUN$": "pretrained:a1_mlp_stage2",
    r"^\.\.\.": "./isaaclab.sh -p scripts/evaluate.py --robot A1 --checkpoint pretrained:a1_mlp_stage2",
    r"my_protocol\.yaml": "config/protocols/umc_paper.yaml",
    # a recipe has no small size; tests/examples/test_my_extension.py checks this one
    r"--recipe examples/my_extension/\S+": "--task UMC-Solo12-Stage2 --agent mlp",
}
DONE: set[tuple[str, ...]] = set()
"""Commands that a page has run, whatever the order of their words."""

TRAIN, EVALUATE = "--num_envs 8 --max_iterations 1", "--quick --num_envs 16"
# What a command contains (the first that fits counts): the flags that shrink it, or None and why it is not run.
SHRINK: list[tuple[str, str | None, str]] = [
    (r"^python -c", "", ""),
    (r"^git clone|^pip install|isaaclab\.sh -i wandb$", None, "downloads"),
    (r"isaaclab\.sh -i examples/my_extension$", None, "changes the environment; `installed` does the same"),
    (r"agent\.logger=wandb", None, "W&B is not installed"),
    (r"docker|^mkdir|ISAACLAB_BASE_IMAGE", None, "needs Docker; tests/packaging"),
    (r"--viz kit|isaacsim_physx", None, "needs Isaac Sim; tests/kit"),
    (r"--device cuda|--nproc_per_node [48]", None, "needs GPUs"),
    (r"agent\.bfloat16", None, "needs AMX or AVX512_BF16; tests/training/test_train_cli.py"),
    (r"--ray", None, "needs a cluster; tests/training has one"),
    (r"--public CLONE", None, "needs a clone of another project"),
    (r"--(policy|teacher) motion\.pt", None, "needs a file that its reader fetches; tests/rl/test_external.py"),
    (r"--recipe examples/", None, "needs a file that its reader fetches; tests/training/test_recipes.py"),
    (r"train\.py .*--quick", "physics=ovphysx", ""),
    (r"tensorboard", None, "serves until it is stopped, and needs libusb"),
    (r"tools\.results_page", None, "takes hours; tests/tools"),
    (r"docs_figures faults", None, "takes minutes"),
    (r"go2_train\.py .*--evaluate", "--num_envs 8 --steps 20", ""),
    (r"go2_train\.py", "--num_envs 8 --iterations 1", ""),
    (r"go2_faults\.py", "--steps 20", ""),
    (r"train\.py .*--recipe \S+_gpu", "--show --device cpu", ""),
    (r"train\.py .*--recipe", "--show", ""),
    (r"train\.py .*--resume", "--num_envs 8 --max_iterations 2", ""),
    (r"train\.py .*--video", "--num_envs 8 --max_iterations 1 --video_length 12", ""),
    (r"train\.py .*--sweep \S*ablation", f"{TRAIN} --jobs 1 sweep.seeds=[1] sweep.agents=[NETWORK_ratio_1110]", ""),
    (r"train\.py .*--sweep", f"{TRAIN} --jobs 1 sweep.seeds=[1]", ""),
    (r"train\.py|isaaclab\.sh train", TRAIN, ""),
    (r"--policy policy\.pt", None, "needs a file that its reader has trained; tests/tasks/test_parts.py"),
    (r"umc benchmark --", "--quick", ""),
    (r"umc train-detector", "--num_envs 8 --iterations 1", ""),
    (r"umc diagnose .*--exported", "--minutes 0.3 --workers 1", ""),
    (r"umc diagnose", "--num_envs 8 --minutes 0.2", ""),
    (r"tools\.leaderboard", None, "writes into the clone; tests/evaluation/test_card.py"),
    (r"evaluate\.py .*--report_only", "", ""),
    (r"evaluate\.py .*--sweep ablation", None, "needs seven trainings; tests/evaluation"),
    (r"evaluate\.py .*--healthy", "--num_envs 8", ""),
    (r"evaluate\.py .*--sweep", "--quick --num_envs 36", ""),
    (r"evaluate\.py .*--episodes", f"{EVALUATE} --episodes 1", ""),
    (r"evaluate\.py", EVALUATE, ""),
    (r"play\.py .*--viz", "--num_envs 2 --steps 20", ""),
    (r"play\.py|umc film", "--quick", ""),
    (r"export\.py|umc export|list_envs|my_extension\.recipe|my_extension\.watch", "", ""),
    (r"sim2sim .*--(ledger|against)", None, "needs a whole evaluation; tests/sim2sim"),
    (r"sim2sim .*--healthy", "--episodes 1", ""),
    (r"sim2sim", "--episodes 1 --steps 130", ""),
    (r"benchmark-speed|benchmarks/", None, "takes minutes; .ci/check benchmarks runs it"),
    (r"docs_figures (strip|portrait)", "", ""),
    (r"robot_loop\.py", "--steps 20", ""),
]


def commands(page: Path) -> list[str]:
    """Return the commands of a page in their order, with what its reader has to fill in."""
    lines = []
    for language, block in re.findall(r"^```(bash|python)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        if language == "bash":
            lines += [shlex.split(filled_in(line), comments=True) for line in block.replace("\\\n", " ").splitlines()]
        elif page.name == "evaluation.md":  # reads what the commands wrote; the Python of other pages has its own tests
            lines.append(["python", "-c", block])
    return [shlex.join(words) for words in lines if words]


def filled_in(line: str) -> str:
    """Return a line with what its page asks the reader for."""
    for pattern, text in WRITTEN.items():
        line = re.sub(pattern, text, line)
    return line


def shrunk(line: str) -> tuple[list[str] | None, str]:
    """Return the words of a small command that does the same, or None and the reason why it is not run."""
    for pattern, flags, reason in SHRINK:
        if re.search(pattern, line):
            return (None, reason) if flags is None else (words_of(line, flags), "")
    raise AssertionError(f"SHRINK says nothing about: {line}")


def words_of(line: str, flags: str) -> list[str]:
    """Return the words of a line with more flags, on flat ground."""
    words = [*shlex.split(line), *flags.split()]
    simulates = re.search(r"(train|evaluate|play)\.py|film|strip", line) and not re.search("--recipe|--report", line)
    if simulates and re.search("A1|a1_", line) and "terrain=" not in line:
        words.append("env.scene.terrain=flat")  # tracks take longer
    return words


def program(words: list[str]) -> list[str]:
    """Return what ./isaaclab.sh starts (tests/test_launcher.py), with the Python of the tests."""
    if words[:2] == ["./isaaclab.sh", "-p"]:
        return [sys.executable, *words[2:]]
    if words[0] == "umc":
        return [sys.executable, "-m", *words]
    if words[0] in ("python", "python3"):
        return [sys.executable, *words[1:]]
    if words[0] == "./isaaclab.sh":
        library = ["--rl_library", "rsl_rl"] if words[1] == "train" else []
        return [sys.executable, "-P", "-m", "isaaclab", words[1], *library, *words[2:]]
    return words


def newest(folder: Path, word: str) -> str:
    """Return the run that a page means by RUN: the newest of its folder, else a pretrained policy of that name."""
    if not (match := re.fullmatch(r"(logs/rsl_rl/umc_(\w+))/RUN", word)):
        return word
    runs = sorted((folder / match[1]).glob("*"))
    if runs:
        return str(runs[-1])
    with contextlib.suppress(UmcError):
        find_pretrained(f"pretrained:{match[2]}")
        return f"pretrained:{match[2]}"
    raise AssertionError(f"no command before made a run in {match[1]}")


def installed(folder: Path) -> None:
    """Make examples/my_extension importable and its tasks known, as its editable install does."""
    info = folder / "site/my_extension-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-extension\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[isaaclab.tasks]\nmy_extension = my_extension\n")


def scratch(folder: Path, page: Path) -> dict[str, str]:
    """Prepare a folder in which the commands of a page write, and return their environment."""
    for place in REPOSITORY.iterdir():
        if place.name in ("scripts", "benchmarks", "tools", "source", "config", "exts", "checkpoints"):
            (folder / place.name).symlink_to(place)
    shutil.copytree(REPOSITORY / "examples", folder / "examples")  # a recipe writes there
    (folder / "docs/images").mkdir(parents=True)
    if recipe := re.search(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        (folder / "my_recipe.yaml").write_text(recipe[1])
    found = [str(REPOSITORY / "source/umc"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")]
    if "-i examples/my_extension" in page.read_text():
        installed(folder)
        found += [str(folder / "site"), str(folder / "examples/my_extension")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found)}


def start(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command in a folder; return nothing, or what it said where it failed."""
    child = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        said = f"no end after {LIMIT_S:.0f} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # workers that it left, too
        child.wait()
    return "" if child.returncode == 0 else f"status {child.returncode}\n{said[-2000:]}"


def run_page(page: Path, folder: Path) -> list[str]:
    """Run the commands of a page one after another and return those that failed, with what they said."""
    environment, lines, failed = scratch(folder, page), commands(page), []
    for number, line in enumerate(lines):
        words, _ = shrunk(line)
        if words is None or (tuple(sorted(words)) in DONE and not is_read(words, lines[number + 1 :])):
            continue
        DONE.add(tuple(sorted(words)))
        own = dict(environment)
        while re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            own[name] = os.pathsep.join([str(folder / value), own[name]])
        began = time.monotonic()
        words = [newest(folder, word) for word in words]
        said = start(program(words), folder, own)
        state = "failed" if said else "ok"
        print(f"{page.name}: {time.monotonic() - began:3.0f} s {state}: {shlex.join(words)}", flush=True)
        failed += [f"{line}\nran as {shlex.join(words)}\n{said}"] if said else []
    return failed


def is_read(words: list[str], later: list[str]) -> bool:
    """Whether later commands of the page read what a command writes."""
    out = words[words.index("--out") + 1] if "--out" in words else "/RUN"
    return any(out in line or "--resume" in line for line in later)


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """Run the commands of the selected pages, two pages at a time."""
    pages = {item.callspec.params["page"] for item in request.session.items if "outcomes" in item.fixturenames}
    order = sorted(pages, key=lambda page: -len(commands(page)))  # the longest first
    with (
        ThreadPoolExecutor(JOBS) as pool,
        request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled(),
    ):
        jobs = {page: pool.submit(run_page, page, tmp_path_factory.mktemp(page.stem)) for page in order}
        return {page: job.exception() or job.result() for page, job in jobs.items()}


@pytest.mark.engine
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_command_of_a_page_runs(page, outcomes):
    assert outcomes[page] == []


def test_a_command_without_an_entry_is_found():
    for page in PAGES:
        for line in commands(page):
            shrunk(line)
    with pytest.raises(AssertionError, match="says nothing about"):
        shrunk("./isaaclab.sh -p scripts/dance.py")
