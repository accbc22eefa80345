//! Tests of the probes of the database, of Redis and of sandboxes.

use super::*;

#[tokio::test]
async fn database_probe_runs_if_provided() {
    let machine = TestMachine::with(VALID_CONFIG);
    let probes = Probes {
        database: Some(&FailingDatabase),
        ..Probes::default()
    };
    let findings = machine.findings(&[], probes).await;
    assert_eq!(failures(&findings), ["database"]);
    assert_eq!(of(&findings, "database")[0].detail, "connection refused");
}

#[tokio::test(start_paused = true)]
async fn unresponsive_database_times_out() {
    let machine = TestMachine::with(VALID_CONFIG);
    let probes = Probes {
        database: Some(&UnresponsiveDatabase),
        ..Probes::default()
    };
    let findings = machine.findings(&[], probes).await;
    assert_eq!(of(&findings, "database")[0].detail, "no answer within 10 s");
}

struct Redis(Result<Result<&'static str, &'static str>, &'static str>);

#[async_trait]
impl RedisProbe for Redis {
    async fn probe(
        &self,
        _: &StreamBridgeConfig,
        _: &Settings,
    ) -> Result<Result<String, String>, String> {
        self.0
            .map(|judged| judged.map(str::to_owned).map_err(str::to_owned))
            .map_err(str::to_owned)
    }
}

#[tokio::test]
async fn redis_probe_runs_only_for_redis_bridge() {
    let probes = |redis| Probes {
        redis: Some(redis),
        ..Probes::default()
    };
    let memory = TestMachine::with(VALID_CONFIG);
    assert!(
        of(
            &memory.findings(&[], probes(&Redis(Err("refused")))).await,
            "stream bridge"
        )
        .is_empty()
    );
    let machine = TestMachine::with(&format!(
        "{VALID_CONFIG}stream_bridge: {{type: redis, redis_url: 'redis://:hunter2@localhost'}}\n"
    ));
    let cases = [
        (Redis(Ok(Ok("fine"))), "production", Verdict::Ok),
        (Redis(Ok(Err("allkeys-lru"))), "development", Verdict::Warn),
        (Redis(Ok(Err("allkeys-lru"))), "production", Verdict::Fail),
        (Redis(Err("refused")), "development", Verdict::Warn),
    ];
    for (redis, deployment, verdict) in &cases {
        let findings = machine
            .findings(&[("DEER_FLOW_ENV", deployment)], probes(redis))
            .await;
        let [finding] = of(&findings, "stream bridge")[..] else {
            panic!("{findings:?}")
        };
        assert_eq!(finding.verdict, *verdict, "{finding}");
        assert!(!finding.to_string().contains("hunter2"));
    }
}

struct Sandbox(ProbeReport);

#[async_trait]
impl CommandProbe for Sandbox {
    fn is_configured(&self, config: &AppConfig) -> bool {
        !config.tools.is_empty()
    }

    async fn probe(&self, _: &SandboxConfig) -> ProbeReport {
        self.0.clone()
    }

    async fn containers(
        &self,
        sandbox: &SandboxConfig,
        _: &Environment,
    ) -> Option<Result<String, String>> {
        (sandbox.provider == "aio").then(|| Err("the socket is not there".to_owned()))
    }
}

#[tokio::test]
async fn broken_and_disabled_sandboxes_are_reported() {
    use harness::sandbox::command::bubblewrap::{Layer, LayerReport};
    let report = |missing: Option<&str>| ProbeReport {
        layers: vec![LayerReport {
            layer: Layer::Namespaces,
            missing: missing.map(str::to_owned),
        }],
    };
    let bash = format!("{VALID_CONFIG}tools: [{{name: bash, group: bash, use: sandbox.bash}}]\n");
    let on_host = format!("{bash}sandbox: {{use: local, allow_host_bash: true}}\n");
    let contained = format!("{bash}sandbox: {{use: aio, allow_host_bash: true}}\n");
    let open = format!("{bash}sandbox: {{use: local, network: host}}\n");
    for (config, missing, verdict, words) in [
        (&bash, None, Verdict::Ok, "sandboxed: namespaces"),
        (
            &bash,
            Some("not allowed"),
            Verdict::Warn,
            "refused, the sandbox does not work here: namespaces: not allowed",
        ),
        (&on_host, None, Verdict::Warn, "without a sandbox"),
        (&open, None, Verdict::Warn, "full network access"),
        (
            &contained,
            None,
            Verdict::Warn,
            "containers are not available: the socket is not there",
        ),
    ] {
        let sandbox = Sandbox(report(missing));
        let findings = TestMachine::with(config)
            .findings(
                &[],
                Probes {
                    commands: Some(&sandbox),
                    ..Probes::default()
                },
            )
            .await;
        let [finding] = of(&findings, "commands")[..] else {
            panic!("{findings:?}")
        };
        assert_eq!(finding.verdict, verdict);
        assert!(finding.detail.contains(words), "{finding}");
    }
    let findings = TestMachine::with(VALID_CONFIG)
        .findings(
            &[],
            Probes {
                commands: Some(&Sandbox(report(None))),
                ..Probes::default()
            },
        )
        .await;
    assert!(
        of(&findings, "commands").is_empty(),
        "no tool runs commands"
    );
}
