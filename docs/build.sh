#!/usr/bin/env bash
# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the documentation site into docs/_build/html; any warning is an error. Arguments go to Sphinx.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")"
../isaaclab.sh -p -m sphinx -W --keep-going -q -b html . _build/html "$@"
printf 'open %s\n' "$PWD/_build/html/index.html"
