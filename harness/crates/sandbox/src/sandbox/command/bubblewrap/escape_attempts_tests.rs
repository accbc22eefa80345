//! Escape attempts by target: name and command.

/// Name and command. `$OUT` is a folder of the host, `$OTHER` another user's workspace, `$PORT` a
/// port of the host, `$PID` a process of the host, `$ABSTRACT` an abstract socket of the host. A
/// command prints `ESCAPED` if it succeeded.
pub(super) const ATTEMPTS: &[(&str, &str)] = &[
    // data of the gateway
    (
        "environment of the first process",
        "tr '\\0' '\\n' < /proc/1/environ | grep -q CARGO && echo ESCAPED",
    ),
    (
        "environment of all processes",
        "cat /proc/[0-9]*/environ | grep -aq CARGO && echo ESCAPED",
    ),
    ("own environment", "env | grep -q CARGO && echo ESCAPED"),
    (
        "command lines",
        "cat /proc/[0-9]*/cmdline | grep -aq '[c]argo\\|[n]extest' && echo ESCAPED",
    ),
    (
        "inherited descriptors",
        "for fd in /proc/self/fd/*; do cat $fd & sleep 0.05; kill $!; done",
    ),
    (
        "descriptors of the first process",
        "for fd in /proc/1/fd/*; do timeout 1 cat $fd; done",
    ),
    (
        "number of descriptors",
        "for fd in /proc/self/fd/*; do [ ${fd##*/} -gt 3 ] && [ -e $fd ] && echo ESCAPED $fd; done",
    ),
    (
        "environment by ps",
        "ps eww -A | grep -q [C]ARGO && echo ESCAPED",
    ),
    (
        "environment of the parent",
        "tr '\\0' '\\n' < /proc/$PPID/environ | grep -q CARGO && echo ESCAPED",
    ),
    (
        "environment of all threads",
        "cat /proc/[0-9]*/task/*/environ | grep -aq CARGO && echo ESCAPED",
    ),
    (
        "shell history of users",
        "for h in /root /home/*; do cat $h/.bash_history && echo ESCAPED; done",
    ),
    (
        "credentials in home folders",
        "for h in /root /home/*; do for k in .ssh .aws .kube .config; do [ -e $h/$k ] && echo ESCAPED; done; done",
    ),
    (
        "Kubernetes service account",
        "cat /var/run/secrets/kubernetes.io/serviceaccount/token && echo ESCAPED",
    ),
    (
        "machine id",
        "[ -e /etc/machine-id ] && echo ESCAPED; [ -e /var/lib/dbus/machine-id ] && echo ESCAPED",
    ),
    (
        "machine name",
        "[ $(cat /proc/sys/kernel/hostname) = sandbox ] || echo ESCAPED; [ -e /etc/hostname ] && echo ESCAPED",
    ),
    (
        "user accounts of the machine",
        "[ $(wc -l < /etc/passwd) -gt 4 ] && echo ESCAPED; [ $(wc -l < /etc/group) -gt 4 ] && echo ESCAPED",
    ),
    (
        "system log",
        "ls /var/log && echo ESCAPED; ls /run/log && echo ESCAPED",
    ),
    (
        "cron jobs of the machine",
        "for d in /etc/cron.d /etc/crontab /var/spool/cron; do [ -e $d ] && echo ESCAPED; done",
    ),
    // files of the host
    ("plain path", "cat $OUT/secret.txt"),
    (
        "through the root of the first process",
        "cat /proc/1/root$OUT/secret.txt",
    ),
    (
        "through the working directory of the first process",
        "cat /proc/1/cwd$OUT/secret.txt",
    ),
    (
        "climbing",
        "cat ../../../../../../../../../..$OUT/secret.txt",
    ),
    ("symbolic link", "ln -s $OUT/secret.txt link; cat link"),
    ("hard link", "ln $OUT/secret.txt hard; cat hard"),
    ("search", "find / -xdev -name secret.txt -exec cat {} +"),
    (
        "another user's files",
        "cat $OTHER/secret.txt; ls $OTHER && echo ESCAPED",
    ),
    (
        "writing to the host",
        "echo changed > $OUT/secret.txt; touch $OUT/new; rm -rf $OUT",
    ),
    (
        "writing to another user",
        "mkdir -p $OTHER; echo changed > $OTHER/secret.txt",
    ),
    ("password hashes", "cat /etc/shadow && echo ESCAPED"),
    (
        "keys of the host",
        "cat /etc/ssl/private/* /etc/ssh/* && echo ESCAPED",
    ),
    (
        "folders outside of the view",
        "for d in /root /home /boot /sys /srv /opt /run /var/lib; do [ -e $d ] && echo ESCAPED $d; done",
    ),
    (
        "renaming a mount",
        "mv /mnt/user-data/workspace /tmp/w && echo ESCAPED; rmdir /mnt/user-data && echo ESCAPED",
    ),
    ("through its own root", "cat /proc/self/root$OUT/secret.txt"),
    ("through every root", "cat /proc/[0-9]*/root$OUT/secret.txt"),
    (
        "through every working directory",
        "for p in /proc/[0-9]*; do cat $p/cwd/../../../../../..$OUT/secret.txt; done",
    ),
    (
        "through the root of a thread",
        "cat /proc/self/task/*/root$OUT/secret.txt",
    ),
    (
        "through a descriptor of a folder",
        "exec 5</; cat /proc/self/fd/5/..$OUT/secret.txt; exec 6<.; cat /proc/self/fd/6/../../../..$OUT/secret.txt",
    ),
    (
        "a chain of links",
        "ln -s / a; ln -s a b; ln -s b c; cat c$OUT/secret.txt",
    ),
    (
        "a link to the root of the first process",
        "ln -s /proc/1/root r; cat r$OUT/secret.txt",
    ),
    (
        "a link in place of a folder",
        "rmdir /mnt/user-data/uploads; ln -sfn $OUT /mnt/user-data/uploads; cat /mnt/user-data/uploads/secret.txt",
    ),
    (
        "an archive with absolute names",
        "echo x > f; tar cPf t.tar --transform=s,f,$OUT/new, f; tar xPf t.tar; tar xPf t.tar -C /",
    ),
    (
        "an archive with parent segments",
        "echo x > f; tar cPf t.tar --transform=s,f,../../../..$OUT/new, f; tar xPf t.tar",
    ),
    (
        "a file that holds a folder open",
        "exec 7<$OUT; cat /proc/self/fd/7/secret.txt",
    ),
    (
        "the program of the first process",
        "echo x > /proc/1/exe && echo ESCAPED; cp /proc/1/exe e && echo x > /proc/1/exe && echo ESCAPED",
    ),
    (
        "the bwrap program",
        "for f in /usr/bin/bwrap /bin/bwrap; do echo x >> $f && echo ESCAPED; done",
    ),
    (
        "sockets in the system",
        "find / -xdev -type s | grep -q . && echo ESCAPED",
    ),
    (
        "sockets of services",
        "for s in /run/docker.sock /var/run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock /run/dbus/system_bus_socket \
         /run/systemd/private /run/user; do [ -e $s ] && echo ESCAPED $s; done",
    ),
    // the system
    (
        "writing to /usr",
        "touch /usr/evil && echo ESCAPED; echo x >> /usr/bin/env && echo ESCAPED",
    ),
    (
        "writing to /etc",
        "echo root::0:0::/:/bin/sh >> /etc/passwd && echo ESCAPED; touch /etc/ld.so.preload && echo ESCAPED",
    ),
    (
        "writing to /",
        "touch /evil && echo ESCAPED; mkdir /home && echo ESCAPED",
    ),
    ("writing to /dev", "touch /dev/evil && echo ESCAPED"),
    (
        "core pattern",
        ": >> /proc/sys/kernel/core_pattern && echo ESCAPED",
    ),
    (
        "module loader",
        ": >> /proc/sys/kernel/modprobe && echo ESCAPED; : >> /proc/sys/kernel/hotplug && echo ESCAPED",
    ),
    (
        "kernel settings",
        "for f in $(find /proc/sys -type f -writable); do { : >> $f; } && echo ESCAPED $f; done",
    ),
    (
        "sysrq trigger",
        "echo h > /proc/sysrq-trigger && echo ESCAPED",
    ),
    (
        "kernel memory",
        "head -c 16 /proc/kcore && echo ESCAPED; head -c 16 /dev/mem && echo ESCAPED",
    ),
    ("kernel symbols", "grep -q . /proc/kallsyms && echo ESCAPED"),
    ("keys in /proc", "grep -q . /proc/keys && echo ESCAPED"),
    (
        "kernel log",
        "timeout 1 head -c 16 /proc/kmsg && echo ESCAPED; dmesg && echo ESCAPED",
    ),
    ("timers", "grep -q . /proc/timer_list && echo ESCAPED"),
    (
        "control groups",
        "find / -xdev -name cgroup.procs 2>&1 | grep -q cgroup && echo ESCAPED; mkdir -p /sys/fs/cgroup/x && echo ESCAPED",
    ),
    (
        "disks",
        "ls /dev | grep -q '^[svx]d\\|^nvme\\|^loop\\|^mem\\|^kmsg\\|^fuse\\|^kvm' && echo ESCAPED",
    ),
    (
        "creating a device",
        "mknod disk b 254 0 && echo ESCAPED; mknod n c 1 3 && echo ESCAPED",
    ),
    (
        "mode of a device",
        "chmod 0600 /dev/null; chmod 0600 /dev/zero /dev/urandom /dev/tty && echo ESCAPED",
    ),
    (
        "a device of the host as its input",
        "[ -c /dev/stdin ] && echo ESCAPED; [ -c /proc/1/fd/0 ] && echo ESCAPED",
    ),
    (
        "own id maps",
        "echo '0 0 1' > /proc/self/uid_map && echo ESCAPED; echo deny > /proc/self/setgroups && echo ESCAPED",
    ),
    (
        "exempting itself from the OOM killer",
        "echo -1000 > /proc/self/oom_score_adj && echo ESCAPED",
    ),
    (
        "more of the kernel's memory",
        "for f in /dev/kmem /dev/port /proc/kpagecount /proc/kpageflags /proc/kpagecgroup; do head -c 8 $f | grep -q . && echo ESCAPED $f; done",
    ),
    (
        "the kernel's slabs",
        "grep -q . /proc/slabinfo && echo ESCAPED",
    ),
    (
        "the kernel's pages",
        "grep -q . /proc/pagetypeinfo && echo ESCAPED",
    ),
    (
        "the kernel's allocations",
        "grep -q . /proc/vmallocinfo && echo ESCAPED",
    ),
    (
        "the kernel's debugging",
        "for d in /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security; do [ -e $d ] && echo ESCAPED; done",
    ),
    (
        "buses and drivers",
        "for d in acpi asound bus driver irq scsi; do ls /proc/$d/* | grep -q . && echo ESCAPED $d; done",
    ),
    (
        "interrupts",
        "echo 1 > /proc/irq/default_smp_affinity && echo ESCAPED",
    ),
    (
        "caches",
        "echo 3 > /proc/sys/vm/drop_caches && echo ESCAPED",
    ),
    (
        "overcommitted memory",
        "echo 1 > /proc/sys/vm/overcommit_memory && echo ESCAPED; echo 9 > /proc/sys/vm/nr_hugepages && echo ESCAPED",
    ),
    (
        "address space layout",
        "echo 0 > /proc/sys/kernel/randomize_va_space && echo ESCAPED",
    ),
    (
        "binfmt_misc",
        "echo ':x:M::x::/bin/sh:' > /proc/sys/fs/binfmt_misc/register && echo ESCAPED",
    ),
    (
        "protected links setting",
        "echo 0 > /proc/sys/fs/protected_symlinks && echo ESCAPED; echo 2 > /proc/sys/fs/suid_dumpable && echo ESCAPED",
    ),
    (
        "permissions of ptrace",
        "echo 0 > /proc/sys/kernel/yama/ptrace_scope && echo ESCAPED; echo -1 > /proc/sys/kernel/perf_event_paranoid && echo ESCAPED",
    ),
    (
        "firmware path",
        "echo /tmp > /sys/module/firmware_class/parameters/path && echo ESCAPED",
    ),
    (
        "uevent helper",
        "echo /tmp/x > /sys/kernel/uevent_helper && echo ESCAPED",
    ),
    (
        "release agent of empty groups",
        "for f in /sys/fs/cgroup/release_agent /sys/fs/cgroup/*/release_agent; do echo /tmp/x > $f && echo ESCAPED; done",
    ),
    (
        "a crash",
        "echo c > /proc/sysrq-trigger && echo ESCAPED; echo 1 > /proc/sys/kernel/panic && echo ESCAPED",
    ),
    (
        "the clock",
        "date -s 2001-01-01 && echo ESCAPED; hwclock -w && echo ESCAPED",
    ),
    (
        "modules",
        "modprobe dummy && echo ESCAPED; insmod x.ko && echo ESCAPED; [ -e /lib/modules/x ] && echo ESCAPED",
    ),
    (
        "swap and shutdown",
        "truncate -s 1M s; mkswap s; swapon s && echo ESCAPED; reboot -f && echo ESCAPED; poweroff -f && echo ESCAPED",
    ),
    (
        "other devices",
        "mknod m c 1 1 && echo ESCAPED; mknod k c 1 11 && echo ESCAPED; mknod t c 4 0 && echo ESCAPED; mknod l b 7 0 && echo ESCAPED",
    ),
    (
        "creating devices in writable folders",
        "for d in /tmp /dev/shm /mnt/user-data/outputs; do mknod $d/d b 8 0 && echo ESCAPED; done",
    ),
    (
        "loops",
        "truncate -s 1M i; losetup -f && echo ESCAPED; losetup --find --show i && echo ESCAPED",
    ),
    (
        "virtualisation devices",
        "for d in kvm vhost-net vhost-vsock net/tun fuse vfio; do [ -e /dev/$d ] && echo ESCAPED $d; done",
    ),
    (
        "display, sound and input devices",
        "for d in dri snd input uinput fb0 video0 hidraw0 ttyS0 tty0 tty1 vcs; do [ -e /dev/$d ] && echo ESCAPED $d; done",
    ),
    (
        "terminals of other users",
        "for t in /dev/pts/[0-9]*; do { echo x > $t; } && echo ESCAPED; done; [ -e /dev/console ] && echo ESCAPED",
    ),
    (
        "kernel log device",
        "{ echo x > /dev/log; } && echo ESCAPED; [ -e /dev/kmsg ] && echo ESCAPED",
    ),
    (
        "certificates",
        "echo x >> /etc/ssl/certs/ca-certificates.crt && echo ESCAPED; touch /etc/ssl/certs/x && echo ESCAPED",
    ),
    (
        "/etc/hosts",
        "echo '192.0.2.1 example.com' >> /etc/hosts && echo ESCAPED; touch /etc/resolv.conf && echo ESCAPED",
    ),
    (
        "shell startup files",
        "for f in profile bash.bashrc environment; do touch /etc/$f && echo ESCAPED; done",
    ),
    (
        "dynamic loader configuration",
        "touch /etc/ld.so.conf.d/x.conf && echo ESCAPED; touch /etc/ld.so.cache && echo ESCAPED; ldconfig && echo ESCAPED",
    ),
    (
        "programs and libraries",
        "touch /usr/local/bin/ls && echo ESCAPED; mkdir /usr/lib/x && echo ESCAPED; touch /lib/x && echo ESCAPED",
    ),
    (
        "existing programs",
        "chmod u+w /usr/bin/env && echo ESCAPED; mv /usr/bin/env /tmp/ && echo ESCAPED; touch -d 2001-01-01 /usr/bin/env && echo ESCAPED",
    ),
    (
        "attributes of programs",
        "setfattr -n user.x -v 1 /usr/bin/env && echo ESCAPED; chattr +i /usr/bin/env && echo ESCAPED",
    ),
    (
        "packages",
        "dpkg --configure -a && echo ESCAPED; rpm --rebuilddb && echo ESCAPED; touch /var/lib/dpkg/lock && echo ESCAPED",
    ),
    (
        "next to its folders",
        "mkdir /mnt/other && echo ESCAPED; touch /mnt/user-data/x && echo ESCAPED; mkdir -p /mnt/skills/public/x && echo ESCAPED",
    ),
    (
        "space of the root file system",
        "dd if=/dev/zero of=/fill bs=1M count=1 && echo ESCAPED; mkdir /var/x && echo ESCAPED",
    ),
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

/// Attempts that need a language with access to system calls.
pub(super) const PYTHON_ATTEMPTS: &[(&str, &str)] = &[
    (
        "a socket of the host",
        "import socket as s; c=s.socket(s.AF_UNIX); c.connect('$OUT/socket'); print('ESCAPED')",
    ),
    (
        "an abstract socket of the host",
        "import socket as s; c=s.socket(s.AF_UNIX); c.connect('\\0$ABSTRACT'); print('ESCAPED')",
    ),
    (
        "the hypervisor's socket",
        "import socket as s; s.socket(40, s.SOCK_STREAM); print('ESCAPED')",
    ),
    (
        "the kernel's cryptography",
        "import socket as s; s.socket(38, s.SOCK_SEQPACKET); print('ESCAPED')",
    ),
    (
        "raw packets",
        "import socket as s; s.socket(17, s.SOCK_RAW); print('ESCAPED')",
    ),
    (
        "injecting terminal input",
        "import pty,fcntl; m,s=pty.openpty(); fcntl.ioctl(s, 0x5412, b'x'); print('ESCAPED')",
    ),
    (
        "memory of the first process",
        "open('/proc/1/mem','rb').read(1); print('ESCAPED')",
    ),
    (
        "listening for the host",
        "import socket as s; c=s.socket(); c.bind(('192.0.2.7', 0)); print('ESCAPED')",
    ),
    (
        "raw IPv4 packets",
        "import socket as s; s.socket(s.AF_INET, s.SOCK_RAW, 1); print('ESCAPED')",
    ),
    (
        "raw IPv6 packets",
        "import socket as s; s.socket(s.AF_INET6, s.SOCK_RAW | s.SOCK_CLOEXEC, 58); print('ESCAPED')",
    ),
    (
        "legacy packet sockets",
        "import socket as s; s.socket(s.AF_INET, 10, 3); print('ESCAPED')",
    ),
    (
        "socket pair of another family",
        "import socket as s; s.socketpair(s.AF_INET, s.SOCK_STREAM); print('ESCAPED')",
    ),
    (
        "netlink socket diagnostics",
        "import socket as s; s.socket(16, s.SOCK_RAW, 4); print('ESCAPED')",
    ),
    (
        "the kernel's firewall",
        "import socket as s; s.socket(16, s.SOCK_DGRAM, 12); print('ESCAPED')",
    ),
    (
        "the kernel's tunnels",
        "import socket as s; s.socket(16, s.SOCK_RAW, 6); print('ESCAPED')",
    ),
    (
        "the kernel's audit",
        "import socket as s; s.socket(16, s.SOCK_RAW, 9); print('ESCAPED')",
    ),
    (
        "the kernel's events",
        "import socket as s; s.socket(16, s.SOCK_DGRAM, 15); print('ESCAPED')",
    ),
    (
        "the kernel's generic messages",
        "import socket as s; s.socket(16, s.SOCK_RAW, 16); print('ESCAPED')",
    ),
    (
        "netlink crypto",
        "import socket as s; s.socket(16, s.SOCK_RAW, 21); print('ESCAPED')",
    ),
    (
        "through a path descriptor",
        "import os; d=os.open('$OUT', os.O_PATH); os.open('secret.txt', os.O_RDONLY, dir_fd=d); print('ESCAPED')",
    ),
    (
        "a device by its number",
        "import os,stat; os.mknod('b', 0o600 | stat.S_IFBLK, os.makedev(8, 0)); print('ESCAPED')",
    ),
    (
        "changing the root",
        "import os; os.chroot('.'); print('ESCAPED')",
    ),
    ("becoming root", "import os; os.setuid(0); print('ESCAPED')"),
    (
        "becoming a root group",
        "import os; os.setgroups([0]); print('ESCAPED')",
    ),
    (
        "killing a process of the host",
        "import os; os.kill($PID, 9); print('ESCAPED')",
    ),
    (
        "a pidfd of a host process",
        "import os; os.pidfd_open($PID); print('ESCAPED')",
    ),
    (
        "packet radio",
        "import socket as s; s.socket(3, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "IPX",
        "import socket as s; s.socket(4, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "AppleTalk",
        "import socket as s; s.socket(5, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "X.25",
        "import socket as s; s.socket(9, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "keys of tunnels",
        "import socket as s; s.socket(15, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "reliable datagrams",
        "import socket as s; s.socket(21, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "dialling",
        "import socket as s; s.socket(24, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "link layer",
        "import socket as s; s.socket(26, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "labels",
        "import socket as s; s.socket(28, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "vehicles",
        "import socket as s; s.socket(29, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "clusters",
        "import socket as s; s.socket(30, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "short radio",
        "import socket as s; s.socket(31, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "telephones",
        "import socket as s; s.socket(34, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "small radios",
        "import socket as s; s.socket(36, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "modems",
        "import socket as s; s.socket(37, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "near radio",
        "import socket as s; s.socket(39, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "multiplexing",
        "import socket as s; s.socket(41, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "baseband",
        "import socket as s; s.socket(42, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "shared memory links",
        "import socket as s; s.socket(43, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "express data",
        "import socket as s; s.socket(44, s.SOCK_DGRAM); print('ESCAPED')",
    ),
    (
        "management",
        "import socket as s; s.socket(45, s.SOCK_DGRAM); print('ESCAPED')",
    ),
];

/// System calls that must be rejected before the kernel reads their arguments, which are invalid
/// here.
pub(super) const CALLS: &[(&str, libc::c_long)] = &[
    ("ptrace", libc::SYS_ptrace),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("init_module", libc::SYS_init_module),
    ("kexec_load", libc::SYS_kexec_load),
    ("clock_settime", libc::SYS_clock_settime),
    ("fsopen", libc::SYS_fsopen),
    ("move_mount", libc::SYS_move_mount),
    ("setns", libc::SYS_setns),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("request_key", libc::SYS_request_key),
    ("kcmp", libc::SYS_kcmp),
    ("process_madvise", libc::SYS_process_madvise),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("unshare", libc::SYS_unshare),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("chroot", libc::SYS_chroot),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fspick", libc::SYS_fspick),
    ("open_tree", libc::SYS_open_tree),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("acct", libc::SYS_acct),
    ("quotactl", libc::SYS_quotactl),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_adjtime", libc::SYS_clock_adjtime),
    ("sethostname", libc::SYS_sethostname),
    ("setdomainname", libc::SYS_setdomainname),
    ("vhangup", libc::SYS_vhangup),
    ("move_pages", libc::SYS_move_pages),
    ("migrate_pages", libc::SYS_migrate_pages),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("lookup_dcookie", libc::SYS_lookup_dcookie),
    ("syslog", libc::SYS_syslog),
    ("clone3", libc::SYS_clone3),
    #[cfg(target_arch = "x86_64")]
    ("x32 system call numbers", 0x4000_0000 + libc::SYS_getpid),
];
