//! Names that listings and searches omit because they hide the relevant files.

/// Directories and files that are omitted by their full name.
const NAMES: &[&str] = &[
    // version control
    ".git",
    ".svn",
    ".hg",
    ".bzr",
    "CVS",
    // dependencies and virtual environments
    "node_modules",
    "bower_components",
    "__pycache__",
    ".venv",
    "venv",
    "env",
    ".env",
    "site-packages",
    ".eggs",
    // build outputs
    "dist",
    "build",
    "target",
    "out",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".turbo",
    ".gradle",
    // editors
    ".idea",
    ".vscode",
    ".vs",
    // caches, coverage and logs
    ".cache",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    ".parcel-cache",
    ".npm",
    ".coverage",
    "coverage",
    "htmlcov",
    ".nyc_output",
    "logs",
    // desktops
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
];

/// Suffixes of files that are omitted.
const ENDINGS: &[&str] = &[
    ".log",
    ".tmp",
    ".bak",
    ".swp",
    ".cache",
    ".egg-info",
    ".pyc",
];

/// Reports whether listings and searches omit this file or directory name.
pub fn is_ignored(name: &str) -> bool {
    NAMES.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || is_unfinished(name)
}

/// Reports whether the name belongs to a file that is still being written (see
/// [`PendingFile`](super::pending_file::PendingFile)).
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(".upload-") && name.ends_with(".part")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ignored_matches_noise_but_not_similar_names() {
        for name in [
            ".git",
            "node_modules",
            "a.log",
            "x.swp",
            ".env",
            ".DS_Store",
            ".upload-1-2.part",
            "target",
        ] {
            assert!(is_ignored(name), "{name}");
        }
        for name in [
            "git",
            "log",
            "report.part",
            ".envrc",
            "targets",
            "building",
            ".gitignore",
            "a.logs",
        ] {
            assert!(!is_ignored(name), "{name}");
        }
    }
}
