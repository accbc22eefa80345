//! Lines of a rendered document before they are split into parts.

use std::ops::Range;
use std::rc::Rc;

use super::cost::{Context, Cost, Form};
use super::tree::{Run, Style};

/// Separation of a line from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// Line end.
    Line,
    /// Blank line.
    Blank,
}

/// Text ahead of a line in both forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix {
    /// With markup.
    pub(super) markup: Rc<str>,
    /// Without markup.
    pub(super) plain: Rc<str>,
}

impl Prefix {
    /// Creates a prefix.
    pub(super) fn new(markup: &str, plain: &str) -> Self {
        Self {
            markup: markup.into(),
            plain: plain.into(),
        }
    }

    /// Returns the cost.
    pub(super) fn cost(&self, form: Form) -> Cost {
        Cost {
            markup: form.length(&self.markup),
            plain: form.length(&self.plain),
        }
    }
}

/// One line of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Number of the block; a block is not split if it fits a part.
    pub(super) group: usize,
    /// Separation from the line before.
    pub(super) gap: Gap,
    /// Text ahead of the line.
    pub(super) prefix: Prefix,
    /// Text ahead of what continues the line in the next part.
    pub(super) rest: Prefix,
    /// Mark of a heading.
    pub(super) heading: &'static str,
    /// Number of its code block.
    pub(super) fence: Option<usize>,
    /// `true` for a line of code, also in dialects without code blocks.
    pub(super) literal: bool,
    /// `true` within a quote of a dialect that has tags for it.
    pub(super) quoted: bool,
    /// Number of its table, unless it belongs to the head of the table.
    pub(super) table: Option<usize>,
    /// Text.
    pub(super) runs: Vec<Run>,
}

impl Row {
    /// Returns the place of a run.
    pub(super) fn context(&self, style: Style) -> Context {
        if self.literal {
            Context::Literal
        } else if style.has(Style::CODE) {
            Context::Code
        } else {
            Context::Text
        }
    }

    /// Returns the cost of a run without its text.
    pub(super) fn run_overhead(&self, run: &Run, form: Form) -> Cost {
        let link = run
            .link
            .as_ref()
            .map_or(Cost::default(), |address| form.link(&run.text, address));
        if self.literal {
            link
        } else {
            link + form.marks(run.style)
        }
    }

    /// Returns the cost of a run.
    pub(super) fn run_cost(&self, run: &Run, form: Form) -> Cost {
        self.run_overhead(run, form) + form.text(&run.text, self.context(run.style))
    }

    /// Returns the cost of the line ahead of its text.
    pub(super) fn overhead(&self, is_first: bool, form: Form) -> Cost {
        let prefix = if is_first { &self.prefix } else { &self.rest };
        let heading = Cost {
            markup: form.length(self.heading),
            plain: 0,
        };
        let start = if self.fence.is_some() {
            Cost::default()
        } else {
            form.line_start()
        };
        prefix.cost(form) + heading + start
    }

    /// Returns the cost of the whole line.
    pub(super) fn cost(&self, form: Form) -> Cost {
        self.runs
            .iter()
            .fold(self.overhead(true, form), |sum, run| {
                sum + self.run_cost(run, form)
            })
    }
}

/// Lines of a document.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Layout {
    /// Lines.
    pub(super) rows: Vec<Row>,
    /// Language of each code block.
    pub(super) fences: Vec<String>,
    /// Lines that are the head of each table; empty if the head is not repeated.
    pub(super) heads: Vec<Range<usize>>,
}
