//! Skills: folders with a `SKILL.md`, which contains instructions for an agent about one kind of
//! work.
//!
//! [`frontmatter`] parses the head of such a file, `scan` finds the folders, [`Skills`] lists the
//! skills of a user with their enabled state and changes custom skills. [`archive`] unpacks an
//! untrusted `.skill` file. The use of skills by an agent is implemented in `middlewares`, with the
//! decisions of [`activation`] and [`policy`].

pub mod activation;
pub mod archive;
mod custom;
mod error;
pub mod frontmatter;
mod history;
mod library;
pub mod policy;
mod scan;
mod skill;
mod skill_name;
mod view;

pub use error::SkillError;
pub use history::{HistoryEntry, Revision};
pub use library::{SkillFolders, Skills};
pub use skill::{ARCHIVE_ENDING, Category, SKILL_FILE, Skill, SkillChoice};
pub use skill_name::is_skill_name;
pub use view::{SkillInstalled, SkillList, SkillView};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::skills::SkillFolders as SkillPlaces;
