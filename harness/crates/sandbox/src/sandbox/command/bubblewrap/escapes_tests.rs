//! Known sandbox escapes, each attempted for real: none may read, change or reach anything outside.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Child;

use rustix::io::{FdFlags, fcntl_setfd};

use super::*;

#[path = "escape_attempts_tests.rs"]
mod attempts;
#[path = "escape_attempts_process_tests.rs"]
mod process_attempts;
#[path = "escape_attempts_python_tests.rs"]
mod python_attempts;
#[path = "escape_attempts_system_tests.rs"]
mod system_attempts;

use attempts::{CALLS, FILE_ATTEMPTS};
use process_attempts::PROCESS_ATTEMPTS;
use python_attempts::PYTHON_ATTEMPTS;
use system_attempts::SYSTEM_ATTEMPTS;

/// Secret that no command may print.
const CANARY: &str = "canary-7f3a91";
/// Output of a command whose escape succeeded.
const ESCAPED: &str = "ESCAPED";

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
    fn new(fixture: &Fixture) -> Self {
        let folder = fixture.base.path().join("outside");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("secret.txt"), CANARY).unwrap();
        let other = thread_of(fixture.base.path(), "bob");
        other.create(Root::Workspace).unwrap();
        std::fs::write(other.host_path(Root::Workspace).join("secret.txt"), CANARY).unwrap();
        let inheritable = File::open(folder.join("secret.txt")).unwrap();
        fcntl_setfd(&inheritable, FdFlags::empty()).unwrap();
        // Unique per test: tests may share a process.
        let abstract_name = format!("deerflow-{}", folder.display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let outside = Self {
            socket: UnixListener::bind(folder.join("socket")).unwrap(),
            abstract_socket: UnixListener::bind_addr(&address).unwrap(),
            abstract_name,
            udp: UdpSocket::bind(tcp.local_addr().unwrap()).unwrap(),
            tcp,
            process: std::process::Command::new("sleep")
                .arg("600")
                .spawn()
                .unwrap(),
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
            .replace(
                "$OTHER",
                self.other.host_path(Root::Workspace).to_str().unwrap(),
            )
            .replace("$ABSTRACT", &self.abstract_name)
            .replace("$PORT", &port)
            .replace("$PID", &self.process.id().to_string())
    }

    fn assert_untouched(&mut self, by: &str) {
        for file in [
            self.folder.join("secret.txt"),
            self.other.host_path(Root::Workspace).join("secret.txt"),
        ] {
            assert_eq!(
                std::fs::read_to_string(file).unwrap(),
                CANARY,
                "changed by: {by}"
            );
        }
        assert!(!self.folder.join("new").exists(), "{by}");
        let no_caller = [
            self.socket.accept().is_err(),
            self.abstract_socket.accept().is_err(),
            self.tcp.accept().is_err(),
        ];
        assert_eq!(
            (no_caller, self.udp.recv(&mut [0; 9]).is_err()),
            ([true; 3], true),
            "called by: {by}"
        );
        assert!(
            self.process.try_wait().unwrap().is_none(),
            "killed by: {by}"
        );
        for device in ["/dev/null", "/dev/zero", "/dev/urandom"] {
            assert_eq!(
                std::fs::metadata(device).unwrap().permissions().mode() & 0o777,
                0o666,
                "{device} changed by: {by}"
            );
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
async fn no_escape_attempt_succeeds() {
    let fixture = Fixture::new().await;
    let mut outside = Outside::new(&fixture);
    let mut escaped = Vec::new();
    for (attempt, command) in [FILE_ATTEMPTS, SYSTEM_ATTEMPTS, PROCESS_ATTEMPTS].concat() {
        let (_, out, err) = fixture
            .run_within(&outside.fill_in(command), Duration::from_secs(15))
            .await;
        if out.contains(ESCAPED) || out.contains(CANARY) || err.contains(CANARY) {
            escaped.push(format!("{attempt}: {out}{err}"));
        }
        outside.assert_untouched(attempt);
    }
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}

#[tokio::test]
#[ignore = "needs bubblewrap; make test-external runs it"]
async fn no_system_call_escapes() {
    let fixture = Fixture::new().await;
    let mut outside = Outside::new(&fixture);
    for (attempt, script) in PYTHON_ATTEMPTS {
        let mut file =
            File::create(fixture.dirs.host_path(Root::Workspace).join("way.py")).unwrap();
        file.write_all(outside.fill_in(script).as_bytes()).unwrap();
        let (end, out, err) = fixture.run("python3 way.py").await;
        assert!(
            !out.contains(ESCAPED) && !(out + &err).contains(CANARY),
            "{attempt}"
        );
        assert_ne!(end, CommandEnd::Exited(0), "{attempt}");
        outside.assert_untouched(attempt);
    }
    for (call, number) in CALLS {
        let script = format!(
            "import ctypes as c; l=c.CDLL(None,use_errno=True); r=l.syscall({number},-1,-1,-1,-1,-1); print(r, c.get_errno())"
        );
        let (_, out, err) = fixture.run(&format!("python3 -c '{script}'")).await;
        let rejections = [
            format!("-1 {}\n", libc::EPERM),
            format!("-1 {}\n", libc::ENOSYS),
        ];
        assert!(rejections.contains(&out), "{call}: {out}{err}");
    }
}
