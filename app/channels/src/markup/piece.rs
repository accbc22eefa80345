//! Sections of lines in a part.

use super::row::Row;
use super::tree::Style;

/// Text of one style within a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice<'a> {
    /// Text.
    pub(super) text: &'a str,
    /// Styles.
    pub(super) style: Style,
    /// Address of a link.
    pub(super) link: Option<&'a str>,
}

/// Line, or a section of a line, in one part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece<'a> {
    /// Line.
    pub(super) row: &'a Row,
    /// `true` if it begins the line.
    pub(super) is_first: bool,
    /// Text.
    pub(super) slices: Vec<Slice<'a>>,
}
