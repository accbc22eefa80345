//! Arguments of `bwrap`: they define all that a command sees, in mount order.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::inner::{self, InnerProgram};
use super::inner_user::{INNER_ID, WORKSPACE};
use super::options::BubblewrapOptions;
use super::support::{self, Support};
use crate::sandbox::egress::EgressEndpoint;
use crate::sandbox::skill_mounts::SkillMounts;
use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};

/// System folders next to `/usr`: links into it or real folders, as on the host.
const USR_LINKS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Entries of `/etc` that programs need; none is secret or describes this machine.
const ETC_ALLOWLIST: &[&str] = &[
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
/// Files that name resolution needs, if there is a network.
const NETWORK_CONFIG: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/run/systemd/resolve",
];
/// Files of `/proc` that describe the whole machine.
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
/// Folders of `/proc` that describe the whole machine.
const MASKED_FOLDERS: &[&str] = &["acpi", "asound", "bus", "driver", "irq", "scsi"];
/// Paths that a command can write to in addition to its folders and mounts. Random devices are not
/// included: no program needs to add entropy.
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

/// Parts of the host that every sandbox of this process sees, collected once.
#[derive(Debug)]
pub(super) struct SystemView {
    arguments: Vec<OsString>,
}

impl SystemView {
    /// Collects the arguments; `support` provides the replacements of host files, see
    /// [`support`](super::support).
    pub(super) fn collect(options: &BubblewrapOptions, support: &Support) -> Self {
        let mut view = Arguments::default();
        view.add(["--ro-bind", "/usr", "/usr"]);
        for folder in USR_LINKS {
            match std::fs::read_link(folder) {
                Ok(target) => view.add(["--symlink".as_ref(), target.as_os_str(), folder.as_ref()]),
                Err(_) => view.add(["--ro-bind-try", folder, folder]),
            }
        }
        for store in ["/nix/store", "/gnu/store"] {
            view.add(["--ro-bind-try", store, store]);
        }
        let network = if options.network.is_shared() {
            NETWORK_CONFIG
        } else {
            &[]
        };
        for path in ETC_ALLOWLIST.iter().chain(network) {
            view.add(["--ro-bind-try", path, path]);
        }
        for name in support::NAMES {
            view.add([
                Path::new("--ro-bind"),
                &support.names.join(name),
                &Path::new("/etc").join(name),
            ]);
        }
        for hidden in options.hidden.iter().filter(|path| is_visible(path)) {
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
        // Root owns the kernel settings there, and a gateway that runs as root is root for the
        // kernel even without privileges.
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

/// Returns the first program of the sandbox and its arguments up to the command; empty without an
/// inner program.
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
            options.network.egress_provider().is_some(),
        ))
        .collect()
}

/// Returns all arguments before the command.
pub(super) fn arguments(
    system: &SystemView,
    dirs: &ThreadDirs,
    skills: &SkillMounts,
    network: bool,
    userns_can_be_disabled: bool,
    egress: Option<&dyn EgressEndpoint>,
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
    // It exists once an external agent has worked for the thread.
    all.add([
        Path::new("--ro-bind-try"),
        &dirs.host_path(Root::AcpWorkspace),
        Path::new(ACP_WORKSPACE),
    ]);
    for folder in skills.folders() {
        // It may have been removed since the skills were listed.
        all.add([
            Path::new("--ro-bind-try"),
            &folder.host,
            &Path::new(SKILLS).join(folder.path.as_str()),
        ]);
    }
    if let Some(egress) = egress {
        all.add([
            Path::new("--ro-bind"),
            egress.socket(),
            Path::new(inner::PROXY),
        ]);
    }
    all.add(["--remount-ro", "/", "--chdir", WORKSPACE]);
    all.0
}

/// Reports whether a host path would be visible unless it is hidden.
fn is_visible(path: &Path) -> bool {
    USR_LINKS
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
