# Sourced by the other scripts: makes a virtual environment in $VENV (default .venv) and installs
# this checkout into it, not editable, so that what runs is the wheel.

VENV=${VENV:-.venv}
PYTHON=${PYTHON:-python3}

make_environment() { # $1: what to install, "." or ".[test]"
  "$PYTHON" - <<'CHECK' || exit 2
import sys
if sys.version_info < (3, 11):
    sys.exit("tcc needs Python 3.11 or later; set PYTHON to one, e.g. PYTHON=python3.12")
CHECK
  [ -x "$VENV/bin/python" ] || "$PYTHON" -m venv "$VENV"
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$1"
}
