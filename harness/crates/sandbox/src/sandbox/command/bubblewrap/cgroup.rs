//! Control groups: limits for all processes of one sandbox together, where this process may create
//! groups.
//!
//! Limits of single processes always apply; control groups limit the sum. For a gateway that runs
//! as root they are the only limit on the number of processes, because the kernel does not count
//! root's processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::sandbox::command::limits::CommandLimits;

/// Prefix of the group names; the process id and a number follow.
const PREFIX: &str = "deerflow-command-";

/// Number of the next group of this process.
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// Parent folders of the groups that this process creates.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// One folder, or one per controller if the controllers have separate hierarchies.
    parents: Vec<PathBuf>,
    /// Groups that could not be removed because their processes had not exited yet.
    pending_removal: Arc<Mutex<Vec<PathBuf>>>,
}

impl Cgroups {
    /// Finds the folders where this process may create groups that limit processes and memory;
    /// `None` if there are none.
    pub(super) fn find(limits: &CommandLimits) -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let parents = parents(&membership, &mounts)?;
        let found = Self {
            parents,
            pending_removal: Arc::default(),
        };
        found.sweep();
        found.create_group(limits).is_ok().then_some(found)
    }

    /// Creates a group, which is removed on drop.
    pub(super) fn create_group(&self, limits: &CommandLimits) -> io::Result<Group> {
        let name = format!(
            "{PREFIX}{}-{}",
            std::process::id(),
            NEXT_ID.fetch_add(1, Ordering::Relaxed)
        );
        self.pending_removal
            .lock()
            .retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        let mut group = Group {
            folders: Vec::with_capacity(self.parents.len()),
            pending_removal: self.pending_removal.clone(),
        };
        for parent in &self.parents {
            let folder = parent.join(&name);
            fs::create_dir(&folder)?;
            group.folders.push(folder);
        }
        // The launcher and the two processes of the sandbox belong to the group too.
        let processes = limits.processes + 8;
        group.limit(&["pids.max"], processes)?;
        group.limit(
            &["memory.max", "memory.limit_in_bytes"],
            limits.memory_bytes,
        )?;
        // Not available everywhere, and optional.
        let _not_here = group.limit(&["memory.swap.max"], 0);
        Ok(group)
    }

    /// Removes the groups of processes that no longer exist.
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

/// Groups of one command.
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    pending_removal: Arc<Mutex<Vec<PathBuf>>>,
}

impl Group {
    /// Folders where the first process of the command must register itself.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Writes a limit into the first file that exists.
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
        self.pending_removal.lock().append(&mut self.folders);
    }
}

/// Folders of this process's own groups, where groups with both controllers can be created.
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

/// Path where the group `path` of a hierarchy is mounted.
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
    fn parents_lie_beneath_own_group_in_both_versions() {
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
