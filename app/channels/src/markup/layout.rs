//! Conversion of the syntax tree into lines of a dialect.

use super::cost::Form;
use super::escape;
use super::row::{Gap, Layout, Prefix, Row};
use super::table::{self, TableLines};
use super::tree::{Block, Inline, List, Run, Style, Table, link_text};
use crate::platform::Dialect;

/// Text of a thematic break.
const RULE: &str = "———";

/// Maximum length in bytes of a table's head that is repeated for each row.
const MAX_REPEATED_HEAD: usize = 500;

/// Converts a document.
pub(super) fn layout(blocks: &[Block], form: Form) -> Layout {
    let mut writer = Writer {
        form,
        layout: Layout::default(),
        containers: Vec::new(),
        gap: Gap::Blank,
        group: 0,
        is_after_heading: false,
    };
    writer.blocks(blocks, Gap::Blank);
    writer.layout
}

/// Block that indents its content.
#[derive(Debug)]
enum Container {
    Quote,
    Item { marker: String, is_written: bool },
}

#[derive(Debug)]
struct Writer {
    form: Form,
    layout: Layout,
    containers: Vec<Container>,
    gap: Gap,
    group: usize,
    is_after_heading: bool,
}

impl Writer {
    fn blocks(&mut self, blocks: &[Block], gap: Gap) {
        for (number, block) in blocks.iter().enumerate() {
            if number > 0 {
                self.gap = gap;
            }
            self.block(block, gap);
        }
    }

    fn block(&mut self, block: &Block, gap: Gap) {
        match block {
            Block::Paragraph(inlines) => {
                self.begin(false);
                self.paragraph(inlines, "", Style::NONE);
            }
            Block::Heading(level, inlines) => {
                self.begin(true);
                let mark = heading(self.form.dialect, *level);
                let style = if mark.is_empty() {
                    Style::BOLD
                } else {
                    Style::NONE
                };
                self.paragraph(inlines, mark, style);
            }
            Block::Code(language, code) => {
                self.begin(false);
                self.code(language.as_deref().unwrap_or_default(), code);
            }
            Block::Quote(blocks) => {
                self.containers.push(Container::Quote);
                self.blocks(blocks, Gap::Blank);
                self.containers.pop();
            }
            Block::List(list) => self.list(list, gap),
            Block::Table(table) => self.table(table),
            Block::Rule => {
                self.begin(false);
                self.text_row(RULE, Style::NONE);
            }
        }
    }

    /// Begins a block. A heading stays with the block behind it.
    fn begin(&mut self, is_heading: bool) {
        if !self.is_after_heading {
            self.group += 1;
        }
        self.is_after_heading = is_heading;
    }

    fn list(&mut self, list: &List, gap: Gap) {
        let between = if list.loose { Gap::Blank } else { Gap::Line };
        let mut number = list.start;
        for (index, item) in list.items.iter().enumerate() {
            if index > 0 {
                self.gap = if gap == Gap::Line { gap } else { between };
            }
            let mut marker = match number {
                Some(number) => format!("{number}. "),
                None => bullet(self.form.dialect).to_owned(),
            };
            match item.task {
                Some(true) => marker.push_str("☑ "),
                Some(false) => marker.push_str("☐ "),
                None => {}
            }
            number = number.map(|number| number.saturating_add(1));
            self.containers.push(Container::Item {
                marker,
                is_written: false,
            });
            if !matches!(
                item.blocks.first(),
                Some(Block::Paragraph(_) | Block::Heading(..) | Block::Rule)
            ) {
                self.begin(false);
                self.push(Vec::new(), "", false);
                self.is_after_heading = true;
            }
            self.blocks(&item.blocks, between);
            self.containers.pop();
        }
    }

    fn paragraph(&mut self, inlines: &[Inline], mark: &'static str, style: Style) {
        for line in inlines.split(|inline| *inline == Inline::Break) {
            let runs = line.iter().filter_map(|inline| match inline {
                Inline::Run(run) => Some(self.run(run, style)),
                Inline::Break => None,
            });
            let runs = runs.collect();
            self.push(runs, mark, false);
        }
    }

