//! Escape attempts on the settings and devices of the system.

/// Name and command, as in `FILE_ATTEMPTS`.
pub(super) const SYSTEM_ATTEMPTS: &[(&str, &str)] = &[
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
];
