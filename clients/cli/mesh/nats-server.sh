# Runs nats-server until all who need it are gone. File descriptor 3 is a pipe that they hold open: its end comes after
# the last of them, however they ended. The lock lasts as long as the server, so that no second one opens its store.
# usage: nats-server.sh LOCK-FILE LOCK-WAIT-SECONDS COMMAND [ARGUMENT…]
lock=$1 wait=$2
shift 2
exec 9>"$lock"
if command -v flock >/dev/null && ! flock -w "$wait" 9; then
  echo "another nats-server uses this store: $lock is held" >&2
  exit 75
fi
# Where this shell is killed together with the one that watches for it, the server ends with it all the same.
if command -v setpriv >/dev/null; then set -- setpriv --pdeathsig TERM "$@"; fi
"$@" </dev/null 3<&- &
server=$!
{
  read -r _ <&3
  kill -TERM "$server"
} 9>&- 2>/dev/null &
watch=$!
trap 'kill -TERM "$server" 2>/dev/null' TERM INT
wait "$server"
code=$?
# A trapped signal ends `wait` before the server has ended.
while kill -0 "$server" 2>/dev/null; do
  wait "$server"
  code=$?
done
kill "$watch" 2>/dev/null
exit "$code"