    /// Converts a run: a link that the dialect cannot show, or that is too long for one part,
    /// becomes text.
    fn run(&self, run: &Run, style: Style) -> Run {
        let style = run.style.with(style);
        let Some(address) = &run.link else {
            return Run {
                style,
                ..run.clone()
            };
        };
        let linked = Run {
            text: run.text.clone(),
            style: style.without(Style::CODE),
            link: Some(address.clone()),
        };
        let cost = self.form.link(&run.text, address)
            + self.form.text(&run.text, super::cost::Context::Text);
        if is_shown(self.form.dialect, &run.text, address) && cost.fits(self.form.max / 2) {
            return linked;
        }
        Run {
            text: link_text(&run.text, address),
            style,
            link: None,
        }
    }

    fn code(&mut self, language: &str, code: &str) {
        let language = if self.form.length(language) > self.form.max / 8 {
            ""
        } else {
            language
        };
        let has_fences = self.open_fence(language);
        for line in code.trim_end_matches('\n').split('\n') {
            let text = line.trim_end_matches('\r');
            self.literal_row(text, has_fences);
        }
    }

    /// Begins a code block, if the dialect has them.
    fn open_fence(&mut self, language: &str) -> bool {
        let has_fences = !matches!(self.form.dialect, Dialect::DingTalk | Dialect::Plain);
        if has_fences {
            self.layout.fences.push(language.to_owned());
        }
        has_fences
    }

    fn literal_row(&mut self, text: &str, has_fences: bool) {
        if !has_fences && self.form.dialect == Dialect::DingTalk {
            self.containers.push(Container::Quote);
        }
        let runs = if text.is_empty() {
            Vec::new()
        } else {
            vec![plain_run(text, Style::NONE)]
        };
        self.push(runs, "", true);
        if !has_fences && self.form.dialect == Dialect::DingTalk {
            self.containers.pop();
        }
    }

    fn table(&mut self, table: &Table) {
        if self.form.dialect == Dialect::DingTalk {
            self.records(table);
            return;
        }
        self.begin(false);
        let TableLines { head, rows } = table::lines(table);
        let has_fences = self.open_fence("");
        let first = self.layout.rows.len();
        for line in &head {
            self.literal_row(line, has_fences);
        }
        let head = first..self.layout.rows.len();
        let cost: usize = self.layout.rows[head.clone()]
            .iter()
            .map(|row| row.cost(self.form).greatest() + 2)
            .sum();
        let number = self.layout.heads.len();
        self.layout.heads.push(if cost > self.form.max / 3 {
            first..first
        } else {
            head
        });
        for line in &rows {
            self.literal_row(line, has_fences);
            if let Some(row) = self.layout.rows.last_mut() {
                row.table = Some(number);
            }
        }
    }

    /// Writes a table as quoted lines of column and value. A long head is written once.
    fn records(&mut self, table: &Table) {
        self.containers.push(Container::Quote);
        let length: usize = table.head.iter().map(String::len).sum();
        let has_names = length <= MAX_REPEATED_HEAD;
        if table.rows.is_empty() || !has_names {
            self.begin(false);
            self.text_row(&table.head.join(" | "), Style::BOLD);
        }
        for (number, cells) in table.rows.iter().enumerate() {
            if number > 0 {
                self.gap = Gap::Blank;
            }
            self.begin(false);
            if !has_names {
                self.text_row(&cells.join(" | "), Style::NONE);
                continue;
            }
            for (name, cell) in table.head.iter().zip(cells) {
                let mut runs = Vec::new();
                if !name.is_empty() {
                    runs.push(plain_run(name, Style::BOLD));
                    runs.push(plain_run(": ", Style::NONE));
                }
                if !cell.is_empty() {
                    runs.push(plain_run(cell, Style::NONE));
                }
                self.push(runs, "", false);
            }
        }
        self.containers.pop();
    }

