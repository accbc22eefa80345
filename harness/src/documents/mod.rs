//! Documents that users attach: which of them become Markdown, and what a text is about at a glance.

#[cfg(feature = "documents")]
mod confine;
mod glimpse;
mod kind;
mod outline;
mod reader;
#[cfg(feature = "documents")]
mod workbook;
#[cfg(feature = "documents")]
pub mod worker;

pub use glimpse::{Glimpse, glimpse, hidden_copies, mark_of};
pub use kind::DocumentKind;
pub use outline::{Heading, Outline, outline};
pub use reader::{DocumentReader, Opening, ProcessDocumentReader, Unreadable};

/// A size for people: kilobytes with one decimal, megabytes from 1024 of them.
pub fn size_text(bytes: u64) -> String {
    let kilobytes = bytes as f64 / 1024.0;
    if kilobytes < 1024.0 {
        format!("{kilobytes:.1} KB")
    } else {
        format!("{:.1} MB", kilobytes / 1024.0)
    }
}
