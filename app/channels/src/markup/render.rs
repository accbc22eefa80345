//! Text of one part.

use super::cost::Form;
use super::escape::{self, push_line_start, push_markup, push_plain};
use super::fence::{QUOTED_BLANK, fence, separator};
use super::piece::{Piece, Slice};
use super::row::{Gap, Row};
use super::tree::{Style, shows_address};
use crate::platform::{Dialect, Part};

/// Separator between marks and letters, without which Slack does not see the marks.
const MARK_SEPARATOR: char = '\u{200b}';

/// Renders the lines of one part.
pub(super) fn render(pieces: &[Piece<'_>], fences: &[String], form: Form) -> Part {
    let dialect = form.dialect;
    let mut markup = String::new();
    let mut plain = String::new();
    let mut open: Option<(usize, &'static str)> = None;
    let mut is_quoted = false;
    let mut previous: Option<&Row> = None;
    for (number, piece) in without_blanks(pieces).iter().enumerate() {
        let row = piece.row;
        if let Some((fence, end)) = open
            && row.fence != Some(fence)
        {
            markup.push_str(end);
            open = None;
        }
        if is_quoted && !row.quoted {
            markup.push_str("</blockquote>");
            is_quoted = false;
        }
        if number > 0 {
            let of_markup = if open.is_some() {
                Dialect::Plain
            } else {
                dialect
            };
            let continues_quote = dialect != Dialect::Plain
                && previous.is_some_and(|previous| continues_quote(previous, row));
            markup.push_str(if continues_quote {
                QUOTED_BLANK
            } else {
                separator(row.gap, of_markup)
            });
            plain.push_str(separator(row.gap, Dialect::Plain));
        }
        if row.quoted && !is_quoted {
            markup.push_str("<blockquote>");
            is_quoted = true;
        }
        if let Some(number) = row.fence
            && open.is_none()
        {
            let language = fences.get(number).map_or("", String::as_str);
            let (begin, end) = fence(language, dialect);
            markup.push_str(&begin);
            open = Some((number, end));
        }
        push_line(&mut markup, piece, dialect);
        push_plain_line(&mut plain, piece, dialect);
        previous = Some(row);
    }
    if let Some((_, end)) = open {
        markup.push_str(end);
    }
    if is_quoted {
        markup.push_str("</blockquote>");
    }
    Part { markup, plain }
}

/// Returns whether a blank line between two lines is within one quote.
fn continues_quote(previous: &Row, row: &Row) -> bool {
    row.gap == Gap::Blank
        && previous.literal == row.literal
        && previous.prefix.markup.starts_with('>')
        && row.prefix.markup.starts_with('>')
}

/// Returns the pieces without blank lines at the beginning and at the end.
fn without_blanks<'a, 'b>(pieces: &'a [Piece<'b>]) -> &'a [Piece<'b>] {
    let is_blank = |piece: &Piece<'_>| {
        let prefix = if piece.is_first {
            &piece.row.prefix
        } else {
            &piece.row.rest
        };
        prefix.plain.trim().is_empty()
            && piece
                .slices
                .iter()
                .all(|slice| slice.link.is_none() && slice.text.trim().is_empty())
    };
    let first = pieces.iter().position(|piece| !is_blank(piece));
    let last = pieces.iter().rposition(|piece| !is_blank(piece));
    match (first, last) {
        (Some(first), Some(last)) => &pieces[first..=last],
        _ => &[],
    }
}

fn push_plain_line(out: &mut String, piece: &Piece<'_>, dialect: Dialect) {
    let prefix = if piece.is_first {
        &piece.row.prefix
    } else {
        &piece.row.rest
    };
    let mut line = prefix.plain.to_string();
    for slice in &piece.slices {
        line.push_str(slice.text);
        if let Some(address) = slice.link
            && !shows_address(slice.text, address)
        {
            line.push_str(" (");
            line.push_str(address);
            line.push(')');
        }
    }
    push_plain(out, dialect, line.trim_end());
}

fn push_line(out: &mut String, piece: &Piece<'_>, dialect: Dialect) {
    let row = piece.row;
    let prefix = if piece.is_first {
        &row.prefix
    } else {
        &row.rest
    };
    let begin = out.len();
    out.push_str(&prefix.markup);
    out.push_str(row.heading);
    if row.literal {
        for slice in &piece.slices {
            push_literal(out, slice.text, row, dialect);
        }
    } else {
        let mut line = Line {
            out,
            dialect,
            open: Vec::new(),
            pending: String::new(),
            is_start: row.heading.is_empty(),
            is_after_code: false,
        };
        for slice in &piece.slices {
            line.push(*slice);
        }
        line.close(0);
    }
    if row.fence.is_none() {
        let trimmed = out[begin..].trim_end_matches(' ').len();
        out.truncate(begin + trimmed);
    }
}

