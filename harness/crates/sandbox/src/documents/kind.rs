//! Recognition of documents by file name. Pure.

/// Kind of a document that can be converted to Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Word before 2007 (`.doc`).
    Doc,
    /// Word since 2007 (`.docx`).
    Docx,
    /// PowerPoint before 2007 (`.ppt`).
    Ppt,
    /// PowerPoint since 2007 (`.pptx`).
    Pptx,
    /// Excel before 2007 (`.xls`).
    Xls,
    /// Excel since 2007 (`.xlsx`).
    Xlsx,
}

const KINDS: [(&str, DocumentKind); 7] = [
    ("pdf", DocumentKind::Pdf),
    ("doc", DocumentKind::Doc),
    ("docx", DocumentKind::Docx),
    ("ppt", DocumentKind::Ppt),
    ("pptx", DocumentKind::Pptx),
    ("xls", DocumentKind::Xls),
    ("xlsx", DocumentKind::Xlsx),
];

impl DocumentKind {
    /// Returns the kind for a file extension without its dot.
    pub fn parse(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(ending, _)| ending.eq_ignore_ascii_case(name))
            .map(|(_, kind)| *kind)
    }

    /// File extension, without a dot.
    pub fn ending(self) -> &'static str {
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(ending, _)| ending)
    }

    /// Returns the kind of a file and the candidate names of its Markdown file, in order of
    /// preference. The second one is unique to the document, for documents that differ only in
    /// their extension.
    pub fn of_file(name: &str) -> Option<(Self, [String; 2])> {
        let (stem, ending) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
        Some((
            Self::parse(ending)?,
            [format!("{stem}.md"), format!("{name}.md")],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_extension() {
        assert_eq!(
            DocumentKind::of_file("a.b.PDF"),
            Some((
                DocumentKind::Pdf,
                ["a.b.md", "a.b.PDF.md"].map(str::to_owned)
            ))
        );
        for other in ["a.txt", "pdf", ".pdf", "a.", "a.pdf.txt", ""] {
            assert_eq!(DocumentKind::of_file(other), None, "{other}");
        }
        assert!(
            KINDS.iter().all(|(ending, kind)| kind.ending() == *ending
                && DocumentKind::parse(ending) == Some(*kind))
        );
    }
}
