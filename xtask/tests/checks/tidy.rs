//! Tests of `cargo xtask tidy` on a copy of this workspace with planted violations.

use anyhow::Result;

use crate::copy::Copy;

#[test]
fn untidy_files_are_reported_in_every_folder() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    for folder in ["harness/src", "app/stores/src", "xtask/src", "tests/it"] {
        copy.write(&format!("{folder}/planted.rs"), "fn f() { todo!() } \n")?;
    }
    copy.append(
        "xtask/src/tidy/oversize.txt",
        "app/gone.rs 500 it was long\n",
    )?;
    let (passed, output) = copy.check("tidy")?;
    assert!(!passed);
    for folder in ["harness/src", "app/stores/src", "xtask/src", "tests/it"] {
        for problem in [
            "must open with one `//!` sentence",
            "ends in whitespace",
            "`todo!` marks missing code",
        ] {
            let line = format!("{folder}/planted.rs:1: {problem}");
            assert!(output.contains(&line), "{line} is not in\n{output}");
        }
    }
    assert!(output.contains("app/gone.rs does not exist"), "{output}");
    Ok(())
}

#[test]
fn types_that_break_a_rule_are_reported() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.write(
        "app/server/src/wiring/planted.rs",
        "//! Planted.\n\nstruct Planted;\nmod b {\n    struct Planted;\n}\nmod c {\n    enum Planted {}\n}\n\
         impl Drop for Planted {}\nfn f() {\n    super::super::f()\n}\n",
    )?;
    copy.write(
        "app/server/src/wiring/planted_long.rs",
        &format!("//! Planted.\n{}", "// line\n".repeat(100)),
    )?;
    copy.append("xtask/src/tidy/types.txt", "a::Gone:3 it was there\n")?;
    let (passed, output) = copy.check("tidy")?;
    assert!(!passed);
    for problem in [
        "3 types named `Planted` in deerflow-server",
        "1 trait implementations in the wiring",
        "wiring/planted_long.rs: 101 lines, more than 100",
        "`super::super` hides the target of a path",
        "types.txt: a::Gone:3 violates no rule",
        "tidy: 5 violations",
    ] {
        assert!(output.contains(problem), "{problem} is not in\n{output}");
    }
    Ok(())
}