fn push_literal(out: &mut String, text: &str, row: &Row, dialect: Dialect) {
    if row.fence.is_some() || dialect == Dialect::Plain {
        push_markup(out, dialect, text, true);
        return;
    }
    // A quoted line: its indentation would be dropped, its first character read as a mark.
    let code = text.trim_start_matches(' ');
    let indentation = text.len() - code.len();
    out.extend(std::iter::repeat_n('\u{a0}', indentation));
    let written = if indentation == 0 {
        push_line_start(out, dialect, code)
    } else {
        0
    };
    push_markup(out, dialect, &code[written..], true);
}

/// Writer of the styled text of one line.
#[derive(Debug)]
struct Line<'a> {
    out: &'a mut String,
    dialect: Dialect,
    /// Open styles from the outermost to the innermost.
    open: Vec<Style>,
    /// White space that stays outside of marks.
    pending: String,
    /// `true` until the first text.
    is_start: bool,
    /// `true` behind code.
    is_after_code: bool,
}

impl Line<'_> {
    fn push(&mut self, slice: Slice<'_>) {
        let shown = escape::shown(self.dialect, slice.style);
        let is_code = shown.has(Style::CODE) && marks_code(self.dialect, slice.text);
        let (lead, core, trail) = if is_code || slice.link.is_some() {
            ("", slice.text, "")
        } else {
            parts_of(slice.text)
        };
        self.pending.push_str(lead);
        if core.is_empty() {
            return;
        }
        self.switch(shown.without(Style::CODE), core, is_code);
        if let Some(address) = slice.link {
            self.push_link(core, address);
        } else if is_code {
            self.push_code(core);
        } else {
            let written = if self.is_start && self.open.is_empty() {
                push_line_start(self.out, self.dialect, core)
            } else {
                0
            };
            push_markup(self.out, self.dialect, &core[written..], false);
        }
        self.is_start = false;
        self.is_after_code = is_code;
        self.pending.push_str(trail);
    }

    /// Closes and opens marks so that exactly the wanted styles are open.
    fn switch(&mut self, wanted: Style, text: &str, is_code: bool) {
        let wanted: Vec<Style> = Style::ORDER
            .into_iter()
            .filter(|style| wanted.has(*style))
            .collect();
        let common = self
            .open
            .iter()
            .zip(&wanted)
            .take_while(|(open, wanted)| open == wanted)
            .count();
        let closes = self.open.len() > common || self.is_after_code;
        self.close(common);
        self.out.push_str(&self.pending);
        let is_slack = self.dialect == Dialect::SlackMrkdwn;
        let opens = wanted.len() > common || is_code;
        let touches = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let separates = (closes && touches(text.chars().next()))
            || (opens && touches(self.out.chars().next_back()));
        if is_slack && self.pending.is_empty() && separates {
            self.out.push(MARK_SEPARATOR);
        }
        self.pending.clear();
        for style in &wanted[common..] {
            self.out.push_str(escape::marks(self.dialect, *style).0);
            self.open.push(*style);
        }
    }

    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            if let Some(style) = self.open.pop() {
                self.out.push_str(escape::marks(self.dialect, style).1);
            }
        }
    }

    fn push_code(&mut self, text: &str) {
        let (begin, end) = if self.dialect != Dialect::TelegramHtml && text.contains('`') {
            ("`` ", " ``")
        } else {
            escape::marks(self.dialect, Style::CODE)
        };
        self.out.push_str(begin);
        push_markup(self.out, self.dialect, text, true);
        self.out.push_str(end);
    }

    fn push_link(&mut self, label: &str, address: &str) {
        let target = escape::address(self.dialect, address);
        match self.dialect {
            Dialect::TelegramHtml => {
                self.out.push_str("<a href=\"");
                self.out.push_str(&target);
                self.out.push_str("\">");
                push_markup(self.out, self.dialect, label, false);
                self.out.push_str("</a>");
            }
            Dialect::SlackMrkdwn => {
                self.out.push('<');
                self.out.push_str(&target);
                if label != address {
                    self.out.push('|');
                    push_markup(self.out, self.dialect, label, false);
                }
                self.out.push('>');
            }
            Dialect::Discord if label == address => self.out.push_str(address),
            _ => {
                self.out.push('[');
                push_markup(self.out, self.dialect, label, false);
                self.out.push_str("](");
                self.out.push_str(&target);
                self.out.push(')');
            }
        }
    }
}

/// Returns whether code can be marked as such.
fn marks_code(dialect: Dialect, text: &str) -> bool {
    match dialect {
        Dialect::TelegramHtml => true,
        Dialect::Discord | Dialect::FeishuCard => !text.contains("``"),
        _ => !text.contains('`'),
    }
}

/// Splits a text into white space, text and white space.
fn parts_of(text: &str) -> (&str, &str, &str) {
    let rest = text.trim_start();
    let lead = &text[..text.len() - rest.len()];
    let core = rest.trim_end();
    (lead, core, &rest[core.len()..])
}
