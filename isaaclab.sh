#!/usr/bin/env bash
# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
#
# Finds or makes the Python 3.12 environment of this checkout, then runs something in it: `./isaaclab.sh -h`.
set -euo pipefail

root="$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
own="$root/.venv"
python="" # set by choose_environment

usage() {
    cat <<'END'
usage: ./isaaclab.sh -p FILE [ARGS]   run Python of the project's environment (also -p -m MODULE, -p -c CODE)
       ./isaaclab.sh -t [ARGS]        run the tests of the default tier, in 10 minutes (ARGS go to pytest); --all: every test
       ./isaaclab.sh -i [PACKAGE ...] make the environment ready, and add packages to it: names, or folders of yours
       ./isaaclab.sh -h               show this help
       ./isaaclab.sh COMMAND [ARGS]   any command of Isaac Lab: list_envs, train, play, ... (list: --help after it)

for example
       ./isaaclab.sh -p scripts/train.py --task UMC-G1-Stage2 --quick
       ./isaaclab.sh list_envs

The environment is the active one (venv, conda, Isaac Sim's Python, or what ISAACLAB_PATH names) if it has isaaclab;
umc is then added to it and nothing else is changed. Otherwise it is .venv, made from requirements.lock on first start.
END
}

say() { printf 'umc: %s\n' "$*" >&2; }

die() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# What an environment was made from. Written into it as the last act of an install: see stamp_of.
fingerprint() {
    { printf '%s\n' "$root" && cat "$root/requirements.lock" "$root/source/umc/pyproject.toml"; } | sha256sum | cut -d' ' -f1
}

# The stamp in environment $1: a fingerprint (ready), "unfinished" (interrupted) or nothing (not made by this script).
stamp_of() { cat "$1/.umc-stamp" 2>/dev/null || true; }

write_stamp() {
    printf '%s\n' "$2" >"$1/.umc-stamp.new"
    mv -f -- "$1/.umc-stamp.new" "$1/.umc-stamp"
}

is_python312() { [[ -x "$1" ]] && "$1" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null; }

# Prints a Python 3.12: from PATH, from pyenv (also a version that is not selected), from uv.
find_python312() {
    local candidate
    while read -r candidate; do
        # not that of .venv, which may have to be made anew
        if [[ "$candidate" != "$own"/* ]] && is_python312 "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done < <(
        type -aP python3.12 python3 python || true
        printf '%s\n' "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.12*/bin/python3.12 | sort --version-sort --reverse
        if uv="$(find_uv)"; then "$uv" python find --no-project --system 3.12 2>/dev/null || true; fi
    )
    return 1
}

find_uv() {
    local candidate
    for candidate in "$(type -P uv || true)" "${HOME:-}/.local/bin/uv" "$root/.venv.uv/bin/uv"; do
        # A pyenv shim is executable even where no selected version has the program behind it.
        if [[ -x "$candidate" ]] && "$candidate" --version &>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

# Puts uv into .venv.uv with any pip at hand. `--target` is allowed where the system's Python is externally managed.
get_uv() {
    local base
    find_uv && return
    say "fetching uv, the package installer, by pip into .venv.uv"
    for base in "$1" "$(type -P python3 || true)"; do
        [[ -x "$base" ]] || continue
        rm -rf -- "$root/.venv.uv"
        if "$base" -m pip --version &>/dev/null; then
            "$base" -m pip install --quiet --target "$root/.venv.uv" --require-hashes -r "$root/requirements-uv.lock" >&2 || true
        elif "$base" -m venv "$root/.venv.uv" >&2; then
            "$root/.venv.uv/bin/python" -m pip install --quiet --require-hashes -r "$root/requirements-uv.lock" >&2 || true
        fi
        find_uv && return
    done
    die "uv could not be installed by pip (see above); install pip (Ubuntu 24.04: apt install python3.12-venv)" \
        "or uv yourself, and start again"
}

# Trusts the certificates that the system trusts, as pip does: networks that look into TLS put theirs there.
set_up_uv() {
    local store
    export UV_PYTHON_DOWNLOADS=never UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-300}"
    for store in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
        if [[ -z "${SSL_CERT_FILE:-}${UV_SYSTEM_CERTS:-}${UV_NATIVE_TLS:-}" && -r "$store" ]]; then
            export SSL_CERT_FILE="$store"
        fi
    done
}

# Files of the cache are linked into the environment; across file systems uv would warn about each start.
choose_link_mode() {
    local cache
    cache="$("$1" cache dir)"
    mkdir -p -- "$cache"
    if [[ -z "${UV_LINK_MODE:-}" && "$(stat -c %d -- "$cache")" != "$(stat -c %d -- "$own")" ]]; then
        export UV_LINK_MODE=copy
    fi
}

own_is_ready() { [[ -x "$own/bin/python" && "$(stamp_of "$own")" == "$(fingerprint)" ]]; }

# Makes .venv from the lock, or brings it up to date, or makes it anew where an earlier install was interrupted:
# a package that was half written then looks installed, so nothing of it is kept (the downloads are: uv's cache).
make_own() (
    cd -- "$root"
    exec 9>"$root/.venv.lock"
    if ! flock --nonblock 9; then
        say "another start is installing into .venv; waiting for it"
        flock 9
    fi
    if own_is_ready; then return; fi
    set_up_uv

    base="$(find_python312)" || die "no Python 3.12 found; get one with \`uv python install 3.12\`, \`pyenv install 3.12\`" \
        "or \`apt install python3.12-venv\`, then start again"
    uv="$(get_uv "$base")" || exit

    if [[ "$(stamp_of "$own")" == unfinished ]] || ! is_python312 "$own/bin/python"; then
        if [[ -z "$(stamp_of "$own")" && -n "$(find "$own/" -mindepth 1 -print -quit 2>/dev/null)" ]]; then
            die ".venv has files, and is no environment of Python 3.12 that this script made; move them away, then start again"
        fi
        if [[ "$(stamp_of "$own")" == unfinished ]]; then say "the last install was interrupted; making .venv anew"; fi
        say "installing $(grep -c '^[a-z0-9]' requirements.lock) packages (Isaac Lab with its physics engines, PyTorch) into .venv:"
        say "up to 4 GB to download, 9 GB on disk; 2 to 15 minutes with your line, later starts take no time"
        mkdir -p -- "$own"
        write_stamp "$own" unfinished # first and kept: what is left after Ctrl-C is still known as made by this script
        find "$own/" -mindepth 1 ! -name .umc-stamp -delete # not rm: .venv may be a link to a larger disk
        "$uv" venv --quiet --allow-existing --prompt umc --python "$base" "$own" >&2 || die "uv could not make .venv with $base (see above)"
    else
        say "bringing .venv up to date with requirements.lock"
    fi
    write_stamp "$own" unfinished
    choose_link_mode "$uv"
    # Where PYTHONDONTWRITEBYTECODE is set, as in most containers, every start would compile what it imports.
    export UV_COMPILE_BYTECODE=1
    if ! "$uv" pip install --python "$own/bin/python" --require-hashes --requirement requirements.lock >&2 ||
        ! "$uv" pip install --quiet --python "$own/bin/python" --no-deps --no-build-isolation --editable source/umc >&2; then
        die "the install did not finish (see above); start again to go on, what was downloaded is kept." \
            "If a package has no wheel for this system, its glibc is older than 2.35"
    fi
    write_stamp "$own" "$(fingerprint)"
    say "the environment is ready"
)

# Installs into the environment of Python $1: by its pip, else by uv.
add_packages() (
    into="$1"
    shift
    set_up_uv
    # pip would ask for the hashes of packages that the lock does not have
    if [[ "$into" != "$own/bin/python" ]] && "$into" -m pip --version &>/dev/null; then
        "$into" -m pip install --quiet "$@" >&2
    else
        uv="$(get_uv "$into")" || exit
        "$uv" pip install --quiet --python "$into" "$@" >&2
    fi || die "the install failed (see above)"
)

# Adds umc to environment $2 of Python $1, which brings isaaclab along.
add_to_active() (
    [[ -w "$2" ]] || die "$2 has isaaclab and cannot be written: let its owner run $0 -i, or deactivate it"
    say "adding umc to $2; packages that are there stay as they are"
    add_packages "$1" --editable "$root/source/umc" || exit
    write_stamp "$2" "$(fingerprint)"
)

# Adds packages to the environment in use: folders editable; in .venv the versions of the lock stay.
add_of_user() {
    local package packages=()
    for package in "$@"; do
        [[ "$package" != -* ]] || die "-i takes names and folders of packages, no flags: $package"
        [[ ! -d "$package" ]] || packages+=(--editable)
        packages+=("$package")
    done
    [[ "$python" != "$own/bin/python" ]] || packages+=(--constraint "$root/requirements.lock")
    add_packages "$python" "${packages[@]}"
}

# Uses the active environment where it has isaaclab; returns 1 where there is none.
use_active() {
    local candidate version prefix
    local probe='import importlib.util as u, sys; s = u.find_spec("isaaclab")
if s and s.origin: print("isaaclab in", "%d.%d" % sys.version_info[:2], sys.prefix)'
    for candidate in ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python"} ${CONDA_PREFIX:+"$CONDA_PREFIX/bin/python"} \
        ${ISAACLAB_PATH:+"$ISAACLAB_PATH/_isaac_sim/python.sh" "$ISAACLAB_PATH/env_isaaclab/bin/python"} \
        ${ISAACLAB_PATH:+"$ISAACLAB_PATH/.venv/bin/python"} \
        ${ISAAC_PATH:+"$ISAAC_PATH/python.sh"} ${ISAACSIM_PATH:+"$ISAACSIM_PATH/python.sh"}; do
        if [[ ! -x "$candidate" ]]; then continue; fi
        if [[ "${candidate%/bin/python}" -ef "$own" ]]; then return 1; fi
        # From / so that no folder beside the caller passes for isaaclab; python.sh may talk, hence the sed.
        read -r version prefix < <(cd / && "$candidate" -c "$probe" 2>/dev/null | sed -n 's/^isaaclab in //p') || continue
        [[ "$version" == 3.12 ]] || die "$prefix has isaaclab on Python $version, UMC needs Isaac Lab 3.0 on Python 3.12:" \
            "activate such an environment, or deactivate this one (unset ISAACLAB_PATH, ISAAC_PATH, ISAACSIM_PATH)" \
            "to let UMC make its own"
        python="$candidate"
        [[ "$(stamp_of "$prefix")" == "$(fingerprint)" ]] || add_to_active "$python" "$prefix" || exit
        return 0
    done
    return 1
}

choose_environment() {
    use_active && return
    own_is_ready || make_own
    python="$own/bin/python"
    export VIRTUAL_ENV="$own" PATH="$own/bin:$PATH"
}

case "${1:---help}" in
    -h | --help)
        usage
        ;;
    -i | --install)
        shift
        choose_environment
        [[ $# -eq 0 ]] || add_of_user "$@" || exit
        say "ready: $python"
        ;;
    -p | --python)
        shift
        choose_environment
        # A script of the repository is found from any folder.
        if [[ $# -gt 0 && "$1" != -* && ! -e "$1" && -e "$root/$1" ]]; then set -- "$root/$1" "${@:2}"; fi
        export UMC_LAUNCHER="$0" # for the commands that a script tells its user to go on with
        exec "$python" "$@"
        ;;
    -t | --test)
        shift
        choose_environment
        cd -- "$root"
        "$python" -c 'import hypothesis, pytest, pytest_timeout, xdist' 2>/dev/null || die "the active environment lacks what the" \
            "tests need; add it: ./isaaclab.sh -i hypothesis pytest pytest-timeout pytest-xdist"
        exec "$python" -m pytest "$@"
        ;;
    *)
        choose_environment
        # list_envs shows the tasks of the project whose pyproject.toml it finds from the working directory up.
        if [[ "$1" == list_envs ]]; then cd -- "$root/source/umc"; fi
        # UMC's agents are rsl_rl's; Isaac Lab asks for the library by name.
        if [[ "$1" == train || "$1" == play ]] && [[ " $* " != *" --rl_library"* ]]; then
            set -- "$1" --rl_library rsl_rl "${@:2}"
        fi
        # -P as for the installed command: a folder of the caller's cannot shadow a package.
        exec "$python" -P -m isaaclab "$@"
        ;;
esac
