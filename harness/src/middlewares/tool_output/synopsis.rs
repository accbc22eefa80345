//! Builds the synopsis that replaces a long result: its file, its format, its beginning and its
//! end.

use indexmap::IndexMap;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::clip::{first, last};
use crate::sandbox::VirtualPath;

/// Maximum size of a text for format analysis, in bytes.
const MAX_READ_BYTES: usize = 5 * 1024 * 1024;
/// Number of characters that decide whether a text is binary.
const SAMPLE_CHARS: usize = 1_000;
/// Maximum number of listed names.
const MAX_NAMES: usize = 20;
/// Maximum length of a listed name, in characters.
const MAX_NAME_CHARS: usize = 80;
/// Number of lines that decide the format of a text.
const SAMPLE_LINES: usize = 50;
/// Prefixes of definitions in common programming languages.
const DEFINITIONS: [&str; 12] = [
    "fn ",
    "pub ",
    "def ",
    "class ",
    "import ",
    "from ",
    "#include",
    "function ",
    "export ",
    "package ",
    "func ",
    "impl ",
];

/// Builds the synopsis of a result that is stored at `path`, with this many characters of its
/// beginning and its end.
pub(super) fn synopsis(
    tool: &str,
    text: &str,
    path: &VirtualPath,
    (head, tail): (usize, usize),
) -> String {
    let chars = text.chars().count();
    let mut lines = vec![
        format!(
            "[The result of {tool} is too long for the conversation: {chars} characters, about {} tokens.]",
            chars / 4
        ),
        format!(
            "[It is in {path}: read parts of it with read_file and a range of lines instead of calling {tool} again.]"
        ),
        format!("Kind: {}", kind(text)),
    ];
    if head > 0 {
        lines.push(format!(
            "--- the first {} characters ---\n{}",
            head.min(chars),
            first(text, head)
        ));
    }
    let tail = tail.min(chars.saturating_sub(head));
    if tail > 0 {
        lines.push(format!(
            "--- the last {tail} characters ---\n{}",
            last(text, tail, chars)
        ));
    }
    lines.join("\n")
}

/// Describes the format and the structure of a text.
pub(super) fn kind(text: &str) -> String {
    if text.len() > MAX_READ_BYTES {
        return "unknown, too long to look into".to_owned();
    }
    if is_binary(text) {
        return "unknown, looks like binary data".to_owned();
    }
    let known = json(text)
        .or_else(|| xml(text))
        .or_else(|| table(text, ',', "csv"))
        .or_else(|| table(text, '\t', "tsv"));
    let known = known.or_else(|| yaml(text)).or_else(|| code(text));
    known.unwrap_or_else(|| format!("text, {} lines", text.lines().count()))
}

fn is_binary(text: &str) -> bool {
    let is_binary = |letter: &char| letter.is_control() && !matches!(letter, '\n' | '\r' | '\t');
    let sample = first(text, SAMPLE_CHARS);
    sample.contains('\0') || sample.chars().filter(is_binary).count() * 20 > sample.chars().count()
}

fn json(text: &str) -> Option<String> {
    let keys = |text: &str| {
        serde_json::from_str::<IndexMap<String, IgnoredAny>>(text)
            .ok()
            .map(|map| listed(map.keys(), map.len()))
    };
    match text.trim_start().chars().next()? {
        '{' => keys(text).map(|keys| format!("json, an object with the keys {keys}")),
        '[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            let each = items
                .first()
                .and_then(|item| keys(item.get()))
                .map(|keys| format!(", the first with the keys {keys}"));
            Some(format!(
                "json, a list of {} items{}",
                items.len(),
                each.unwrap_or_default()
            ))
        }
        _ => None,
    }
}

fn xml(text: &str) -> Option<String> {
    let mut rest = text.trim_start();
    while rest.starts_with("<?") || rest.starts_with("<!") {
        rest = rest[rest.find('>')? + 1..].trim_start();
    }
    let name: String = rest
        .strip_prefix('<')?
        .chars()
        .take_while(|letter| letter.is_alphanumeric() || "_-:.".contains(*letter))
        .collect();
    let closes = text.trim_end().ends_with('>');
    (closes && !name.is_empty())
        .then(|| format!("xml, the root element is {}", first(&name, MAX_NAME_CHARS)))
}

fn table(text: &str, separator: char, kind: &str) -> Option<String> {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let header = lines.next()?;
    let columns = header.split(separator).count();
    let mut sample = lines.by_ref().take(5).peekable();
    sample.peek()?;
    if columns < 2 || !sample.all(|line| line.matches(separator).count() + 1 >= columns) {
        return None;
    }
    let names = header
        .split(separator)
        .map(|name| name.trim_matches(['"', ' ']));
    Some(format!(
        "{kind}, {} lines, the columns are {}",
        text.lines().count(),
        listed(names, columns)
    ))
}

fn yaml(text: &str) -> Option<String> {
    let is_key = |key: &str| {
        !key.is_empty()
            && key
                .chars()
                .all(|letter| letter.is_alphanumeric() || "_-.".contains(letter))
    };
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    let found: Vec<&str> = pairs
        .filter(|(key, rest)| is_key(key) && (rest.is_empty() || rest.starts_with(' ')))
        .map(|(key, _)| key)
        .collect();
    let marked = text.starts_with("---\n");
    let plain = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with([' ', '-', '#']))
        .count();
    (!found.is_empty() && (marked || (found.len() >= 3 && found.len() * 10 >= plain * 9)))
        .then(|| format!("yaml, the keys are {}", listed(&found, found.len())))
}

fn code(text: &str) -> Option<String> {
    let defines = |line: &&str| DEFINITIONS.iter().any(|begin| line.starts_with(begin));
    let in_sample = text.lines().take(SAMPLE_LINES).filter(defines).count();
    let found: Vec<&str> = text.lines().filter(defines).collect();
    (in_sample >= 2).then(|| {
        format!(
            "code, {} lines, with {}",
            text.lines().count(),
            listed(&found, found.len())
        )
    })
}

fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>, count: usize) -> String {
    let mut text: Vec<String> = names
        .into_iter()
        .take(MAX_NAMES)
        .map(|name| first(name.as_ref(), MAX_NAME_CHARS).to_owned())
        .collect();
    if count > MAX_NAMES {
        text.push(format!("and {} more", count - MAX_NAMES));
    }
    text.join(", ")
}
