//! Ways out of a sandbox that were taken elsewhere, each tried for real: none may read, change or reach what lies outside.

use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Child;

use rustix::io::{FdFlags, fcntl_setfd};

use super::*;

/// What no command may print.
const CANARY: &str = "canary-7f3a91";
/// What a command prints that got somewhere.
const ESCAPED: &str = "ESCAPED";

/// Name and command. `$OUT` is a folder of the host, `$OTHER` another user's workspace, `$PORT` a port of the host, `$PID` a process
/// of the host, `$ABSTRACT` an abstract socket of it. A command says `ESCAPED` where its way led out.
const WAYS: &[(&str, &str)] = &[
    // what the gateway knows
    ("environment of the first process", "tr '\\0' '\\n' < /proc/1/environ | grep -q CARGO && echo ESCAPED"),
    ("environment of all processes", "cat /proc/[0-9]*/environ | grep -aq CARGO && echo ESCAPED"),
    ("own environment", "env | grep -q CARGO && echo ESCAPED"),
    ("command lines", "cat /proc/[0-9]*/cmdline | grep -aq '[c]argo\\|[n]extest' && echo ESCAPED"),
    ("inherited descriptors", "for fd in /proc/self/fd/*; do cat $fd & sleep 0.05; kill $!; done"),
    ("descriptors of the first process", "for fd in /proc/1/fd/*; do timeout 1 cat $fd; done"),
    ("number of descriptors", "for fd in /proc/self/fd/*; do [ ${fd##*/} -gt 3 ] && [ -e $fd ] && echo ESCAPED $fd; done"),
    // files of the host
    ("plain path", "cat $OUT/secret.txt"),
    ("through the root of the first process", "cat /proc/1/root$OUT/secret.txt"),
    ("through the working directory of the first process", "cat /proc/1/cwd$OUT/secret.txt"),
    ("climbing", "cat ../../../../../../../../../..$OUT/secret.txt"),
    ("symbolic link", "ln -s $OUT/secret.txt link; cat link"),
    ("hard link", "ln $OUT/secret.txt hard; cat hard"),
    ("search", "find / -xdev -name secret.txt -exec cat {} +"),
    ("another user's files", "cat $OTHER/secret.txt; ls $OTHER && echo ESCAPED"),
    ("writing to the host", "echo changed > $OUT/secret.txt; touch $OUT/new; rm -rf $OUT"),
    ("writing to another user", "mkdir -p $OTHER; echo changed > $OTHER/secret.txt"),
    ("password hashes", "cat /etc/shadow && echo ESCAPED"),
    ("keys of the host", "cat /etc/ssl/private/* /etc/ssh/* && echo ESCAPED"),
    ("folders that are not there", "for d in /root /home /boot /sys /srv /opt /run /var/lib; do [ -e $d ] && echo ESCAPED $d; done"),
    ("renaming a mount away", "mv /mnt/user-data/workspace /tmp/w && echo ESCAPED; rmdir /mnt/user-data && echo ESCAPED"),
    // the system
    ("writing to /usr", "touch /usr/evil && echo ESCAPED; echo x >> /usr/bin/env && echo ESCAPED"),
    ("writing to /etc", "echo root::0:0::/:/bin/sh >> /etc/passwd && echo ESCAPED; touch /etc/ld.so.preload && echo ESCAPED"),
    ("writing to /", "touch /evil && echo ESCAPED; mkdir /home && echo ESCAPED"),
    ("writing to /dev", "touch /dev/evil && echo ESCAPED"),
    ("core pattern", ": >> /proc/sys/kernel/core_pattern && echo ESCAPED"),
    ("module loader", ": >> /proc/sys/kernel/modprobe && echo ESCAPED; : >> /proc/sys/kernel/hotplug && echo ESCAPED"),
    ("kernel settings", "for f in $(find /proc/sys -type f -writable); do { : >> $f; } && echo ESCAPED $f; done"),
    ("magic requests", "echo h > /proc/sysrq-trigger && echo ESCAPED"),
    ("kernel memory", "head -c 16 /proc/kcore && echo ESCAPED; head -c 16 /dev/mem && echo ESCAPED"),
    ("kernel symbols", "grep -q . /proc/kallsyms && echo ESCAPED"),
    ("keys in /proc", "grep -q . /proc/keys && echo ESCAPED"),
    ("kernel log", "timeout 1 head -c 16 /proc/kmsg && echo ESCAPED; dmesg && echo ESCAPED"),
    ("timers", "grep -q . /proc/timer_list && echo ESCAPED"),
    ("control groups", "find / -xdev -name cgroup.procs 2>&1 | grep -q cgroup && echo ESCAPED; mkdir -p /sys/fs/cgroup/x && echo ESCAPED"),
    ("disks", "ls /dev | grep -q '^[svx]d\\|^nvme\\|^loop\\|^mem\\|^kmsg\\|^fuse\\|^kvm' && echo ESCAPED"),
    ("making a device", "mknod disk b 254 0 && echo ESCAPED; mknod n c 1 3 && echo ESCAPED"),
    ("mode of a device", "chmod 0600 /dev/null; chmod 0600 /dev/zero /dev/urandom /dev/tty && echo ESCAPED"),
    ("a device of the host as its input", "[ -c /dev/stdin ] && echo ESCAPED; [ -c /proc/1/fd/0 ] && echo ESCAPED"),
    ("own maps", "echo '0 0 1' > /proc/self/uid_map && echo ESCAPED; echo deny > /proc/self/setgroups && echo ESCAPED"),
    ("sparing itself from memory limits", "echo -1000 > /proc/self/oom_score_adj && echo ESCAPED"),
    // privileges
    ("sudo and su", "sudo -n true && echo ESCAPED; echo | su -c true && echo ESCAPED"),
    ("a set-user-id shell", "cp /bin/bash s; chmod 4755 s; [ $(./s -p -c 'id -u') = 0 ] && echo ESCAPED"),
    (
        "capabilities",
        "grep -q 'CapEff:.*[1-9a-f]' /proc/self/status && echo ESCAPED; grep -q 'CapBnd:.*[1-9a-f]' /proc/self/status && echo ESCAPED",
    ),
    ("new privileges", "grep -q 'NoNewPrivs:.*0' /proc/self/status && echo ESCAPED"),
    ("changing the owner", "touch f; chown 0 f && echo ESCAPED"),
    ("raising a limit", "ulimit -Hu unlimited && echo ESCAPED; ulimit -Hd unlimited && echo ESCAPED; ulimit -Hn 1048576 && echo ESCAPED"),
    ("a real-time priority", "chrt -f 50 true && echo ESCAPED; nice -n -10 true 2>&1 | grep -q cannot || echo ESCAPED"),
    // namespaces
    ("a user namespace", "unshare -U true && echo ESCAPED; unshare -Ur true && echo ESCAPED"),
    ("other namespaces", "for n in m n p i u C; do unshare -$n true && echo ESCAPED $n; done"),
    ("entering namespaces", "nsenter -t 1 -a true && echo ESCAPED; nsenter -t $PID -m true && echo ESCAPED"),
    ("mounting", "mount -t tmpfs t /tmp && echo ESCAPED; mount --bind / /tmp && echo ESCAPED; mount -t proc p /tmp && echo ESCAPED"),
    ("making things writable", "mount -o remount,rw / && echo ESCAPED; mount -o remount,rw,bind /usr && echo ESCAPED"),
    ("uncovering", "umount /proc/kallsyms && echo ESCAPED; umount -l /proc && echo ESCAPED; umount -l /tmp && echo ESCAPED"),
    ("changing the root", "chroot / true && echo ESCAPED; pivot_root . . && echo ESCAPED"),
    ("another bwrap", "bwrap --ro-bind / / true && echo ESCAPED"),
    ("the host's name", "hostname evil && echo ESCAPED"),
    // processes
    ("killing a process of the host", "kill -9 $PID && echo ESCAPED"),
    ("seeing a process of the host", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 20 ] && echo ESCAPED"),
    ("killing all", "kill -9 -1"),
    ("killing the first process", "kill -9 1; kill -0 1 || echo ESCAPED"),
    ("staying", "setsid nohup sleep 300 >/dev/null 2>&1 & disown; true"),
    // networks
    ("a port of the host", "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo ESCAPED"),
    (
        "a port of the host by its other names",
        "for h in localhost 0.0.0.0 ::1 ::ffff:127.0.0.1; do (exec 3<>/dev/tcp/$h/$PORT) && echo ESCAPED; done",
    ),
    ("a datagram", "echo x > /dev/udp/127.0.0.1/$PORT"),
    ("a datagram to far away", "(echo x > /dev/udp/192.0.2.1/53) && echo ESCAPED"),
    ("names", "timeout 2 getent hosts example.com && echo ESCAPED"),
    ("metadata of a cloud", "timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' && echo ESCAPED"),
    ("interfaces", "grep -v 'lo:\\||' /proc/net/dev && echo ESCAPED; ls /sys/class/net && echo ESCAPED"),
];

