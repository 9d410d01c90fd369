# service.sh STOP FOLDER COMMAND...: run a command in a folder of this machine, again whenever it ends, until the file STOP is
# there. A signal of Slurm's would go to its sandboxes, too, and look as if the harnesses in them had ended by themselves.
set -u
stop=$1 folder=$2
shift 2
mkdir -p "$folder" && cd "$folder" || exit 1
while [ ! -e "$stop" ]; do
  "$@" &
  child=$!
  while [ ! -e "$stop" ] && kill -0 "$child" 2> /dev/null; do sleep 1; done
  kill -TERM "$child" 2> /dev/null
  wait "$child"
  code=$?
  [ -e "$stop" ] || echo "service.sh: $1 ended with $code; once more" >&2
done
cd / && rm -rf --one-file-system "$folder"
