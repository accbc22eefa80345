//! Workbooks as Markdown, with what the library that reads them does not know to show: spans of time and fractions.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Cursor;

use office_oxide::{xls, xlsx};

use super::worker::WorkError;

/// The first day that is a date here, counted from 1900: Excel's calendar before it has a day that never was, and times of day and
/// hours that were worked are smaller.
const FIRST_DATE: f64 = 61.0;
/// The most digits that a number is filled up to.
const MOST_DIGITS: usize = 32;

/// What a number format makes of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Dates and times of day, both in days.
    Time,
    /// Fractions, of which the library writes no more than the whole.
    Fraction,
    /// Whole numbers of at least so many digits.
    Padded(usize),
    /// Anything else.
    Plain,
}

impl Format {
    /// Told by what the library shows of numbers, since not all formats can be asked for their code.
    fn of(code: Option<&str>, shown: impl Fn(f64) -> String) -> Self {
        match shown(FIRST_DATE).as_str() {
            "1900-03-01" | "1904-03-02" => Self::Time,
            _ if shown(0.5).trim_end().ends_with('/') => Self::Fraction,
            _ => match code
                .filter(|code| code.bytes().all(|digit| digit == b'0'))
                .map_or(0, str::len)
            {
                digits @ 2..=MOST_DIGITS => Self::Padded(digits),
                _ => Self::Plain,
            },
        }
    }

    /// What is to be read instead of what the library shows.
    fn shown(self, number: f64) -> Option<String> {
        match self {
            Self::Time => span(number),
            Self::Fraction => Some(number.to_string()),
            Self::Padded(digits) => {
                (number >= 0.0).then(|| format!("{:0>digits$}", number.round()))
            }
            Self::Plain => None,
        }
    }
}

/// Days as hours, minutes and seconds, unless they are a date.
fn span(days: f64) -> Option<String> {
    let is_span =
        (0.0..1.0).contains(&days) || ((1.0..FIRST_DATE).contains(&days) && days.fract() > 0.0);
    let seconds = (days * 86_400.0).round() as u64;
    is_span.then(|| {
        format!(
            "{:02}:{:02}:{:02}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        )
    })
}

/// The Markdown of a workbook since 2007.
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
        let (place, style) = (&cell.reference, cell.style_index);
        let code = style.and_then(|style| book.styles.as_ref()?.number_format_for(style));
        let shown = |number| {
            book.format_cell_value(&xlsx::Cell::new(
                place.clone(),
                xlsx::CellValue::Number(number),
                style,
            ))
        };
        if let Some(text) = formats
            .entry(style)
            .or_insert_with(|| Format::of(code, shown))
            .shown(number)
        {
            cell.value = xlsx::CellValue::String(text);
        }
    }
    book.worksheets = sheets;
    Ok(book.to_markdown())
}

/// The Markdown of a workbook before 2007.
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
            let shown = |number| {
                known
                    .display(&xls::CellValue::Number(number), *format)
                    .into_owned()
            };
            if let Some(text) = formats
                .entry(*format)
                .or_insert_with(|| Format::of(None, shown))
                .shown(number)
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
    fn times_of_day_and_spans_are_no_dates() {
        for (days, shown) in [
            (0.0, Some("00:00:00")),
            (0.281_365_740_740_741, Some("06:45:10")),
            (0.999_999_9, Some("24:00:00")),
            (1.260_416_666_666_67, Some("30:15:00")),
            (1.0, None),
            (45_235.354, None),
            (-0.5, None),
            (f64::NAN, None),
        ] {
            assert_eq!(span(days).as_deref(), shown, "{days}");
        }
    }

    #[test]
    fn a_format_is_told_by_what_it_makes_of_numbers() {
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
                .shown(0.75)
                .as_deref(),
            Some("0.75")
        );
        let plain = |number: f64| number.to_string();
        assert_eq!(
            Format::of(Some("00000"), plain).shown(1067.0).as_deref(),
            Some("01067")
        );
        for code in [
            None,
            Some("0"),
            Some("#00"),
            Some(""),
            Some(&*"0".repeat(99)),
        ] {
            assert_eq!(Format::of(code, plain).shown(0.75), None, "{code:?}");
        }
    }
}
