//! Tests of `deerflow doctor` on healthy and broken machines.

#[path = "doctor_probe_tests.rs"]
mod probe;

use std::fs;
use std::net::TcpListener;

use async_trait::async_trait;
use harness::config::{DatabaseConfig, ModelConfig, SandboxConfig, StreamBridgeConfig};
use harness::sandbox::command::bubblewrap::ProbeReport;

use super::*;

struct FailingDatabase;

#[async_trait]
impl DatabaseProbe for FailingDatabase {
    async fn probe(&self, _: &DatabaseConfig, _: &Settings) -> Result<String, String> {
        Err("connection refused".to_owned())
    }
}

struct UnresponsiveDatabase;

#[async_trait]
impl DatabaseProbe for UnresponsiveDatabase {
    async fn probe(&self, _: &DatabaseConfig, _: &Settings) -> Result<String, String> {
        std::future::pending().await
    }
}

struct OnlyScripted;

impl ProviderProbe for OnlyScripted {
    fn probe(&self, model: &ModelConfig) -> Result<String, String> {
        match model.provider.as_str() {
            "scripted" => Ok("scripted".to_owned()),
            other => Err(format!("unknown provider {other}")),
        }
    }
}

struct TestMachine {
    dir: tempfile::TempDir,
}

impl TestMachine {
    fn with(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.yaml"), config).unwrap();
        Self { dir }
    }

    async fn findings(&self, variables: &[(&str, &str)], probes: Probes<'_>) -> Vec<Finding> {
        let port = [("GATEWAY_PORT", "0")];
        let environment = Environment::of(self.dir.path(), port.iter().chain(variables).copied());
        examine(&FileArgs::default(), &environment, probes).await
    }
}

const VALID_CONFIG: &str = "config_version: 34\nmodels: [{name: s, use: scripted, model: s}]\n";

fn of<'a>(findings: &'a [Finding], subject: &str) -> Vec<&'a Finding> {
    findings
        .iter()
        .filter(|finding| finding.subject == subject)
        .collect()
}

fn failures(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Fail)
        .map(|finding| finding.subject)
        .collect()
}

