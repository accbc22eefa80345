//! Walking a directory for a listing that a model reads.

use super::fault::Fault;
use super::ignore::is_ignored;
use super::places::Start;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::{VirtualPath, misleads_a_reader};

/// What lies beneath a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Virtual paths in order, those of directories with a final `/`.
    pub lines: Vec<String>,
    /// Whether there was more than one listing looks at.
    pub incomplete: bool,
}

impl Listing {
    /// Lists `depth` levels of what is shown as `path`, looking at `max_entries` at most.
    ///
    /// Links and special files are named and not followed. Names that no virtual path can have are made
    /// visible, so that the model knows of them.
    pub(super) fn of(
        starts: &[Start],
        path: &VirtualPath,
        depth: usize,
        max_entries: usize,
    ) -> Result<Self, Fault> {
        let mut listing = Self::default();
        let mut budget = max_entries;
        for Start { way, directory } in starts {
            let mut shown = path.to_string();
            let mut left = depth;
            for name in way.components().take(depth) {
                shown = format!("{shown}/{name}");
                listing.lines.push(format!("{shown}/"));
                left -= 1;
            }
            listing.add(directory, &shown, left, &mut budget)?;
        }
        listing.lines.sort_unstable();
        listing.lines.dedup();
        Ok(listing)
    }

    fn add(
        &mut self,
        directory: &SafeDir,
        shown_path: &str,
        depth: usize,
        budget: &mut usize,
    ) -> Result<(), Fault> {
        if depth == 0 {
            return Ok(());
        }
        let (entries, more) = directory.entries(*budget)?;
        self.incomplete |= more;
        *budget -= entries.len();
        for entry in entries {
            let name = entry.name.to_string_lossy();
            if is_ignored(&name) {
                continue;
            }
            let shown = format!("{shown_path}/{}", one_line(&name));
            if entry.kind != NodeKind::Directory {
                self.lines.push(shown);
                continue;
            }
            let below = directory
                .enter(&entry.name)
                .and_then(|inner| self.add(&inner, &shown, depth - 1, budget));
            match below {
                // What vanished, became a link or may not be read meanwhile is still a line.
                Ok(())
                | Err(Fault::NotFound | Fault::NotDirectory | Fault::Symlink | Fault::Permission) =>
                    {}
                Err(fault) => return Err(fault),
            }
            self.lines.push(shown + "/");
        }
        Ok(())
    }
}

/// The name, or the way of names, with everything visible that would break or disguise its line.
pub(super) fn one_line(name: &str) -> String {
    name.chars()
        .fold(String::with_capacity(name.len()), |mut shown, c| {
            if misleads_a_reader(c) {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
            shown
        })
}
