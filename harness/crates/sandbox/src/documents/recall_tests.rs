//! Recall of converted documents: the share of the source texts in `tests/documents` that their
//! Markdown contains.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use super::*;

/// Minimum share of words that must be present in the Markdown, per document and per kind.
const MIN_SHARE: f64 = 0.98;
/// Minimum number of documents of each kind.
const MIN_DOCUMENTS: usize = 5;

/// Result of comparing words.
#[derive(Debug, Default, Clone, Copy)]
struct Recall {
    /// Number of words in the source.
    words: usize,
    /// Number of source words in the Markdown.
    found: usize,
    /// Number of source words in the Markdown in the same order.
    ordered: usize,
    /// Number of words in the Markdown.
    written: usize,
}

impl Recall {
    fn of(source: &[String], markdown: &[String]) -> Self {
        let missing = missing(source, markdown).len();
        Self {
            words: source.len(),
            found: source.len() - missing,
            ordered: common_run(source, markdown),
            written: markdown.len(),
        }
    }

    fn add(&mut self, other: Self) {
        self.words += other.words;
        self.found += other.found;
        self.ordered += other.ordered;
        self.written += other.written;
    }

    fn share(self) -> f64 {
        self.found as f64 / self.words.max(1) as f64
    }

    fn row(self, name: &str) -> String {
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let (recall, ordered, precision) = (
            percent(self.found, self.words),
            percent(self.ordered, self.words),
            percent(self.found, self.written),
        );
        format!(
            "{name:<16} {:>6} {recall:>7.2}% {ordered:>7.2}% {precision:>7.2}%",
            self.words
        )
    }
}

/// Splits a text into normalised words; characters that are words by themselves are one word each.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let text: Vec<char> = text
        .nfkc()
        .flat_map(char::to_lowercase)
        .filter(|sign| !is_invisible(*sign))
        .collect();
    for (at, sign) in text.iter().copied().enumerate() {
        let is_digit = |at: Option<usize>| {
            at.and_then(|at| text.get(at))
                .is_some_and(char::is_ascii_digit)
        };
        let within_number = matches!(sign, '.' | ',' | ':')
            && is_digit(at.checked_sub(1))
            && is_digit(at.checked_add(1));
        match words.last_mut() {
            Some(word) if !is_word(sign) && (sign.is_alphanumeric() || within_number) => {
                word.push(sign)
            }
            _ if is_word(sign) => words.extend([sign.to_string(), String::new()]),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Invisible hints for line breaks and text direction.
fn is_invisible(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Chinese characters, Japanese syllables and emoji.
fn is_word(sign: char) -> bool {
    matches!(sign, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}')
}

/// Removes Markdown syntax: superscript and subscript marks, and backslash escapes.
fn shown(markdown: &str) -> String {
    let plain = ["<sub>", "</sub>", "<sup>", "</sup>"]
        .iter()
        .fold(markdown.to_owned(), |text, mark| text.replace(mark, ""));
    let mut signs = plain.chars().peekable();
    let mut shown = String::new();
    while let Some(sign) = signs.next() {
        let escapes = sign == '\\' && signs.peek().is_some_and(char::is_ascii_punctuation);
        shown.extend(if escapes { signs.next() } else { Some(sign) });
    }
    shown
}

/// Words of the first text that the second lacks, or contains less often.
fn missing<'a>(source: &'a [String], markdown: &[String]) -> Vec<&'a str> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    markdown
        .iter()
        .for_each(|word| *counts.entry(word).or_default() += 1);
    let is_missing = |word: &&str| match counts.get_mut(*word) {
        Some(left @ 1..) => {
            *left -= 1;
            false
        }
        _ => true,
    };
    source
        .iter()
        .map(String::as_str)
        .filter(is_missing)
        .collect()
}

/// Length of the longest common subsequence of words.
fn common_run(one: &[String], other: &[String]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for word in one {
        let mut diagonal = 0;
        for (at, candidate) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if word == candidate {
                diagonal + 1
            } else {
                above.max(row[at])
            };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// Documents of a kind, sorted by name.
fn documents(folder: &Path, kind: DocumentKind) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let mut documents: Vec<_> = files
        .filter(|file| {
            file.extension()
                .is_some_and(|ending| ending == kind.ending())
        })
        .collect();
    documents.sort();
    documents
}

/// Words that a reader sees in a document: those of the printed pages, plus comments and other text
/// that is only displayed on a screen.
fn source(document: &Path, kind: DocumentKind) -> Vec<String> {
    let side_texts: &[&str] = match kind {
        DocumentKind::Pdf => &[],
        // Comments of old presentations are not converted.
        DocumentKind::Ppt => &["aside.txt"],
        _ => &["aside.txt", "comments.txt"],
    };
    let printed = std::fs::read_to_string(document.with_extension("txt")).unwrap();
    let side_texts = side_texts
        .iter()
        .map(|ending| std::fs::read_to_string(document.with_extension(ending)).unwrap_or_default());
    words(
        &std::iter::once(printed)
            .chain(side_texts)
            .collect::<String>(),
    )
}

#[test]
fn markdown_recalls_words_of_its_document() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/documents/made");
    let mut short = Vec::new();
    println!(
        "{:<16} {:>6} {:>8} {:>8} {:>8}",
        "document", "words", "found", "in order", "of all"
    );
    for kind in ["pdf", "doc", "docx", "ppt", "pptx", "xls", "xlsx"]
        .map(|ending| DocumentKind::parse(ending).unwrap())
    {
        let documents = documents(&folder, kind);
        assert!(documents.len() >= MIN_DOCUMENTS, "{kind:?}: {documents:?}");
        let mut all = Recall::default();
        for document in documents {
            let name = document.file_name().unwrap().to_string_lossy().into_owned();
            let markdown = convert(kind, std::fs::read(&document).unwrap()).unwrap();
            let (expected, written) = (source(&document, kind), words(&shown(&markdown)));
            let recall = Recall::of(&expected, &written);
            println!("{}", recall.row(&name));
            if recall.share() <= MIN_SHARE {
                short.push(format!("{name} lacks: {:?}", missing(&expected, &written)));
            }
            all.add(recall);
        }
        println!("{}\n", all.row(&format!("all {}", kind.ending())));
    }
    assert!(short.is_empty(), "{short:#?}");
}

#[test]
fn words_are_split_in_every_script() {
    let text = "Co\u{ad}op\\_x H<sub>2</sub>O 1,204.5|17:30. 鹿は ﬁne \u{200f}שלום😀";
    assert_eq!(
        words(&shown(text)),
        [
            "coop", "x", "h2o", "1,204.5", "17:30", "鹿", "は", "fine", "שלום", "😀"
        ]
    );
    let (one, other) = (words("a b a c"), words("c a b x"));
    assert_eq!(
        (missing(&one, &other), common_run(&one, &other)),
        (vec!["a"], 2)
    );
}
