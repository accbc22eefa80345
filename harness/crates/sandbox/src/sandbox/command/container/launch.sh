# Runs a command to its end and prints a report: its end and its output, between lines with the marker.
# Arguments: marker, seconds, bytes per output, KiB of memory, KiB per file, open files, seconds of processor time, command.
mark=$1 seconds=$2 most=$3
folder=/tmp/deerflow-$mark
# A cancel that arrives before the start creates this folder first.
mkdir -m 700 "$folder" || exit 1
rm -f "$0"
mkfifo "$folder/events"
exec 3<>"$folder/events"

run() {
  {
    (
      umask 0
      ulimit -d "$4" -f "$5" -n "$6" -t "$7" 2>&5
      cd /mnt/user-data/workspace 2>&5 || exit 1
      DEERFLOW_COMMAND=$mark exec setsid /bin/bash -c "$8" </dev/null 2>&5 3>&- 4>&- 5>&-
    )
    echo "end $?" >&3
    # Otherwise the shell would report a signal on the command's own output.
  } 5>&2 2>/dev/null
}

capture() {
  head -c "$most" >"$folder/$1"
  [ "$(head -c 1 | wc -c)" -eq 0 ] || echo much >&3
}

# All processes of the command are found by an environment variable, regardless of their group and session.
end_all() {
  for round in 1 2 3 4 5 6 7 8; do
    found=$(grep -lsaF "DEERFLOW_COMMAND=$mark" /proc/[0-9]*/environ)
    [ -n "$found" ] || return 0
    for process in $found; do
      process=${process#/proc/}
      kill -KILL "${process%/environ}" 2>/dev/null
    done
  done
}

{
  { run "$@" 2>&1 >&4 4>&- | capture err; } 4>&1 | capture out
  echo drained >&3
} &

why=late code=0 wait=$seconds
for phase in running ending; do
  while read -r -t "$wait" -u 3 word number; do
    case $word in
      end)
        [ "$phase$why" = runninglate ] && why=end
        code=$number
        end_all
        wait=2
        ;;
      much)
        why=much
        end_all
        wait=2
        ;;
      drained) break 2 ;;
    esac
  done
  end_all
  wait=2
done

echo "$mark $why $code"
base64 "$folder/out"
echo "$mark"
base64 "$folder/err"
echo "$mark"
rm -rf "$folder"
