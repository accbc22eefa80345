//! Import of files, projects and archives into the folder of system flows.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use harness::config_file::Environment;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::import::import;
use crate::cli::{FileArgs, ImportArgs};

const AGENT: &str = "---\nname: Writer\ndescription: Writes.\nagentId: writer\noutput.kind: text\n\
                     adapterKind: model\n---\nWrite.\n";

fn flow(name: &str, agent: &str) -> String {
    format!(
        "meta: {{schemaVersion: '2.0', name: {name}}}\nagents: {{agentDefs: []}}\ngraph:\n  \
         startNodeId: a\n  nodes: [{{nodeId: a, nodeKind: agent.main, agentRef: {agent}}}]\n  edges: []\n"
    )
}

struct Installation(tempfile::TempDir);

impl Installation {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = "config_version: 34\ndatabase: {backend: memory}\n";
        fs::write(home.path().join("config.yaml"), config).unwrap();
        Self(home)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a project with an agent and a flow that uses it.
    fn project(&self, name: &str) -> PathBuf {
        self.write(&format!("{name}/.agents-flow/agents/w.agent.md"), AGENT);
        self.write(&format!("{name}/main.yaml"), &flow("Main", "writer"));
        self.0.path().join(name)
    }

    fn import(&self, source: &Path, replace: bool) -> (ExitCode, String, String) {
        let args = ImportArgs {
            source: source.to_owned(),
            replace,
            file: FileArgs {
                config: Some(self.0.path().join("config.yaml")),
            },
        };
        let environment = Environment::of(self.0.path(), [("A", "b")]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = import(&args, &environment, &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (code, text(out), text(err))
    }

    fn flows(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path().join("flows"))
            .into_iter()
            .flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn project_folder_is_imported_with_its_assets() {
    let installation = Installation::new();
    let project = installation.project("My Project");
    let (code, out, err) = installation.import(&project.join(".agents-flow"), false);
    assert_eq!((code, out.as_str()), (ExitCode::SUCCESS, "main\n"), "{err}");
    assert_eq!(installation.flows(), ["my-project"]);
    let (code, _, err) = installation.import(&project, false);
    assert_eq!(code, ExitCode::FAILURE);
    assert!(err.contains("exists; use --replace"), "{err}");
    let (code, _, err) = installation.import(&project, true);
    assert_eq!(code, ExitCode::SUCCESS, "{err}");
    assert_eq!(installation.flows(), ["my-project"]);
}

#[test]
fn archive_with_one_folder_is_a_project() {
    let installation = Installation::new();
    let path = installation.0.path().join("pack.zip");
    let mut zip = ZipWriter::new(fs::File::create(&path).unwrap());
    for (name, text) in [
        ("top/.agents-flow/agents/w.agent.md", AGENT.to_owned()),
        ("top/main.yaml", flow("Main", "writer")),
    ] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    let (code, out, err) = installation.import(&path, false);
    assert_eq!((code, out.as_str()), (ExitCode::SUCCESS, "main\n"), "{err}");
    assert!(installation.0.path().join("flows/pack/main.yaml").is_file());
}

#[test]
fn invalid_flow_imports_nothing() {
    let installation = Installation::new();
    let project = installation.project("p");
    installation.write("p/other.yaml", &flow("Other", "nobody"));
    let (code, out, err) = installation.import(&project, false);
    assert_eq!((code, out.as_str()), (ExitCode::FAILURE, ""));
    assert!(err.contains("agent_ref_not_found"), "{err}");
    assert_eq!(installation.flows(), [""; 0]);
}

#[test]
fn id_of_another_flow_is_refused() {
    let installation = Installation::new();
    let project = installation.project("p");
    let first = installation.import(&project, false);
    assert_eq!(first.0, ExitCode::SUCCESS, "{}", first.2);
    let other = installation.project("q");
    let (code, _, err) = installation.import(&other, true);
    assert_eq!(code, ExitCode::FAILURE);
    assert!(
        err.contains("p/main.yaml has the id \"main\" already"),
        "{err}"
    );
    assert_eq!(installation.flows(), ["p"]);
}

#[test]
fn file_without_a_flow_is_refused() {
    let installation = Installation::new();
    let file = installation.write("notes.yaml", "a: 1\n");
    let (code, _, err) = installation.import(&file, false);
    assert_eq!(code, ExitCode::FAILURE);
    assert!(err.contains("contains no flow"), "{err}");
}
