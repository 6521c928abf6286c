#!/usr/bin/env bash
# The whole path of a new backend, as a stranger walks it: wheels of gdsfw, a fresh environment outside the repository,
# `gdsfw new-backend`, install, run, conformance kit; then one line is broken, and the kit must name the fault.
# Once for a backend in Python and once for one with a C library (--native).
#
#     examples/backends/try-new-backend.sh
#
# Ends with 0 only if all of that happened. Needs Python 3.10 or newer with venv, a C compiler and an index for pip;
# leaves nothing behind. PYTHON names another interpreter.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-python3}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

unset PYTHONPATH GDSFW_PLUGINS
export GDSFW_REQUIRE_ENGINE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
# Where pip finds gdsfw-core when it builds the C library in an environment of its own.
export PIP_FIND_LINKS=$place/wheels

say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "$0: $*" >&2
  exit 1
}

# break_line FILE RIGHT WRONG: a line of the new backend, which must be there once.
break_line() {
  [[ $(grep -cF -- "$2" "$1") == 1 ]] || fail "$1 has not one line with: $2"
  sed -i "s|$2|$3|" "$1"
  grep -qF -- "$3" "$1" || fail "$1 is not broken"
}

# the_kit_finds TEST: the kit fails, and that test is among those that it names.
the_kit_finds() {
  local status=0
  pytest -q --tb=line -rf >kit.txt || status=$?
  tail -n 15 kit.txt
  [[ $status == 1 ]] || fail "the kit ended with $status on a broken backend, not with 1"
  grep -q "^FAILED .*::$1" kit.txt || fail "the kit did not name $1"
}

# walk NAME LOOP FILE RIGHT WRONG TEST [OPTION]
walk() {
  local name=$1 loop=$2 file=$3 right=$4 wrong=$5 test=$6 option=${7:-}
  cd "$place"
  say "gdsfw new-backend $name${option:+ $option}"
  gdsfw new-backend "$name" ${option:+"$option"}
  cd "gdsfw-$name"
  pip install --quiet -e '.[test]'
  say "$name: run"
  gdsfw run examples/quickstart.yaml --backend "$name" -o result.json
  [[ $(grep -c "\"loop\": \"$loop\"" result.json) == 3 ]] || fail "not every job of $name ran in the $loop loop"
  say "$name: conformance kit"
  pytest -q
  say "$name: $file, $right -> $wrong"
  break_line "$file" "$right" "$wrong"
  # What Python reads is in force at once, a C library must be built again.
  [[ -z $option ]] || pip install --quiet -e .
  the_kit_finds "$test"
}

say "wheels of gdsfw-core and gdsfw-posix"
"$python" -m venv "$place/environment"
PATH=$place/environment/bin:$PATH
pip wheel --quiet --no-deps --wheel-dir "$place/wheels" "$repository/gdsfw-core" "$repository/gdsfw-posix"
pip install --quiet "$place"/wheels/*.whl
cd "$place"
gdsfw backends

walk my-disk python src/gdsfw_my_disk/__init__.py \
  'return len(piece)' 'return size' TestCounts::test_a_read_across_the_end_moves_what_is_there
walk my-c-disk native native/my_c_disk.c \
  'memset(buffer + done, 0, step);' 'memset(buffer + done, 1, step);' TestIntegrity::test_holes_read_as_zeros --native
say "all of it works"
