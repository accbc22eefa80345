//! Escape attempts in Python.

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
