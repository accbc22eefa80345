//! Tests of `cargo xtask boundary` on a copy of this workspace, clean and with planted violations.

use anyhow::Result;

use crate::copy::Copy;

#[test]
fn this_workspace_has_no_violations() -> Result<()> {
    let (passed, output) = Copy::of_this_workspace()?.check("boundary")?;
    assert!(passed, "{output}");
    assert_eq!(output, "boundary: ok\n");
    Ok(())
}

#[test]
fn dev_dependency_of_harness_on_app_crate_is_reported() -> Result<()> {
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
         deerflow-sandbox, deerflow-flow\nboundary: 1 violation\n"
    );
    Ok(())
}

#[test]
fn axum_in_stores_is_reported() -> Result<()> {
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
         axum is for deerflow-gateway, deerflow-server, deerflow-tests, deerflow-chat-platforms only\nboundary: 1 violation\n"
    );
    Ok(())
}

#[test]
fn build_dependency_on_sibling_is_reported() -> Result<()> {
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
fn module_edge_without_row_is_reported() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.append(
        "harness/crates/core/src/clock.rs",
        "\nuse crate::state::ThreadState;\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert!(
        output.contains("`clock` may not name `state` in deerflow-core: move the item"),
        "{output}"
    );
    Ok(())
}

#[test]
fn row_without_edge_is_reported() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    copy.insert_after(
        "xtask/src/boundary/modules.txt",
        "[deerflow-core]\n",
        "planted: clock\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    assert_eq!(
        output,
        "xtask/src/boundary/modules.txt: deerflow-core has no module `planted`: \
         remove it from the table\nboundary: 1 violation\n"
    );
    Ok(())
}

#[test]
fn circle_of_files_and_of_folders_is_reported() -> Result<()> {
    let copy = Copy::of_this_workspace()?;
    let folder = "app/domain/src/items/planted";
    copy.write(
        &format!("{folder}/one/mod.rs"),
        "//! Planted.\n\nmod a;\nuse super::two::Two;\npub struct One;\n",
    )?;
    copy.write(
        &format!("{folder}/one/a.rs"),
        "//! Planted.\n\npub struct A;\n",
    )?;
    copy.write(
        &format!("{folder}/two/mod.rs"),
        "//! Planted.\n\nmod b;\nuse super::one::One;\npub struct Two;\n",
    )?;
    copy.write(
        &format!("{folder}/two/b.rs"),
        "//! Planted.\n\npub struct B;\n",
    )?;
    let (passed, output) = copy.check("boundary")?;
    assert!(!passed);
    for place in ["one/mod.rs", "one/"] {
        let line = format!("{folder}/{place}: import each other in a circle");
        assert!(output.contains(&line), "{line} is not in\n{output}");
    }
    assert!(output.ends_with("boundary: 2 violations\n"), "{output}");
    Ok(())
}

#[test]
fn crate_and_module_without_row_are_reported() -> Result<()> {
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
        output.contains("no row for module `planted` of deerflow-harness"),
        "{output}"
    );
    Ok(())
}
