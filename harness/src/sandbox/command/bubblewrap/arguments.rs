//! What `bwrap` is told: the whole of what a command sees, in the order in which it is put together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::BubblewrapOptions;
use super::inner::{self, InnerProgram};
use super::support::{self, Support};
use crate::sandbox::egress::Way;
use crate::sandbox::shelf::Shelf;
use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};

/// Where a command begins, and its home.
pub(super) const WORKSPACE: &str = "/mnt/user-data/workspace";
/// The user and group that a command believes to be.
pub(super) const INNER_ID: &str = "1000";
/// Where programs are looked for inside.
pub(super) const INNER_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Folders of the system beside `/usr`: links into it, or real folders, as the host has them.
const BESIDE_USR: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs need of `/etc`, and nothing that is secret or tells of this machine.
const FROM_ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
];
/// What name lookup needs of it, where there is a network.
const FOR_NETWORK: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
];
/// Files of `/proc` that tell of the whole machine.
const MASKED_FILES: &[&str] = &[
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "sched_debug",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "version_signature",
    "vmallocinfo",
];
/// Folders of `/proc` that do.
const MASKED_FOLDERS: &[&str] = &["acpi", "asound", "bus", "driver", "irq", "scsi"];
/// What a command writes to beside its folders and mounts. Sources of chance are not among it: nobody has to add to them.
const SCRATCH: &[&str] = &[
    "/tmp",
    "/dev/shm",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
const SHARED_MEMORY_BYTES: u64 = 64 << 20;

/// The parts of the host that every sandbox of this process sees, looked up once.
#[derive(Debug)]
pub(super) struct SystemView {
    arguments: Vec<OsString>,
}

impl SystemView {
    /// `support` has the files that stand in for the host's; see [`support`](super::support).
    pub(super) fn look(options: &BubblewrapOptions, support: &Support) -> Self {
        let mut view = Arguments::default();
        view.add(["--ro-bind", "/usr", "/usr"]);
        for folder in BESIDE_USR {
            match std::fs::read_link(folder) {
                Ok(target) => view.add(["--symlink".as_ref(), target.as_os_str(), folder.as_ref()]),
                Err(_) => view.add(["--ro-bind-try", folder, folder]),
            }
        }
        for store in ["/nix/store", "/gnu/store"] {
            view.add(["--ro-bind-try", store, store]);
        }
        let network = if options.network.is_shared() {
            FOR_NETWORK
        } else {
            &[]
        };
        for path in FROM_ETC.iter().chain(network) {
            view.add(["--ro-bind-try", path, path]);
        }
        for name in support::NAMES {
            view.add([
                Path::new("--ro-bind"),
                &support.names.join(name),
                &Path::new("/etc").join(name),
            ]);
        }
        for hidden in options.hidden.iter().filter(|path| is_in_view(path)) {
            match hidden.is_dir() {
                true => view.add([
                    Path::new("--tmpfs"),
                    hidden,
                    Path::new("--remount-ro"),
                    hidden,
                ]),
                false => view.add([Path::new("--ro-bind"), Path::new("/dev/null"), hidden]),
            }
        }
        view.add(["--proc", "/proc"]);
        for name in MASKED_FILES
            .iter()
            .filter(|name| Path::new("/proc").join(name).exists())
        {
            view.add(["--ro-bind", "/dev/null", &format!("/proc/{name}")]);
        }
        for name in MASKED_FOLDERS
            .iter()
            .filter(|name| Path::new("/proc").join(name).is_dir())
        {
            let folder = format!("/proc/{name}");
            view.add([
                "--size",
                "4096",
                "--tmpfs",
                &folder,
                "--remount-ro",
                &folder,
            ]);
        }
        // Root owns the kernel's settings there, and a gateway that runs as root is root to the kernel even without privileges.
        view.add(["--remount-ro", "/proc"]);
        view.add([
            "--dev",
            "/dev",
            "--size",
            &SHARED_MEMORY_BYTES.to_string(),
            "--tmpfs",
            "/dev/shm",
        ]);
        for device in support
            .devices
            .iter()
            .flat_map(|folder| support::DEVICES.map(|(name, ..)| (folder.join(name), name)))
        {
            view.add([
                Path::new("--dev-bind"),
                &device.0,
                &Path::new("/dev").join(device.1),
            ]);
        }
        view.add(["--remount-ro", "/dev"]);
        view.add([
            "--perms",
            "1777",
            "--size",
            &options.limits.scratch_bytes.to_string(),
            "--tmpfs",
            "/tmp",
        ]);
        view.add(["--symlink", "../tmp", "/var/tmp"]);
        for mount in &options.mounts {
            let how = if mount.read_only {
                "--ro-bind"
            } else {
                "--bind"
            };
            view.add([Path::new(how), &mount.host, Path::new(&mount.inside)]);
        }
        if let Some(inner) = &options.inner {
            view.add([
                Path::new("--ro-bind"),
                &inner.program,
                Path::new(inner::PROGRAM),
            ]);
        }
        Self { arguments: view.0 }
    }
}

/// The program that the sandbox begins with, up to where the command follows; nothing where there is none.
pub(super) fn first_program(options: &BubblewrapOptions) -> Vec<OsString> {
    let Some(InnerProgram { arguments, .. }) = &options.inner else {
        return Vec::new();
    };
    let roots = Root::ALL.map(|root| Path::new(USER_DATA).join(root.dir_name()));
    let mounts = options
        .mounts
        .iter()
        .filter(|mount| !mount.read_only)
        .map(|mount| mount.inside.clone().into());
    let writable: Vec<PathBuf> = roots
        .into_iter()
        .chain(SCRATCH.iter().map(PathBuf::from))
        .chain(mounts)
        .collect();
    let program = [inner::PROGRAM.into()]
        .into_iter()
        .chain(arguments.iter().map(OsString::from));
    program
        .chain(inner::arguments(
            &writable,
            options.network.way_out().is_some(),
        ))
        .collect()
}

/// Everything before the command.
pub(super) fn arguments(
    system: &SystemView,
    dirs: &ThreadDirs,
    shelf: &Shelf,
    network: bool,
    userns_can_be_disabled: bool,
    way: Option<&dyn Way>,
) -> Vec<OsString> {
    let mut all = Arguments::default();
    all.add([
        "--unshare-all",
        "--unshare-user",
        "--unshare-cgroup",
        "--uid",
        INNER_ID,
        "--gid",
        INNER_ID,
        "--hostname",
        "sandbox",
    ]);
    if userns_can_be_disabled {
        all.add(["--disable-userns"]);
    }
    if network {
        all.add(["--share-net"]);
    }
    all.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    all.0.extend(system.arguments.iter().cloned());
    for root in Root::ALL {
        let inside: PathBuf = Path::new(USER_DATA).join(root.dir_name());
        all.add([Path::new("--bind"), &dirs.host_path(root), &inside]);
    }
    // It is there once another agent has worked for the thread.
    all.add([
        Path::new("--ro-bind-try"),
        &dirs.host_path(Root::AcpWorkspace),
        Path::new(ACP_WORKSPACE),
    ]);
    for folder in shelf.folders() {
        // It may have been taken away since somebody looked.
        all.add([
            Path::new("--ro-bind-try"),
            &folder.host,
            &Path::new(SKILLS).join(folder.path.as_str()),
        ]);
    }
    if let Some(way) = way {
        all.add([
            Path::new("--ro-bind"),
            way.socket(),
            Path::new(inner::PROXY),
        ]);
    }
    all.add(["--remount-ro", "/", "--chdir", WORKSPACE]);
    all.0
}

/// Whether something of the host would be seen unless it is hidden.
fn is_in_view(path: &Path) -> bool {
    BESIDE_USR
        .iter()
        .chain(&["/usr", "/nix/store", "/gnu/store"])
        .any(|folder| path.starts_with(folder))
        && path.exists()
}

#[derive(Debug, Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<T: Into<OsString>>(&mut self, more: impl IntoIterator<Item = T>) {
        self.0.extend(more.into_iter().map(Into::into));
    }
}
