#!/usr/bin/env bash
# `make run` and `make test` on a fresh machine: a minimal system of its own, with make and g++ and
# nothing else of what the build needs. By root, with debootstrap; downloads some 500 MB.
#
#   fresh_machine.sh SUITE [root|user]   bookworm, trixie, jammy, noble, ...; user, who may not sudo
#
# What is committed is what is tried. The system stays in TMPDIR for the next time.
set -euo pipefail
suite=${1:?give a release of Debian or Ubuntu: bookworm, say}
who=${2:-user}
root=$(cd "$(dirname "$0")/../.." && pwd)
system=${TMPDIR:-/tmp}/fresh-$suite

if [ ! -e "$system/complete" ]; then
  rm -rf "$system"
  components=main
  case $suite in jammy | noble) components=main,universe ;; esac
  debootstrap --variant=minbase --components=$components --include=make,g++,ca-certificates "$suite" "$system"
  cp /etc/resolv.conf "$system/etc/"
  chroot "$system" useradd -m user
  touch "$system/complete"
fi
# A copy of it, so that what one run installs is missing again in the next.
machine=$(mktemp -d "$system.XXXX")
finish() {
  umount "$machine"/{proc,dev,sys} 2>/dev/null
  rm -rf --one-file-system "$machine"
}
trap finish EXIT
cp -a "$system/." "$machine"
chmod 755 "$machine"
for place in proc dev sys; do mount --bind /$place "$machine/$place"; done
mkdir "$machine/home/user/project"
git -C "$root" archive HEAD | tar -x -C "$machine/home/user/project"
chroot "$machine" chown -R user: /home/user/project

in_it() { chroot "$machine" su "$who" -c "cd /home/user/project && $1"; }
started=$SECONDS
in_it 'make run'
echo "$suite, $who: make run took $((SECONDS - started)) s"
in_it 'make test'
echo "$suite, $who: both passed"
