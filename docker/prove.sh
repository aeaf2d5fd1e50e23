#!/usr/bin/env bash
# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds docker/Dockerfile without Docker and without a registry, and runs the image: `docker/prove.sh -h`.
set -euo pipefail

root="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
suite=trixie # what python:3.12-slim-trixie stands on

usage() {
    cat <<'END'
usage: docker/prove.sh FOLDER [SETTINGS]

Makes a bare Debian in FOLDER/base with debootstrap, puts Python 3.12 into it as python:3.12-slim has it, builds
docker/Dockerfile on that with buildah (chroot isolation: no daemon, no registry), and runs in the new image what
docker/compose.yaml would: the health check, fast tests, and a tiny training. Needs root, debootstrap, buildah, 30 GB of
disk and a Python 3.12 on this machine. FOLDER/base is used again by the next run.

SETTINGS is a folder that is copied over the bare Debian: settings of this machine's network, such as
etc/pip.conf, etc/uv/uv.toml, etc/apt/apt.conf.d/* or usr/local/share/ca-certificates/*.crt. Nothing of it comes
from the repository.
END
}

die() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

step() {
    local start=$SECONDS
    printf '\n== %s\n' "$1"
    shift
    "$@"
    printf '== %d s\n' "$((SECONDS - start))"
}

make_base() {
    if [[ ! -e "$base/etc/debian_version" ]]; then
        debootstrap --variant=minbase --include=ca-certificates "$suite" "$base" "${UMC_MIRROR:-http://deb.debian.org/debian}"
    fi
    [[ -z "$settings" ]] || cp -aT -- "$settings" "$base"
    if [[ ! -x "$base/usr/local/bin/python3.12" ]]; then
        local prefix
        prefix="$(python3.12 -c 'import sys; print(sys.base_prefix)')"
        cp -aT -- "$prefix" "$base/usr/local"
        find "$base/usr/local/lib/python3.12/site-packages" -mindepth 1 -delete
    fi
    # The libraries that the Python links to, and its pip: the parts of python:3.12-slim that debootstrap does not bring.
    chroot "$base" /bin/bash -euc '
        update-ca-certificates >/dev/null
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends \
            libbz2-1.0 libexpat1 libffi8 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0 libssl3t64 libuuid1 zlib1g >/dev/null
        ldconfig
        python3.12 -m pip --version >/dev/null 2>&1 || python3.12 -m ensurepip >/dev/null'
    local container mount
    container="$(buildah from scratch)"
    mount="$(buildah mount "$container")"
    cp -aT -- "$base" "$mount"
    buildah umount "$container" >/dev/null
    buildah commit --quiet --rm "$container" localhost/umc-base >/dev/null
}

build() {
    buildah build --isolation chroot --network host --layers=false --format docker --file "$root/docker/Dockerfile" \
        --build-arg BASE_IMAGE=localhost/umc-base --tag localhost/umc "$root"
}

inside() { buildah run --isolation chroot --network host "$container" -- "$@"; }

try() {
    step "who runs, and where" inside sh -c 'id && pwd && env | grep CACHE && touch logs/mine && ls -ld logs'
    step "health check: environment" inside docker/health.sh
    step "the check of install.sh again, as another start would" inside docker/install.sh environment check
    step "tiny training: the command of the service \"train\"" inside ./isaaclab.sh -p scripts/train.py \
        --task UMC-A1-Stage1 --agent mlp --num_envs 16 --max_iterations 2 physics=ovphysx env.scene.terrain=flat
    step "health check: training" inside docker/health.sh training
}

case "${1:--h}" in -h | --help) usage && exit ;; esac
[[ "$(id -u)" -eq 0 ]] || die "a chroot needs root"
for tool in debootstrap buildah python3.12; do
    type -P "$tool" >/dev/null || die "$tool is missing; install it (Debian: apt-get install debootstrap buildah)"
done
base="$(mkdir -p -- "$1" && cd -- "$1" && pwd)/base" settings="${2:-}"

step "a bare Debian $suite with Python 3.12" make_base
step "docker/Dockerfile, built by $(buildah --version)" build
container="$(buildah from localhost/umc)"
trap 'buildah rm "$container" >/dev/null' EXIT
buildah inspect --type image --format 'entry, user and health check: {{.Docker.Config.Entrypoint}} {{.Docker.Config.User}} {{.Docker.Config.Healthcheck}}' localhost/umc
try
