//! Attached documents: conversion to Markdown and previews.

#[cfg(all(feature = "documents", target_os = "linux"))]
mod confine;
mod kind;
mod outline;
mod preview;
mod reader;
#[cfg(all(feature = "documents", target_os = "linux"))]
mod work_error;
#[cfg(all(feature = "documents", target_os = "linux"))]
mod workbook;
#[cfg(all(feature = "documents", target_os = "linux"))]
pub mod worker;

pub use kind::DocumentKind;
pub use outline::{Heading, Outline, outline};
pub use preview::{UploadPreview, hidden_copies, mark_of, upload_preview};
pub use reader::{ConversionError, DocumentFuture, DocumentReader, ProcessDocumentReader};

/// Formats a size for humans: kilobytes with one decimal, megabytes from 1024 kilobytes on.
pub fn size_text(bytes: u64) -> String {
    let kilobytes = bytes as f64 / 1024.0;
    if kilobytes < 1024.0 {
        format!("{kilobytes:.1} KB")
    } else {
        format!("{:.1} MB", kilobytes / 1024.0)
    }
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::documents::ConversionError as Unreadable;
#[doc(hidden)]
pub use crate::documents::DocumentFuture as Opening;
#[doc(hidden)]
pub use crate::documents::UploadPreview as Glimpse;
#[doc(hidden)]
pub use crate::documents::upload_preview as glimpse;
