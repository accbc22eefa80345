//! Skills: folders with a `SKILL.md` that tells an agent how a certain kind of work is done.
//!
//! [`frontmatter`] reads the head of such a file, `scan` finds the folders, [`Skills`] knows who has which and which are on, and
//! changes those that a user brought along. [`archive`] takes a `.skill` file apart without trusting a byte of it. What an agent does
//! with a skill is in `middlewares`: [`activation`] and [`policy`] decide it.

pub mod activation;
pub mod archive;
mod custom;
mod error;
pub mod frontmatter;
mod history;
mod library;
pub mod policy;
mod scan;
mod shown;
mod skill;

pub use error::SkillError;
pub use history::{HistoryEntry, Revision};
pub use library::{SkillPlaces, Skills};
pub use shown::{SkillInstalled, SkillList, SkillView};
pub use skill::{ARCHIVE_ENDING, Category, SKILL_FILE, Skill, SkillChoice, is_skill_name};
