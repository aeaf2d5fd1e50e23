#!/usr/bin/env bash
# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
#
# Makes a bare Debian or Ubuntu with glibc 2.35 and Python 3.12 ready for UMC: `docker/install.sh -h`.
# The Dockerfiles run it step by step; nothing in it needs Docker.
set -euo pipefail

root="$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

# What the wheels of requirements.lock leave to the system, and the checkout's own git. Physics without a screen needs
# none of the X11 and GL libraries: Isaac Lab's viewers and ovphysx's USD resolver load them; TensorBoard loads libusb.
packages=(
    ca-certificates git libegl1 libgl1 libglx0 libgomp1 libopengl0 libusb-1.0-0 libx11-6 libxext6 libxrender1 libxt6
)

# Tests that start no simulator: the faults, the networks, and the tasks as Isaac Lab reads them.
tests=(tests/faults/test_schedule.py tests/models/test_layout.py tests/tasks/test_task_cfgs.py)

usage() {
    cat <<'END'
usage: docker/install.sh [system] [environment] [check]

system       libraries of the distribution, by apt-get (as root)
environment  UMC with Isaac Lab and its physics engines, by `./isaaclab.sh -i`: into .venv, or into the Isaac Lab that
             ISAACLAB_PATH names
check        imports the engines and runs three files of fast tests; the Isaac Lab of ISAACLAB_PATH needs
             `./isaaclab.sh -i hypothesis pytest pytest-timeout pytest-xdist` before

Without a step: all three in turn. A step that is already done takes no time.
END
}

say() { printf 'umc: %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

install_system() {
    type -P apt-get >/dev/null || die "no apt-get here; install the counterparts of these Debian packages: ${packages[*]}"
    [[ "$(id -u)" -eq 0 ]] || die "system packages need root: sudo docker/install.sh system"
    say "installing ${#packages[@]} packages of the distribution"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq --yes --no-install-recommends "${packages[@]}" >/dev/null
}

install_environment() { "$root/isaaclab.sh" -i; }

check() {
    say "importing torch, warp, Isaac Lab and its engines"
    "$root/isaaclab.sh" -p -c 'import torch, warp, newton, ovphysx, isaaclab_newton, isaaclab_ov, umc
print(f"umc {umc.__version__}, torch {torch.__version__}, warp {warp.__version__}")'
    "$root/isaaclab.sh" -t -q "${tests[@]}"
}

case "${1:-}" in -h | --help) usage && exit ;; esac
[[ $# -gt 0 ]] || set -- system environment check
for step in "$@"; do
    case "$step" in
        system | environment | check) ;;
        *) die "unknown step \"$step\"; there are system, environment and check" ;;
    esac
done
for step in "$@"; do
    case "$step" in
        system) install_system ;;
        environment) install_environment ;;
        check) check ;;
    esac
done
