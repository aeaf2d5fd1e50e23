#!/usr/bin/env bash
# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
#
# Check the container: exit status 0, or 1 and one line that says what is wrong.
#
#   docker/health.sh                       the environment is complete and its Python starts
#   docker/health.sh training [MINUTES]    a file under logs changed within that time (10)
#   docker/health.sh port NUMBER           something on this machine answers HTTP there
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.."

sick() {
    printf 'unhealthy: %s\n' "$*"
    exit 1
}

case "${1:-environment}" in
    environment)
        # Isaac Sim's image has no .venv: its Python is behind ISAACLAB_PATH.
        stamp="$(cat .venv/.umc-stamp 2>/dev/null || true)"
        [[ "$stamp" != unfinished ]] || sick "an install into .venv was interrupted"
        [[ -n "$stamp" || -n "${ISAACLAB_PATH:-}" ]] || sick "no environment"
        ./isaaclab.sh -p -c 'import umc' &>/dev/null || sick "umc cannot be imported"
        ;;
    training)
        # A training writes its log every iteration and a checkpoint at least every two minutes.
        [[ -n "$(find logs/ -type f -mmin "-${2:-10}" -print -quit 2>/dev/null)" ]] ||
            sick "no file under logs has changed for ${2:-10} minutes"
        ;;
    port)
        ./isaaclab.sh -p -c 'import sys, urllib.request
urllib.request.urlopen(f"http://127.0.0.1:{int(sys.argv[1])}/", timeout=5)' "${2:?number of the port}" &>/dev/null ||
            sick "nothing answers on port $2"
        ;;
    *)
        printf 'error: unknown check "%s"; there are environment, training and port\n' "$1" >&2
        exit 2
        ;;
esac
