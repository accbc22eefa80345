//! Documents of each kind, complete and broken. These tests do not drop the rights of the process:
//! `confine` has its own tests.

use super::*;

#[test]
fn invalid_document_is_an_error() {
    for kind in ["pdf", "doc", "docx", "ppt", "pptx", "xls", "xlsx"]
        .map(|ending| DocumentKind::parse(ending).unwrap())
    {
        for content in [
            "",
            "PK\u{3}\u{4}",
            "%PDF-1.7\n%%EOF",
            "plain text",
            "\u{0}\u{1}\u{2}",
        ] {
            let text = convert(kind, content.as_bytes().to_vec()).unwrap_or_default();
            assert!(text.trim().is_empty(), "{kind:?} {content:?}: {text}");
        }
    }
}

#[test]
fn word_document_is_converted() {
    let text = r#"<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>
        <w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Deer</w:t></w:r></w:p>
        <w:p><w:r><w:t>They live in woods.</w:t></w:r></w:p></w:body></w:document>"#;
    let kinds = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
        <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
        <Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;
    let relations = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
        <Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#;
    let package = archive(&[
        ("[Content_Types].xml", kinds),
        ("_rels/.rels", relations),
        ("word/document.xml", text),
    ]);
    let markdown = convert(DocumentKind::Docx, package).unwrap();
    assert!(
        markdown.starts_with("Deer\n") && markdown.contains("They live in woods."),
        "{markdown}"
    );
}

/// A zip archive whose files are stored uncompressed.
fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in files {
        let (at, length) = (bytes.len() as u32, content.len() as u32);
        let mut facts = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        facts.extend(crc32(content.as_bytes()).to_le_bytes());
        facts.extend(
            [length, length]
                .iter()
                .flat_map(|length| length.to_le_bytes()),
        );
        facts.extend((name.len() as u16).to_le_bytes());
        facts.extend([0, 0]);
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&facts);
        bytes.extend(name.as_bytes());
        bytes.extend(content.as_bytes());
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&facts);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (count, at, length) = (
        files.len() as u16,
        bytes.len() as u32,
        directory.len() as u32,
    );
    bytes.extend(directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([count, count].iter().flat_map(|count| count.to_le_bytes()));
    bytes.extend(length.to_le_bytes());
    bytes.extend(at.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            (crc >> 1) ^ 0xedb8_8320
        } else {
            crc >> 1
        }
    };
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc))
    })
}
