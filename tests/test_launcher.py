# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The real isaaclab.sh in a small checkout of its own, with a stub for uv that makes an environment in no time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]

# Programs that the launcher may use. Each test's PATH holds links to these and nothing else of the machine.
TOOLS = (
    *("bash", "cat", "chmod", "cut", "dirname", "find", "flock", "grep", "mkdir", "mv"),
    *("readlink", "rm", "sed", "sha256sum", "sleep", "sort", "stat"),
)

# Writes its arguments to $UV_CALLS. `venv` leaves a working interpreter, `pip install` a file for each package, and
# while $UV_HANG exists a `pip install` stops half way, as a download does.
UV_STUB = """#!/bin/bash
printf '%s\\n' "$*" >>"$UV_CALLS"
case "$1 ${2:-}" in
    "python find") exit 1 ;;
    "cache dir") printf '%s\\n' "${UV_CALLS%/*}" ;;
    venv*)
        line="$*"
        base="${line#*--python }"
        [[ -x "${base% /*}" ]] || exit 2 # as where .venv itself was the base, and has been emptied
        mkdir -p "$VENV/bin"
        printf '#!/bin/bash\\nexec "$REAL_PYTHON" "$@"\\n' >"$VENV/bin/python"
        chmod +x "$VENV/bin/python" ;;
    "pip install")
        [[ "$*" == *requirements.lock* ]] || exit 0
        printf half >"$VENV/package"
        while [[ -e "$UV_HANG" ]]; do sleep 0.05; done
        [[ ! -e "$UV_HANG.fail" ]] || exit 1
        printf whole >"$VENV/package" ;;
esac
"""


