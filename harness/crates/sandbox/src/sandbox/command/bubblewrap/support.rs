//! Files that replace files of the host in every sandbox.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use tempfile::NamedTempFile;

use super::inner_user::{INNER_ID, WORKSPACE};

/// Files of `/etc`.
pub(super) const NAMES: [&str; 3] = ["passwd", "group", "hosts"];
/// Devices with their major and minor numbers.
pub(super) const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// The file with the system call filter.
const FILTER: &str = "filter";
/// Owner of the devices: the kernel's overflow id, which is not mapped inside the sandbox.
const OVERFLOW_ID: u32 = 65_534;

/// Paths of the files.
#[derive(Debug)]
pub(super) struct Support {
    /// System call filter in the format of the kernel.
    pub(super) filter: PathBuf,
    /// Folder with the replaced files of `/etc`.
    pub(super) names: PathBuf,
    /// Folder with own devices, if this process is root: a command could change the mode of root's
    /// devices.
    pub(super) devices: Option<PathBuf>,
}

impl Support {
    /// Creates the files in `folder`, which must have no other use.
    pub(super) fn create(folder: &Path, filter: &[u8]) -> io::Result<Self> {
        let names = folder.join("etc");
        fs::create_dir_all(&names)?;
        replace(folder, FILTER, filter)?;
        let passwd = format!(
            "agent:x:{INNER_ID}:{INNER_ID}:agent:{WORKSPACE}:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        );
        let group = format!("agent:x:{INNER_ID}:\nnogroup:x:65534:\n");
        let texts = [
            passwd,
            group,
            "127.0.0.1 localhost sandbox\n::1 localhost\n".to_owned(),
        ];
        for (name, text) in NAMES.iter().zip(texts) {
            replace(&names, name, text.as_bytes())?;
        }
        let devices = rustix::process::geteuid()
            .is_root()
            .then(|| make_devices(folder.join("dev")))
            .transpose()?;
        Ok(Self {
            filter: folder.join(FILTER),
            names,
            devices,
        })
    }
}

/// Replaces a file atomically: another gateway that shares this folder may be creating a sandbox
/// from it.
fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut pending = NamedTempFile::new_in(folder)?;
    pending.write_all(content)?;
    pending
        .as_file()
        .set_permissions(Permissions::from_mode(0o644))?;
    pending.persist(folder.join(name))?;
    Ok(())
}

fn make_devices(folder: PathBuf) -> io::Result<PathBuf> {
    fs::create_dir_all(&folder)?;
    for (name, major, minor) in DEVICES {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        mknodat(
            CWD,
            &path,
            FileType::CharacterDevice,
            Mode::from_raw_mode(0o666),
            makedev(major, minor),
        )?;
        fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        // All sandboxes share the devices, and no command runs as their owner, so none can change
        // the mode.
        std::os::unix::fs::chown(&path, Some(OVERFLOW_ID), Some(OVERFLOW_ID))?;
    }
    Ok(folder)
}
