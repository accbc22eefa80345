//! Output for operators: a table for people, or JSON for programs.

use std::io::{self, Write};

use serde_json::Value;

/// Table with a heading row; each column is as wide as its longest value.
#[derive(Debug)]
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str]) -> Self {
        Self {
            headings: headings.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row<const N: usize>(&mut self, values: [String; N]) {
        // Values from clients must not move the cursor or start a new line.
        self.rows.push(
            values
                .map(|value| {
                    value
                        .chars()
                        .map(|c| if c.is_control() { ' ' } else { c })
                        .collect()
                })
                .to_vec(),
        );
    }

    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = |column: usize| {
            let values = self
                .rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|value| value.chars().count());
            values
                .chain([self.headings[column].chars().count()])
                .max()
                .unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let headings = self
            .headings
            .iter()
            .map(|heading| (*heading).to_owned())
            .collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(value, width)| format!("{value:<width$}"))
                .collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Writes indented JSON.
pub(super) fn write_json(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{value:#}")
}
