//! Result texts respect their limits and explain how to get the rest.

use proptest::prelude::*;

use super::*;

fn text(text: &str, first_line: usize) -> TextRead {
    TextRead::Text {
        text: text.to_owned(),
        first_line,
    }
}

#[test]
fn short_results_are_unchanged() {
    assert_eq!(file_text(&text("a\nb\n", 1), 50), "a\nb\n");
    assert_eq!(file_text(&text("a\nb\n", 1), 0), "a\nb\n");
    assert_eq!(file_text(&TextRead::Empty, 50), "(empty)");
    assert_eq!(
        file_text(&TextRead::StartPastEnd, 50),
        "(start_line exceeds file length)"
    );
    assert_eq!(
        file_text(&TextRead::BadRange(BadRange::EndBeforeStart), 50),
        "(end_line is before start_line)"
    );
    assert_eq!(listing(&Listing::default(), 50), "(empty)");
    let two = Listing {
        lines: vec!["/a".to_owned(), "/b/".to_owned()],
        incomplete: false,
    };
    assert_eq!(listing(&two, 50), "/a\n/b/");
}

#[test]
fn truncated_file_names_next_start_line() {
    let content = "0123456789\n".repeat(100);
    let shown = file_text(&text(&content, 5), 200);
    assert_eq!(shown.chars().count(), 200);
    assert!(shown.starts_with("0123456789\n"));
    assert!(
        shown.ends_with(" of 1100 characters shown, up to line 16; read on with start_line=16]"),
        "{shown}"
    );
}

#[test]
fn truncated_single_line_suggests_the_shell() {
    let shown = file_text(&text(&"x".repeat(1000), 3), 300);
    assert!(shown.contains("this line alone is longer"), "{shown}");
    assert!(!shown.contains("start_line="));
}

#[test]
fn truncated_listing_states_total() {
    let lines = (0..100)
        .map(|n| format!("/mnt/user-data/workspace/{n:03}"))
        .collect();
    let shown = listing(
        &Listing {
            lines,
            incomplete: false,
        },
        500,
    );
    assert!(
        shown.contains(" of 2899 characters shown; list a subdirectory"),
        "{shown}"
    );
    assert!(shown.chars().count() <= 500);
}

#[test]
fn incomplete_listing_is_marked_even_if_short() {
    let lines = vec!["/mnt/user-data/workspace/a".to_owned()];
    for limit in [0, 500] {
        let shown = listing(
            &Listing {
                lines: lines.clone(),
                incomplete: true,
            },
            limit,
        );
        assert!(
            shown.starts_with("/mnt/user-data/workspace/a\n... [26 of 26 characters shown"),
            "{shown}"
        );
        assert!(shown.contains("there is more"), "{shown}");
    }
}

#[test]
fn error_has_prefix_and_retains_both_ends() {
    assert_eq!(error(&"no such file"), "Error: no such file");
    let long = error(&format!("start{}end", "x".repeat(5000)));
    assert!(long.starts_with("Error: start") && long.ends_with("end"));
    assert_eq!(long.chars().count(), ERROR_MAX_CHARS);
}

proptest! {
    #[test]
    fn no_result_exceeds_its_limit(
        content in "[a-zé\n]{0,400}",
        names in proptest::collection::vec("[a-zü]{1,20}", 0..20),
        incomplete in any::<bool>(),
        limit in 1_usize..400,
        first_line in 1_usize..2000,
    ) {
        prop_assert!(file_text(&text(&content, first_line), limit).chars().count() <= limit);
        prop_assert!(middle_cut(&content, limit).chars().count() <= limit);
        if !names.is_empty() {
            let shown = listing(&Listing { lines: names, incomplete }, limit);
            prop_assert!(shown.chars().count() <= limit);
        }
    }
}

#[test]
fn command_renders_output_and_end() {
    let shown = |out, err, end| command(out, err, end, Duration::from_secs(9), 0);
    assert_eq!(shown("a\n", "", CommandEnd::Exited(0)), "a");
    assert_eq!(
        shown("a\n", "b\n", CommandEnd::Exited(2)),
        "a\nStd Error:\nb\nExit Code: 2"
    );
    assert_eq!(shown("", "b", CommandEnd::Exited(0)), "b");
    assert_eq!(shown("", "", CommandEnd::Exited(0)), "(no output)");
    assert_eq!(shown("", "", CommandEnd::Exited(1)), "Exit Code: 1");
    assert!(shown("a", "", CommandEnd::TimedOut).ends_with("longer than 9 seconds."));
}

#[test]
fn long_output_is_truncated_in_the_middle() {
    let out = format!("begin{}end", "é".repeat(5000));
    for limit in [1, 90, 200, 5000] {
        let text = command(&out, "", CommandEnd::Exited(0), Duration::ZERO, limit);
        assert!(text.chars().count() <= limit, "{limit}");
    }
    let text = command(&out, "", CommandEnd::Exited(3), Duration::ZERO, 200);
    assert!(
        text.starts_with("begin")
            && text.ends_with("end\nExit Code: 3")
            && text.contains("characters are left out"),
        "{text}"
    );
}
