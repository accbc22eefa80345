//! Tests of reading prompt assets.

use std::fs;

use serde_json::json;

use super::{
    FolderAssets, MAX_FILE_BYTES, ManifestErrorCode, MemoryAssets, PromptAssetManifest, scan,
};
use crate::adapter::TurnMode;

const AGENT: &str = "---\nname: N\ndescription: D\nagentId: a\noutput.kind: text\n---\nBODY";

fn codes(manifest: &PromptAssetManifest) -> Vec<(ManifestErrorCode, Option<&str>, &str)> {
    let facts = |e: &super::ManifestError| (e.code, e.agent_id.clone(), e.source_path.clone());
    assert!(
        manifest
            .errors
            .iter()
            .all(|e| facts(e).2.is_some() && !e.message.is_empty())
    );
    let errors = manifest.errors.iter();
    errors
        .map(|e| {
            (
                e.code,
                e.agent_id.as_deref(),
                e.source_path.as_deref().unwrap_or_default(),
            )
        })
        .collect()
}

#[test]
fn project_without_assets_has_an_empty_manifest() {
    let manifest = scan(&MemoryAssets::new([("README.md", "x")]));
    assert_eq!(manifest, PromptAssetManifest::default());
}

#[test]
fn complete_folder_becomes_a_manifest() {
    let manifest = scan(&MemoryAssets::new([
        (".agents-flow/global-system-prompt.md", "GLOBAL\n"),
        (".agents-flow/README.md", "no error"),
        (
            ".agents-flow/agents/p.agent.md",
            "\u{feff}---\r\nname: N\r\ndescription: D\r\nagentId: planner\r\noutput.kind: plan\r\nmodel:\r\ntemperature: 0.5\r\nturnMode: plan\r\ntools: [search]\r\nincludes:\r\n  instructions: [style]\r\n  skills: [find]\r\n---\r\nline 1\r\nline 2\r\n",
        ),
        (
            ".agents-flow/instructions/any.instructions.md",
            "---\nname: style\ndescription: D\napplyTo: '*'\n---\nSTYLE",
        ),
        (
            ".agents-flow/skills/find/SKILL.md",
            "---\nname: F\ndescription: D\n---\nSKILL",
        ),
        (".agents-flow/skills/find/run.sh", "#!/bin/sh"),
        (".agents-flow/skills/empty/notes.md", "x"),
        (".agents-flow/memory/run/1/n/node-input.json", "{}"),
    ]));
    assert_eq!(codes(&manifest), []);
    assert_eq!(manifest.global_system_prompt.as_deref(), Some("GLOBAL"));
    let planner = &manifest.agents["planner"];
    assert_eq!(planner.body, "line 1\nline 2");
    assert_eq!(planner.adapter_kind, "pi-mono");
    assert_eq!(
        (planner.turn_mode, planner.model.as_deref()),
        (TurnMode::Plan, None)
    );
    assert!(planner.includes.global_system_prompt && !planner.user_invocable);
    assert_eq!(manifest.instructions["style"].content, "STYLE");
    assert_eq!(manifest.skills["find"].name, "F");
    assert_eq!(manifest.skills.len(), 1);
}

