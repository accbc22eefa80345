//! Landlock restrictions on writes, in addition to the mounts.
//!
//! The mounts of a sandbox show the system read-only. If one of them is writable by mistake,
//! Landlock still rejects the write. It also confines signals and abstract sockets to the sandbox.
//! It restricts neither reads nor networks: namespaces do.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope, path_beneath_rules,
};

/// Newest Landlock ABI that is requested. Older kernels apply the part that they support.
const REQUESTED_ABI: ABI = ABI::V6;

/// Irrevocably restricts this thread, and all processes and threads that it starts later, to
/// writing beneath the `writable` folders and files. Missing paths are skipped. Returns `false` if
/// the kernel has no Landlock.
///
/// # Errors
/// If the kernel has Landlock but rejected the rules. No restriction applies then.
pub(super) fn restrict_writes<P: AsRef<Path>>(
    writable: impl IntoIterator<Item = P>,
) -> Result<bool, RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(REQUESTED_ABI))?
        .scope(Scope::from_all(REQUESTED_ABI))?
        .create()?
        .add_rules(path_beneath_rules(
            ["/"],
            AccessFs::from_read(REQUESTED_ABI),
        ))?
        .add_rules(path_beneath_rules(
            writable,
            AccessFs::from_all(REQUESTED_ABI),
        ))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Runs `work` in a thread that may write to `inside` only. Skips it if the kernel has no
    /// Landlock.
    fn locked(work: impl FnOnce(&Path, &Path) + Send) {
        let base = tempfile::tempdir().unwrap();
        let (inside, outside) = (base.path().join("inside"), base.path().join("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "as it was").unwrap();
        }
        std::thread::scope(|threads| {
            threads.spawn(|| match restrict_writes([&inside]).unwrap() {
                true => work(&inside, &outside),
                false => eprintln!("this kernel has no Landlock"),
            });
        });
        assert_eq!(
            fs::read_to_string(outside.join("file")).unwrap(),
            "as it was"
        );
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn restrict_writes_allows_only_named_folders() {
        locked(|inside, outside| {
            fs::write(inside.join("file"), "new").unwrap();
            fs::create_dir(inside.join("folder")).unwrap();
            fs::rename(inside.join("file"), inside.join("folder/file")).unwrap();
            fs::remove_dir_all(inside.join("folder")).unwrap();
            assert_eq!(
                fs::read_to_string(outside.join("file")).unwrap(),
                "as it was"
            );

            symlink(outside, inside.join("way")).unwrap();
            for folder in [outside.to_owned(), inside.join("way")] {
                let tries = [
                    fs::write(folder.join("file"), "new"),
                    fs::write(folder.join("other"), "new"),
                    fs::create_dir(folder.join("folder")),
                    fs::remove_file(folder.join("file")),
                    fs::rename(folder.join("file"), folder.join("other")),
                    symlink("/", folder.join("link")),
                    fs::hard_link(folder.join("file"), folder.join("link")),
                    fs::OpenOptions::new()
                        .append(true)
                        .open(folder.join("file"))
                        .map(drop),
                ];
                for (at, tried) in tries.into_iter().enumerate() {
                    assert_eq!(tried.unwrap_err().kind(), PermissionDenied, "try {at}");
                }
            }
        });
    }

    #[test]
    fn restrict_writes_applies_to_child_processes() {
        locked(|inside, outside| {
            let script = format!(
                "echo new > {}/file; echo new > {}/file",
                inside.display(),
                outside.display()
            );
            let run = std::process::Command::new("/bin/sh")
                .args(["-c", &script])
                .output()
                .unwrap();
            assert!(!run.status.success());
            assert_eq!(fs::read_to_string(inside.join("file")).unwrap(), "new\n");
        });
    }
}
