//! Letters, digits, emoji and marks of a text: what a rendered answer must contain in the same order.

use deerflow_channels::markup::Dialect;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Characters that rendering adds.
const DECORATION: [char; 5] = ['•', '—', '☐', '☑', '…'];
/// Beginning of the addresses in answers.
const ADDRESS: &str = "https://x.example/";
/// Address that must not become a link: it is written out, in parentheses after the text of its link
/// if that is not empty.
const NO_LINK: &str = "javascript:a";
/// Length of a table's head in bytes beyond which DingTalk gets it once.
const MAX_REPEATED_HEAD: usize = 500;

/// Returns the letters of a text without addresses.
pub(super) fn letters(text: &str) -> Vec<char> {
    // A line end with a quote mark may be within an address.
    let joined: String = text
        .chars()
        .filter(|character| !character.is_whitespace() && *character != '>')
        .collect();
    without_addresses(&joined)
        .chars()
        .filter(|character| is_letter(*character))
        .collect()
}

fn is_letter(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    let is_invisible =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    !character.is_control() && !is_invisible && !DECORATION.contains(&character)
}

fn without_addresses(text: &str) -> String {
    let text = text.replace(NO_LINK, "");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(ADDRESS) {
        kept.push_str(&rest[..at]);
        rest = rest[at + ADDRESS.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    kept + rest
}

/// Returns whether all letters of an answer are within a text in their order.
pub(super) fn is_within(wanted: &[char], text: &[char]) -> bool {
    let mut found = text.iter();
    wanted
        .iter()
        .all(|wanted| found.any(|found| found == wanted))
}

/// Returns the letters of Markdown in the order of a dialect.
pub(super) fn of_markdown(markdown: &str, dialect: Dialect) -> Vec<char> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader {
        records: dialect == Dialect::DingTalk,
        ..Reader::default()
    };
    for event in Parser::new_ext(markdown, options) {
        reader.event(event);
    }
    letters(&reader.text)
}

#[derive(Debug, Default)]
struct Reader {
    /// `true` if each cell of a table follows the name of its column.
    records: bool,
    text: String,
    /// Next numbers of the open lists; `None` for a bulleted one.
    lists: Vec<Option<u64>>,
    head: Vec<String>,
    cells: Vec<String>,
    rows: usize,
    is_cell: bool,
}

impl Reader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text)
            | Event::Code(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.push("\n"),
            Event::Start(Tag::List(first)) => self.lists.push(first),
            Event::End(TagEnd::List(_)) => drop(self.lists.pop()),
            Event::Start(Tag::Item) => self.item(),
            Event::Start(Tag::Table(_)) => self.rows = 0,
            Event::Start(Tag::TableHead | Tag::TableRow) => self.cells.clear(),
            Event::Start(Tag::TableCell) => {
                self.cells.push(String::new());
                self.is_cell = true;
            }
            Event::End(TagEnd::TableCell) => self.is_cell = false,
            Event::End(TagEnd::TableHead) => self.head = std::mem::take(&mut self.cells),
            Event::End(TagEnd::TableRow) => self.row(),
            Event::End(TagEnd::Table) if self.rows == 0 => self.write_head(),
            _ => {}
        }
    }

    fn push(&mut self, text: &str) {
        match self.cells.last_mut().filter(|_| self.is_cell) {
            Some(cell) => cell.push_str(text),
            None => self.text.push_str(text),
        }
    }

    fn item(&mut self) {
        if let Some(Some(next)) = self.lists.last_mut() {
            let number = next.to_string();
            *next += 1;
            self.text.push_str(&number);
        }
    }

    fn write_head(&mut self) {
        self.text.push_str(&self.head.concat());
    }

    fn row(&mut self) {
        let length: usize = self.head.iter().map(String::len).sum();
        let repeats = self.records && length <= MAX_REPEATED_HEAD;
        if self.rows == 0 && !repeats {
            self.write_head();
        }
        self.rows += 1;
        for (name, cell) in self.head.iter().zip(&self.cells) {
            if repeats {
                self.text.push_str(name);
            }
            self.text.push_str(cell);
        }
    }
}

/// Returns what a person reads of a text in the form of a dialect.
pub(super) fn visible(markup: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Plain => markup.to_owned(),
        Dialect::TelegramHtml => decoded(&without_tags(markup)),
        Dialect::SlackMrkdwn => decoded(&without_fences(markup)),
        Dialect::FeishuCard => decoded(&without_fences(markup)),
        Dialect::Discord | Dialect::DingTalk | Dialect::WeCom => without_fences(markup),
    }
}

fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        rest = tag.split_once('>').map_or("", |(_, after)| after);
    }
    text + rest
}

/// Removes the marks of code blocks with the names of their languages.
fn without_fences(markup: &str) -> String {
    let lines = markup.lines().filter(|line| !line.starts_with("```"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Decodes the entities of HTML that the renderer writes.
fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        let entity = after.split_once(';').filter(|(name, _)| name.len() <= 5);
        let found = entity.and_then(|(name, behind)| Some((entity_of(name)?, behind)));
        if let Some((character, behind)) = found {
            decoded.push(character);
            rest = behind;
        } else {
            decoded.push('&');
            rest = after;
        }
    }
    decoded + rest
}

fn entity_of(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        _ => char::from_u32(name.strip_prefix('#')?.parse().ok()?),
    }
}
