//! Tests of the flows of a project.

use super::*;

const FLOW: &str = "meta: {name: x}\ngraph: {}\n";

fn found(files: &[(&str, &str)]) -> Vec<(String, Option<String>, Vec<String>)> {
    let files = files.iter().map(|(path, text)| ProjectFile {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    });
    let flows = flows_of_project(files.collect());
    let paths = |flow: &FoundFlow| flow.content.assets.iter().map(|a| a.path.clone()).collect();
    flows
        .into_iter()
        .map(|flow| (flow.path.clone(), flow.slug.clone(), paths(&flow)))
        .collect()
}

#[test]
fn documents_are_found_by_their_keys_in_path_order() {
    let broken = "{\"meta\": {\"name\": ";
    let found = found(&[
        ("b/Deep One.yml", FLOW),
        ("a.json", broken),
        (
            "package.json",
            "{\"name\": \"graph\", \"scripts\": {\"meta\": \"x\"}}",
        ),
        ("z.json", "{\"graph\": 1}"),
        ("compose.yaml", "services:\n  graph: 1\n"),
        ("a/b/c/d.yaml", FLOW),
        ("日.yaml", "\u{feff}\"graph\":\n"),
    ]);
    let flow = |path: &str, slug: Option<&str>| (path.to_owned(), slug.map(str::to_owned), vec![]);
    assert_eq!(
        found,
        [
            flow("a.json", Some("a")),
            flow("a/b/c/d.yaml", Some("d")),
            flow("b/Deep One.yml", Some("deep-one")),
            flow("z.json", Some("z")),
            flow("日.yaml", None),
        ]
    );
}

#[test]
fn assets_belong_to_the_nearest_project() {
    let files = [
        (".agents-flow/agents/x.agent.md", ""),
        (".agents-flow/own.yaml", FLOW),
        ("p/.agents-flow/agents/y.agent.md", ""),
        ("p/flows/f.yaml", FLOW),
        ("p/prompts/z.txt", ""),
    ];
    let assets: Vec<Vec<String>> = found(&files).into_iter().map(|(.., a)| a).collect();
    assert_eq!(
        assets[0],
        [
            ".agents-flow/agents/x.agent.md",
            "p/.agents-flow/agents/y.agent.md",
            "p/prompts/z.txt"
        ]
    );
    assert_eq!(
        assets[1],
        [".agents-flow/agents/y.agent.md", "prompts/z.txt"]
    );
    assert_eq!(
        found(&[("p/f.yaml", FLOW), ("p/a.md", "")])[0].2,
        Vec::<String>::new()
    );
}

#[test]
fn files_of_other_tools_are_no_project_files() {
    for (path, expected) in [
        ("a.yaml", true),
        (".agents-flow/skills/s/SKILL.md", true),
        ("a/b/c/d/e.yaml", false),
        ("node_modules/a.yaml", false),
        ("x/.git/a.md", false),
        ("a.png", false),
    ] {
        assert_eq!(is_project_file(path), expected, "{path}");
    }
}
