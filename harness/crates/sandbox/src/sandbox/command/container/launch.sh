# Runs a command to its end and prints a report: its end and its output, between lines with the marker.
# Arguments: marker, seconds, bytes per output, KiB of memory, KiB per file, open files, seconds of processor time, command.
mark=$1 seconds=$2 most=$3
folder=/tmp/deerflow-$mark
# A cancel that arrives before the start creates this folder first.
mkdir -m 700 "$folder" || exit 1
rm -f "$folder.sh"
mkfifo "$folder/events"
exec 3<>"$folder/events"

run() {
  {
    (
      # The mark identifies the process only after `exec`; until then `end_all` needs its id.
      echo "$BASHPID" >"$folder/unmarked"
      [ ! -e "$folder/ended" ] || exit 1
      umask 0
      ulimit -d "$4" -f "$5" -n "$6" -t "$7" 2>&5
      cd /mnt/user-data/workspace 2>&5 || exit 1
      DEERFLOW_COMMAND=$mark exec setsid /bin/bash -c "$8" </dev/null 2>&5 3>&- 4>&- 5>&-
    )
    code=$?
    rm -f "$folder/unmarked"
    echo "end $code" >&3
    # Otherwise the shell would report a signal on the command's own output.
  } 5>&2 2>/dev/null
}

capture() {
  head -c "$most" >"$folder/$1"
  [ "$(head -c 1 | wc -c)" -eq 0 ] || echo much >&3
}

# Kills all processes of the command. They are found by an environment variable, regardless of their
# group and session. A process that forks or executes during a search can be missed by it, so two
# searches in a row must find none.
end_all() {
  local quiet=0 unmarked
  : >"$folder/ended"
  for round in $(seq 20); do
    if read -r unmarked 2>/dev/null <"$folder/unmarked"; then
      kill -KILL "$unmarked" 2>/dev/null
    fi
    found=$(grep -lsaF "DEERFLOW_COMMAND=$mark" /proc/[0-9]*/environ)
    for process in $found; do
      process=${process#/proc/}
      kill -KILL "${process%/environ}" 2>/dev/null
    done
    quiet=$((quiet + 1))
    [ -z "$found" ] || quiet=0
    [ "$quiet" -lt 2 ] || return 0
    sleep 0.05
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
