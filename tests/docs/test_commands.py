# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Commands, files, names and errors that README and docs mention exist, and the documentation site builds."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
import itertools
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from umc.cli.main import COMMANDS, main
from umc.rl.pretrained import find_pretrained, is_pretrained
from umc.tasks.registry import checked_task
from umc.training.recipe import read_recipe
from umc.utils.errors import UmcError

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = [*(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted(DOCS.glob("*.md"))]
PAGES.remove(DOCS / "results.md")  # generated (tests/tools)
PROGRAM = re.compile(r"(scripts|benchmarks|tools|examples|docs)/\S+\.py")
FLAG = re.compile(r"--[a-zA-Z][\w-]*")
FLAG_WORD = re.compile(FLAG.pattern + r"(=|$)")
CODE = re.compile(r"`([^`\n]+)`")
EXAMPLES = {f"UMC-Solo12-Stage{stage}" for stage in (1, 2)}  # of examples/my_extension
UNWANTED = re.compile(
    r"\b((told|informed|untold) \w+|(walks?|goes) on walking|walks on\b(?= (with|when|after|although|though|despite)\b)"
    r"|bears? faults|(made|met) again|judged?|brought home|calm|mend(s|ed|ing)?|by hand|at home|hand(s|ed)? over"
    r"|line-?up|rehears\w+|ship(s|ped)?|learnt|colour(s|ed)?|behaviours?|not yet tried)\b",
    re.IGNORECASE,
)
"""Words that the project does not use, and British spellings. Write: privileged critic, keeps walking, tolerates
faults, regenerated, evaluated, fix or patch, manual, load Stage 1 weights, env assignment, validate, publish."""


def commands(page: str) -> list[list[str]]:
    """Words of each shell line of a page and of each command in its text, without environment variables."""
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    lines += [
        code for code in CODE.findall(text) if re.match(r"\./isaaclab\.sh|python -m|umc \w|(scripts/)?\w+\.py ", code)
    ]
    found = [shlex.split(line, comments=True) for line in lines]
    for words in found:
        while words and re.match(r"[A-Z_]+=", words[0]):
            del words[0]
    return [words for words in found if words]


def program_of(words: list[str]) -> tuple[str, list[str]] | None:
    """Name and arguments of a Python program of the repository that a command starts: ``umc X``, a file or a module."""
    words = words[2:] if words[:2] == ["./isaaclab.sh", "-p"] else words
    words = words[1:] if words[0] == "python" else words
    if words[0] == "umc":
        return f"umc {words[1]}", words[2:]
    if words[:2] == ["-m", "umc"]:
        return f"umc {words[2]}", words[3:]
    if words[0] == "-m" and words[1].split(".")[0] in ("umc", "tools"):
        return (" ".join(words[1:3]), words[3:]) if words[1] == "tools.docs_figures" else (words[1], words[2:])
    for number, word in enumerate(words):  # behind torchrun, too
        word = f"scripts/{word}" if re.fullmatch(r"(train|evaluate|play|export)\.py", word) else word
        if PROGRAM.fullmatch(word):
            return word, words[number + 1 :]
    return None


@functools.cache
def help_of(program: str) -> str:
    """Help of a program; raise if there is no such program."""
    if program.startswith("scripts/"):
        assert (REPOSITORY / program).is_file(), program
        program = f"umc {Path(program).stem}"
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        name, *subcommand = program.split()
        patch.setattr(sys, "argv", [name, *subcommand, "--help"])
        patch.setattr("os._exit", sys.exit)  # how programs with an engine end
        if name == "umc":
            assert subcommand[0] in COMMANDS, program
            main([*subcommand, "--help"])
        elif name.endswith(".py"):
            patch.syspath_prepend(str((REPOSITORY / name).parent))
            runpy.run_path(str(REPOSITORY / name), run_name="__main__")
        else:
            runpy.run_module(name, run_name="__main__")
    return shown.getvalue()


def check_command(words: list[str]) -> None:
    """Raise AssertionError or UmcError if a program, a flag or what a flag names does not exist."""
    for word in words:
        if word.startswith(("tests/", "benchmarks/", "examples/", "docker/")):
            assert (REPOSITORY / word.split("::")[0]).exists(), word
    if words[0] == "./isaaclab.sh" and len(words) > 1 and words[1] not in ("-p", "-t", "-i", "-h"):
        assert words[1] in ("train", "train_multigpu", "play", "list_envs"), words[1]
    if (found := program_of(words)) is None:
        return
    program, arguments = found
    used = {word.split("=")[0] for word in arguments if FLAG_WORD.match(word)} - {"--help"}
    unknown = used - set(FLAG.findall(help_of(program))) if used or program.startswith(("umc ", "scripts/")) else set()
    assert not unknown, f"{program} has no {', '.join(sorted(unknown))}"
    assert "/" in program or exists(program.split()[0]), program
    for flag, value in itertools.pairwise(arguments):
        if flag == "--task" and value.startswith("UMC-") and "<" not in value and value not in EXAMPLES:
            checked_task(value)
        elif flag == "--recipe" and not value.endswith(".yaml") and value not in ("NAME", "<name>"):
            read_recipe(value)
    for value in arguments:
        if is_pretrained(value) and ":" in value:
            find_pretrained(value)


@pytest.mark.parametrize(
    "command",
    [
        "./isaaclab.sh -p scripts/train.py --task UMC-G1-Stage2 --quik",
        "./isaaclab.sh -p scripts/trian.py",
        "./isaaclab.sh -p scripts/train.py --task UMC-G1-Stage3",
        "./isaaclab.sh -p -m torch.distributed.run scripts/train.py --agnt mlp",  # behind torchrun, too
        "umc evaluate --checkpoint pretrained:a1_mlp_stage3",
        "./isaaclab.sh -p scripts/train.py --recipe g1_mpl_cpu",
        "./isaaclab.sh -t tests/nowhere.py",
        "./isaaclab.sh -p -m umc.cli.sim3sim",
        "./isaaclab.sh trian",
    ],
)
def test_a_wrong_command_is_found(command):
    (words,) = commands(f"```bash\n{command}  # a comment\n```")
    with pytest.raises((AssertionError, UmcError, FileNotFoundError)):
        check_command(words)


def missing(page: str) -> list[str]:
    """Return the files and the names of the package that a page mentions in backticks and that do not exist."""
    gone = []
    for code in CODE.findall(re.sub(r"```.*?```", "", page, flags=re.DOTALL)):
        if re.fullmatch(r"(umc|config|tests|tools|docs|examples|benchmarks|scripts|source|exts|docker)/[\w./-]+", code):
            places = (REPOSITORY, REPOSITORY / "source/umc")
            if not any((place / code).exists() for place in places) and not code.startswith("docs/_build"):
                gone.append(code)
        elif (match := re.match(r"((?:umc|tools)(?:\.\w+)+)(?:$|\()", code)) and not exists(match[1]):
            gone.append(code)
    return gone


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    module, names = name, []
    while not _is_module(module):
        module, _, last = module.rpartition(".")
        names.insert(0, last)
    value = importlib.import_module(module) if names else None
    for part in names:
        if not hasattr(value, part):
            return part in getattr(value, "__annotations__", {})
        value = getattr(value, part)
    return True


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def dead_links(page: Path, text: str) -> list[str]:
    """Return the links of a page to files and headings that do not exist."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        place, _, anchor = link.partition("#")
        target = page.parent / place if place else page
        if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
            dead.append(link)
    return dead


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub and MyST give the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_file_name_and_link_exists(page):
    text = page.read_text()
    for words in commands(text):
        check_command(words)
    assert missing(text) == []
    assert dead_links(page, text) == []


def test_a_wrong_name_or_link_is_found():
    assert missing("`umc.faults.FaultSchedule`, `umc/rl/critics.py`, `umc.mdp.add_faults(cfg)`") == []
    wrong = ["umc.faults.FaultScheduler", "umc.nothing.here", "umc/rl/critic.py", "umc.mdp.add_fault(cfg)"]
    assert missing(" ".join(f"`{name}`" for name in wrong)) == wrong
    dead = ["nowhere.md", "faq.md#not-there", "#not-there"]
    text = "[a](faq.md#questions) [b](../README.md) [c](https://example.org/x) "
    assert dead_links(DOCS / "index.md", text + " ".join(f"[d]({link})" for link in dead)) == dead


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "html")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'id="umc.mdp.add_faults"' in (tmp_path / "html/api/mdp.html").read_text()
    assert [page.name for page in (tmp_path / "html/api").glob("*.html") if ">Type<" in page.read_text()] == []


def test_errors_of_the_faq_are_errors_of_the_code():
    page = (DOCS / "faq.md").read_text().split("## What Isaac Lab and the engines say")[0]
    messages = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    assert len(messages) > 15
    code = "\n".join(path.read_text() for path in (REPOSITORY / "source/umc/umc").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # messages over several lines are one
    parts = [part.strip("' ") for message in messages for part in message.split("…")]
    assert [part for part in parts if part not in code] == []


def unwanted(text: str) -> list[str]:
    """Return the unwanted words of a text, code apart."""
    prose = CODE.sub("", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return [match[0] for match in UNWANTED.finditer(" ".join(prose.split()))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_fences_and_list_items_have_lines_of_their_own(page):
    text = page.read_text()
    assert not re.findall(r"^.*[^`\s]```$|^```\{(?:warning|note|tip)\}.+$|^.*\. [2-9]\. [A-Z].*$", text, re.MULTILINE)
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_in_plain_words(page):
    assert unwanted(page.read_text()) == []


def test_the_help_of_every_command_is_in_plain_words():
    assert {command: unwanted(help_of(f"umc {command}")) for command in COMMANDS} == {name: [] for name in COMMANDS}
    assert unwanted("An informed\ncritic walks on after a fault") == ["informed critic", "walks on"]
