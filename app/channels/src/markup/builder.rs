//! Construction of the syntax tree from Markdown.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::tree::{Block, Inline, Item, List, Run, Style, Table, link_text};

/// Maximum depth of quotes and lists. What is deeper is rendered as if it were at this depth.
const MAX_DEPTH: usize = 32;

/// Parses a document. Raw HTML is text.
pub(super) fn parse(markdown: &str) -> Vec<Block> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder::default();
    for event in Parser::new_ext(markdown, options) {
        builder.event(event);
    }
    builder.finish()
}

/// Block whose content is being read.
#[derive(Debug)]
enum Open {
    Quote(Vec<Block>),
    List(List),
    Item(Item),
}

/// Link whose label is being read.
#[derive(Debug)]
struct OpenLink {
    address: String,
    label: String,
    depth: usize,
}

/// Number of open emphases of each kind.
#[derive(Debug, Default)]
struct Emphasis {
    bold: usize,
    italic: usize,
    strike: usize,
}

#[derive(Debug, Default)]
struct Builder {
    done: Vec<Block>,
    open: Vec<Open>,
    /// Number of open blocks beyond the maximum depth.
    flattened: usize,
    inlines: Vec<Inline>,
    emphasis: Emphasis,
    link: Option<OpenLink>,
    code: Option<(Option<String>, String)>,
    table: Option<Table>,
    cells: Vec<String>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.lines(&text, Style::NONE),
            },
            Event::Code(text) => self.lines(&text, Style::CODE),
            Event::Html(text) | Event::InlineHtml(text) => self.lines(&text, Style::NONE),
            Event::SoftBreak | Event::HardBreak => self.line_end(),
            Event::Rule => {
                self.flush();
                self.push(Block::Rule);
            }
            Event::TaskListMarker(done) => {
                if let Some(Open::Item(item)) = self.open.last_mut() {
                    item.task = Some(done);
                }
            }
            // Extensions that are not enabled.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.lines(&text, Style::NONE);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.emphasis.italic += 1,
            Tag::Strong => self.emphasis.bold += 1,
            Tag::Strikethrough => self.emphasis.strike += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => match &mut self.link {
                Some(link) => link.depth += 1,
                None => {
                    self.link = Some(OpenLink {
                        address: dest_url.into_string(),
                        label: String::new(),
                        depth: 0,
                    });
                }
            },
            Tag::TableHead | Tag::TableRow => self.cells.clear(),
            Tag::TableCell => self.inlines.clear(),
            other => {
                self.flush();
                self.start_block(other);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'_>) {
        let opened = match tag {
            Tag::Paragraph => {
                if self.flattened == 0
                    && let [.., Open::List(list), Open::Item(_)] = self.open.as_mut_slice()
                {
                    list.loose = true;
                }
                return;
            }
            Tag::CodeBlock(kind) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => language(info),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language, String::new()));
                return;
            }
            Tag::Table(_) => {
                self.table = Some(Table::default());
                return;
            }
            Tag::BlockQuote(_) => Open::Quote(Vec::new()),
            Tag::List(start) => Open::List(List {
                start,
                loose: false,
                items: Vec::new(),
            }),
            Tag::Item => Open::Item(Item::default()),
            _ => return,
        };
        let is_item = matches!(opened, Open::Item(_));
        if self.flattened > 0 || (self.open.len() >= MAX_DEPTH && !is_item) {
            self.flattened += 1;
        } else {
            self.open.push(opened);
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis => self.emphasis.italic = self.emphasis.italic.saturating_sub(1),
            TagEnd::Strong => self.emphasis.bold = self.emphasis.bold.saturating_sub(1),
            TagEnd::Strikethrough => self.emphasis.strike = self.emphasis.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Heading(level) => {
                let inlines = std::mem::take(&mut self.inlines);
                self.push(Block::Heading(number(level), inlines));
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.push(Block::Code(language, code));
                }
            }
            TagEnd::TableCell => {
                let inlines = std::mem::take(&mut self.inlines);
                self.cells.push(flat(&inlines));
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.head = std::mem::take(&mut self.cells);
                }
            }
            TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(std::mem::take(&mut self.cells));
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.push(Block::Table(table));
                }
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.flush();
                self.close();
            }
            _ => self.flush(),
        }
    }

    /// Ends the innermost quote, list or item.
    fn close(&mut self) {
        if self.flattened > 0 {
            self.flattened -= 1;
            return;
        }
        match self.open.pop() {
            Some(Open::Quote(blocks)) => self.push(Block::Quote(blocks)),
            Some(Open::List(list)) => self.push(Block::List(list)),
            Some(Open::Item(item)) => {
                if let Some(Open::List(list)) = self.open.last_mut() {
                    list.items.push(item);
                }
            }
            None => {}
        }
    }

    fn end_link(&mut self) {
        match self.link.take() {
            Some(link) if link.depth > 0 => {
                self.link = Some(OpenLink {
                    depth: link.depth - 1,
                    ..link
                });
            }
            Some(link) => {
                let text = match link.label.trim() {
                    "" => link.address.clone(),
                    label => label.to_owned(),
                };
                if !text.is_empty() {
                    let style = self.style();
                    self.inlines.push(Inline::Run(Run {
                        text,
                        style,
                        link: Some(link.address),
                    }));
                }
            }
            None => {}
        }
    }

    fn style(&self) -> Style {
        let set = |count: usize, style| if count > 0 { style } else { Style::NONE };
        set(self.emphasis.bold, Style::BOLD)
            .with(set(self.emphasis.italic, Style::ITALIC))
            .with(set(self.emphasis.strike, Style::STRIKE))
    }

    fn lines(&mut self, text: &str, style: Style) {
        for (number, line) in text.split('\n').enumerate() {
            if number > 0 {
                self.line_end();
            }
            self.text(line.trim_end_matches('\r'), style);
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        if let Some(link) = &mut self.link {
            link.label.push_str(text);
            return;
        }
        let style = style.with(self.style());
        match self.inlines.last_mut() {
            Some(Inline::Run(run)) if run.style == style && run.link.is_none() => {
                run.text.push_str(text);
            }
            _ => self.inlines.push(Inline::Run(Run {
                text: text.to_owned(),
                style,
                link: None,
            })),
        }
    }

    fn line_end(&mut self) {
        match &mut self.link {
            Some(link) => link.label.push(' '),
            None => self.inlines.push(Inline::Break),
        }
    }

    /// Ends a paragraph, if one is open.
    fn flush(&mut self) {
        let mut inlines = std::mem::take(&mut self.inlines);
        while inlines.last() == Some(&Inline::Break) {
            inlines.pop();
        }
        if !inlines.is_empty() {
            self.push(Block::Paragraph(inlines));
        }
    }

    fn push(&mut self, block: Block) {
        match self.open.last_mut() {
            Some(Open::Quote(blocks) | Open::Item(Item { blocks, .. })) => blocks.push(block),
            // Content of a list that is too deep for items of its own.
            Some(Open::List(list)) => match list.items.last_mut() {
                Some(item) => item.blocks.push(block),
                None => list.items.push(Item {
                    task: None,
                    blocks: vec![block],
                }),
            },
            None => self.done.push(block),
        }
    }

    fn finish(mut self) -> Vec<Block> {
        self.flush();
        while !self.open.is_empty() {
            self.flattened = 0;
            self.close();
        }
        self.done
    }
}

/// Returns the language that an info string begins with.
fn language(info: &str) -> Option<String> {
    let name: String = info
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_' | '.'))
        .take(32)
        .collect();
    Some(name).filter(|name| !name.is_empty())
}

fn number(level: HeadingLevel) -> u8 {
    level as u8
}

/// Returns the text of inlines on one line.
fn flat(inlines: &[Inline]) -> String {
    let mut text = String::new();
    for inline in inlines {
        match inline {
            Inline::Run(run) => match &run.link {
                Some(address) => text.push_str(&link_text(&run.text, address)),
                None => text.push_str(&run.text),
            },
            Inline::Break => text.push(' '),
        }
    }
    text
}
