# Sourced by the other scripts: installs packages of Debian, also where an installation was interrupted
# or another one is under way.  Needs root, or sudo.

_as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

_apt_get() { # waits two minutes for dpkg's lock, and asks for a file twice
  _as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq \
    -o DPkg::Lock::Timeout=120 -o Acquire::Retries=1 "$@"
}

# apt-get refuses to start before an interrupted dpkg has finished.  dpkg itself does not wait for its
# lock: it exits with 2, and with 1 where a package cannot be configured, of which apt-get tells more.
_finish_dpkg() {
  local left status
  for left in 12 11 10 9 8 7 6 5 4 3 2 1; do
    status=0
    _as_root env DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a ||
      status=$?
    [ "$status" -eq 2 ] || return 0
    sleep "${DPKG_WAIT:-10}"
  done
}

debian_install() { # $@: names of packages
  _finish_dpkg
  # The lists have a lock of their own, which apt-get does not wait for: lists of yesterday may do.
  _apt_get update || _apt_get update || true
  _apt_get install --yes --no-install-recommends "$@" || {
    _finish_dpkg
    _apt_get update || true
    _apt_get install --yes --no-install-recommends "$@"
  }
}
