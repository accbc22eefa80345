//! Tests of the search for deferred tools.

use super::*;
use crate::ids::SystemIds;

fn catalog() -> DeferredTools {
    let tool = |name: &str, description: &str| ToolSchema {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object"}),
    };
    DeferredTools::new([
        tool("git_log", "Shows commits."),
        tool("git_blame", "Says who wrote a line; see the log."),
        tool("time_now", "Tells the time (UTC)."),
        tool("disk_log", "Reads the journal."),
    ])
}

fn found(query: &str) -> Vec<String> {
    catalog()
        .search(query)
        .into_iter()
        .map(|schema| schema.name.clone())
        .collect()
}

#[test]
fn every_query_form_finds_expected_tools() {
    assert_eq!(
        found("select:TIME_now, git_log,none"),
        ["git_log", "time_now"]
    );
    assert_eq!(found("+git line"), ["git_blame", "git_log"]);
    assert_eq!(found("+git"), ["git_blame", "git_log"]);
    assert_eq!(
        found("log"),
        ["disk_log", "git_log", "git_blame"],
        "names before descriptions"
    );
    assert_eq!(found("^time|journal"), ["time_now", "disk_log"]);
    assert_eq!(
        found("(UTC"),
        ["time_now"],
        "an invalid pattern is literal text"
    );
    for nothing in ["", "  ", "+", "select:", "nothing", "x{99999}{99999}"] {
        assert_eq!(found(nothing), Vec::<String>::new(), "{nothing}");
    }
}

#[test]
fn large_catalog_is_searched_in_bounded_time() {
    let described = |n: usize| format!("{} end{n}", "ü".repeat(4_000));
    let tool = |n: usize| ToolSchema {
        name: format!("t{n}"),
        description: described(n),
        parameters: json!({"type": "object"}),
    };
    let few = DeferredTools::new((0..10).map(tool));
    assert_eq!(
        few.search("end7").len(),
        1,
        "descriptions of a small catalog are searched completely"
    );
    let many = DeferredTools::new((0..5_000).map(tool));
    let looked: usize = many
        .schemas
        .values()
        .map(|schema| many.searched_text(schema).len())
        .sum();
    assert!(looked <= MAX_SEARCHED_BYTES, "{looked}");
    assert_eq!(
        many.search("t4999").len(),
        1,
        "names are searched completely"
    );
}

#[test]
fn loaded_tools_stay_visible_until_catalog_changes() {
    let catalog = catalog();
    let mut state = ThreadState::default();
    let ids = SystemIds::default();
    assert!(catalog.hides("git_log", &state) && !catalog.hides("bash", &state));
    for query in ["select:git_log", "select:time_now"] {
        state
            .apply(catalog.promotion(catalog.search(query)), &ids)
            .unwrap();
    }
    assert!(
        !catalog.hides("git_log", &state)
            && !catalog.hides("time_now", &state)
            && catalog.hides("disk_log", &state)
    );
    let changed = DeferredTools::new(
        catalog
            .search("select:git_log,disk_log")
            .into_iter()
            .cloned(),
    );
    assert!(changed.hides("git_log", &state));
    state
        .apply(changed.promotion(changed.search("disk")), &ids)
        .unwrap();
    assert!(catalog.hides("time_now", &state) && !changed.hides("disk_log", &state));
}