#[test]
fn each_problem_has_its_code_and_path() {
    use ManifestErrorCode::*;
    let large = "x".repeat(MAX_FILE_BYTES as usize + 1);
    let text = |name: &str| format!("---\nname: {name}\ndescription: D\n---\nT");
    let manifest = scan(&MemoryAssets::new([
        (".agents-flow/agents/1.agent.md", AGENT.to_owned()),
        (
            ".agents-flow/agents/2.agent.md",
            AGENT.replace("BODY", "SECOND"),
        ),
        (
            ".agents-flow/agents/3.agent.md",
            "no frontmatter".to_owned(),
        ),
        (
            ".agents-flow/agents/4.agent.md",
            AGENT
                .replace("agentId: a", "agentId: b")
                .replace("text", "poem"),
        ),
        (
            ".agents-flow/agents/5.agent.md",
            "---\nname: [\n---\n".to_owned(),
        ),
        (".agents-flow/agents/6.agent.md", large),
        (
            ".agents-flow/agents/7.agent.md",
            AGENT.replace(
                "agentId: a",
                "agentId: c\nincludes: {instructions: [x], skills: [y]}",
            ),
        ),
        (".agents-flow/agents/notes.md", "x".to_owned()),
        (".agents-flow/instructions/1.instructions.md", text("style")),
        (".agents-flow/instructions/2.instructions.md", text("style")),
        (".agents-flow/instructions/style.md", text("other")),
    ]));
    assert_eq!(
        codes(&manifest),
        [
            (UnexpectedFile, None, ".agents-flow/agents/notes.md"),
            (
                DuplicateAgentId,
                Some("a"),
                ".agents-flow/agents/2.agent.md"
            ),
            (InvalidFrontmatter, None, ".agents-flow/agents/3.agent.md"),
            (
                InvalidFrontmatter,
                Some("b"),
                ".agents-flow/agents/4.agent.md"
            ),
            (InvalidFrontmatter, None, ".agents-flow/agents/5.agent.md"),
            (FileReadError, None, ".agents-flow/agents/6.agent.md"),
            (UnexpectedFile, None, ".agents-flow/instructions/style.md"),
            (
                DuplicateInstructionName,
                None,
                ".agents-flow/instructions/2.instructions.md"
            ),
            (MissingInclude, Some("c"), ".agents-flow/agents/7.agent.md"),
            (MissingInclude, Some("c"), ".agents-flow/agents/7.agent.md"),
        ]
    );
    assert_eq!(manifest.agents["a"].body, "BODY", "the first file counts");
    assert!(
        manifest.errors[3]
            .message
            .contains("`output.kind` expected one of text, plan, score")
    );
    assert_eq!(manifest.errors_of("c").count(), 2);
}

#[test]
fn compact_and_full_forms_deserialize() {
    let compact = json!({
        "globalSystemPrompt": "G",
        "instructions": {"style": "S"},
        "agents": {"p": {"name": "P", "description": "d", "outputKind": "plan", "body": "B"}},
        "errors": [{"code": "missing_include", "agentId": "p"}],
    });
    let manifest: PromptAssetManifest = serde_json::from_value(compact).unwrap();
    assert_eq!(manifest.instructions["style"].content, "S");
    assert_eq!(manifest.agents["p"].adapter_kind, "pi-mono");
    let full = serde_json::to_value(&manifest).unwrap();
    assert_eq!(
        serde_json::from_value::<PromptAssetManifest>(full).unwrap(),
        manifest
    );
}

#[test]
fn folder_on_disk_is_read_and_bounded() {
    let root = tempfile::tempdir().unwrap();
    let agents = root.path().join(".agents-flow/agents");
    fs::create_dir_all(&agents).unwrap();
    fs::write(agents.join("1.agent.md"), AGENT).unwrap();
    fs::write(
        agents.join("2.agent.md"),
        vec![b'x'; MAX_FILE_BYTES as usize + 1],
    )
    .unwrap();
    fs::write(agents.join("3.agent.md"), [0xff, 0xfe]).unwrap();
    let manifest = scan(&FolderAssets::open(root.path()).unwrap());
    assert_eq!(manifest.agents.keys().collect::<Vec<_>>(), ["a"]);
    let found: Vec<_> = codes(&manifest).iter().map(|(code, ..)| *code).collect();
    assert_eq!(found, [ManifestErrorCode::FileReadError; 2]);
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_of_the_folder_are_not_read() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.agent.md"), AGENT).unwrap();
    let root = tempfile::tempdir().unwrap();
    let assets = root.path().join(".agents-flow");
    fs::create_dir_all(assets.join("agents")).unwrap();
    symlink(
        outside.path().join("x.agent.md"),
        assets.join("agents/x.agent.md"),
    )
    .unwrap();
    symlink(outside.path(), assets.join("instructions")).unwrap();
    let manifest = scan(&FolderAssets::open(root.path()).unwrap());
    assert!(manifest.agents.is_empty() && manifest.instructions.is_empty());
    let found: Vec<_> = codes(&manifest).iter().map(|(code, ..)| *code).collect();
    assert_eq!(
        found,
        [
            ManifestErrorCode::FileReadError,
            ManifestErrorCode::StatError
        ]
    );
}
