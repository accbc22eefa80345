//! A second lock on what a command may write to, held by the kernel beside the mounts.
//!
//! The mounts of a sandbox show the system read-only. Should one of them come out writable, by a mistake of ours, of `bwrap` or of the
//! kernel, Landlock still refuses. It also keeps signals and abstract sockets among the processes of the sandbox. It says nothing of
//! what is read, and nothing of networks: both are up to the namespaces.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope, path_beneath_rules,
};

/// The newest set of rights that is asked for. Older kernels give what they have of it.
const WANTED: ABI = ABI::V6;

/// Lets this thread, and what it starts from now on, write beneath these folders and files alone, for good. Those that are not there
/// are left out. False where the kernel has no Landlock.
///
/// # Errors
///
/// The kernel refused the rules though it has Landlock: nothing is locked.
pub(super) fn hold<P: AsRef<Path>>(
    writable: impl IntoIterator<Item = P>,
) -> Result<bool, RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(WANTED)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(WANTED)))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::os::unix::fs::symlink;

    use super::*;

    /// The work of a thread that may write to `inside` alone. Without Landlock here there is nothing to see.
    fn locked(work: impl FnOnce(&Path, &Path) + Send) {
        let base = tempfile::tempdir().unwrap();
        let (inside, outside) = (base.path().join("inside"), base.path().join("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("file"), "as it was").unwrap();
        }
        std::thread::scope(|threads| {
            threads.spawn(|| match hold([&inside]).unwrap() {
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
    fn what_is_named_is_written_to_and_all_else_only_read() {
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
    fn what_a_program_started_by_it_does_is_locked_too() {
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
