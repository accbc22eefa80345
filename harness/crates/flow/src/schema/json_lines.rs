//! Lines of the values of a JSON text.

use serde::de::IgnoredAny;

use super::lines::{Inner, Lines};

/// Reads the lines of a document: JSON if it is JSON, else YAML.
pub(super) fn lines_of(text: &str) -> Option<Lines> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
    if text.trim_start().starts_with('{') && is_json() {
        return read(text);
    }
    Lines::read(text)
}

/// Reads the lines of a text that is valid JSON. `None` if it is not.
fn read(text: &str) -> Option<Lines> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
    };
    scanner.value()
}

struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    line: u64,
}

impl Scanner<'_> {
    fn value(&mut self) -> Option<Lines> {
        let first = self.next()?;
        let line = self.line;
        let inner = match first {
            b'{' => Inner::Map(self.fields()?),
            b'[' => Inner::List(self.items()?),
            b'"' => {
                self.string()?;
                Inner::Scalar
            }
            _ => {
                self.skip_while(|byte| !b",]} \t\r\n".contains(&byte));
                Inner::Scalar
            }
        };
        Some(Lines { line, inner })
    }

    fn fields(&mut self) -> Option<Vec<(String, u64, Lines)>> {
        let mut fields = Vec::new();
        self.at += 1;
        loop {
            match self.next()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let line = self.line;
                    let key = self.string()?;
                    if self.next()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    fields.push((key, line, self.value()?));
                }
            }
        }
        self.at += 1;
        Some(fields)
    }

    fn items(&mut self) -> Option<Vec<Lines>> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            match self.next()? {
                b']' => break,
                b',' => self.at += 1,
                _ => items.push(self.value()?),
            }
        }
        self.at += 1;
        Some(items)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        if *self.bytes.get(start)? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(self.bytes.get(start..self.at)?).ok()
    }

    /// Skips white space and returns the byte behind it.
    fn next(&mut self) -> Option<u8> {
        self.skip_while(|byte| b" \t\r\n".contains(&byte));
        self.bytes.get(self.at).copied()
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) {
        while let Some(&byte) = self.bytes.get(self.at).filter(|byte| skipped(**byte)) {
            self.line += u64::from(byte == b'\n');
            self.at += 1;
        }
    }
}
