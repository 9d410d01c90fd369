#!/bin/sh
# guardian.sh LOCK WAIT_S BOXES STAGE GROUP_BASES PYTHON REAPER SOCKETS INSTANCE [NAME=SOURCE]...
# Standard input: a pipe that only the manager holds.
#
# Holds the lock of the manager's data, clears what an earlier manager left, shows folders to launchers at STAGE in its
# own mount namespace (STAGE empty: not), beside an empty one for a launcher's own root, says "ready", and waits for the manager's end, however it comes. Then it kills
# every process in the groups, removes the groups, so that launchers that have not joined yet fail, and deletes the boxes,
# and by REAPER the containers with the label INSTANCE of the container engines that listen at SOCKETS (a JSON list).
trap '' HUP INT TERM PIPE
lock=$1 wait_s=$2 boxes=$3 stage=$4 bases=$5 python=$6 reaper=$7 sockets=$8 instance=$9
shift 9

clear_groups() {
  pass=0
  while [ $pass -lt 250 ]; do
    left=0
    for base in $bases; do
      for group in "$base"/*/; do
        [ -d "$group" ] || continue
        [ -w "${group}cgroup.kill" ] && echo 1 > "${group}cgroup.kill" 2> /dev/null
        while read -r pid; do kill -9 "$pid" 2> /dev/null; done < "${group}cgroup.procs"
        # A manager that was killed while it killed; what is frozen does not die.
        [ -w "${group}freezer.state" ] && echo THAWED > "${group}freezer.state" 2> /dev/null
        rmdir "$group" 2> /dev/null || left=1
      done
    done
    [ $left = 0 ] && return
    pass=$((pass + 1))
    sleep 0.02
  done
}

clear_boxes() {
  for _ in 1 2 3 4 5; do
    rm -rf "$boxes" 2> /dev/null && return
    chmod -R u+rwX "$boxes" 2> /dev/null
    sleep 0.1
  done
}

exec 9> "$lock" || exit 74
flock -w "$wait_s" 9 || exit 75
clear_groups
clear_boxes
mkdir -p -m 0711 "$boxes" || exit 74
if [ -n "$stage" ]; then
  mkdir -p "$stage" && mount -t tmpfs -o mode=0755,size=1m polar-stage "$stage" && mkdir "$stage/root" || exit 73
  for entry; do
    mkdir -p "$stage/${entry%%=*}" && mount --rbind "${entry#*=}" "$stage/${entry%%=*}" || exit 73
  done
fi
echo ready
while read -r _; do :; done
clear_groups
[ -n "$stage" ] && umount -l "$stage" && rmdir "$stage"
clear_boxes
"$python" -IS "$reaper" "$sockets" "$instance" 2> /dev/null
for base in $bases; do rmdir "$base" 2> /dev/null; done
exit 0
