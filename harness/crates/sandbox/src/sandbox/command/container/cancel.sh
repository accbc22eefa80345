folder=/tmp/deerflow-$mark
# The command has not started, and cannot start any more; or it has ended.
if mkdir -m 700 "$folder" 2>/dev/null; then
  rm -f "$folder.sh"
  sleep 2
  rmdir "$folder"
  exit 0
fi
for round in $(seq 50); do
  # A command without its mark does not start once this file exists, or is killed by its id.
  touch "$folder/ended" 2>/dev/null
  if read -r unmarked 2>/dev/null <"$folder/unmarked"; then
    kill -KILL "$unmarked" 2>/dev/null
  fi
  for process in $(grep -lsaF "DEERFLOW_COMMAND=$mark" /proc/[0-9]*/environ); do
    process=${process#/proc/}
    kill -KILL "${process%/environ}" 2>/dev/null
  done
  [ -d "$folder" ] || exit 0
  sleep 0.1
done