/// Ways that need a language which can make system calls.
const PYTHON_WAYS: &[(&str, &str)] = &[
    ("a socket of the host", "import socket as s; c=s.socket(s.AF_UNIX); c.connect('$OUT/socket'); print('ESCAPED')"),
    ("an abstract socket of the host", "import socket as s; c=s.socket(s.AF_UNIX); c.connect('\\0$ABSTRACT'); print('ESCAPED')"),
    ("the hypervisor's socket", "import socket as s; s.socket(40, s.SOCK_STREAM); print('ESCAPED')"),
    ("the kernel's cryptography", "import socket as s; s.socket(38, s.SOCK_SEQPACKET); print('ESCAPED')"),
    ("raw packets", "import socket as s; s.socket(17, s.SOCK_RAW); print('ESCAPED')"),
    ("typing into a terminal", "import pty,fcntl; m,s=pty.openpty(); fcntl.ioctl(s, 0x5412, b'x'); print('ESCAPED')"),
    ("memory of the first process", "open('/proc/1/mem','rb').read(1); print('ESCAPED')"),
    ("listening for the host", "import socket as s; c=s.socket(); c.bind(('192.0.2.7', 0)); print('ESCAPED')"),
];

/// System calls that must be refused before the kernel looks at their arguments, which are nonsense here.
const CALLS: &[(&str, libc::c_long)] = &[
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
    ("clone3", libc::SYS_clone3),
    #[cfg(target_arch = "x86_64")]
    ("the second set of numbers", 0x4000_0000 + libc::SYS_getpid),
];