#[tokio::test]
async fn healthy_machine_passes_and_stays_unchanged() {
    let machine = TestMachine::with(VALID_CONFIG);
    let findings = machine.findings(&[], Probes::default()).await;
    assert_eq!(failures(&findings), [""; 0], "{findings:?}");
    assert_eq!(fs::read_dir(machine.dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn port_of_running_deerflow_is_no_failure() {
    use std::io::Read;
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = gateway.local_addr().unwrap().port().to_string();
    let answering = std::thread::spawn(move || {
        let (mut socket, _) = gateway.accept().unwrap();
        let mut request = [0; 512];
        assert!(socket.read(&mut request).unwrap() > 0);
        let body = r#"{"status":"healthy","service":"deer-flow-gateway"}"#;
        write!(
            socket,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        gateway
    });
    let patient = Probes {
        health_timeout: Some(Duration::from_secs(60)),
        ..Probes::default()
    };
    let findings = TestMachine::with(VALID_CONFIG)
        .findings(&[("GATEWAY_PORT", &port)], patient)
        .await;
    drop(answering.join().unwrap());
    assert_eq!(failures(&findings), [""; 0], "{findings:?}");
    assert!(of(&findings, "port")[0].detail.contains("running deerflow"));
}

#[tokio::test]
async fn database_probe_creates_no_database() {
    let machine = TestMachine::with(VALID_CONFIG);
    let probes = Probes {
        database: Some(&live_probes::LiveDatabaseProbe),
        ..Probes::default()
    };
    let findings = machine.findings(&[], probes).await;
    assert_eq!(failures(&findings), [""; 0], "{findings:?}");
    assert!(
        of(&findings, "database")[0]
            .detail
            .contains("will be created"),
        "{findings:?}"
    );
    assert_eq!(fs::read_dir(machine.dir.path()).unwrap().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_failure_has_a_fix() {
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = occupied.local_addr().unwrap().port().to_string();
    let machine = TestMachine::with("title: {max_words: 99}\n");
    let blocked = machine.dir.path().join("config.yaml/home");
    let home = blocked.to_str().unwrap();
    let findings = machine
        .findings(
            &[("GATEWAY_PORT", &port), ("DEER_FLOW_HOME", home)],
            Probes::default(),
        )
        .await;
    assert_eq!(
        failures(&findings),
        ["configuration", "port", "home directory"]
    );
    assert!(
        findings
            .iter()
            .all(|finding| finding.verdict == Verdict::Ok || !finding.fix.is_empty())
    );
    assert!(
        of(&findings, "configuration")[0]
            .detail
            .contains("config.yaml:1:20"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn missing_key_is_warning_if_other_model_works() {
    let machine = TestMachine::with(
        "config_version: 34\nmodels:\n  - {name: s, use: scripted, model: s}\n  - {name: g, use: openai, model: m, api_key: $K}\n",
    );
    let findings = machine.findings(&[], Probes::default()).await;
    let models = of(&findings, "models");
    assert_eq!(models[1].verdict, Verdict::Warn);
    assert_eq!(models[1].fix, "set K in the environment or in .env");
    assert_eq!(failures(&findings), [""; 0]);
}

#[tokio::test]
async fn unknown_tool_and_unused_setting_are_reported() {
    let machine = TestMachine::with(&format!(
        "{VALID_CONFIG}tools: [{{name: t, group: g, use: my.tools:t}}]\nmemory: {{mode: tool}}\n"
    ));
    let findings = machine.findings(&[], Probes::default()).await;
    let tools = of(&findings, "tools");
    assert!(
        tools[0].verdict == Verdict::Warn
            && tools[0]
                .detail
                .contains("`my.tools:t`, which is not a tool"),
        "{tools:?}"
    );
    assert!(
        of(&findings, "configuration")
            .iter()
            .any(|finding| finding.detail.contains("`memory.mode`")),
        "{findings:?}"
    );
    assert_eq!(failures(&findings), [""; 0]);

    let environment = Environment::of(machine.dir.path(), [("A", "b")]);
    let mut output = Vec::new();
    let check = crate::cli::ConfigCommand::Check(FileArgs::default());
    crate::commands::config::run(&check, &environment, &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    assert!(
        output.contains("warning: `tools[0].use` is `my.tools:t`")
            && output.contains("`memory.mode`"),
        "{output}"
    );
}

#[tokio::test]
async fn sign_in_is_checked_for_model_without_key() {
    let machine =
        TestMachine::with(&VALID_CONFIG.replace("]", ", {name: c, use: codex, model: m}]"));
    let path = machine.dir.path().join("auth.json");
    let file_name = path.to_str().unwrap();
    let probes = Probes {
        provider: Some(&live_probes::LiveProviderProbe),
        ..Probes::default()
    };
    let probe = async || {
        let findings = machine
            .findings(&[("CODEX_AUTH_PATH", file_name)], probes)
            .await;
        let model = of(&findings, "models")[1];
        (model.verdict, model.detail.clone())
    };
    let (verdict, found) = probe().await;
    assert_eq!(verdict, Verdict::Warn);
    assert!(
        found.contains(file_name) && found.contains("sign in with `codex login`"),
        "{found}"
    );
    fs::write(&path, r#"{"tokens": {"access_token": "canary"}}"#).unwrap();
    assert_eq!(
        probe().await,
        (
            Verdict::Ok,
            format!("`c` through codex, signed in by {file_name}")
        )
    );
}

#[tokio::test]
async fn agents_with_missing_programs_are_reported() {
    let agents = "acp_agents:\n  here: {command: /bin/sh, description: d}\n  lost: {command: no-such-agent, description: d}\n";
    let findings = TestMachine::with(&format!("{VALID_CONFIG}{agents}"))
        .findings(&[("PATH", "/bin")], Probes::default())
        .await;
    let found: Vec<_> = of(&findings, "acp agents")
        .iter()
        .map(|finding| (finding.verdict, finding.detail.as_str()))
        .collect();
    assert_eq!(found[0], (Verdict::Ok, "`here` starts `/bin/sh`"));
    assert_eq!(found[1].0, Verdict::Warn);
    assert!(
        found[1]
            .1
            .starts_with("`lost` cannot work: its command `no-such-agent` was not found on PATH"),
        "{found:?}"
    );
}

#[tokio::test]
async fn missing_usable_model_is_a_failure() {
    let machine = TestMachine::with("config_version: 34\nmodels: [{name: a, use: b, model: c}]\n");
    let probes = Probes {
        provider: Some(&OnlyScripted),
        ..Probes::default()
    };
    assert_eq!(failures(&machine.findings(&[], probes).await), ["models"]);
    let machine = TestMachine::with("config_version: 34\n");
    assert_eq!(failures(&machine.findings(&[], probes).await), ["models"]);
}

#[tokio::test]
async fn public_bind_without_auth_fails_unless_allowed() {
    let machine = TestMachine::with(VALID_CONFIG);
    let open = [
        ("GATEWAY_HOST", "0.0.0.0"),
        ("DEER_FLOW_AUTH_DISABLED", "1"),
    ];
    assert_eq!(
        failures(&machine.findings(&open, Probes::default()).await),
        ["authentication"]
    );
    assert_eq!(
        failures(&machine.findings(&open[..1], Probes::default()).await),
        [""; 0]
    );
    let named = [open[0], open[1], ("DEER_FLOW_ALLOW_INSECURE_BIND", "1")];
    assert_eq!(
        failures(&machine.findings(&named, Probes::default()).await),
        [""; 0]
    );
}

#[tokio::test]
async fn settings_of_sign_in_without_effect_are_reported() {
    let machine = TestMachine::with(VALID_CONFIG);
    let about = async |variables: &[(&str, &str)]| {
        let findings = machine.findings(variables, Probes::default()).await;
        let texts: Vec<String> = findings
            .iter()
            .filter(|finding| finding.subject == "sign-in")
            .map(ToString::to_string)
            .collect();
        texts
    };
    let secret = "0123456789abcdef0123456789abcdef";
    let right = [
        ("DEER_FLOW_AUTH_DISABLED", "0"),
        ("AUTH_TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("AUTH_JWT_SECRET", secret),
        ("DEER_FLOW_AUTH_ALLOW_INSECURE_PERSISTENT_COOKIE", "yes"),
    ];
    assert_eq!(about(&right).await, [""; 0]);
    for (name, value) in [
        ("DEER_FLOW_AUTH_DISABLED", "true"),
        ("AUTH_TRUSTED_PROXIES", "10.0.0.0/8, proxy"),
        ("AUTH_JWT_SECRET", "short"),
        ("DEER_FLOW_INTERNAL_AUTH_TOKEN", "short"),
        ("DEER_FLOW_AUTH_ALLOW_INSECURE_PERSISTENT_COOKIE", "perhaps"),
    ] {
        let found = about(&[(name, value)]).await;
        assert!(matches!(&*found, [one] if one.contains(name)), "{found:?}");
        assert!(!found[0].contains("short\""), "{found:?}");
    }
}

#[tokio::test]
async fn failure_sets_exit_code() {
    let machine = TestMachine::with("models: [\n");
    let environment = Environment::of(machine.dir.path(), [("GATEWAY_PORT", "0")]);
    let mut out = Vec::new();
    let code = run(
        &FileArgs::default(),
        &environment,
        Probes::default(),
        &mut out,
    )
    .await
    .unwrap();
    assert_eq!(code, ExitCode::FAILURE);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("FAIL  configuration: "), "{text}");
    assert!(text.contains("fix: "), "{text}");
}

#[tokio::test]
async fn broken_flows_are_named() {
    let machine = TestMachine::with(VALID_CONFIG);
    assert_eq!(
        of(&machine.findings(&[], Probes::default()).await, "flows").len(),
        0
    );
    let folder = machine.dir.path().join("flows");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("bad.yaml"), "meta: {name: x}\n").unwrap();
    let valid = "meta: {schemaVersion: '2.0', name: n}
agents: {agentDefs: [{agentId: a, adapterKind: model}]}
graph: {startNodeId: n, nodes: [{nodeId: n, nodeKind: agent.main, agentId: a}], edges: []}
";
    fs::write(folder.join("good.yaml"), valid).unwrap();
    let findings = machine.findings(&[], Probes::default()).await;
    let [broken, summary] = of(&findings, "flows")[..] else {
        panic!("{findings:?}")
    };
    assert_eq!(broken.verdict, Verdict::Warn);
    let found = broken.to_string();
    assert!(
        found.contains("bad.yaml:1: error schema_invalid"),
        "{found}"
    );
    assert_eq!(summary.verdict, Verdict::Ok);
    assert!(summary.to_string().contains("1 valid in"), "{summary}");
}
