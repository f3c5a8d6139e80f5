#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The two commands of the README on a machine where nothing was installed: makes a minimal Debian 12 in a scratch folder,
# clones this repository into it, and runs ./dev demo and ./dev test there. Needs root, debootstrap and some 4 GB; takes
# too long for every change. Packages come from where this machine gets its own.
#   tests/fresh_machine.sh [--keep] [--folder FOLDER] [--mirror URL]
set -euo pipefail

readonly suite=bookworm
repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
readonly repository
keep=no
folder=""
mirror=""

while [[ $# -gt 0 ]]; do
  case "$1" in
    --keep) keep=yes ;;
    --folder) folder="$2"; shift ;;
    --mirror) mirror="$2"; shift ;;
    *) echo "usage: fresh_machine.sh [--keep] [--folder FOLDER] [--mirror URL]" >&2; exit 2 ;;
  esac
  shift
done

fail() { echo "FAIL: $*"; exit 1; }

# The first Debian mirror in this machine's apt sources, in either format; nothing when there is none.
host_mirror() {
  {
    sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | tr ' ' '\n'
    sed -n 's/^deb *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null
  } | grep '/debian/*$' | head -n 1 || true
}

# How this machine fetches packages (proxies, certificates, retries), without its hooks.
host_fetch_settings() { apt-config dump | grep '^Acquire::'; }

make_machine() {
  local proxy
  [[ -n "$mirror" ]] || mirror="$(host_mirror)"
  [[ -n "$mirror" ]] || fail "no Debian mirror in this machine's apt sources; name one with --mirror"
  proxy="$(apt-config dump --format '%v' Acquire::http::Proxy)"
  http_proxy="${http_proxy:-$proxy}" debootstrap --variant=minbase "$suite" "$folder" "$mirror"
  host_fetch_settings >"$folder/etc/apt/apt.conf.d/90host"
  cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
  if [[ "$mirror" == https:* ]]; then
    mkdir -p "$folder/etc/ssl/certs"
    cp -L /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"
  fi
}

mounts=()
mount_in() {
  mount "$@"
  mounts=("${!#}" "${mounts[@]}")
}

clean_up() {
  local place
  for place in "${mounts[@]}"; do umount "$place" || umount -l "$place"; done
  if [[ "$keep" == yes ]]; then
    echo "kept: $folder"
  else
    rm -rf --one-file-system "$folder"
  fi
}

in_machine() {
  chroot "$folder" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    bash -c "cd /root/kvasir && $*"
}

[[ "$(id -u)" == 0 ]] || fail "needs root"
command -v debootstrap >/dev/null || fail "needs debootstrap (apt-get install debootstrap)"
[[ -n "$folder" ]] || folder="$(mktemp -d "${TMPDIR:-/var/tmp}/kvasir-fresh.XXXXXX")"
trap clean_up EXIT
mkdir -p "$folder"
chmod 755 "$folder"

make_machine
git clone --quiet --no-hardlinks "$repository" "$folder/root/kvasir"
mount_in -t proc proc "$folder/proc"
mount_in --bind /dev "$folder/dev"

in_machine ./dev demo || fail "./dev demo"
in_machine ./dev test || fail "./dev test"
echo PASS
