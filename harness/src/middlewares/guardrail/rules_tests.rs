//! Tests of patterns on arguments and paths.

use serde_json::json;

use super::*;

#[test]
fn star_matches_any_text() {
    for (pattern, text, matches_request) in [
        ("bash", "bash", true),
        ("bash", "bash2", false),
        ("*", "", true),
        ("mcp_*", "mcp_x", true),
        ("*rm -rf*", "sudo rm -rf /", true),
        ("a*b*c", "a1b2c", true),
        ("a*b*c", "acb", false),
        ("ab*ba", "aba", false),
        ("", "x", false),
    ] {
        assert_eq!(matches(pattern, text), matches_request, "{pattern} {text}");
    }
}

#[test]
fn path_spellings_are_equivalent() {
    let rule = |action| Rule {
        tools: vec![],
        users: vec![],
        when: BTreeMap::new(),
        action,
        code: None,
        reason: None,
    };
    for (pattern, spelled, denied, allowed) in [
        (
            "/mnt/user-data/outputs/*",
            "/mnt/user-data/outputs/a",
            true,
            true,
        ),
        (
            "/mnt/user-data/outputs/*",
            "/mnt//user-data/./outputs/a",
            true,
            true,
        ),
        ("*/./*", "/mnt/user-data/./outputs/a", true, false),
        (
            "/mnt/user-data/outputs/*",
            "/mnt/user-data/workspace/a",
            false,
            false,
        ),
        ("/etc/*", "/etc/./passwd", true, true),
        ("/etc/*", "//etc/passwd", true, true),
        ("/etc/*", "/srv/../etc/passwd", true, false),
        ("/etc/*", " /../etc/passwd", true, false),
        ("/srv/*", "/srv/../etc/passwd", true, false),
        (
            "/mnt/user-data/outputs/*",
            "/mnt/user-data/outputs/../workspace/a",
            true,
            false,
        ),
        ("src/*", "src/../../etc/passwd", true, false),
        ("git log*", "git log a..b", true, true),
    ] {
        let matches_argument =
            |action| rule(action).matches_argument(pattern, &Value::from(spelled));
        assert_eq!(
            (
                matches_argument(Verdict::Deny),
                matches_argument(Verdict::Allow)
            ),
            (denied, allowed),
            "{pattern} {spelled}"
        );
    }
}

#[test]
fn every_text_of_argument_is_matched() {
    let rule = |action| Rule {
        tools: vec![],
        users: vec![],
        when: BTreeMap::new(),
        action,
        code: None,
        reason: None,
    };
    for (pattern, value, denied, allowed) in [
        ("/etc/*", json!(["/srv/a", "//etc/passwd"]), true, false),
        (
            "/etc/*",
            json!({"files": [{"path": "/etc/./passwd"}]}),
            true,
            true,
        ),
        ("/srv/*", json!({"/etc/passwd": "/srv/a"}), true, false),
        ("/srv/*", json!(["/srv/a", "/srv/b"]), true, true),
        ("/srv/*", json!([]), false, false),
        ("7", json!(7), true, true),
        ("[[]]*", json!([]), false, false),
        ("[]", json!([]), true, true),
        ("*", json!({}), true, true),
    ] {
        let matches_argument = |action| rule(action).matches_argument(pattern, &value);
        assert_eq!(
            (
                matches_argument(Verdict::Deny),
                matches_argument(Verdict::Allow)
            ),
            (denied, allowed),
            "{pattern} {value}"
        );
    }
}