class Checkout:
    """A checkout with the real launcher, and a machine that has Python 3.12 and uv unless a test takes them away."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "check out"  # a blank, as in many home folders
        self.bin = folder / "bin"
        self.home = folder / "home"
        self.calls = folder / "calls"
        self.hang = folder / "hang"
        self.venv = self.root / ".venv"
        self.stamp = self.venv / ".umc-stamp"
        (self.root / "source/umc").mkdir(parents=True)
        self.bin.mkdir()
        self.home.mkdir()
        self.calls.touch()
        shutil.copy(REPOSITORY / "isaaclab.sh", self.root)
        (self.root / "requirements.lock").write_text("numpy==2.0 \\\n    --hash=sha256:00\n")
        (self.root / "source/umc/pyproject.toml").write_text('[project]\nname = "umc"\n')
        for tool in TOOLS:
            program = shutil.which(tool)
            assert program, tool
            (self.bin / tool).symlink_to(program)
        write_program(self.bin / "uv", UV_STUB)
        write_program(self.bin / "python3.12", f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')

    def start(self, *arguments: str, cwd: Path | None = None, **extra: str) -> subprocess.Popen[str]:
        fixed = {"PATH": self.bin, "HOME": self.home, "UV_CALLS": self.calls, "UV_HANG": self.hang, "VENV": self.venv}
        return subprocess.Popen(
            [str(self.root / "isaaclab.sh"), *arguments],
            env={**{name: str(path) for name, path in fixed.items()}, "REAL_PYTHON": sys.executable, **extra},
            cwd=cwd or self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, cwd: Path | None = None, **extra: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, cwd=cwd, **extra)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def uv_calls(self, word: str) -> int:
        return sum(line.startswith(word) for line in self.calls.read_text().splitlines())


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def wait_for(path: Path, text: str) -> None:
    for _ in range(400):
        if path.exists() and path.read_text() == text:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path.name} never held {text!r}")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def active(tmp_path: Path) -> Path:
    """An environment that has isaaclab, and a pip that only writes down what it is asked for."""
    prefix = tmp_path / "active"
    modules = prefix / "modules"
    for name, text in {
        "isaaclab/__init__.py": "",
        "isaaclab/__main__.py": "import os, sys; print('isaaclab command', sys.argv[1:], os.getcwd())",
        "pip/__init__.py": "",
        "pip/__main__.py": f"import sys; open({str(prefix / 'pip.log')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')",
        # stands for the prefix of a real environment: the interpreter behind it is the one of these tests
        "sitecustomize.py": f"import sys; sys.prefix = {str(prefix)!r}",
    }.items():
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (modules / name).write_text(text)
    write_program(prefix / "bin/python", f'#!/bin/bash\nexport PYTHONPATH="{modules}"\nexec "{sys.executable}" "$@"\n')
    return prefix


def installs_of_umc(prefix: Path) -> int:
    log = prefix / "pip.log"
    return sum("--editable" in line for line in log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_needs_no_environment(checkout: Checkout, arguments: list[str]) -> None:
    result = checkout.run(*arguments)
    assert result.returncode == 0
    assert "usage: ./isaaclab.sh -p FILE" in result.stdout
    assert not checkout.venv.exists()


def test_first_start_installs_and_the_second_does_not(checkout: Checkout) -> None:
    first = checkout.run("-i")
    assert first.returncode == 0, first.stderr
    assert "GB on disk" in first.stderr
    assert checkout.uv_calls("venv") == 1
    locked, package = (line for line in checkout.calls.read_text().splitlines() if line.startswith("pip install"))
    assert "--require-hashes" in locked
    assert "requirements.lock" in locked
    assert "--editable source/umc" in package
    assert "index" not in checkout.calls.read_text()
    calls = checkout.calls.read_text()
    second = checkout.run("-p", "-c", "print('ran')")
    assert (second.stdout, second.stderr) == ("ran\n", "")
    wrong = checkout.run("-i", "--upgrade")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "error: -i takes names and folders of packages, no flags: --upgrade\n",
    )
    assert checkout.calls.read_text() == calls


def test_packages_of_the_user_are_added_without_changing_those_of_the_lock(checkout: Checkout, active: Path) -> None:
    (checkout.home / "mine").mkdir()
    result = checkout.run("-i", "mine", "wandb", cwd=checkout.home)
    assert result.returncode == 0, result.stderr
    wanted = f"--editable mine wandb --constraint {checkout.root}/requirements.lock"
    assert checkout.calls.read_text().splitlines()[-1].endswith(wanted)
    result = checkout.run("-i", "wandb", VIRTUAL_ENV=str(active))
    assert result.returncode == 0, result.stderr
    assert (active / "pip.log").read_text().splitlines()[-1] == "install --quiet wandb"


def test_a_package_that_cannot_be_installed_ends_in_an_error(checkout: Checkout) -> None:
    checkout.run("-i")
    write_program(checkout.bin / "uv", '#!/bin/bash\n[[ "$1" == --version ]]\n')
    result = checkout.run("-i", "wandb")
    assert (result.returncode, result.stderr) == (2, "error: the install failed (see above)\n")


def test_an_active_environment_without_umc_is_not_used(checkout: Checkout, active: Path) -> None:
    (active / "modules/pip/__main__.py").write_text("raise SystemExit('--version' not in __import__('sys').argv)")
    for _ in range(2):
        result = checkout.run("-p", "-c", "print('ran')", VIRTUAL_ENV=str(active))
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.endswith("error: the install failed (see above)\n")


def test_python_and_pytest_get_their_arguments_and_give_their_exit_status(checkout: Checkout) -> None:
    (checkout.root / "show.py").write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    result = checkout.run("-p", "show.py", "a b", "", "--task=x", "*", cwd=checkout.home)
    assert result.returncode == 7
    assert result.stdout == "['a b', '', '--task=x', '*']\n"  # and nothing of the install on stdout
    (checkout.home / "show.py").write_text("print('of the caller')")
    assert checkout.run("-p", "show.py", cwd=checkout.home).stdout == "of the caller\n"
    (checkout.root / "test_sample.py").write_text("def test_sample():\n    assert 1 == 2\n")
    tests = checkout.run("-t", "-q", "test_sample.py", cwd=checkout.home)  # from the root
    assert tests.returncode == 1
    assert "1 failed" in tests.stdout


def test_no_python312(checkout: Checkout) -> None:
    (checkout.bin / "python3.12").unlink()
    write_program(checkout.bin / "python3", "#!/bin/bash\nexit 1\n")
    result = checkout.run("-i")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: no Python 3.12 found; get one with `uv python install 3.12`")
    assert not checkout.venv.exists()


def test_python312_of_pyenv_that_is_not_selected(checkout: Checkout) -> None:
    write_program(checkout.bin / "python3.12", "#!/bin/bash\necho 'pyenv: not found' >&2\nexit 127\n")
    # 3.12.10 is newer than 3.12.9, and a broken version is passed over
    write_program(checkout.home / ".pyenv/versions/3.12.11/bin/python3.12", "#!/bin/bash\nexit 1\n")
    for version in ("3.12.1", "3.12.9", "3.12.10"):
        program = checkout.home / f".pyenv/versions/{version}/bin/python3.12"
        write_program(program, f'#!/bin/bash\nexec "{sys.executable}" "$@"\n')
    assert checkout.run("-i").returncode == 0
    assert f"--python {checkout.home}/.pyenv/versions/3.12.10/bin/python3.12" in checkout.calls.read_text()


def test_uv_is_fetched_by_pip_where_it_is_missing(checkout: Checkout) -> None:
    stub = (checkout.bin / "uv").rename(checkout.bin.parent / "stub")
    # "pip install --target DIR uv" as a Python without rights on its own folders allows it
    write_program(
        checkout.bin / "python3.12",
        f"""#!/bin/bash