    fn text_row(&mut self, text: &str, style: Style) {
        self.push(vec![plain_run(text, style)], "", false);
    }

    /// Appends a line and sets the separation of the next one.
    fn push(&mut self, runs: Vec<Run>, heading: &'static str, literal: bool) {
        let is_fenced = literal && !matches!(self.form.dialect, Dialect::DingTalk | Dialect::Plain);
        let (prefix, rest) = if is_fenced {
            let none = Prefix::new("", "");
            (none.clone(), none)
        } else {
            self.prefixes()
        };
        let is_quoted = self.form.dialect == Dialect::TelegramHtml
            && self
                .containers
                .iter()
                .any(|container| matches!(container, Container::Quote));
        self.layout.rows.push(Row {
            group: self.group,
            gap: self.gap,
            prefix,
            rest,
            heading,
            fence: is_fenced.then(|| self.layout.fences.len().saturating_sub(1)),
            literal,
            quoted: is_quoted && !is_fenced,
            table: None,
            runs,
        });
        self.gap = Gap::Line;
    }

    /// Returns the prefixes of a line and of its continuation. Indentation that would take a quarter
    /// of the limit is omitted.
    fn prefixes(&mut self) -> (Prefix, Prefix) {
        let mut first = [String::new(), String::new()];
        let mut rest = [String::new(), String::new()];
        let mut innermost = String::new();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    if self.form.dialect != Dialect::TelegramHtml {
                        first[0].push_str("> ");
                        rest[0].push_str("> ");
                    }
                    first[1].push_str("> ");
                    rest[1].push_str("> ");
                }
                Container::Item { marker, is_written } => {
                    let blank = " ".repeat(marker.chars().count());
                    let shown = if *is_written { &blank } else { &*marker };
                    if !*is_written {
                        innermost.clone_from(marker);
                    }
                    *is_written = true;
                    for form in 0..2 {
                        first[form].push_str(shown);
                        rest[form].push_str(&blank);
                    }
                }
            }
        }
        let prefix = |texts: &[String; 2]| Prefix::new(&texts[0], &texts[1]);
        if prefix(&first).cost(self.form).fits(self.form.max / 4) {
            (prefix(&first), prefix(&rest))
        } else {
            (Prefix::new(&innermost, &innermost), Prefix::new("", ""))
        }
    }
}

fn plain_run(text: &str, style: Style) -> Run {
    Run {
        text: text.to_owned(),
        style,
        link: None,
    }
}

/// Returns whether a dialect can show a link with a label.
fn is_shown(dialect: Dialect, label: &str, address: &str) -> bool {
    if !escape::is_link(dialect, address) {
        return false;
    }
    match dialect {
        Dialect::Plain => false,
        Dialect::TelegramHtml | Dialect::SlackMrkdwn => true,
        Dialect::Discord => {
            address.to_ascii_lowercase().starts_with("http")
                && (label == address || !label.contains("://"))
                && has_balanced_brackets(label)
        }
        Dialect::FeishuCard | Dialect::DingTalk | Dialect::WeCom => has_balanced_brackets(label),
    }
}

fn has_balanced_brackets(label: &str) -> bool {
    let mut depth = 0_usize;
    for character in label.chars() {
        match character {
            '[' => depth += 1,
            ']' if depth == 0 => return false,
            ']' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

fn bullet(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Plain | Dialect::TelegramHtml | Dialect::SlackMrkdwn => "• ",
        _ => "- ",
    }
}

/// Returns the mark of a heading; empty if the dialect has none.
fn heading(dialect: Dialect, level: u8) -> &'static str {
    let marks = ["# ", "## ", "### ", "#### ", "##### ", "###### "];
    let mark = marks.get(usize::from(level.saturating_sub(1))).copied();
    match dialect {
        Dialect::Discord if level <= 3 => mark.unwrap_or_default(),
        Dialect::DingTalk | Dialect::WeCom => mark.unwrap_or_default(),
        _ => "",
    }
}
