# Sourced by the other scripts: makes a virtual environment in $VENV (default .venv) and installs
# this checkout into it, not editable, so that what runs is the wheel.  With TCC_INSTALLED=1 the wheel
# is there (.ci/run says so of an environment that it has just made), and extras alone are installed.

VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}

_pip_install() {
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

make_environment() { # $@: extras, such as `test browser`
  "$PYTHON" - <<'CHECK' || exit 2
import sys
if sys.version_info < (3, 11):
    sys.exit("tcc needs Python 3.11 or later; set PYTHON to one, e.g. PYTHON=python3.12")
CHECK
  local extras
  extras=$(IFS=, && echo "$*")
  if [ -n "${TCC_INSTALLED:-}" ]; then
    "$VENV/bin/python" - "$@" >"$VENV/extras.txt" <<'REQUIREMENTS'
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    extras = tomllib.load(file)["project"]["optional-dependencies"]
for name in sys.argv[1:]:
    print(*extras[name], sep="\n")
REQUIREMENTS
    _pip_install -r "$VENV/extras.txt"
  elif [ -x "$VENV/bin/python" ]; then
    _pip_install ".${extras:+[$extras]}"
  else
    "$PYTHON" -m venv "$VENV"
    # pip compiles on one core, which is half of what it takes: here all do.  A file that is no Python
    # (a template in a package) is passed over, as pip does.
    _pip_install --no-compile ".${extras:+[$extras]}"
    "$VENV/bin/python" -W ignore -m compileall -q -j 0 "$VENV"/lib/python3*/site-packages >/dev/null || true
  fi
}
