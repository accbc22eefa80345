//! Limit of open files: each connection uses one, and the default limit is often low.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limit of open files below which a warning is given.
pub const MIN_OPEN_FILES: u64 = 4096;

/// Returns the hard limit of open files; `None` if unlimited.
pub fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit to the hard limit and returns it; `None` if unlimited.
///
/// # Errors
/// The system rejects the change; the limit is unchanged.
pub fn raise() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        )?;
    }
    Ok(limit.maximum)
}

/// Returns a warning if the limit is low.
pub fn low_warning(limit: Option<u64>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < MIN_OPEN_FILES)?;
    Some(format!(
        "this process may open only {limit} files, and each viewer uses one"
    ))
}

/// Raises the limit and logs the result.
pub fn raise_and_log() {
    match raise() {
        Ok(limit) => match low_warning(limit) {
            Some(warning) => tracing::warn!(
                "{warning}; raise the hard limit (`ulimit -Hn`, or LimitNOFILE of the service)"
            ),
            None => tracing::info!(limit, "open files"),
        },
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        let lower = before.current.map_or(256, |current| current / 2);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(lower),
                maximum: before.maximum,
            },
        )
        .unwrap();
        assert_eq!(raise().unwrap(), before.maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }

    #[test]
    fn low_open_file_limit_gives_warning() {
        assert_eq!(low_warning(Some(MIN_OPEN_FILES)), None);
        assert_eq!(low_warning(None), None);
        assert!(low_warning(Some(1024)).unwrap().contains("1024 files"));
    }
}
