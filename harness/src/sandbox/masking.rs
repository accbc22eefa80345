//! Between the names that a model uses for folders and where they lie on the host.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::shelf::Shelf;
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};

/// Names that a path needs at least to be known by where it lies in its file system alone: `/a/b` may be anything.
const FEWEST_NAMES: usize = 3;

/// Where file systems are mounted: the place, and what of the file system is seen there. Empty where the kernel does not tell.
static MOUNTS: LazyLock<Vec<(PathBuf, PathBuf)>> = LazyLock::new(|| {
    mounts_in(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
});

/// A text with the host folders of a thread and of skills under their virtual names, so that no output tells where they lie. May look
/// at the disk, where links are on the way to them.
pub fn to_virtual(text: &str, dirs: &ThreadDirs, shelf: &Shelf) -> String {
    HostNames::of(dirs, shelf).mask(text)
}

/// The names on the host that no output may tell, each with the virtual one that stands for it.
#[derive(Debug, Clone)]
pub struct HostNames {
    /// Those before what they lie in.
    names: Vec<(String, String)>,
    /// Letters that follow each other in them.
    pairs: HashSet<(char, char)>,
    letters: HashSet<char>,
    last_letters: HashSet<char>,
}

impl HostNames {
    /// Those of the folders of a thread and of skills. May look at the disk, where links are on the way to them; folders that are not
    /// there yet are known by their configured names alone.
    pub fn of(dirs: &ThreadDirs, shelf: &Shelf) -> Self {
        let spelled = pairs(dirs, shelf).into_iter().flat_map(|(inside, host)| {
            spellings(Path::new(&host), &MOUNTS)
                .into_iter()
                .map(move |spelling| (spelling, inside.clone()))
        });
        Self::new(spelled.collect())
    }

    pub(super) fn new(mut names: Vec<(String, String)>) -> Self {
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let hosts = || names.iter().map(|(name, _)| name);
        let pairs = hosts()
            .flat_map(|name| name.chars().zip(name.chars().skip(1)))
            .collect();
        let letters = hosts().flat_map(|name| name.chars()).collect();
        let last_letters = hosts().filter_map(|name| name.chars().last()).collect();
        Self {
            names,
            pairs,
            letters,
            last_letters,
        }
    }

    #[cfg(test)]
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(name, _)| name.as_str())
    }

    /// A text with the virtual names.
    pub fn mask(&self, text: &str) -> String {
        self.names
            .iter()
            .fold(text.to_owned(), |text, (name, inside)| {
                replace_paths(&text, name, inside)
            })
    }

    /// Whether a text may be cut behind `before`, and its parts masked apart, as if they were whole: no name lies across the cut, and
    /// none beside it is taken for more or less than it is. All names begin with `/`. Nothing comes after `before` as yet where `after`
    /// is `None`.
    pub(super) fn may_part(&self, before: char, after: Option<char>) -> bool {
        // What a path stands behind tells whether it is one, and `://` is told from `:`.
        let begins_anything = !matches!(before, '/' | ':') && !is_of_a_name(before);
        match after {
            Some('/') => {
                begins_anything
                    && !self.last_letters.contains(&before)
                    && !self.pairs.contains(&(before, '/'))
            }
            Some(after) => {
                !self.last_letters.contains(&before) && !self.pairs.contains(&(before, after))
            }
            None => begins_anything && !self.letters.contains(&before),
        }
    }
}

/// A text with the virtual folders of a thread and of skills under their names on the host.
pub fn to_host(text: &str, dirs: &ThreadDirs, shelf: &Shelf) -> String {
    pairs(dirs, shelf)
        .into_iter()
        .fold(text.to_owned(), |text, (inside, host)| {
            replace_paths(&text, &inside, &host)
        })
}

/// Virtual and host names, those of the roots before what they lie in.
fn pairs(dirs: &ThreadDirs, shelf: &Shelf) -> Vec<(String, String)> {
    let roots = Root::ALL.map(|root| {
        (
            format!("{USER_DATA}/{}", root.dir_name()),
            dirs.host_path(root),
        )
    });
    let parent = roots[0]
        .1
        .parent()
        .map(|parent| (USER_DATA.to_owned(), parent.to_path_buf()));
    let foreign = (ACP_WORKSPACE.to_owned(), dirs.host_path(Root::AcpWorkspace));
    let shelved = shelf.folders().iter().map(|folder| {
        (
            format!("{SKILLS}/{}", folder.path.as_str()),
            folder.host.clone(),
        )
    });
    roots
        .into_iter()
        .chain(parent)
        .chain([foreign])
        .chain(shelved)
        .map(|(inside, host)| (inside, host.display().to_string()))
        .collect()
}

