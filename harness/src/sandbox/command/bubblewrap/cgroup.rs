//! Control groups: how much all processes of one sandbox may use together, where this process may make groups.
//!
//! Limits of single processes hold everywhere; control groups add the sum. For a gateway that runs as root they are the only limit
//! of how many processes there are, because the kernel does not count root's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::limits::CommandLimits;

/// What we call our groups; the rest is this process' id and a number.
const PREFIX: &str = "deerflow-command-";

/// Numbers the groups of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where groups can be made.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// One folder, or one for each controller where they have hierarchies of their own.
    parents: Vec<PathBuf>,
    /// Groups whose processes were still dying when they were to be removed.
    leftover: Arc<Mutex<Vec<PathBuf>>>,
}

impl Cgroups {
    /// Finds where this process may make groups that limit processes and memory; nothing where it may not.
    pub(super) fn find(limits: &CommandLimits) -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let parents = parents(&membership, &mounts)?;
        let found = Self {
            parents,
            leftover: Arc::default(),
        };
        found.sweep();
        found.enter(limits).is_ok().then_some(found)
    }

    /// A new group, removed when it is dropped.
    pub(super) fn enter(&self, limits: &CommandLimits) -> io::Result<Group> {
        let name = format!(
            "{PREFIX}{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        self.leftover
            .lock()
            .retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        let mut group = Group {
            folders: Vec::with_capacity(self.parents.len()),
            leftover: self.leftover.clone(),
        };
        for parent in &self.parents {
            let folder = parent.join(&name);
            fs::create_dir(&folder)?;
            group.folders.push(folder);
        }
        // The launcher and the sandbox's own two processes are in it too.
        let processes = limits.processes + 8;
        group.limit(&["pids.max"], processes)?;
        group.limit(
            &["memory.max", "memory.limit_in_bytes"],
            limits.memory_bytes,
        )?;
        // Not everywhere, and only a refinement.
        let _not_here = group.limit(&["memory.swap.max"], 0);
        Ok(group)
    }

    /// Removes the groups of processes that are no more.
    fn sweep(&self) {
        for parent in &self.parents {
            for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let owner = name
                    .strip_prefix(PREFIX)
                    .and_then(|rest| rest.split('-').next());
                if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
                    let _in_use = fs::remove_dir(entry.path());
                }
            }
        }
    }
}

/// The groups of one command.
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    leftover: Arc<Mutex<Vec<PathBuf>>>,
}

impl Group {
    /// Where the command's first process is to be written down.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Writes a limit into the file that there is.
    fn limit(&self, names: &[&str], value: u64) -> io::Result<()> {
        let file = self
            .folders
            .iter()
            .flat_map(|folder| names.iter().map(|name| folder.join(name)))
            .find(|file| file.exists());
        let file =
            file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such controller"))?;
        fs::write(file, value.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.folders
            .retain(|folder| fs::remove_dir(folder).is_err());
        self.leftover.lock().append(&mut self.folders);
    }
}

/// The folders of this process' own groups in which groups with the two controllers can be made.
fn parents(membership: &str, mounts: &str) -> Option<Vec<PathBuf>> {
    let own = |controller: &str| {
        membership.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            controllers
                .split(',')
                .any(|name| name == controller)
                .then(|| path.to_owned())
        })
    };
    if let (Some(pids), Some(memory)) = (own("pids"), own("memory")) {
        return Some(vec![
            mounted(mounts, "cgroup", "pids", &pids)?,
            mounted(mounts, "cgroup", "memory", &memory)?,
        ]);
    }
    Some(vec![mounted(mounts, "cgroup2", "", &own("")?)?])
}

/// Where the group `path` of a hierarchy is seen.
fn mounted(mounts: &str, kind: &str, controller: &str, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
        let (root, point) = (before.next()?, before.next()?);
        let matches = after.next()? == kind
            && (controller.is_empty()
                || after.nth(1)?.split(',').any(|option| option == controller));
        let beneath = Path::new(path).strip_prefix(root).ok()?;
        matches.then(|| Path::new(point).join(beneath))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_made_beneath_our_own_in_either_version() {
        let mounts = "29 22 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      30 22 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      31 22 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let old = parents("8:pids:/\n4:memory:/a/b\n0::/\n", mounts).unwrap();
        assert_eq!(
            old,
            [
                Path::new("/sys/fs/cgroup/pids"),
                Path::new("/sys/fs/cgroup/memory/a/b")
            ]
        );
        let new = parents("0::/system.slice/deerflow.service\n", mounts).unwrap();
        assert_eq!(
            new,
            [Path::new(
                "/sys/fs/cgroup/unified/system.slice/deerflow.service"
            )]
        );
        assert_eq!(
            parents(
                "0::/../outside\n",
                "31 22 0:28 /inner /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
            ),
            None
        );
    }
}
