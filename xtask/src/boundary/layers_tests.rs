//! Tests of the layer rules on small sources.

use super::*;

fn problems(path: &str, text: &str) -> Vec<String> {
    let path = Utf8Path::new(path);
    let module = module_of(
        path,
        &BTreeSet::from([path, Utf8Path::new("harness/src/runtime/tasks.rs")]),
    );
    let file = SourceFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let mut violations = Vec::new();
    check_file(&file, &module, &mut violations);
    violations.iter().map(ToString::to_string).collect()
}

const MESSAGE: &str = "harness/src/messages/message.rs";

#[test]
fn a_module_may_use_its_own_layer_and_lower_ones() {
    let text = "use crate::{messages::Message, tools::{Tool, ToolError}};\nfn f(c: crate::clock::Now) { self::g() }";
    assert_eq!(
        problems("harness/src/models/factory.rs", text),
        Vec::<String>::new()
    );
}

#[test]
fn upward_path_is_reported_with_line_and_layers() {
    let found = problems(MESSAGE, "//! Doc.\n\nfn f() { crate::agents::lead() }\n");
    assert_eq!(
        found,
        [
            "harness/src/messages/message.rs:3: `crate::agents` points up: messages is in layer 0 \
          (messages, state, ids, clock, config, host_file, net, fair_limiter), agents in layer 3 (middlewares, agents, subagents)"
        ]
    );
}

#[test]
fn every_branch_of_a_group_counts() {
    let found = problems(
        MESSAGE,
        "use crate::{\n  clock::Clock,\n  tools::{Tool},\n  flow,\n};",
    );
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("harness/src/messages/message.rs:3: `crate::tools`"));
    assert!(found[1].starts_with("harness/src/messages/message.rs:4: `crate::flow`"));
}

#[test]
fn a_chain_of_super_counts_when_it_reaches_the_top() {
    assert_eq!(problems(MESSAGE, "use super::super::agents::X;").len(), 1);
    assert_eq!(
        problems(MESSAGE, "use super::agents::X;"),
        Vec::<String>::new()
    );
    let nested = "mod inner { use super::super::super::agents::X; use super::super::agents::Y; }";
    assert_eq!(problems(MESSAGE, nested).len(), 1);
    assert_eq!(
        problems("harness/src/ids.rs", "use self::super::agents::X;").len(),
        1
    );
}

#[test]
fn a_test_file_is_a_child_of_the_module_it_tests() {
    let path = "harness/src/runtime/tasks_tests.rs";
    assert_eq!(
        problems(path, "use super::*; use super::super::agents;"),
        Vec::<String>::new()
    );
    assert_eq!(
        problems(path, "use super::super::super::agents::X;").len(),
        1
    );
    let of_folder = "harness/src/runtime/runtime_tests.rs";
    assert_eq!(problems(of_folder, "use super::super::agents::X;").len(), 1);
}

#[test]
fn comments_documentation_and_strings_do_not_count() {
    let text = "//! [`crate::agents`]\n/// crate::agents::X\n/* crate::flow /* nested */ */\nconst A: &str = r#\"crate::flow\"#; // crate::flow";
    assert_eq!(problems(MESSAGE, text), Vec::<String>::new());
}

#[test]
fn a_path_inside_a_macro_counts() {
    assert_eq!(
        problems(MESSAGE, "fn f() { vec![crate::agents::X] }").len(),
        1
    );
}

#[test]
fn only_test_code_may_use_the_testkit() {
    let testkit = "use crate::testkit::scripted;";
    assert_eq!(problems(MESSAGE, testkit).len(), 1);
    for gate in [
        "test",
        "any(test, feature = \"testkit\")",
        "feature = \"testkit\"",
    ] {
        let gated = format!("#[cfg({gate})] mod tests {{ {testkit} }} #[cfg({gate})] {testkit}");
        assert_eq!(problems(MESSAGE, &gated), Vec::<String>::new(), "{gate}");
    }
    assert_eq!(
        problems(MESSAGE, &format!("#[cfg(test)] use a::b; {testkit}")).len(),
        1
    );
    assert_eq!(
        problems(MESSAGE, &format!("#[cfg(not(test))] {testkit}")).len(),
        1
    );
    for path in [
        "messages/message_tests.rs",
        "models/wire_kit.rs",
        "models/test_server.rs",
    ] {
        assert_eq!(
            problems(&format!("harness/src/{path}"), testkit),
            Vec::<String>::new(),
            "{path}"
        );
    }
}

#[test]
fn the_testkit_and_the_root_may_use_everything() {
    let text = "pub use crate::client::Client;";
    for path in ["harness/src/testkit/mod.rs", "harness/src/lib.rs"] {
        assert_eq!(problems(path, text), Vec::<String>::new());
    }
}

#[test]
fn a_path_through_a_re_export_or_a_glob_hides_its_layer() {
    for text in ["use crate::Agent;", "use crate::*;"] {
        let found = problems(MESSAGE, text);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("name the module"), "{found:?}");
    }
    assert_eq!(
        problems(
            MESSAGE,
            "crate::some_macro!(); fn f() { $crate::some_macro!() }"
        ),
        Vec::<String>::new()
    );
}

#[test]
fn invalid_rust_is_reported() {
    let found = problems(MESSAGE, "fn f() {\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("is not Rust"), "{found:?}");
}
