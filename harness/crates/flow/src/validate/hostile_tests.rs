//! Validation of the hostile corpus.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::assets::PromptAssetManifest;
use crate::binding::AdapterList;
use crate::finding::{Finding, FindingCode, MAX_FINDINGS};
use crate::schema::Document;
use crate::testkit::hostile_documents;
use crate::validate::{Options, validate_text};

/// Longest time of one validation in optimized code is 100 ms; this is for unoptimized code on a
/// busy machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Returns what is wrong with a finding, if anything.
fn problem(finding: &Finding, document: Option<&Document>, lines: u64) -> Option<&'static str> {
    let Some(path) = finding.path.as_deref() else {
        return Some("it has no path");
    };
    if !path.is_empty() && !path.starts_with('/') {
        return Some("its path is no pointer");
    }
    if path.len() > 1_000 {
        return Some("its path is long");
    }
    if finding.message.is_empty() || finding.message.len() > 4_000 {
        return Some("its message is empty or long");
    }
    if finding.message.contains(['\n', '\0']) {
        return Some("its message has control characters");
    }
    if finding.line.is_some_and(|line| line == 0 || line > lines) {
        return Some("its line is not in the text");
    }
    // A text that cannot be parsed has no lines of values.
    let has_lines = document.is_some() || !path.is_empty();
    if has_lines && finding.line.is_none() {
        return Some("it has no line");
    }
    let document = document?;
    let in_list = |list: &str| {
        let index: usize = path.strip_prefix(list)?.split('/').next()?.parse().ok()?;
        Some(index)
    };
    if let Some(index) = in_list("/graph/nodes/")
        && let Some(node) = document.flow.graph.nodes.get(index)
        && finding.node_id.as_deref() != Some(&node.node_id)
    {
        return Some("it does not name its node");
    }
    if in_list("/graph/edges/").is_some() && finding.edge_index.is_none() {
        return Some("it does not name its edge");
    }
    None
}

#[test]
fn hostile_documents_have_complete_findings_in_time() {
    let corpus = hostile_documents();
    assert!(corpus.len() >= 1_000, "{}", corpus.len());
    let names: BTreeSet<_> = corpus.iter().map(|document| &document.name).collect();
    assert_eq!(names.len(), corpus.len());
    let (manifest, adapters) = (PromptAssetManifest::default(), AdapterList::new(["fake"]));
    let options = Options {
        unknown_fields: true,
        ..Options::default()
    };
    let (mut problems, mut times) = (Vec::new(), Vec::new());
    for document in &corpus {
        let Ok(text) = std::str::from_utf8(&document.bytes) else {
            continue;
        };
        let begin = Instant::now();
        let validation = validate_text(text, &manifest, &adapters, &options);
        let took = begin.elapsed();
        if took > LONGEST {
            problems.push(format!("{}: took {took:?}", document.name));
        }
        if document.is_invalid && validation.valid {
            problems.push(format!("{}: is valid", document.name));
        }
        assert_eq!(validation.valid, validation.errors.is_empty());
        assert!(
            serde_json::to_vec(&validation).unwrap().len() < 4 << 20,
            "{}",
            document.name
        );
        times.push((took, &document.name));
        assert!(validation.errors.len() <= MAX_FINDINGS);
        let read = Document::read(text).ok();
        let lines = text.lines().count() as u64 + 1;
        for finding in validation.errors.iter().chain(&validation.warnings) {
            let is_notice = finding.message.starts_with("more problems follow");
            if let Some(problem) = problem(finding, read.as_ref(), lines).filter(|_| !is_notice) {
                problems.push(format!("{}: {problem}: {finding:?}", document.name));
            }
        }
    }
    times.sort();
    println!("{:?}", times.iter().rev().take(12).collect::<Vec<_>>());
    let short = |problem: &String| problem.chars().take(300).collect::<String>();
    let few: Vec<String> = problems.iter().take(20).map(short).collect();
    assert!(
        problems.is_empty(),
        "{} of {}: {few:#?}",
        problems.len(),
        corpus.len()
    );
}

#[test]
fn duplicate_keys_of_json_are_refused_with_their_line() {
    let text = "{\"meta\": {\"name\": \"a\",\n\"name\": \"b\"}}";
    let validation = Document::read(text).unwrap_err();
    let error = &validation.errors[0];
    assert_eq!(
        (error.code, error.line),
        (FindingCode::SchemaInvalid, Some(2))
    );
    assert!(
        error.message.contains("\"name\" occurs twice"),
        "{}",
        error.message
    );
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for number in [".inf", "-.inf", ".nan", "1e999"] {
        let text = format!("meta:\n  version: {number}\n");
        let validation = Document::read(&text).unwrap_err();
        let error = &validation.errors[0];
        assert!(
            error.message.contains("finite"),
            "{number}: {}",
            error.message
        );
        assert_eq!(error.line, Some(2), "{number}");
    }
}
