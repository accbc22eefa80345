//! Parses a text as an agent file, an instruction and a skill of a flow's project: it becomes an
//! asset or an error.
#![no_main]

use deerflow_flow::assets::{MemoryAssets, scan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let manifest = scan(&MemoryAssets::new([
        (".agents-flow/agents/a.agent.md", text),
        (".agents-flow/instructions/a.instructions.md", text),
        (".agents-flow/skills/a/SKILL.md", text),
    ]));
    let assets = manifest.agents.len() + manifest.instructions.len() + manifest.skills.len();
    assert!(assets + manifest.errors.len() >= 3);
});
