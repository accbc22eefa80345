//! The private file system of one conversation, used by file tools, uploads and artifacts.
//!
//! Models use *virtual paths* such as `/mnt/user-data/workspace/report.md`. Four layers lead from
//! such a text to bytes on the disk:
//!
//! 1. [`virtual_paths`] parses the text into a [`VirtualPath`] or rejects it. Pure.
//! 2. [`thread_dirs`] maps the three roots of a user's thread to directories under the runtime
//!    home; [`skill_mounts`] lists the read-only folders.
//! 3. [`safe_fs`] opens files beneath a directory handle, so that no symbolic link, swapped
//!    directory, FIFO or hard link can redirect the access. It never checks first and opens later.
//! 4. [`blocking_files`] implements the operations; [`files`] offers them to async code.
//!
//! [`render`] contains the texts that a model reads as the result of an operation.
//!
//! To add an operation: implement it on [`BlockingFiles`] with a [`VirtualPath`] and
//! [`safe_fs::SafeDir`], add an async method to [`ThreadFiles`], and, if a model reads its result,
//! add a text to [`render`]. Errors are [`FileError`]: they contain the virtual path and never a
//! host path.

pub mod blocking_files;
mod blocking_task;
mod changes;
pub mod command;
mod copy;
pub mod egress;
pub mod file_error;
mod file_quota;
mod file_writes;
pub mod files;
pub mod ignore;
mod incoming_file;
pub mod line_range;
pub mod listing;
mod marked_files;
pub mod masked_stream;
pub mod masking;
pub mod mounts;
mod path_error;
pub mod path_locks;
pub mod pending_file;
pub mod removal;
pub mod remove_tree;
pub mod render;
mod resolve;
mod roots;
pub mod safe_fs;
pub mod search;
pub mod skill_mounts;
pub mod thread_dirs;
mod thread_files;
pub mod virtual_paths;

pub use blocking_files::{BlockingFiles, FileLimits, Occurrences, WriteMode};
pub use blocking_task::run_blocking;
pub use changes::{ChangeLimits, ChangeReport, RunSnapshots};
pub use command::{
    CommandEnd, CommandError, CommandLimits, CommandOutput, CommandRequest, CommandSandbox,
    Isolation, LimitedCommandSandbox, Pipe, Reach, Redacting, Secrets, Transcript,
};
pub use copy::CopyLimits;
pub use file_error::{FileError, FileFailure};
pub use file_quota::{FileQuota, FileReservation, measure_user_files};
pub use files::{FileHome, ThreadFiles};
pub use incoming_file::IncomingFile;
pub use line_range::{LineRange, TextRead};
pub use listing::Listing;
pub use masked_stream::MaskedStream;
pub use masking::HostNames;
pub use mounts::{Mount, Mounts};
pub use removal::OrphanedThread;
pub use search::{LineQuery, NamePattern, SearchResults};
pub use skill_mounts::{MountedSkill, SkillMountSource, SkillMounts};
pub use thread_dirs::{ThreadDirs, UserDirName};
pub use virtual_paths::{PathError, Root, VirtualPath};

#[cfg(test)]
mod hostile_paths_tests;
#[cfg(test)]
mod symlink_tests;
#[cfg(test)]
mod test_support;

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::FileFailure as Fault;
#[doc(hidden)]
pub use crate::sandbox::MountedSkill as ShelvedFolder;
#[doc(hidden)]
pub use crate::sandbox::OrphanedThread as LeftThread;
#[doc(hidden)]
pub use crate::sandbox::SearchResults as Found;
#[doc(hidden)]
pub use crate::sandbox::SkillMountSource as Shelves;
#[doc(hidden)]
pub use crate::sandbox::SkillMounts as Shelf;
#[doc(hidden)]
pub mod shelf {
    //! Former name of a module.

    pub use crate::sandbox::skill_mounts::MountedSkill as ShelvedFolder;
    pub use crate::sandbox::skill_mounts::SkillMountSource as Shelves;
    pub use crate::sandbox::skill_mounts::SkillMounts as Shelf;
}
#[doc(hidden)]
pub mod fault {
    //! Former name of a module.

    pub use crate::sandbox::file_error::FileError;

    pub use crate::sandbox::file_error::FileFailure as Fault;
}
