//! Programs of this machine that are talked with over their standard streams: started with little, heard within bounds, and gone with
//! everything below them.

mod child;
mod complaints;
mod faults;
mod find;
mod lines;

#[cfg(feature = "acp")]
pub(crate) use child::Streams;
pub(crate) use child::{ChildTree, Place};
pub(crate) use complaints::{Errors, Hidden};
#[cfg(feature = "acp")]
pub(crate) use faults::Allowance;
pub(crate) use faults::Faults;
pub use find::find_program;
pub(crate) use lines::{BoundedLines, LONGEST_MESSAGE};
