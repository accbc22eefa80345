//! Workbooks as Markdown, with corrected output of formats that the library does not support:
//! durations and fractions.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Cursor;

use office_oxide::{xls, xlsx};

use super::work_error::WorkError;

/// First day number that is treated as a date, counted from 1900: Excel's calendar contains an
/// invalid day before it, and times of day and durations are smaller numbers.
const FIRST_DATE: f64 = 61.0;
/// Maximum number of digits for zero padding.
const MAX_DIGITS: usize = 32;

/// Effect of a number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Dates and times of day, both in days.
    Time,
    /// Fractions, of which the library only prints the integer part.
    Fraction,
    /// Integers padded to a minimum number of digits.
    Padded(usize),
    /// Any other format.
    Plain,
}

impl Format {
    /// Detects the format from the library's output for sample numbers, because the format code is
    /// not always available.
    fn of(code: Option<&str>, library_text: impl Fn(f64) -> String) -> Self {
        match library_text(FIRST_DATE).as_str() {
            "1900-03-01" | "1904-03-02" => Self::Time,
            _ if library_text(0.5).trim_end().ends_with('/') => Self::Fraction,
            _ => match code
                .filter(|code| code.bytes().all(|digit| digit == b'0'))
                .map_or(0, str::len)
            {
                digits @ 2..=MAX_DIGITS => Self::Padded(digits),
                _ => Self::Plain,
            },
        }
    }

    /// Returns the text that replaces the library's output, if needed.
    fn replacement(self, number: f64) -> Option<String> {
        match self {
            Self::Time => duration_text(number),
            Self::Fraction => Some(number.to_string()),
            Self::Padded(digits) => {
                (number >= 0.0).then(|| format!("{:0>digits$}", number.round()))
            }
            Self::Plain => None,
        }
    }
}

/// Formats a number of days as hours, minutes and seconds, unless it is a date.
fn duration_text(days: f64) -> Option<String> {
    let is_duration =
        (0.0..1.0).contains(&days) || ((1.0..FIRST_DATE).contains(&days) && days.fract() > 0.0);
    let seconds = (days * 86_400.0).round() as u64;
    is_duration.then(|| {
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        )
    })
}

/// Converts a workbook in the format since 2007.
pub(super) fn xlsx(document: Vec<u8>) -> Result<String, WorkError> {
    let mut book = xlsx::XlsxDocument::from_reader(Cursor::new(document)).map_err(broken)?;
    let mut sheets = std::mem::take(&mut book.worksheets);
    let mut formats = HashMap::new();
    for cell in sheets
        .iter_mut()
        .flat_map(|sheet| &mut sheet.rows)
        .flat_map(|row| &mut row.cells)
    {
        let xlsx::CellValue::Number(number) = cell.value else {
            continue;
        };
        let (reference, style) = (&cell.reference, cell.style_index);
        let code = style.and_then(|style| book.styles.as_ref()?.number_format_for(style));
        let library_text = |number| {
            book.format_cell_value(&xlsx::Cell::new(
                reference.clone(),
                xlsx::CellValue::Number(number),
                style,
            ))
        };
        if let Some(text) = formats
            .entry(style)
            .or_insert_with(|| Format::of(code, library_text))
            .replacement(number)
        {
            cell.value = xlsx::CellValue::String(text);
        }
    }
    book.worksheets = sheets;
    Ok(book.to_markdown())
}

/// Converts a workbook in the format before 2007.
pub(super) fn xls(document: Vec<u8>) -> Result<String, WorkError> {
    let mut book = xls::XlsDocument::from_reader(Cursor::new(document)).map_err(broken)?;
    let mut formats = HashMap::new();
    for sheet in &mut book.sheets {
        let known = sheet.formats.clone();
        for (cell, format) in sheet
            .rows
            .iter_mut()
            .zip(&sheet.xf)
            .flat_map(|(cells, formats)| cells.iter_mut().zip(formats))
        {
            let xls::CellValue::Number(number) = *cell else {
                continue;
            };
            let library_text = |number| {
                known
                    .display(&xls::CellValue::Number(number), *format)
                    .into_owned()
            };
            if let Some(text) = formats
                .entry(*format)
                .or_insert_with(|| Format::of(None, library_text))
                .replacement(number)
            {
                *cell = xls::CellValue::String(text);
            }
        }
    }
    Ok(book.to_markdown())
}

fn broken(error: impl Display) -> WorkError {
    WorkError::Broken(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_not_dates() {
        for (days, expected) in [
            (0.0, Some("00:00:00")),
            (0.281_365_740_740_741, Some("06:45:10")),
            (0.999_999_9, Some("24:00:00")),
            (1.260_416_666_666_67, Some("30:15:00")),
            (1.0, None),
            (45_235.354, None),
            (-0.5, None),
            (f64::NAN, None),
        ] {
            assert_eq!(duration_text(days).as_deref(), expected, "{days}");
        }
    }

    #[test]
    fn format_is_detected_from_sample_output() {
        let dates = |number: f64| {
            if number > 1.0 {
                "1900-03-01".to_owned()
            } else {
                number.to_string()
            }
        };
        assert_eq!(Format::of(None, dates), Format::Time);
        assert_eq!(
            Format::of(None, |_| "1 / ".to_owned())
                .replacement(0.75)
                .as_deref(),
            Some("0.75")
        );
        let plain = |number: f64| number.to_string();
        assert_eq!(
            Format::of(Some("00000"), plain)
                .replacement(1067.0)
                .as_deref(),
            Some("01067")
        );
        for code in [
            None,
            Some("0"),
            Some("#00"),
            Some(""),
            Some(&*"0".repeat(99)),
        ] {
            assert_eq!(Format::of(code, plain).replacement(0.75), None, "{code:?}");
        }
    }
}
