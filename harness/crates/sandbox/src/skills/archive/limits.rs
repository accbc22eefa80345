//! Limits of an archive.

/// Maximum number of entries of an archive.
pub const MAX_ENTRIES: usize = 4_096;
/// Maximum size of a single file that is read from an archive for display, in bytes.
pub const MAX_MEMBER_BYTES: u64 = 16 << 20;
/// Maximum size of the central directory, in bytes: it is read completely before any decision.
pub const MAX_DIRECTORY_BYTES: u64 = 4 << 20;
/// Maximum size of an archive, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 256 << 20;
/// Maximum unpacked size of an archive, in bytes.
pub const MAX_UNPACKED_BYTES: u64 = 512 << 20;
