//! The private file system of one conversation: what file tools, uploads and artifacts may touch.
//!
//! A model speaks in *virtual paths* such as `/mnt/user-data/workspace/report.md`.
//! The way from such a text to bytes on the disk has four steps, each in its own file:
//!
//! 1. [`virtual_paths`] turns the text into a [`VirtualPath`], or says why not. Pure.
//! 2. [`thread_dirs`] knows where the three roots of a user's thread lie under the runtime home, [`shelf`] which folders are only read.
//! 3. [`safe_fs`] opens things beneath a directory handle in a way that no symbolic link, swapped
//!    directory, FIFO or hard link can turn into something else. There is no "check, then open".
//! 4. [`blocking_files`] has the operations; [`files`] offers them to async code.
//!
//! [`render`] holds the texts that a model reads as the result of an operation.
//!
//! To add an operation: write it in [`blocking_files`] in terms of a [`VirtualPath`] and
//! [`safe_fs::SafeDir`], give it an async face in [`files`], and, if a model reads its result, a
//! text in [`render`]. Errors are [`FileError`]: they name the virtual path and never a host path.

pub mod blocking_files;
pub mod command;
pub mod egress;
pub mod fault;
pub mod files;
pub mod ignore;
mod incoming_file;
pub mod line_range;
pub mod listing;
mod marked_files;
pub mod masked_stream;
pub mod masking;
pub mod mounts;
pub mod path_locks;
pub mod pending_file;
mod places;
pub mod removal;
pub mod remove_tree;
pub mod render;
pub mod safe_fs;
pub mod search;
pub mod shelf;
pub mod thread_dirs;
pub mod virtual_paths;

pub use blocking_files::{BlockingFiles, FileLimits, Occurrences, WriteMode};
pub use command::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation, LimitedCommandSandbox, Pipe, Reach, Redacting, Secrets, Transcript,
};
pub use fault::{Fault, FileError};
pub use files::{FileHome, ThreadFiles};
pub use incoming_file::IncomingFile;
pub use line_range::{LineRange, TextRead};
pub use listing::Listing;
pub use masked_stream::MaskedStream;
pub use masking::HostNames;
pub use mounts::{Mount, Mounts};
pub use removal::LeftThread;
pub use search::{Found, LineQuery, NamePattern};
pub use shelf::{Shelf, ShelvedFolder, Shelves};
pub use thread_dirs::{ThreadDirs, UserDirName};
pub use virtual_paths::{PathError, Root, VirtualPath};

#[cfg(test)]
mod hostile_paths_tests;
#[cfg(test)]
mod symlink_tests;
#[cfg(test)]
mod test_support;