struct Outside {
    folder: std::path::PathBuf,
    other: ThreadDirs,
    socket: UnixListener,
    abstract_socket: UnixListener,
    abstract_name: String,
    tcp: TcpListener,
    udp: UdpSocket,
    process: Child,
    _inheritable: File,
}

impl Outside {
    fn beside(place: &Place) -> Self {
        let folder = place.base.path().join("outside");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("secret.txt"), CANARY).unwrap();
        let other = thread_of(place.base.path(), "bob");
        other.create(Root::Workspace).unwrap();
        std::fs::write(other.host_path(Root::Workspace).join("secret.txt"), CANARY).unwrap();
        let inheritable = File::open(folder.join("secret.txt")).unwrap();
        fcntl_setfd(&inheritable, FdFlags::empty()).unwrap();
        let abstract_name = format!("deerflow-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let outside = Self {
            socket: UnixListener::bind(folder.join("socket")).unwrap(),
            abstract_socket: UnixListener::bind_addr(&address).unwrap(),
            abstract_name,
            udp: UdpSocket::bind(tcp.local_addr().unwrap()).unwrap(),
            tcp,
            process: std::process::Command::new("sleep").arg("600").spawn().unwrap(),
            other,
            folder,
            _inheritable: inheritable,
        };
        outside.socket.set_nonblocking(true).unwrap();
        outside.abstract_socket.set_nonblocking(true).unwrap();
        outside.tcp.set_nonblocking(true).unwrap();
        outside.udp.set_nonblocking(true).unwrap();
        outside
    }

    fn fill_in(&self, command: &str) -> String {
        let port = self.tcp.local_addr().unwrap().port().to_string();
        command
            .replace("$OUT", self.folder.to_str().unwrap())
            .replace("$OTHER", self.other.host_path(Root::Workspace).to_str().unwrap())
            .replace("$ABSTRACT", &self.abstract_name)
            .replace("$PORT", &port)
            .replace("$PID", &self.process.id().to_string())
    }

    fn assert_untouched(&mut self, by: &str) {
        for file in [self.folder.join("secret.txt"), self.other.host_path(Root::Workspace).join("secret.txt")] {
            assert_eq!(std::fs::read_to_string(file).unwrap(), CANARY, "changed by: {by}");
        }
        assert!(!self.folder.join("new").exists(), "{by}");
        let nobody = [self.socket.accept().is_err(), self.abstract_socket.accept().is_err(), self.tcp.accept().is_err()];
        assert_eq!((nobody, self.udp.recv(&mut [0; 9]).is_err()), ([true; 3], true), "called by: {by}");
        assert!(self.process.try_wait().unwrap().is_none(), "killed by: {by}");
        for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
            assert_eq!(std::fs::metadata(device).unwrap().permissions().mode() & 0o777, 0o666, "{device} changed by: {by}");
        }
        assert!(!std::path::Path::new("/usr/evil").exists(), "{by}");
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn no_way_leads_out() {
    let place = Place::furnished().await;
    let mut outside = Outside::beside(&place);
    let mut escaped = Vec::new();
    for (way, command) in WAYS {
        let (_, out, err) = place.run_within(&outside.fill_in(command), Duration::from_secs(15)).await;
        if out.contains(ESCAPED) || out.contains(CANARY) || err.contains(CANARY) {
            escaped.push(format!("{way}: {out}{err}"));
        }
        outside.assert_untouched(way);
    }
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn no_system_call_leads_out() {
    let place = Place::furnished().await;
    let mut outside = Outside::beside(&place);
    for (way, script) in PYTHON_WAYS {
        let mut file = File::create(place.dirs.host_path(Root::Workspace).join("way.py")).unwrap();
        file.write_all(outside.fill_in(script).as_bytes()).unwrap();
        let (end, out, err) = place.run("python3 way.py").await;
        assert!(!out.contains(ESCAPED) && !(out + &err).contains(CANARY), "{way}");
        assert_ne!(end, CommandEnd::Exited(0), "{way}");
        outside.assert_untouched(way);
    }
    for (call, number) in CALLS {
        let script =
            format!("import ctypes as c; l=c.CDLL(None,use_errno=True); r=l.syscall({number},-1,-1,-1,-1,-1); print(r, c.get_errno())");
        let (_, out, err) = place.run(&format!("python3 -c '{script}'")).await;
        let refused = [format!("-1 {}\n", libc::EPERM), format!("-1 {}\n", libc::ENOSYS)];
        assert!(refused.contains(&out), "{call}: {out}{err}");
    }
}