/// The ways in which a program may name a folder: as it is configured, without links, from its file system on, as the kernel lists
/// mounts do, and each of them with the letters written as numbers that would break such a list.
fn spellings(host: &Path, mounts: &[(PathBuf, PathBuf)]) -> Vec<String> {
    let real = host.canonicalize().unwrap_or_else(|_| host.to_owned());
    let holding = mounts
        .iter()
        .filter(|(place, _)| real.starts_with(place))
        .max_by_key(|(place, _)| place.as_os_str().len());
    let within = holding.and_then(|(place, seen)| {
        Some(
            seen.join(real.strip_prefix(place).ok()?)
                .components()
                .collect::<PathBuf>(),
        )
    });
    let within = within.filter(|path| path.components().count() > FEWEST_NAMES);
    let plain = [Some(host.to_owned()), Some(real), within]
        .into_iter()
        .flatten()
        .map(|path| path.display().to_string());
    let mut all: Vec<String> = plain.flat_map(|path| [numbered(&path), path]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

const NUMBERED: [(&str, &str); 4] = [
    ("\\", "\\134"),
    (" ", "\\040"),
    ("\t", "\\011"),
    ("\n", "\\012"),
];

fn numbered(path: &str) -> String {
    NUMBERED
        .iter()
        .fold(path.to_owned(), |path, (letter, number)| {
            path.replace(letter, number)
        })
}

/// What a list of mounts says: its fourth column is what is seen, its fifth where.
fn mounts_in(list: &str) -> Vec<(PathBuf, PathBuf)> {
    let lettered = |path: &str| {
        PathBuf::from(
            NUMBERED
                .iter()
                .rev()
                .fold(path.to_owned(), |path, (letter, number)| {
                    path.replace(number, letter)
                }),
        )
    };
    let lines = list.lines().map(|line| line.split(' ').skip(3));
    lines
        .filter_map(|mut columns| Some((columns.next()?, columns.next()?)))
        .map(|(seen, place)| (lettered(place), lettered(seen)))
        .collect()
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Replaces a path where it stands as one: `/a/b` is in `/a/b/c` and `file:///a/b`, and not in `/a/bc` or `/z/a/b`.
fn replace_paths(text: &str, old: &str, new: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let after = &rest[at + old.len()..];
        replaced.push_str(&rest[..at]);
        let begins = !replaced.ends_with(is_of_a_name)
            && (!replaced.ends_with('/') || replaced.ends_with("://"));
        replaced.push_str(if begins && !after.starts_with(is_of_a_name) {
            new
        } else {
            old
        });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_replaced_where_they_stand_as_paths() {
        let replaced = replace_paths(
            "/a/b:/a/b/c '/a/b' /a/bc x/a/b /z/a/b file:///a/b /a/b",
            "/a/b",
            "/v",
        );
        assert_eq!(replaced, "/v:/v/c '/v' /a/bc x/a/b /z/a/b file:///v /v");
    }

    #[test]
    fn a_folder_is_known_by_every_name_that_it_has() {
        let base = tempfile::tempdir().unwrap();
        let (real, link) = (
            base.path().canonicalize().unwrap().join("disk 1"),
            base.path().join("home"),
        );
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("disk 1", &link).unwrap();
        let list = format!(
            "1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 /vol/deep/er {} rw - ext4 d rw\n",
            numbered(&real.display().to_string())
        );
        let all = spellings(&link, &mounts_in(&list));
        for name in [
            link.display().to_string(),
            real.display().to_string(),
            numbered(&real.display().to_string()),
            "/vol/deep/er".to_owned(),
        ] {
            assert!(all.contains(&name), "{name}: {all:?}");
        }
        assert_eq!(
            spellings(Path::new("/nowhere"), &mounts_in("1 0 8:1 /x /nowhere rw")),
            ["/nowhere"],
            "/x may be anything"
        );
    }

    #[test]
    fn an_output_speaks_of_virtual_folders_whatever_the_program_called_them() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.path().join("home")).unwrap();
        let thread = crate::ids::ThreadId::parse("t1").unwrap();
        let home = base.path().join("home");
        let dirs = ThreadDirs::new(
            home.as_path().into(),
            crate::sandbox::safe_fs::Resolver::detect(),
            "ann",
            &thread,
        );
        dirs.create(Root::Workspace).unwrap();
        let real = dirs.host_path(Root::Workspace).canonicalize().unwrap();
        let said = format!(
            "{}/a {}/b",
            real.display(),
            dirs.host_path(Root::Workspace).display()
        );
        assert_eq!(
            to_virtual(&said, &dirs, &Shelf::default()),
            "/mnt/user-data/workspace/a /mnt/user-data/workspace/b"
        );
    }
}
