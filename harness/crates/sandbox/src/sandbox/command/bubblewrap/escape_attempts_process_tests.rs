//! Escape attempts on privileges, namespaces, processes and networks.

/// Name and command, as in `FILE_ATTEMPTS`.
pub(super) const PROCESS_ATTEMPTS: &[(&str, &str)] = &[
    // privileges
    (
        "sudo and su",
        "sudo -n true && echo ESCAPED; echo | su -c true && echo ESCAPED",
    ),
    (
        "a set-user-id shell",
        "cp /bin/bash s; chmod 4755 s; [ $(./s -p -c 'id -u') = 0 ] && echo ESCAPED",
    ),
    (
        "capabilities",
        "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo ESCAPED; grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status && echo ESCAPED",
    ),
    (
        "new privileges",
        "grep -q 'NoNewPrivs:.*0' /proc/self/status && echo ESCAPED",
    ),
    ("changing the owner", "touch f; chown 0 f && echo ESCAPED"),
    (
        "raising a limit",
        "ulimit -Hu unlimited && echo ESCAPED; ulimit -Hd unlimited && echo ESCAPED; ulimit -Hn 1048576 && echo ESCAPED",
    ),
    (
        "a real-time priority",
        "chrt -f 50 true && echo ESCAPED; nice -n -10 true 2>&1 | grep -q cannot || echo ESCAPED",
    ),
    (
        "a set-group-id shell",
        "cp /bin/bash g; chmod 2755 g; [ $(./g -p -c 'id -g') = 0 ] && echo ESCAPED",
    ),
    (
        "a shell in the temporary folder",
        "cp /bin/bash /tmp/s; chmod 6755 /tmp/s; [ $(/tmp/s -p -c 'id -u') = 0 ] && echo ESCAPED",
    ),
    (
        "capabilities of a file",
        "cp /bin/cat c; setcap cap_dac_override+ep c && echo ESCAPED; ./c /etc/shadow && echo ESCAPED",
    ),
    (
        "inheritable capabilities",
        "capsh --inh=cap_sys_admin -- -c true && echo ESCAPED; setpriv --inh-caps +sys_admin true && echo ESCAPED",
    ),
    (
        "another user",
        "setpriv --reuid 0 true && echo ESCAPED; chroot --userspec=0 / true && echo ESCAPED; su - root -c true && echo ESCAPED",
    ),
    (
        "another group",
        "[ \"$(sg root -c 'id -g' < /dev/null)\" = 0 ] && echo ESCAPED; setpriv --regid 0 --clear-groups true && echo ESCAPED",
    ),
    (
        "other tools to become root",
        "timeout 2 pkexec true && echo ESCAPED; timeout 2 doas true && echo ESCAPED; timeout 2 run0 true && echo ESCAPED",
    ),
    (
        "service manager",
        "timeout 2 systemd-run true && echo ESCAPED; timeout 2 systemctl list-units && echo ESCAPED",
    ),
    (
        "later",
        "echo true | at now && echo ESCAPED; echo '* * * * * true' | crontab - && echo ESCAPED",
    ),
    (
        "limits of another process",
        "prlimit --pid $PID --nofile=1 && echo ESCAPED; renice -n 19 -p $PID && echo ESCAPED",
    ),
    (
        "real-time scheduling and I/O class",
        "chrt -r 1 true && echo ESCAPED; ionice -c 1 true && echo ESCAPED",
    ),
    // namespaces
    (
        "a user namespace",
        "unshare -U true && echo ESCAPED; unshare -Ur true && echo ESCAPED",
    ),
    (
        "other namespaces",
        "for n in m n p i u C; do unshare -$n true && echo ESCAPED $n; done",
    ),
    (
        "entering namespaces",
        "nsenter -t 1 -a true && echo ESCAPED; nsenter -t $PID -m true && echo ESCAPED",
    ),
    (
        "mounting",
        "mount -t tmpfs t /tmp && echo ESCAPED; mount --bind / /tmp && echo ESCAPED; mount -t proc p /tmp && echo ESCAPED",
    ),
    (
        "remounting writable",
        "mount -o remount,rw / && echo ESCAPED; mount -o remount,rw,bind /usr && echo ESCAPED",
    ),
    (
        "uncovering",
        "umount /proc/kallsyms && echo ESCAPED; umount -l /proc && echo ESCAPED; umount -l /tmp && echo ESCAPED",
    ),
    (
        "changing the root",
        "chroot / true && echo ESCAPED; pivot_root . . && echo ESCAPED",
    ),
    ("another bwrap", "bwrap --ro-bind / / true && echo ESCAPED"),
    ("the host's name", "hostname evil && echo ESCAPED"),
    (
        "namespaces by their files",
        "for o in m:mnt n:net p:pid u:uts i:ipc C:cgroup U:user; do nsenter -${o%%:*}/proc/1/ns/${o##*:} true && echo ESCAPED $o; done",
    ),
    (
        "namespaces with a mapping",
        "unshare -Urm true && echo ESCAPED; unshare -Urpf true && echo ESCAPED; unshare -Urn ip link && echo ESCAPED; unshare -T true && echo ESCAPED",
    ),
    (
        "enabling user namespaces",
        "echo 9 > /proc/sys/user/max_user_namespaces && echo ESCAPED; echo 1 > /proc/sys/kernel/unprivileged_userns_clone && echo ESCAPED",
    ),
    (
        "another bwrap with all namespaces",
        "bwrap --unshare-all --ro-bind / / true && echo ESCAPED; bwrap --dev-bind / / true && echo ESCAPED",
    ),
    (
        "other container tools",
        "timeout 5 podman unshare true && echo ESCAPED; timeout 5 lxc-unshare -s PID true && echo ESCAPED; timeout 5 docker ps && echo ESCAPED",
    ),
    (
        "mounting proc",
        "mkdir p; mount -t proc p p && echo ESCAPED; mount -t sysfs s p && echo ESCAPED",
    ),
    (
        "mounting control groups",
        "mkdir c; mount -t cgroup2 c c && echo ESCAPED; mount -t cgroup -o rdma c c && echo ESCAPED",
    ),
    (
        "mounting devices",
        "mkdir d; mount -t devtmpfs d d && echo ESCAPED; mount -t devpts d d && echo ESCAPED",
    ),
    (
        "layers",
        "mkdir l u w m; mount -t overlay o -o lowerdir=/usr,upperdir=u,workdir=w m && echo ESCAPED",
    ),
    (
        "mounting an image",
        "truncate -s 1M i; mkdir d; mount -o loop i d && echo ESCAPED",
    ),
    (
        "moving mounts",
        "mount --move /mnt/user-data/workspace /tmp && echo ESCAPED; mount --make-rshared / && echo ESCAPED; mount --rbind / /tmp && echo ESCAPED",
    ),
    (
        "remounting each mount writable",
        "for m in /proc /proc/sys /dev /usr /etc/passwd / /mnt; do mount -o remount,rw,bind $m && echo ESCAPED $m; done",
    ),
    (
        "unmounting each mount",
        "for f in keys kcore timer_list slabinfo scsi bus sysrq-trigger; do umount -l /proc/$f && echo ESCAPED $f; done",
    ),
    (
        "unmounting system mounts",
        "for f in /usr /etc/passwd /dev /dev/shm /dev/null /mnt/user-data/workspace /; do umount -l $f && echo ESCAPED $f; done",
    ),
    (
        "parent of the root",
        "cd /; pivot_root . tmp && echo ESCAPED; chroot . true && echo ESCAPED; switch_root /tmp /bin/true && echo ESCAPED",
    ),
    (
        "domain name of the host",
        "hostname -F /etc/group && echo ESCAPED; domainname evil && echo ESCAPED; echo evil > /proc/sys/kernel/hostname && echo ESCAPED",
    ),
    // processes
    (
        "killing a process of the host",
        "kill -9 $PID && echo ESCAPED",
    ),
    (
        "seeing a process of the host",
        "[ $(ls -d /proc/[0-9]* | wc -l) -gt 20 ] && echo ESCAPED",
    ),
    ("killing all", "kill -9 -1"),
    (
        "killing the first process",
        "kill -9 1; [ -d /proc/1 ] || echo ESCAPED",
    ),
    (
        "staying",
        "setsid nohup sleep 300 >/dev/null 2>&1 & disown; true",
    ),
    ("killing by name", "pkill -9 sleep; killall -9 sleep; true"),
    (
        "killing every process id",
        "for p in $(seq 1 64); do kill -CONT $p; done; kill -9 $PID && echo ESCAPED; kill -9 -$PID && echo ESCAPED",
    ),
    ("killing its group", "kill -9 0"),
    (
        "tracing the first process",
        "timeout 2 strace -p 1 true && echo ESCAPED; cat /proc/1/stack && echo ESCAPED",
    ),
    (
        "a dump of itself",
        "ulimit -c unlimited; bash -c 'kill -SEGV $$'; [ -e /var/lib/systemd/coredump ] && echo ESCAPED",
    ),
    (
        "surviving by double fork",
        "(setsid bash -c '(sleep 300 &)' >/dev/null 2>&1 &); true",
    ),
    (
        "surviving by ignoring signals",
        "trap '' TERM HUP INT QUIT; nohup bash -c 'while :; do sleep 1; done' >/dev/null 2>&1 & true",
    ),
    (
        "surviving by restarting itself",
        "bash -c 'f() { sleep 1; f & }; f' >/dev/null 2>&1 & true",
    ),
    (
        "shared memory of other processes",
        "ipcs -m | grep -q 0x && echo ESCAPED; ipcs -q | grep -q 0x && echo ESCAPED; ls /dev/mqueue/* && echo ESCAPED",
    ),
    // networks
    (
        "a port of the host",
        "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED",
    ),
    (
        "a port of the host by other host names",
        "for h in localhost 0.0.0.0 ::1 ::ffff:127.0.0.1; do (exec 3<>/dev/tcp/$h/$PORT) && echo ESCAPED; done",
    ),
    ("a datagram", "echo x > /dev/udp/127.0.0.1/$PORT"),
    (
        "a datagram to a remote host",
        "(echo x > /dev/udp/192.0.2.1/53) && echo ESCAPED",
    ),
    (
        "names",
        "timeout 2 getent hosts example.com && echo ESCAPED",
    ),
    (
        "cloud metadata",
        "timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' && echo ESCAPED",
    ),
    (
        "interfaces",
        "grep -v 'lo:\\||' /proc/net/dev && echo ESCAPED; ls /sys/class/net && echo ESCAPED",
    ),
    (
        "a port of the host by numeric address",
        "for h in 2130706433 0x7f000001 0177.1 127.1; do (exec 3<>/dev/tcp/$h/$PORT) && echo ESCAPED; done",
    ),
    (
        "a port of the host by its other addresses",
        "for h in 172.17.0.1 10.0.0.1 10.0.2.2 192.168.0.1 192.168.1.1 host.docker.internal; do timeout 1 bash -c \"exec 3<>/dev/tcp/$h/$PORT\" && echo ESCAPED; done",
    ),
    (
        "metadata by other addresses",
        "for h in fd00:ec2::254 169.254.170.2 100.100.100.200 metadata.google.internal; do timeout 1 bash -c \"exec 3<>/dev/tcp/$h/80\" && echo ESCAPED; done",
    ),
    (
        "curl",
        "curl -s --max-time 2 http://127.0.0.1:$PORT && echo ESCAPED; curl -s --max-time 2 --unix-socket $OUT/socket http://x && echo ESCAPED",
    ),
    (
        "curl for files",
        "curl -s file://$OUT/secret.txt; wget -qO- file://$OUT/secret.txt",
    ),
    (
        "netcat",
        "timeout 2 nc -w 1 127.0.0.1 $PORT < /dev/null && echo ESCAPED; timeout 2 nc -w 1 -U $OUT/socket < /dev/null && echo ESCAPED",
    ),
    (
        "an abstract socket",
        "timeout 2 socat - ABSTRACT-CONNECT:$ABSTRACT < /dev/null && echo ESCAPED",
    ),
    (
        "name servers",
        "(echo x > /dev/udp/8.8.8.8/53) && echo ESCAPED; timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' && echo ESCAPED",
    ),
    (
        "ping",
        "ping -c 1 -W 1 192.0.2.1 && echo ESCAPED; ping -c 1 -W 1 172.17.0.1 && echo ESCAPED",
    ),
    (
        "an interface",
        "ip link add x type dummy && echo ESCAPED; ip tuntap add x mode tun && echo ESCAPED; ip link set lo mtu 100 && echo ESCAPED",
    ),
    (
        "a route",
        "ip route add default via 127.0.0.1 && echo ESCAPED; ip addr add 192.0.2.7/24 dev lo && echo ESCAPED",
    ),
    (
        "a firewall",
        "iptables -L && echo ESCAPED; nft list ruleset && echo ESCAPED; tc qdisc add dev lo root netem && echo ESCAPED",
    ),
    (
        "network settings",
        "for f in $(find /proc/sys/net -type f -writable); do { : >> $f; } && echo ESCAPED $f; done",
    ),
    (
        "connections of the host",
        "for t in tcp tcp6 udp unix arp route; do [ $(wc -l < /proc/net/$t) -gt 1 ] && echo ESCAPED $t; done; ss -tln | grep -q :$PORT && echo ESCAPED",
    ),
];
