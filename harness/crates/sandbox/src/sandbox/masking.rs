//! Translation between virtual folder names and their locations on the host.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::skill_mounts::SkillMounts;
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{ACP_WORKSPACE, Root, SKILLS, USER_DATA};

/// Minimum number of components for recognising a path relative to its file system: `/a/b` alone is
/// ambiguous.
const MIN_COMPONENTS: usize = 3;

/// Mount points of this process, each with the path within its file system that is mounted there.
/// Empty if the kernel does not report them.
static MOUNTS: LazyLock<Vec<(PathBuf, PathBuf)>> = LazyLock::new(|| {
    parse_mountinfo(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
});

/// Replaces the host folders of a thread and of skills in a text by their virtual names, so that no
/// output reveals their location. May read the disk to resolve links.
pub fn to_virtual(text: &str, dirs: &ThreadDirs, skills: &SkillMounts) -> String {
    HostNames::of(dirs, skills).mask(text)
}

/// Host names that must not appear in output, each with its virtual name.
#[derive(Debug, Clone)]
pub struct HostNames {
    /// Pairs of host name and virtual name; longer host names first.
    names: Vec<(String, String)>,
    /// Pairs of adjacent characters in host names.
    pairs: HashSet<(char, char)>,
    letters: HashSet<char>,
    last_letters: HashSet<char>,
}

impl HostNames {
    /// Collects the names for the folders of a thread and of skills. May read the disk to resolve
    /// links; folders that do not exist yet are known by their configured names only.
    pub fn of(dirs: &ThreadDirs, skills: &SkillMounts) -> Self {
        let spelled = pairs(dirs, skills).into_iter().flat_map(|(inside, host)| {
            known_names(Path::new(&host), &MOUNTS)
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

    /// Replaces all host names in a text by their virtual names.
    pub fn mask(&self, text: &str) -> String {
        self.names
            .iter()
            .fold(text.to_owned(), |text, (name, inside)| {
                replace_paths(&text, name, inside)
            })
    }

    /// Reports whether a text may be split after `before`, so that masking the parts separately
    /// equals masking the whole. No host name may cross the split, and the split must not change
    /// whether an adjacent name is recognised. All host names begin with `/`. `after` is `None` if
    /// no further character has been received.
    pub(super) fn can_split_at(&self, before: char, after: Option<char>) -> bool {
        // The character before a path decides whether it is one, and `://` is recognised by its
        // `:`.
        let begins_anything = !matches!(before, '/' | ':') && !is_name_char(before);
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

/// Replaces virtual folder names of a thread and of skills in a text by their host names.
pub fn to_host(text: &str, dirs: &ThreadDirs, skills: &SkillMounts) -> String {
    pairs(dirs, skills)
        .into_iter()
        .fold(text.to_owned(), |text, (inside, host)| {
            replace_paths(&text, &inside, &host)
        })
}

/// Pairs of virtual and host names; roots before their parent.
fn pairs(dirs: &ThreadDirs, skills: &SkillMounts) -> Vec<(String, String)> {
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
    let mounted = skills.folders().iter().map(|folder| {
        (
            format!("{SKILLS}/{}", folder.path.as_str()),
            folder.host.clone(),
        )
    });
    roots
        .into_iter()
        .chain(parent)
        .chain([foreign])
        .chain(mounted)
        .map(|(inside, host)| (inside, host.display().to_string()))
        .collect()
}

/// Names by which a program may refer to a folder: as configured, with links resolved, relative to
/// its file system (as the kernel lists mounts), and each of these with octal escapes.
fn known_names(host: &Path, mounts: &[(PathBuf, PathBuf)]) -> Vec<String> {
    let real = host.canonicalize().unwrap_or_else(|_| host.to_owned());
    let containing = mounts
        .iter()
        .filter(|(mount_point, _)| real.starts_with(mount_point))
        .max_by_key(|(mount_point, _)| mount_point.as_os_str().len());
    let within = containing.and_then(|(mount_point, mounted_root)| {
        Some(
            mounted_root
                .join(real.strip_prefix(mount_point).ok()?)
                .components()
                .collect::<PathBuf>(),
        )
    });
    let within = within.filter(|path| path.components().count() > MIN_COMPONENTS);
    let plain = [Some(host.to_owned()), Some(real), within]
        .into_iter()
        .flatten()
        .map(|path| path.display().to_string());
    let mut all: Vec<String> = plain
        .flat_map(|path| [octal_escaped(&path), path])
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

const OCTAL_ESCAPES: [(&str, &str); 4] = [
    ("\\", "\\134"),
    (" ", "\\040"),
    ("\t", "\\011"),
    ("\n", "\\012"),
];

fn octal_escaped(path: &str) -> String {
    OCTAL_ESCAPES
        .iter()
        .fold(path.to_owned(), |path, (letter, number)| {
            path.replace(letter, number)
        })
}

/// Parses `/proc/self/mountinfo`: the fourth column is the mounted path, the fifth the mount point.
fn parse_mountinfo(list: &str) -> Vec<(PathBuf, PathBuf)> {
    let unescaped = |path: &str| {
        PathBuf::from(
            OCTAL_ESCAPES
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
        .map(|(mounted_root, mount_point)| (unescaped(mount_point), unescaped(mounted_root)))
        .collect()
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Replaces a path only where it occurs as a path: `/a/b` matches in `/a/b/c` and `file:///a/b`,
/// but not in `/a/bc` or `/z/a/b`.
fn replace_paths(text: &str, old: &str, new: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let after = &rest[at + old.len()..];
        replaced.push_str(&rest[..at]);
        let begins = !replaced.ends_with(is_name_char)
            && (!replaced.ends_with('/') || replaced.ends_with("://"));
        replaced.push_str(if begins && !after.starts_with(is_name_char) {
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
    fn replace_paths_matches_whole_paths_only() {
        let replaced = replace_paths(
            "/a/b:/a/b/c '/a/b' /a/bc x/a/b /z/a/b file:///a/b /a/b",
            "/a/b",
            "/v",
        );
        assert_eq!(replaced, "/v:/v/c '/v' /a/bc x/a/b /z/a/b file:///v /v");
    }

    #[test]
    fn known_names_include_links_mounts_and_escapes() {
        let base = tempfile::tempdir().unwrap();
        let (real, link) = (
            base.path().canonicalize().unwrap().join("disk 1"),
            base.path().join("home"),
        );
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("disk 1", &link).unwrap();
        let list = format!(
            "1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 /vol/deep/er {} rw - ext4 d rw\n",
            octal_escaped(&real.display().to_string())
        );
        let all = known_names(&link, &parse_mountinfo(&list));
        for name in [
            link.display().to_string(),
            real.display().to_string(),
            octal_escaped(&real.display().to_string()),
            "/vol/deep/er".to_owned(),
        ] {
            assert!(all.contains(&name), "{name}: {all:?}");
        }
        assert_eq!(
            known_names(
                Path::new("/nowhere"),
                &parse_mountinfo("1 0 8:1 /x /nowhere rw")
            ),
            ["/nowhere"],
            "/x is ambiguous"
        );
    }

    #[test]
    fn to_virtual_masks_configured_and_resolved_paths() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.path().join("home")).unwrap();
        let thread = deerflow_core::ids::ThreadId::parse("t1").unwrap();
        let home = base.path().join("home");
        let dirs = ThreadDirs::new(
            home.as_path().into(),
            crate::sandbox::safe_fs::Resolver::detect(),
            "ann",
            &thread,
        );
        dirs.create(Root::Workspace).unwrap();
        let real = dirs.host_path(Root::Workspace).canonicalize().unwrap();
        let output = format!(
            "{}/a {}/b",
            real.display(),
            dirs.host_path(Root::Workspace).display()
        );
        assert_eq!(
            to_virtual(&output, &dirs, &SkillMounts::default()),
            "/mnt/user-data/workspace/a /mnt/user-data/workspace/b"
        );
    }
}
