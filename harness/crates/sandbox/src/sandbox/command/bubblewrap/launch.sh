# Run by bash outside of the sandbox, before its creation: the arguments after "--" are the program that creates it.
# Standard input is the lifeline: a socket at which the gateway answers while it is alive. All other inherited
# descriptors are closed.
# The input of the command is an empty pipe: the host's /dev/null would give access to the host's device, which root could
# change.
exec 8<&0 9<"$1" 0< <(:)
shift
for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    case $fd in
    0 | 1 | 2 | 8 | 9) ;;
    *) eval "exec $fd<&-" ;;
    esac
done
# A limit that is already lower is unchanged.
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
