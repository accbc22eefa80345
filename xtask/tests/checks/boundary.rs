//! Tests of `cargo xtask boundary` on a copy of this workspace, clean and with planted violations.

use anyhow::Result;

use crate::copy::Copy;

#[test]
fn this_workspace_is_clean() -> Result<()> {
    let (passed, output) = Copy::of_this_workspace()?.check("boundary")?;
    assert!(passed, "{output}");
    assert_eq!(output, "boundary: ok\n");
    Ok(())
}

#[test]
fn a_dev_dependency_of_harness_on_an_app_crate_is_caught() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.insert_after(
        "harness/Cargo.toml",
        "[dev-dependencies]\n",
        "deerflow-domain = { path = \"../app/domain\" }\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert_eq!(
        output,
        "deerflow-harness -> deerflow-domain (dev-dependency, harness/Cargo.toml): \
         deerflow-harness may depend on deerflow-core, deerflow-runtime, deerflow-models, \
         deerflow-sandbox\nboundary: 1 violation\n"
    );
    Ok(())
}

#[test]
fn axum_in_stores_is_caught() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.insert_after(
        "app/stores/Cargo.toml",
        "[dependencies]\n",
        "axum.workspace = true\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert_eq!(
        output,
        "deerflow-stores -> axum (dependency, app/stores/Cargo.toml): \
         axum is for deerflow-gateway, deerflow-server, deerflow-tests only\nboundary: 1 violation\n"
    );
    Ok(())
}

#[test]
fn a_build_dependency_on_a_sibling_is_caught() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.append(
        "app/bridges/Cargo.toml",
        "\n[build-dependencies]\ndeerflow-stores.workspace = true\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert!(
        output.contains(
            "deerflow-bridges -> deerflow-stores (build-dependency, app/bridges/Cargo.toml)"
        ),
        "{output}"
    );
    Ok(())
}

#[test]
fn an_upward_path_inside_harness_is_caught() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.write(
        "harness/src/messages/planted.rs",
        "//! Planted.\n\nuse crate::agents::Lead;\nuse super::super::runtime::tasks;\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 3, "{output}");
    assert!(lines[0].starts_with(
        "harness/src/messages/planted.rs:3: `crate::agents` points up: messages is in layer 0"
    ));
    assert!(lines[1].starts_with("harness/src/messages/planted.rs:4: `crate::runtime` points up"));
    assert_eq!(lines[2], "boundary: 2 violations");
    Ok(())
}

#[test]
fn a_crate_and_a_module_without_a_row_are_caught() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.write("harness/src/planted/mod.rs", "//! Planted.\n")?;
    copy.write("app/planted/src/lib.rs", "//! Planted.\n")?;
    copy.write(
        "app/planted/Cargo.toml",
        "[package]\nname = \"deerflow-planted\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    )?;
    copy.insert_after("Cargo.toml", "members = [", "\"app/planted\", ")?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert!(
        output.contains("app/planted/Cargo.toml: deerflow-planted has no row"),
        "{output}"
    );
    assert!(
        output.contains("harness/src/planted/mod.rs: module `planted` has no layer"),
        "{output}"
    );
    Ok(())
}
