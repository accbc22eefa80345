//! Environment of the agent that must not change: files of others, and listeners that must receive
//! nothing.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Content of every secret file.
pub(super) const CANARY: &str = "CANARY-7c41";
/// Thread of every case.
pub(super) const THREAD: &str = "t1";
/// Placeholder in arguments for the host's folder, which is known only when the case runs.
pub(super) const HOST: &str = "@HOST@";
/// Placeholder in arguments for the port that must receive nothing.
pub(super) const PORT: &str = "@PORT@";

/// File that a command creates in its workspace, as evidence that commands are executed.
pub(super) const RUN: &str = "run";

/// Files under the base that no case may read or change.
const FILES: [&str; 12] = [
    "outside/secret.txt",
    "home/config.yaml",
    "home/extensions_config.json",
    "home/SOUL.md",
    "home/skills/public/reports/SKILL.md",
    "home/users/ann/skills/custom/mine/SKILL.md",
    "home/users/ann/agents/scout/SOUL.md",
    "home/users/ann/memory.json",
    "home/users/ann/threads/t2/user-data/workspace/secret.txt",
    "home/users/bob/threads/t1/user-data/workspace/secret.txt",
    "home/users/bob/threads/t1/user-data/outputs/secret.txt",
    "home/users/bob/memory.json",
];

/// Environment of one case.
#[derive(Debug)]
pub(super) struct World {
    base: TempDir,
    own: PathBuf,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl World {
    /// Creates an environment with a thread of `user`, which has a sealed folder unless the user
    /// may run commands.
    pub(super) fn new(user: &str, has_commands: bool) -> Self {
        let base = tempfile::tempdir().expect("a folder");
        let root = base.path();
        for name in FILES {
            write(&root.join(name), &format!("{CANARY} {name}"));
        }
        let own = root
            .join("home/users")
            .join(user)
            .join("threads")
            .join(THREAD)
            .join("user-data");
        write(&own.join("workspace/report.txt"), "all is well");
        for folder in ["outputs", "uploads", "../acp-workspace"] {
            std::fs::create_dir_all(own.join(folder)).expect("a folder");
        }
        symlink(root.join("outside"), own.join("workspace/host")).expect("a link");
        symlink("/proc/self/root", own.join("workspace/root")).expect("a link");
        symlink("../../../../../bob", own.join("workspace/bob")).expect("a link");
        if !has_commands {
            write(
                &own.join("workspace/sealed/plan.txt"),
                &format!("{CANARY} plan"),
            );
            symlink("sealed", own.join("workspace/alias")).expect("a link");
            // A file with two names may be read by either, as in many checkouts; it must not be
            // written.
            write(&root.join("outside/shared.txt"), "shared");
            std::fs::hard_link(root.join("outside/shared.txt"), own.join("workspace/twin"))
                .expect("a link");
        }
        let unix = UnixListener::bind(root.join("outside/socket")).expect("a socket");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = UdpSocket::bind(tcp.local_addr().expect("an address")).expect("a port");
        tcp.set_nonblocking(true).expect("a socket");
        udp.set_nonblocking(true).expect("a socket");
        unix.set_nonblocking(true).expect("a socket");
        let mut world = Self {
            own,
            tcp,
            udp,
            unix,
            before: BTreeMap::new(),
            base,
        };
        world.before = world.guarded();
        world
    }

    pub(super) fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }

    /// Returns arguments with this world's paths and port.
    pub(super) fn placed(&self, args: &str) -> String {
        let port = self
            .tcp
            .local_addr()
            .expect("an address")
            .port()
            .to_string();
        args.replace(HOST, &self.base.path().to_string_lossy())
            .replace(PORT, &port)
    }

    /// Reports whether a command was executed.
    pub(super) fn has_run(&self) -> bool {
        self.own.join("workspace").join(RUN).is_file()
    }

    /// Returns changed files and received connections.
    pub(super) fn find_changes(&self) -> Vec<String> {
        let now = self.guarded();
        let names = self
            .before
            .keys()
            .chain(now.keys().filter(|name| !self.before.contains_key(*name)));
        let changed = names.filter(|name| self.before.get(*name) != now.get(*name));
        let mut find_changes: Vec<String> = changed
            .map(|name| format!("{} was changed", name.display()))
            .collect();
        let silent = |kind: ErrorKind| kind == ErrorKind::WouldBlock;
        let mut heard = |what: &str, error: Option<std::io::Error>| {
            if !error.is_some_and(|error| silent(error.kind())) {
                find_changes.push(format!("something came in by {what}"));
            }
        };
        heard("tcp", self.tcp.accept().err());
        heard("udp", self.udp.recv(&mut [0; 8]).err());
        heard("a unix socket", self.unix.accept().err());
        find_changes
    }

    /// Returns everything that must not change: all files except the thread's workspace and
    /// outputs, and the sealed files in these.
    fn guarded(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        add_files(
            self.base.path(),
            &[self.own.join("workspace"), self.own.join("outputs")],
            &mut all,
        );
        add_files(&self.own.join("workspace/sealed"), &[], &mut all);
        all
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn add_files(folder: &Path, except: &[PathBuf], all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !except.contains(path))
    {
        let facts = std::fs::symlink_metadata(&path).expect("facts");
        if facts.is_dir() {
            add_files(&path, except, all);
        }
        let content = if facts.is_file() {
            std::fs::read(&path).expect("a file")
        } else {
            format!("{:?}", facts.file_type()).into_bytes()
        };
        all.insert(path, content);
    }
}
