//! Each form of the directive language.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Script {
    Script::parse(text).unwrap()
}

fn call(tool: &str, arguments: &str) -> ScriptedCall {
    ScriptedCall {
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
    }
}

#[test]
fn tool_directives_become_steps_in_order() {
    let script = parsed(
        r#"[[tool:bash {"command":"echo ]] hi"}]] [[tools:[{"name":"ls","args":{"path":"/"}},{"name":"now"}]]] [[rawtool:bash "{oops"]] [[tool:noargs]] then say all  done"#,
    );
    assert_eq!(
        script.steps,
        [
            vec![call("bash", r#"{"command":"echo ]] hi"}"#)],
            vec![call("ls", r#"{"path":"/"}"#), call("now", "{}")],
            vec![call("bash", "{oops")],
            vec![call("noargs", "{}")],
        ]
    );
    assert_eq!(script.say.as_deref(), Some("all  done"));
    assert!(script.directed);
}

#[test]
fn every_word_directive_is_parsed() {
    let script = parsed(
        "[[slow 50x20ms]][[delay 300]][[think deep, long]][[error 429 times=2]][[cut 3]][[stop length]][[usage 11, 7]][[hang]][[frag]][[garbage]]",
    );
    assert_eq!(
        script.slow,
        Some(Pace {
            pieces: 50,
            gap: Duration::from_millis(20)
        })
    );
    assert_eq!(script.delay, Duration::from_millis(300));
    assert_eq!(script.think.as_deref(), Some("deep, long"));
    assert_eq!(
        script.failure,
        Some(Failure {
            status: 429,
            times: Some(2)
        })
    );
    assert_eq!(script.cut, Some(3));
    assert_eq!(script.stop.as_deref(), Some("length"));
    assert_eq!(script.usage, Some((11, 7)));
    assert!(script.hang && script.frag && script.garbage);
    assert_eq!((script.say, script.plain_text.as_str()), (None, ""));
}

#[test]
fn unknown_brackets_remain_text() {
    for text in [
        "see [[wiki page]] there",
        "m = [[1,2],[3,4]]",
        "[[tool:bash {\"cut sho",
        "[[",
        "if [[ -f x ]]; then",
    ] {
        let script = parsed(text);
        assert_eq!((script.plain_text.as_str(), script.directed), (text, false));
    }
}

#[test]
fn malformed_directive_error_names_the_expected_form() {
    for (text, named) in [
        ("[[slow fast]]", "[[slow fast]]"),
        ("[[slow 0x1ms]]", "50x20ms"),
        ("[[slow 999999999x1ms]]", "50x20ms"),
        ("[[error 200]]", "HTTP status"),
        ("[[error 500 twice]]", "times=2"),
        ("[[tool:bash {nope}]]", "valid JSON"),
        ("[[tool:bash {} more]]", "]] right after"),
        ("[[tool:bash [1]]]", "object of arguments"),
        ("[[tools:{}]]", "list of {name, args}"),
        ("[[usage many]]", "11,7"),
        ("[[stop]]", "a text"),
        ("[[delay 99999999]]", "milliseconds"),
    ] {
        let error = Script::parse(text).unwrap_err().to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

#[test]
fn then_say_must_be_separate_words() {
    assert_eq!(parsed("strengthen say no").say, None);
    assert_eq!(
        parsed("first look,then say yes\nand no").say.as_deref(),
        Some("yes\nand no")
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in r#"(\[\[|\]\]|tool:|tools:|rawtool:|slow |error |[a-z0-9 {}"\[\]:,x=é]){0,24}"#) {
        let _ = Script::parse(&text);
    }
}
