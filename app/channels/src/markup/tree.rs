//! Syntax tree of a document.

/// Styles of a run of text, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style(u8);

impl Style {
    /// No style.
    pub(super) const NONE: Self = Self(0);
    /// Bold.
    pub(super) const BOLD: Self = Self(1);
    /// Italic.
    pub(super) const ITALIC: Self = Self(2);
    /// Struck through.
    pub(super) const STRIKE: Self = Self(4);
    /// Code.
    pub(super) const CODE: Self = Self(8);
    /// Every style, from the outermost to the innermost.
    pub(super) const ORDER: [Self; 4] = [Self::BOLD, Self::ITALIC, Self::STRIKE, Self::CODE];

    /// Returns both sets together.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set without the other.
    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the set contains another.
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Text without line ends.
    pub(super) text: String,
    /// Styles.
    pub(super) style: Style,
    /// Address of a link or of an image.
    pub(super) link: Option<String>,
}

/// Content of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inline {
    /// Text.
    Run(Run),
    /// Line end.
    Break,
}

/// Item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Item {
    /// State of a task.
    pub(super) task: Option<bool>,
    /// Content.
    pub(super) blocks: Vec<Block>,
}

/// List.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// Number of the first item of an ordered list.
    pub(super) start: Option<u64>,
    /// `true` if blank lines separate its items.
    pub(super) loose: bool,
    /// Items.
    pub(super) items: Vec<Item>,
}

/// Table. Its cells are texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Table {
    /// Cells of the head.
    pub(super) head: Vec<String>,
    /// Cells of the other rows.
    pub(super) rows: Vec<Vec<String>>,
}

/// Block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Paragraph.
    Paragraph(Vec<Inline>),
    /// Heading with its level from 1.
    Heading(u8, Vec<Inline>),
    /// Code block with the name of its language.
    Code(Option<String>, String),
    /// Quote.
    Quote(Vec<Block>),
    /// List.
    List(List),
    /// Table.
    Table(Table),
    /// Thematic break.
    Rule,
}

/// Returns the text of a link without markup: the label, and the address unless the label is it.
pub(super) fn link_text(label: &str, address: &str) -> String {
    if shows_address(label, address) {
        label.to_owned()
    } else {
        format!("{label} ({address})")
    }
}

/// Returns whether a label is the address of its link.
pub(super) fn shows_address(label: &str, address: &str) -> bool {
    address.is_empty()
        || label == address
        || address
            .strip_prefix("mailto:")
            .is_some_and(|mail| mail == label)
}
