//! Finds the executable of a command.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Returns the executable file of a command: the first match on `path` for a plain name, the file
/// itself for a path. Ignores relative entries of `path`.
pub fn find_program(command: &str, path: &str) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(is_program);
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(Path::new(command)))
        .find(is_program)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn find_program_returns_executable_files_only() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = format!("{}:.:{}", first.path().display(), second.path().display());
        std::fs::write(first.path().join("tool"), "").unwrap();
        assert_eq!(find_program("tool", &path), None, "it is not executable");
        let program = second.path().join("tool");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find_program("tool", &path), Some(program.clone()));
        assert_eq!(
            find_program(&program.display().to_string(), ""),
            Some(program)
        );
        assert_eq!(find_program("", &path), None);
    }
}
