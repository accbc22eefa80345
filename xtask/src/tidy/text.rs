//! Line checks: opening sentence, whitespace, and notes to self.

use crate::report::Violation;
use crate::workspace::SourceFile;

/// Marks of unfinished work, concatenated so that this file does not contain them.
const UNFINISHED_MARKS: [&str; 2] = [concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(file: &SourceFile, violations: &mut Vec<Violation>) {
    let mut tell =
        |line: usize, problem: &str| violations.push(Violation::at(&file.path, line, problem));
    if !opens_with_a_sentence(&file.text) {
        tell(
            1,
            "must open with one `//!` sentence that states the content of the file",
        );
    }
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with(char::is_whitespace) {
            tell(index + 1, "ends in whitespace");
        }
        if line.contains('\t') {
            tell(index + 1, "contains a tab");
        }
        for mark in UNFINISHED_MARKS
            .into_iter()
            .filter(|mark| has_word(line, mark))
        {
            tell(
                index + 1,
                &format!("contains {mark}: finish the work or file an issue"),
            );
        }
    }
}

fn opens_with_a_sentence(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first
        .strip_prefix("//!")
        .is_some_and(|rest| !rest.trim().is_empty())
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let file = SourceFile {
            path: "a.rs".into(),
            text: text.to_owned(),
        };
        let mut violations = Vec::new();
        check(&file, &mut violations);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn missing_opening_sentence_is_reported() {
        assert_eq!(problems("//! Says it.\n"), Vec::<String>::new());
        for text in [
            "",
            "//!\n",
            "\n//! Late.\n",
            "// Plain.\n",
            "use std::fs;\n",
        ] {
            let found = problems(text);
            assert_eq!(found.len(), 1, "{text:?}");
            assert!(found[0].starts_with("a.rs:1: must open"), "{text:?}");
        }
    }

    #[test]
    fn stray_whitespace_is_reported_with_line() {
        let found = problems("//! A.\nlet a = 1; \n\tlet b;\n");
        assert_eq!(
            found,
            ["a.rs:2: ends in whitespace", "a.rs:3: contains a tab"]
        );
    }

    #[test]
    fn marks_of_unfinished_work_count_as_words_only() {
        for mark in UNFINISHED_MARKS {
            assert_eq!(problems(&format!("//! A.\n// {mark}: later\n")).len(), 1);
            assert_eq!(
                problems(&format!("//! A.\n// {mark}Y and A_{mark}\n")),
                Vec::<String>::new()
            );
        }
    }
}
