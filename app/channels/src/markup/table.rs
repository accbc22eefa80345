//! Tables as lines of text in columns.

use super::tree::Table;

/// Maximum width of a table with aligned columns.
const MAX_ALIGNED: usize = 100;

/// Lines of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableLines {
    /// Head and its underline.
    pub(super) head: Vec<String>,
    /// Other lines.
    pub(super) rows: Vec<String>,
}

/// Writes a table as lines. Columns are aligned unless the table is too wide.
pub(super) fn lines(table: &Table) -> TableLines {
    let mut widths = vec![0; table.head.len()];
    for cells in std::iter::once(&table.head).chain(&table.rows) {
        for (most, cell) in widths.iter_mut().zip(cells) {
            *most = width(cell).max(*most);
        }
    }
    let total: usize = widths.iter().map(|width| width + 3).sum();
    let is_aligned = total <= MAX_ALIGNED;
    let line = |cells: &Vec<String>| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            if column > 0 {
                text.push_str(" | ");
            }
            text.push_str(cell);
            let is_last = column + 1 == cells.len();
            if is_aligned && !is_last {
                let missing = widths.get(column).map_or(0, |most| most - width(cell));
                text.extend(std::iter::repeat_n(' ', missing));
            }
        }
        text
    };
    let underline: Vec<String> = widths
        .iter()
        .map(|width| "-".repeat(if is_aligned { (*width).max(1) } else { 3 }))
        .collect();
    TableLines {
        head: vec![line(&table.head), underline.join("-+-")],
        rows: table.rows.iter().map(line).collect(),
    }
}

/// Returns the number of columns of a text in a monospaced font.
fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the number of columns of a character: two for East Asian wide characters and emoji, none
/// for combining ones.
fn columns(character: char) -> usize {
    match character {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}
