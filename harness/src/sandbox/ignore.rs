//! Names that listings and searches leave out because they drown what matters.

/// Directories and files left out by their whole name.
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

/// Files left out by how their name ends.
const ENDINGS: &[&str] = &[
    ".log",
    ".tmp",
    ".bak",
    ".swp",
    ".cache",
    ".egg-info",
    ".pyc",
];

/// Whether listings and searches leave this file or directory name out.
pub fn is_ignored(name: &str) -> bool {
    NAMES.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || is_unfinished(name)
}

/// Whether the name is that of a file still being written (see [`PendingFile`](super::pending_file::PendingFile)).
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(".upload-") && name.ends_with(".part")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_out_noise_and_keeps_look_alikes() {
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