if [[ "$*" == "-m pip install --quiet --target "*" --require-hashes -r "*/requirements-uv.lock ]]; then
    mkdir -p "$6/bin"
    cat "{stub}" >"$6/bin/uv"
    chmod +x "$6/bin/uv"
elif [[ "$1 $2" != "-m pip" ]]; then
    exec "{sys.executable}" "$@"
fi
""",
    )
    result = checkout.run("-p", "-c", "print('ran')")
    assert result.stdout == "ran\n", result.stderr
    assert (checkout.root / ".venv.uv/bin/uv").exists()


def test_an_unfinished_install_is_made_anew(checkout: Checkout) -> None:
    failing = checkout.hang.with_suffix(".fail")
    failing.touch()
    failed = checkout.run("-p", "-c", "print('must not run')")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert "error: the install did not finish" in failed.stderr
    failing.unlink()
    checkout.hang.touch()
    process = checkout.start("-i")
    wait_for(checkout.venv / "package", "half")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (checkout.venv / "left over").touch()
    checkout.hang.unlink()
    # also from a shell in which that very environment is active
    (checkout.venv / "bin/python3.12").symlink_to("python")
    active = {"VIRTUAL_ENV": str(checkout.venv), "PATH": f"{checkout.venv}/bin:{checkout.bin}"}
    result = checkout.run("-p", "-c", "print('healed')", **active)
    assert result.stdout == "healed\n"
    assert "interrupted" in result.stderr
    assert (checkout.venv / "package").read_text() == "whole"
    assert not (checkout.venv / "left over").exists(), "a half-written environment was kept"


def test_an_environment_that_was_half_deleted_is_made_anew(checkout: Checkout) -> None:
    checkout.run("-i")
    (checkout.venv / "bin/python").unlink()  # as after an upgrade of the system
    find = checkout.bin / "find"
    real = find.readlink()
    find.unlink()  # Ctrl-C when all but one file is gone
    write_program(find, f'#!/bin/bash\n"{real}" "${{@:1:$#-1}}" ! -name package -delete\nexit 130\n')
    assert checkout.run("-i").returncode == 130
    assert checkout.stamp.read_text() == "unfinished\n"
    find.unlink()
    find.symlink_to(real)
    result = checkout.run("-p", "-c", "print('healed')")
    assert result.stdout == "healed\n", result.stderr
    assert checkout.calls.read_text().count("venv --quiet --allow-existing") == 2  # uv refuses a folder with a stamp


def test_files_in_venv_that_are_not_of_the_launcher_are_kept(checkout: Checkout) -> None:
    (checkout.home / "disk").mkdir()
    checkout.venv.symlink_to(checkout.home / "disk")
    file = checkout.venv / "photo"
    file.touch()
    result = checkout.run("-i")
    assert result.returncode == 2
    assert "error: .venv has files" in result.stderr
    assert file.exists()
    file.unlink()
    assert checkout.run("-p", "-c", "print('ran')").stdout == "ran\n"
    assert (checkout.home / "disk/package").exists(), "the link was replaced"


def test_two_starts_at_once_install_once(checkout: Checkout) -> None:
    checkout.hang.touch()
    first = checkout.start("-p", "-c", "print('first')")
    wait_for(checkout.venv / "package", "half")
    second = checkout.start("-p", "-c", "print('second')")
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    checkout.hang.unlink()
    assert first.communicate(timeout=60)[0] == "first\n"
    assert second.communicate(timeout=60)[0] == "second\n"
    assert checkout.uv_calls("pip install") == 2  # the lock and umc, once


@pytest.mark.parametrize("changed", ["requirements.lock", "source/umc/pyproject.toml"])
def test_changed_requirements_update_the_environment_and_a_missing_python_replaces_it(
    checkout: Checkout, changed: str
) -> None:
    checkout.run("-i")
    (checkout.venv / "wandb").touch()  # what the user has added stays
    (checkout.root / changed).write_text("tqdm==4.0 \\\n    --hash=sha256:00\n")
    result = checkout.run("-p", "-c", "print('ran')")
    assert result.stdout == "ran\n"
    assert "up to date" in result.stderr
    assert checkout.uv_calls("venv") == 1
    assert (checkout.venv / "wandb").exists()
    (checkout.venv / "bin/python").unlink()  # as after an upgrade of the system
    assert checkout.run("-p", "-c", "print('ran')").stdout == "ran\n"
    assert checkout.uv_calls("venv") == 2


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX", "ISAACLAB_PATH"])
def test_an_environment_that_has_isaaclab_is_used(checkout: Checkout, active: Path, variable: str) -> None:
    isaac_sim = f'#!/bin/bash\necho "Warning: running in conda env"\nexec "{active}/bin/python" "$@"\n'
    write_program(active / "_isaac_sim/python.sh", isaac_sim)  # read by ISAACLAB_PATH only
    code = "import isaaclab, sys; print(isaaclab.__file__)"
    result = checkout.run("-p", "-c", code, **{variable: str(active)})
    assert result.stdout.endswith(f"{active}/modules/isaaclab/__init__.py\n"), result.stderr
    assert ("Warning" in result.stdout) == (variable == "ISAACLAB_PATH")
    assert not checkout.venv.exists()
    assert installs_of_umc(active) == 1
    assert f"--editable {checkout.root}/source/umc" in (active / "pip.log").read_text()
    assert "--upgrade" not in (active / "pip.log").read_text()
    again = checkout.run("-p", "-c", "print('again')", **{variable: str(active)})
    assert (again.stdout.splitlines()[-1], again.stderr) == ("again", "")
    assert installs_of_umc(active) == 1


def test_the_own_environment_that_is_active_comes_before_others(checkout: Checkout, active: Path) -> None:
    write_program(active / "_isaac_sim/python.sh", f'#!/bin/bash\nexec "{active}/bin/python" "$@"\n')
    checkout.run("-i")
    result = checkout.run("-i", VIRTUAL_ENV=str(checkout.venv), ISAACLAB_PATH=str(active))
    assert result.stderr == f"umc: ready: {checkout.venv}/bin/python\n"
    assert installs_of_umc(active) == 0


def test_active_environment_without_isaaclab_is_left_alone(checkout: Checkout, active: Path) -> None:
    for file in (active / "modules/isaaclab").iterdir():  # an uninstall may leave the folder
        file.unlink()
    with (active / "modules/sitecustomize.py").open("a") as stream:  # and hide that of the interpreter behind it
        stream.write("\nsys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n")
    (checkout.home / "isaaclab").mkdir()  # a folder of that name beside the caller is no isaaclab
    result = checkout.run("-p", "-c", "print('ran')", cwd=checkout.home, VIRTUAL_ENV=str(active))
    assert result.stdout == "ran\n", result.stderr
    assert checkout.stamp.exists()
    assert installs_of_umc(active) == 0


def test_active_environment_with_another_python_is_an_error(checkout: Checkout, active: Path) -> None:
    with (active / "modules/sitecustomize.py").open("a") as stream:
        stream.write("\nsys.version_info = (3, 11, 9)\n")
    result = checkout.run("-i", VIRTUAL_ENV=str(active))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "isaaclab on Python 3.11, UMC needs Isaac Lab 3.0 on Python 3.12" in result.stderr


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (["export", "--task", "X"], ["export", "--task", "X"]),
        (["list_envs"], ["list_envs"]),
        (["train", "--task", "X"], ["train", "--rl_library", "rsl_rl", "--task", "X"]),
        (["play", "--task", "X"], ["play", "--rl_library", "rsl_rl", "--task", "X"]),
        (["train", "--rl_library", "skrl", "--task", "X"], ["train", "--rl_library", "skrl", "--task", "X"]),
        (["train", "--rl_library=skrl"], ["train", "--rl_library=skrl"]),
    ],
)
def test_anything_else_goes_to_the_isaaclab_command(
    checkout: Checkout, active: Path, given: list[str], passed_on: list[str]
) -> None:
    shadow = checkout.home / "isaaclab/__main__.py"  # a folder of the caller's that has the package's name
    shadow.parent.mkdir()
    shadow.write_text("print('shadow')")
    (shadow.parent / "__init__.py").touch()
    result = checkout.run(*given, cwd=checkout.home, VIRTUAL_ENV=str(active))
    place = checkout.root / "source/umc" if given == ["list_envs"] else checkout.home  # the project of the tasks
    assert result.stdout == f"isaaclab command {passed_on} {place}\n", result.stderr
