# Run by bash outside of the sandbox, before it is made: what follows "--" becomes the process that makes it.
# Its input is a socket at which the gateway answers while it lives: the lifeline. No other descriptor of the gateway goes further,
# whatever it had inherited itself.
# The input of the command is an empty pipe: the host's /dev/null would be a way to the host's device, which root could change.
exec 8<&0 9<"$1" 0< <(:)
shift
for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    case $fd in
    0 | 1 | 2 | 8 | 9) ;;
    *) eval "exec $fd<&-" ;;
    esac
done
# A limit that is already lower stays as it is.
limit() { ulimit "$1" "$2" 2>/dev/null || true; }
limit -c 0
limit -d "$1"
limit -f "$2"
limit -n "$3"
limit -t "$4"
shift 4
while [[ $1 != -- ]]; do
    echo $$ >"$1/cgroup.procs" || exit 125
    shift
done
shift
exec "$@"
