//! Escape attempts on files, and system calls that must be rejected.

/// Name and command. `$OUT` is a folder of the host, `$OTHER` another user's workspace, `$PORT` a
/// port of the host, `$PID` a process of the host, `$ABSTRACT` an abstract socket of the host. A
/// command prints `ESCAPED` if it succeeded.
pub(super) const FILE_ATTEMPTS: &[(&str, &str)] = &[
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
