//! The limit of open files: each connection takes one, and systems begin processes with few.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files below which many viewers at once run dry.
pub const FEW_OPEN_FILES: u64 = 4096;

/// The hard limit of open files of this process; none without a limit.
pub fn hard_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit to the hard one, and gives the limit in force; none without a limit.
///
/// # Errors
/// When the system refuses; the limit is then as it was.
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

/// The sentence about a limit that is low.
pub fn low_warning(limit: Option<u64>) -> Option<String> {
    let limit = limit.filter(|limit| *limit < FEW_OPEN_FILES)?;
    Some(format!(
        "this process may open {limit} files, each viewer takes one"
    ))
}

/// Raises the limit and logs what came of it.
pub fn raise_and_log() {
    match raise() {
        Ok(limit) => match low_warning(limit) {
            Some(warning) => tracing::warn!(
                "{warning}; raise the hard limit, `ulimit -Hn` or LimitNOFILE of the service"
            ),
            None => tracing::info!(limit, "open files"),
        },
        Err(error) => tracing::warn!(%error, "the limit of open files cannot be raised"),
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
    fn a_low_limit_is_told() {
        assert_eq!(low_warning(Some(FEW_OPEN_FILES)), None);
        assert_eq!(low_warning(None), None);
        assert!(low_warning(Some(1024)).unwrap().contains("1024 files"));
    }
}
