#!/bin/sh
# A node in a container that is not privileged: with CAP_SYS_ADMIN it takes what sandboxes need, then runs `polar "$@"`.
set -eu
# A /proc without Docker's masks: in sight of one with masks the kernel lets no sandbox have its own.
mount -t proc proc /proc
# Control groups of this container, to write to.
for point in $(findmnt --noheadings --raw --types cgroup,cgroup2 --output TARGET); do
  mount -o remount,bind,rw "$point"
done
# In the v2 tree only a group without processes can limit groups below it.
if [ -e /sys/fs/cgroup/cgroup.subtree_control ]; then
  mkdir -p /sys/fs/cgroup/init
  # One of them is `cat`, which has ended by then.
  for pid in $(cat /sys/fs/cgroup/cgroup.procs); do
    echo "$pid" > /sys/fs/cgroup/init/cgroup.procs || true
  done 2> /dev/null
fi
exec node bin/polar.js "$@"
