//! Malicious archives uploaded as documents: a separate process reads each, within limits, without
//! access to other files.

use std::fs;
use std::io::{stdin, stdout};
use std::time::{Duration, Instant};

use deerflow_harness::documents::worker::work;
use deerflow_harness::documents::{
    ConversionError, DocumentKind, DocumentReader, ProcessDocumentReader,
};
use deerflow_harness::testkit::skill_archives::{Entry, archive, compressed, hostile};
use futures_util::FutureExt;

const KINDS: [DocumentKind; 3] = [DocumentKind::Docx, DocumentKind::Pptx, DocumentKind::Xlsx];
/// Maximum time per document in this test; the default limit is far above.
const LIMIT: Duration = Duration::from_secs(20);
/// Maximum length of the extracted text.
const LONGEST: usize = 16 << 20;

/// Process of one document: this program again, with the document's kind as its last argument.
#[test]
#[ignore = "child process of the other test here; alone it does nothing"]
fn stands_for_a_worker() {
    let kind = std::env::args()
        .next_back()
        .and_then(|last| DocumentKind::parse(&last));
    if let Some(kind) = kind {
        work(kind, stdin(), stdout()).unwrap();
    }
}

#[tokio::test]
async fn hostile_archives_neither_block_reader_nor_leak_files() {
    let base = tempfile::tempdir().unwrap();
    fs::write(base.path().join("canary"), "canary-51c7").unwrap();
    let arguments = [
        "--exact",
        "documents::stands_for_a_worker",
        "--include-ignored",
    ]
    .map(str::to_owned);
    let reader = ProcessDocumentReader::new(std::env::current_exe().unwrap(), arguments, LIMIT);
    let canary = base.path().join("canary").display().to_string();
    let mut documents: Vec<(String, Vec<u8>)> = hostile()
        .into_iter()
        .map(|(what, bytes)| (what.to_owned(), bytes))
        .collect();
    documents.extend(office(&canary));
    assert!(documents.len() >= 60, "{}", documents.len());
    let (mut read, mut refused, mut longest) = (0, 0, (Duration::ZERO, String::new()));
    for (what, bytes) in &documents {
        let path = base.path().join("document");
        fs::write(&path, bytes).unwrap();
        for kind in KINDS {
            let begun = Instant::now();
            let opening = async { Ok(fs::File::open(&path).unwrap()) }.boxed();
            let answer = reader.markdown("ann", kind, opening).await;
            longest = longest.max((begun.elapsed(), format!("{what} as {kind:?}")));
            let text = match &answer {
                Ok(text) => text.clone(),
                Err(ConversionError::Document(why)) => why.clone(),
                Err(other) => panic!("{what} as {kind:?}: {other}"),
            };
            assert!(
                what != "a good document"
                    || kind != KINDS[0]
                    || text.contains("They live in woods."),
                "{text}"
            );
            assert!(
                text.len() <= LONGEST && !text.contains("canary-51c7"),
                "{what} as {kind:?}: {} bytes",
                text.len()
            );
            *(if answer.is_ok() {
                &mut read
            } else {
                &mut refused
            }) += 1;
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(
            fs::read_dir(base.path()).unwrap().count(),
            1,
            "{what} left something"
        );
    }
    println!(
        "{} archives as {} kinds: {refused} refused, {read} read; the longest took {longest:?}",
        documents.len(),
        KINDS.len()
    );
    assert!(refused > read);
}

/// Returns documents as office programs create them, with an addition.
fn office(canary: &str) -> Vec<(String, Vec<u8>)> {
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let document = |head: &str, body: &str| {
        format!(
            r#"<?xml version="1.0"?>{head}<w:document xmlns:w="{word}"><w:body>{body}</w:body></w:document>"#
        )
    };
    let laughs: String = (1..10)
        .map(|at| {
            format!(
                "<!ENTITY l{at} \"{}\">",
                format!("&l{};", at - 1).repeat(10)
            )
        })
        .collect();
    let laughs = format!("<!DOCTYPE d [<!ENTITY l0 \"ha\">{laughs}]>");
    let outside = format!("<!DOCTYPE d [<!ENTITY x SYSTEM \"file://{canary}\">]>");
    let texts = [
        (
            "entities of entities",
            document(&laughs, &paragraph("&l9;")),
        ),
        (
            "an entity from outside",
            document(&outside, &paragraph("&x;")),
        ),
        (
            "parameters from outside",
            document(
                &outside.replace("ENTITY x", "ENTITY % x"),
                &paragraph("%x;"),
            ),
        ),
        ("folders in folders", document("", &"<w:p>".repeat(200_000))),
        (
            "tables in tables",
            document("", &"<w:tbl><w:tr><w:tc>".repeat(50_000)),
        ),
        (
            "a table that is wide",
            document(
                "",
                &format!("<w:tbl><w:tr>{}</w:tr></w:tbl>", "<w:tc/>".repeat(200_000)),
            ),
        ),
        (
            "a text without end",
            document("", &paragraph(&"a".repeat(64 << 20))),
        ),
        (
            "attributes without end",
            document(
                "",
                &format!(
                    "<w:p {}/>",
                    (0..50_000)
                        .map(|at| format!("a{at}=\"\" "))
                        .collect::<String>()
                ),
            ),
        ),
        (
            "a good document",
            document("", &paragraph("They live in woods.")),
        ),
        (
            "half a document",
            document("", &paragraph("x"))[..90].to_owned(),
        ),
    ];
    let types = r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;
    let relations = |target: &str, more: &str| {
        format!(
            r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="{target}"{more}/></Relationships>"#
        )
    };
    let made = |target: &str, more: &str, text: &str| {
        let relations = relations(target, more);
        compressed(&[
            ("[Content_Types].xml", types.as_bytes()),
            ("_rels/.rels", relations.as_bytes()),
            ("word/document.xml", text.as_bytes()),
        ])
    };
    let mut all: Vec<(String, Vec<u8>)> = texts
        .iter()
        .map(|(what, text)| ((*what).to_owned(), made("word/document.xml", "", text)))
        .collect();
    let plain = document("", &paragraph("x"));
    for target in [
        "../../../../../..",
        "file://",
        "/..",
        "//",
        "word/../../../../../..",
    ] {
        for more in ["", r#" TargetMode="External""#] {
            all.push((
                format!("a part at {target}{more}"),
                made(&format!("{target}{canary}"), more, &plain),
            ));
        }
    }
    let sheet = |cells: &str| {
        let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
        let effect_log = format!(
            r#"<workbook xmlns="{main}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>"#
        );
        let sheet =
            format!(r#"<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>"#);
        let of_book =
            relations("worksheets/sheet1.xml", "").replace("/officeDocument\"", "/worksheet\"");
        archive(&[
            Entry::file(
                "[Content_Types].xml",
                types
                    .replace("word/document.xml", "xl/workbook.xml")
                    .replace("wordprocessingml.document", "spreadsheetml.sheet"),
            ),
            Entry::file("_rels/.rels", relations("xl/workbook.xml", "")),
            Entry::file("xl/workbook.xml", effect_log),
            Entry::file("xl/_rels/workbook.xml.rels", of_book),
            Entry::file("xl/worksheets/sheet1.xml", sheet),
        ])
    };
    let cell = |at: &str, row: &str| format!(r#"<row r="{row}"><c r="{at}"><v>1</v></c></row>"#);
    for (what, cells) in [
        (
            "a cell at the end of the sheet",
            format!("{}{}", cell("A1", "1"), cell("XFD1048576", "1048576")),
        ),
        (
            "a cell behind the end",
            cell("ZZZZZZ99999999999", "99999999999"),
        ),
        ("a cell before the beginning", cell("A0", "0")),
        (
            "a column without end",
            format!("{}{}", cell("A1", "1"), cell("A4294967295", "4294967295")),
        ),
        (
            "a text that is not there",
            r#"<row r="1"><c r="A1" t="s"><v>4294967295</v></c></row>"#.to_owned(),
        ),
    ] {
        all.push((what.to_owned(), sheet(&cells)));
    }
    all
}
