//! The directives of the scripted model.

use super::*;

fn script(text: &str) -> Script {
    Script::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn call(tool: &str, arguments: &str) -> Call {
    Call {
        tool: tool.to_owned(),
        arguments: arguments.to_owned(),
        ghost: false,
    }
}

#[test]
fn plain_words_are_echoed_with_blanks_collapsed() {
    assert_eq!(
        script(" hello \n there ").say,
        FinalText::Echo("hello there".to_owned())
    );
    assert_eq!(script("").say, FinalText::Done);
    assert_eq!(script("hi you").pieces(), ["Echo: ", "hi ", "you"]);
}

#[test]
fn tool_calls_are_steps_and_the_given_text_ends_them() {
    let script = script(
        r#"[[tool:bash {"command": "echo ]] x"}]] [[tools:[{"name":"a","args":{"k":[[1]]}},{"name":"b"}]]] [[rawtool:c "{oops"]] [[tool:d]] then say all good"#,
    );
    assert_eq!(
        script.steps,
        [
            vec![call("bash", r#"{"command": "echo ]] x"}"#)],
            vec![call("a", r#"{"k":[[1]]}"#), call("b", "{}")],
            vec![call("c", "{oops")],
            vec![call("d", "{}")],
        ]
    );
    assert_eq!(script.say, FinalText::Given("all good".to_owned()));
}

#[test]
fn ghost_calls_a_tool_that_is_not_offered() {
    assert_eq!(
        script(r#"[[ghost:g {"a": 1}]]"#).steps,
        [vec![Call {
            ghost: true,
            ..call("g", r#"{"a": 1}"#)
        }]]
    );
    assert_eq!(
        script("[[ghost:g]]").steps,
        [vec![Call {
            ghost: true,
            ..call("g", "{}")
        }]]
    );
}

#[test]
fn modifiers_are_understood() {
    let script = script(
        "[[slow 4x20ms]][[delay 300]][[think deep thoughts]][[error 429 times=2]][[cut 3]][[stop length]][[usage 11,7]][[hang]][[garbage]][[frag]][[hold 2 here]]",
    );
    assert_eq!(
        script.slow,
        Some(Pace {
            pieces: 4,
            gap: Duration::from_millis(20)
        })
    );
    assert_eq!(script.delay, Duration::from_millis(300));
    assert_eq!(script.think.as_deref(), Some("deep thoughts"));
    assert_eq!(
        script.failure,
        Some(Failure {
            status: 429,
            times: Some(2),
            after: None
        })
    );
    assert_eq!(script.cut, Some(3));
    assert_eq!(
        script.hold,
        Some(Hold {
            after: 2,
            word: "here".to_owned()
        })
    );
    assert_eq!(script.stop.as_deref(), Some("length"));
    assert_eq!(
        script.usage,
        Some(Usage {
            prompt: 11,
            completion: 7,
            cached: None
        })
    );
    let further = Script::parse("[[error 503 after=60 times=1]] [[usage 11,7,4]]").unwrap();
    assert_eq!(
        further.failure,
        Some(Failure {
            status: 503,
            times: Some(1),
            after: Some(60)
        })
    );
    assert_eq!(
        further.usage,
        Some(Usage {
            prompt: 11,
            completion: 7,
            cached: Some(4)
        })
    );
    assert!(script.hang && script.garbage && script.frag);
    assert_eq!(script.say, FinalText::Done);
    assert_eq!(script.pieces(), ["tok0 ", "tok1 ", "tok2 ", "tok3 "]);
}

#[test]
fn slow_text_is_split_evenly() {
    assert_eq!(
        script("[[slow 3x1ms]] then say überall").pieces(),
        ["übe", "ral", "l"]
    );
}

#[test]
fn truncated_directive_is_plain_text() {
    for text in [
        "say [[",
        "say [[tool:bash",
        "say [[tool:bash {\"comm",
        "say [[tools:[{",
        "say [[rawtool:x \"a",
        "say [[tool:bash {}",
    ] {
        let script = script(text);
        assert_eq!(
            (script.steps, script.say),
            (vec![], FinalText::Echo(text.to_owned()))
        );
    }
}

#[test]
fn malformed_directives_are_reported() {
    for (text, message) in [
        ("[[slwo 3x1]]", "unknown directive [[slwo]]"),
        (
            "[[slow three]]",
            "directive [[slow three]] expects PIECESxMILLISECONDS such as 50x20ms, at most 100000 pieces",
        ),
        (
            "[[slow 999999999999x1]]",
            "directive [[slow 999999999999x1]] expects PIECESxMILLISECONDS such as 50x20ms, at most 100000 pieces",
        ),
        (
            "[[error 200]]",
            "directive [[error 200]] expects a status from 400 to 599, optionally times=N and after=SECONDS",
        ),
        ("[[stop]]", "directive [[stop]] expects a text"),
        ("[[cut]]", "directive [[cut]] expects a number of pieces"),
        (
            "[[hold here]]",
            "directive [[hold here]] expects a number of pieces, optionally a word",
        ),
        (
            "[[tool: {}]]",
            "directive [[tool:]] expects a tool name after the colon",
        ),
        (
            "[[tool:bash {oops}]]",
            "directive [[tool:bash]] expects JSON arguments",
        ),
    ] {
        assert_eq!(
            Script::parse(text).map_err(|error| error.to_string()),
            Err(message.to_owned())
        );
    }
}
