//! SHA-256 of a backup, in a file next to it in the format of `sha256sum`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::copies;
use super::error::{UpkeepError, at};
use crate::files::companions::with_suffix;

/// Suffix of the file with the checksum.
pub(super) const SUFFIX: &str = ".sha256";

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
/// Length of a SHA-256 in hexadecimal.
const HEX_LENGTH: usize = 64;

/// Returns the path of the checksum of a backup.
pub(super) fn path_of(backup: &Path) -> PathBuf {
    with_suffix(backup, SUFFIX)
}

/// Reads a file, passes its bytes to `each`, and returns their SHA-256.
pub(super) fn read(
    file: &Path,
    mut each: impl FnMut(&[u8]) -> Result<(), UpkeepError>,
) -> Result<String, UpkeepError> {
    let mut source = File::open(file).map_err(at(file))?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(hex::encode(digest.finalize())),
            Ok(count) => {
                digest.update(&buffer[..count]);
                each(&buffer[..count])?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(at(file)(error)),
        }
    }
}

/// Writes the checksum of the backup `target` to the file `partial`, which then gets its name. Both
/// are durable when this returns.
pub(super) fn publish(checksum: &str, partial: &Path, target: &Path) -> Result<(), UpkeepError> {
    let path = path_of(target);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let mut file = copies::create_private(partial).map_err(at(partial))?;
    writeln!(file, "{checksum}  {name}").map_err(at(partial))?;
    copies::publish(partial, &path).map_err(at(&path))
}

/// Result of a comparison with the file next to a backup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    /// There is no file with a checksum.
    Unknown,
    /// The reason why the backup cannot be trusted.
    Different(String),
}

/// Compares the checksum of a backup with the one in the file next to it.
pub(super) fn compare(checksum: &str, backup: &Path) -> Result<Comparison, UpkeepError> {
    let path = path_of(backup);
    let stated = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Comparison::Unknown),
        Err(error) => return Err(at(&path)(error)),
    };
    let stated = stated.split_whitespace().next().unwrap_or_default();
    // `sha256sum` marks lines with escaped names by a backslash.
    let stated = stated.trim_start_matches('\\').to_ascii_lowercase();
    let is_checksum =
        stated.len() == HEX_LENGTH && stated.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(if !is_checksum {
        Comparison::Different(format!(
            "{} contains no SHA-256; remove that file to restore without a comparison",
            path.display()
        ))
    } else if stated == checksum {
        Comparison::Equal
    } else {
        Comparison::Different(format!(
            "its SHA-256 is {checksum}, but {} states {stated}: one of the two files is damaged or belongs to another backup",
            path.display()
        ))
    })
}
